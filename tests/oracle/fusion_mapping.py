"""Sections 4 and 5 of docs/fusion.md: numbers of a device, thread mapping, owners."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.oracle.fusion_graph import Graph, up
from tests.oracle.fusion_groups import Group

Owner = tuple[int, int]
Owners = list[Owner]
Device = dict[str, Any]


def resident(device: Device, threads: int, shared: int) -> int:
    w = up(threads, device["warp"])
    room = [
        device["max_blocks"],
        device["max_warps"] // w,
        device["registers"] // (w * up(device["assumed_registers"] * device["warp"], 256) * 256),
    ]
    if shared > 0:
        room.append(device["shared_bytes"] // (up(shared, 256) * 256))
    return int(min(room))


def wave(device: Device, threads: int, shared: int) -> int:
    return resident(device, threads, shared) * int(device["sms"])


def mapping(kind: str, **more: int) -> dict[str, Any]:
    usual = {"lanes": more["threads"], "per_block": 1, "tasks": 1, "pieces": 1}
    return {"kind": kind} | usual | more


def row(device: Device, rows: int, length: int, w: int) -> tuple[dict[str, Any], Owners]:
    """Rule 1: the mapping, and the owner of every element of the operand."""
    most, warp = device["block_threads"], device["warp"]
    worth = device["split_rule"] == "paper" or up(length, most) * device["turn_cycles"] > device["grid_cycles"]
    if length > device["split_length"] and rows < w and worth:
        piece = up(up(length, w // rows), warp) * warp
        pieces = up(length, piece)
        if pieces > 1:
            threads = min(most, piece)
            owners = [
                (r * pieces + col // piece, (col % piece) % threads) for r in range(rows) for col in range(length)
            ]
            return mapping("split", blocks=rows * pieces, threads=threads, pieces=pieces, piece=piece), owners
    lanes = min(most, up(length, warp) * warp)
    per_block = max(1, min(most // lanes, up(rows, w)))
    tiles = up(rows, per_block)
    tasks = up(tiles, w)
    owners = [
        ((r // per_block) // tasks, (r % per_block) * lanes + col % lanes) for r in range(rows) for col in range(length)
    ]
    made = mapping(
        "pack",
        blocks=up(tiles, tasks),
        threads=per_block * lanes,
        lanes=lanes,
        per_block=per_block,
        tasks=tasks,
        piece=length,
    )
    return made, owners


def column(device: Device, parts: list[list[int]], length: int, w: int) -> tuple[dict[str, Any], Owners]:
    """Rule 2."""
    most, warp, rows = device["block_threads"], device["warp"], len(parts)
    cb, tasks, piece, pieces = up(rows, warp), 1, length, 1
    if cb >= w:
        threads = min(most, length * warp)
        tasks = up(cb, w)
        blocks = up(cb, tasks)
    else:
        turns = up(length, most // warp)
        f = max(1, min(w // cb, turns))
        if device["split_rule"] == "costed" and turns * device["turn_cycles"] <= device["grid_cycles"]:
            f = 1
        piece = up(length, f)
        pieces = up(length, piece)
        blocks, threads = cb * pieces, min(most, piece * warp)
    high = threads // warp
    owners: list[Any] = [None] * (rows * length)
    for p, elements in enumerate(parts):
        for place, e in enumerate(elements):
            if pieces > 1:
                owners[e] = ((p // warp) * pieces + place // piece, ((place % piece) % high) * warp + p % warp)
            else:
                owners[e] = ((p // warp) // tasks, (place % high) * warp + p % warp)
    made = mapping("column", blocks=blocks, threads=threads, lanes=warp, tasks=tasks, pieces=pieces, piece=piece)
    return made, owners


def element(device: Device, size: int, w: int) -> tuple[dict[str, Any], Owners]:
    """Rule 3."""
    threads = min(device["element_threads"], up(size, device["warp"]) * device["warp"])
    tiles = up(size, threads)
    tasks = up(tiles, w)
    owners = [((e // threads) // tasks, e % threads) for e in range(size)]
    return mapping("element", blocks=up(tiles, tasks), threads=threads, tasks=tasks, piece=size), owners


def adapted(graph: Graph, group: Group, ends: set[int], done: dict[int, tuple[Group, Owners]]) -> Any:
    """Rule 4: None if the group does not follow an earlier one. `done`: candidates of groups that are mapped."""
    reads = [(v, elements) for v, elements in graph.tree(group.backbone, ends)[1:] if v in done]
    if not reads:
        return None
    first = min(v for v, _ in reads)
    elements = next(elements for v, elements in reads if v == first)
    leader, theirs = done[first]
    owner_blocks = [theirs[e][0] for e in elements]
    blocks, threads, size = leader.mapping["blocks"], leader.mapping["threads"], len(elements)
    assert isinstance(blocks, int)
    assert isinstance(threads, int)
    if max(Counter(owner_blocks).values()) * blocks > 2 * size:
        return None
    seen = Counter[int]()
    owners = []
    for block in owner_blocks:
        owners.append((block, seen[block] % threads))
        seen[block] += 1
    return mapping("adapted", blocks=blocks, threads=threads, piece=size), owners


def propagated(
    graph: Graph, group: Group, edges: list[tuple[int, int]], start: int, owners: Owners
) -> dict[int, Owners]:
    """Rule 5: the owners of all nodes that the group's indices reach."""
    blocks, threads = group.mapping["blocks"], group.mapping["threads"]
    assert isinstance(blocks, int)
    assert isinstance(threads, int)
    known: dict[int, list[Any]] = {start: list(owners)}
    used = {(u, v) for u, v in edges if v in group.members}
    if start != group.backbone:
        used.add((start, group.backbone))
    looked = set[int]()
    while set(known) - looked:
        at = min(set(known) - looked)
        looked.add(at)
        for v in graph.readers[at]:
            if (at, v) in used:
                index = [part[0] for part in graph.parts(v)] if graph.reduces(v) else graph.index(v, at)
                here = known.setdefault(v, [None] * graph.sizes[v])
                for e, needed in enumerate(index):
                    if here[e] is None:
                        here[e] = known[at][needed]
        for u in graph.known(at):
            if (u, at) in used and u not in known:
                known[u] = backward(graph, at, u, known[at], threads)
    return {
        v: [(e * blocks // graph.sizes[v], e % threads) if each is None else each for e, each in enumerate(here)]
        for v, here in known.items()
    }


def backward(graph: Graph, v: int, u: int, owners: list[Any], threads: int) -> list[Any]:
    """The owners of an operand by those of its reader."""
    got: list[Any] = [None] * graph.sizes[u]
    if graph.reduces(v):
        for p, part in enumerate(graph.parts(v)):
            for place, e in enumerate(part):
                got[e] = None if owners[p] is None else (owners[p][0], place % threads)
    else:
        for e, needed in enumerate(graph.index(v, u)):
            got[needed] = owners[e]
    return got
