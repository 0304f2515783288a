"""Random programs of the parallel device, laid out as golden cases."""

from __future__ import annotations

from random import Random
from typing import Any

CLASSES = ("alu", "fma", "sfu", "shfl", "lds", "sts", "ldg", "stg", "atom")
LATENCIES = ("alu", "fma", "sfu", "shuffle", "shared", "l1", "l2", "dram", "barrier")


def draw_device(draw: Random) -> dict[str, Any]:
    """A small device with a few numbers of its own."""
    device: dict[str, Any] = {
        "preset": "toy",
        "sms": draw.randint(1, 4),
        "schedulers": draw.randint(1, 4),
        "partitions": draw.randint(1, 4),
        "launch": draw.choice((0, 1, 50, 100)),
        "warp_policy": draw.choice(("fine", "coarse")),
        "dispatch": draw.choice((1, 1, 5)),
        "start": draw.choice((0, 0, 7)),
        "retire": draw.choice((0, 0, 9)),
        "max_blocks": draw.choice((1, 2, 4, 32)),
        "max_warps": draw.choice((4, 5, 8, 64)),
        "port": draw.choice(([4, 5], [1, 1], [2, 1], [3, 7])),
        "sync": draw.randint(1, 3),
        "grid": draw.randint(1, 80),
        "dram": draw.randint(1, 4),
        "atomic": draw.randint(1, 3),
        "warp": draw.choice((32, 32, 64)),
    }
    for name in draw.sample(LATENCIES, draw.randint(0, 5)):
        low = {"alu": 4, "fma": 4, "sfu": 16}.get(name, 1)
        device[f"{name}_latency"] = draw.randint(low, 60)
    return device


def draw_kernels(draw: Random, device: dict[str, Any]) -> list[dict[str, Any]]:
    """A few kernels that the device can run."""
    return [_kernel(draw, device) for _ in range(draw.randint(1, 3))]


def _kernel(draw: Random, device: dict[str, Any]) -> dict[str, Any]:
    warps = draw.randint(1, min(4, device["max_warps"]))
    kernel: dict[str, Any] = {
        "warps": warps,
        "registers": draw.choice((0, 32, 64)),
        "shared": draw.choice((0, 0, 300, 40000)),
        "persistent": draw.random() < 0.3,
    }
    room = min(device["max_blocks"], device["max_warps"] // warps, 2 if kernel["shared"] > 300 else 99)
    blocks = draw.choice((0, 1, 2, 3, 5, 9))
    gridbars = 0
    if kernel["persistent"]:
        blocks, gridbars = min(blocks, room * device["sms"]), draw.randint(1, 3)
    pinned = draw.random() < 0.4 and not kernel["persistent"]
    made: list[dict[str, Any]] = []
    for _ in range(blocks):
        if made and draw.random() < 0.3:
            block = {"streams": made[-1]["streams"]}
        else:
            block = {"streams": _streams(draw, device, warps, gridbars)}
        if pinned and draw.random() < 0.8:
            block["sm"] = draw.randrange(device["sms"])
        made.append(block)
    return kernel | {"blocks": made}


def _streams(draw: Random, device: dict[str, Any], warps: int, gridbars: int) -> list[list[dict[str, Any]]]:
    """The streams of a block: parts between barriers, as many of each kind in every stream."""
    barriers = ["gridbar"] * gridbars
    for _ in range(draw.choice((0, 0, 1, 2))):
        barriers.insert(draw.randint(0, len(barriers)), "bar")
    streams: list[list[dict[str, Any]]] = [[] for _ in range(warps)]
    for stream in streams:
        if not barriers and draw.random() < 0.2:
            continue
        for barrier in [*barriers, None]:
            for _ in range(draw.choice((0, 1, 2, 4))):
                stream.append(_instruction(draw, device, len(stream)))
            if barrier:
                stream.append({"kind": barrier, "waits": _waits(draw, len(stream))})
    return streams


def _waits(draw: Random, before: int) -> list[int]:
    return sorted(draw.sample(range(before), min(before, draw.choice((0, 0, 1, 2, 3)))))


def _instruction(draw: Random, device: dict[str, Any], place: int) -> dict[str, Any]:
    kind = draw.choice(CLASSES)
    each: dict[str, Any] = {"kind": kind, "waits": _waits(draw, place)}
    if kind in ("alu", "fma", "sfu"):
        return each | {"count": draw.choice((1, 1, 2, 5))}
    if kind in ("lds", "sts"):
        return each | {"lsu": draw.randint(1, 6)}
    if kind == "shfl":
        return each | {"lsu": 1}
    each["lsu"] = draw.randint(1, 4)
    places = draw.sample(range(device["partitions"]), draw.randint(0, device["partitions"]))
    if kind == "atom":
        return each | {"sectors": draw.randint(1, 8), "misses": {str(p): draw.randint(1, 9) for p in places or [0]}}
    missing = {str(p): draw.randint(1, 5) for p in places}
    found = draw.random() < 0.6
    sectors = sum(missing.values()) + (draw.randint(1, 6) if found or not missing else 0)
    each |= {"sectors": sectors, "misses": missing, "in_l2": sectors > sum(missing.values())}
    if kind == "ldg" and draw.random() < 0.4:
        each["in_l1"] = True
        if draw.random() < 0.5:
            each |= {"sectors": 0, "misses": {}, "in_l2": False}
    return each
