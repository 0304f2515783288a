"""Devices of the golden cases, and kernels in the form in which the cases show them."""

from __future__ import annotations

from typing import Any

from lstmsim.targets.parallel.device import Device, ParallelCore, ParallelDevice, ParallelLatency
from lstmsim.targets.parallel.kernel import CLASSES, Kernel, Run

#: What the presets of the cases have other than the defaults, which are those of `v100`.
PRESETS: dict[str, dict[str, Any]] = {
    "v100": {"sms": 80},
    "edge": {"sms": 8, "partitions": 8, "dram": 3, "l2_bytes": 524288, "launch": 13770, "dram_latency": 594},
    "toy": {"sms": 2, "schedulers": 1, "partitions": 2, "launch": 100},
}
_CORE = ("schedulers", "warp", "max_warps", "max_blocks", "l1_bytes", "port", "warp_policy")


def device_of(given: dict[str, Any]) -> Device:
    """The device of a case."""
    values = PRESETS[given.get("preset", "toy")] | {name: value for name, value in given.items() if name != "preset"}
    latencies = {name.removesuffix("_latency"): values.pop(name) for name in list(values) if name.endswith("_latency")}
    core = {name: values.pop(name) for name in _CORE if name in values}
    if "port" in core:
        core["port"] = tuple(core["port"])
    sms = values.pop("sms")
    return ParallelDevice("x", 1530, (ParallelCore(**core, latency=ParallelLatency(**latencies)),) * sms, **values).view


def shown(kernel: Kernel) -> list[list[list[list[Any]]]]:
    """The streams of a kernel by block and warp: class, count, waits and cycles of the load/store unit."""
    text, warps = kernel.instructions, kernel.shape.warps
    rows = [
        [
            CLASSES[text.kind[row]],
            int(text.count[row]),
            text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist(),
            int(kernel.lsu[row]),
        ]
        for row in range(len(text.kind))
    ]
    streams = [rows[start:stop] for start, stop in zip(text.first, text.first[1:], strict=False)]
    return [streams[start : start + warps] for start in range(0, len(streams), warps)]


def counted(run: Run) -> dict[str, Any]:
    """What the cases say of all kernels together and what follows without a clock and without caches."""
    kinds = dict.fromkeys(CLASSES, 0)
    loads = {each.name: 0 for each in run.arrays}
    requests, lsu = 0, 0
    for kernel in run.kernels:
        text = kernel.instructions
        # an exchange between lanes takes the load/store unit one cycle
        lsu += int(kernel.lsu.sum()) + int((text.kind == CLASSES.index("shfl")).sum())
        for place, name in enumerate(CLASSES):
            kinds[name] += int(text.count[text.kind == place].sum())
            requests += int((text.kind == place).sum()) if name in ("ldg", "stg", "atom") else 0
        for place, each in enumerate(run.arrays):
            loads[each.name] += int(((kernel.array == place) & (text.kind == CLASSES.index("ldg"))).sum())
    return {
        "kinds": {name: count for name, count in kinds.items() if count},
        "requests": requests,
        "load_requests": sum(loads.values()),
        "lsu": lsu,
        "loads": loads,
    }


def expected_counts(expect: dict[str, Any]) -> dict[str, Any]:
    """The same of a case."""
    made = {name: expect[name] for name in ("kinds", "requests", "load_requests")}
    loads = {name: values[0] for name, values in expect["loads_by_array"].items()}
    return made | {"lsu": sum(expect["lsu"]), "loads": loads}


def laid_out(run: Run) -> list[list[Any]]:
    """Name, address and bytes of the arrays."""
    rows, address = [], 0
    for each in run.arrays:
        rows.append([each.name, address, 4 * each.elements])
        address += -(-4 * each.elements // 256) * 256
    return rows


def as_shown(streams: list[Any]) -> list[Any]:
    """The streams of a case without what needs caches."""
    return [[[[row[:4] for row in warp] for warp in block] for block in kernel] for kernel in streams]
