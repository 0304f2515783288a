"""When requests that waited in pools did so for company: while their window was open, or their pool not ripe."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import Pool, Program
from lstmsim.program.trace import Trace

Numbers = NDArray[np.int64]


def unripe(pool: Pool, arrived: Sequence[int], left: Sequence[int]) -> tuple[list[int], list[bool]]:
    """From which cycles on a pool without windows is not ripe, after the admissions of the cycle, or is so again.

    arrived, left: of its requests, when each came, and when it was admitted or lost patience.
    """
    changes = sorted({*arrived, *left})
    coming, going = sorted(zip(arrived, left, strict=True)), sorted(left)
    waiting: list[tuple[int, int]] = []
    came = gone = 0
    edges, holds = [0], [False]
    for number, cycle in enumerate(changes):
        while came < len(coming) and coming[came][0] <= cycle:
            heappush(waiting, coming[came])
            came += 1
        while gone < len(going) and going[gone] <= cycle:
            gone += 1
        while waiting and waiting[0][1] <= cycle:
            heappop(waiting)
        ripe_at = waiting[0][0] + pool.wait if waiting else cycle
        edges.append(cycle)
        holds.append(bool(waiting) and came - gone < pool.most and ripe_at > cycle)
        end = changes[number + 1] if number + 1 < len(changes) else ripe_at
        if holds[-1] and ripe_at < end:
            edges.append(ripe_at)
            holds.append(False)
    return edges, holds


def closings(program: Program, trace: Trace, pool: int) -> dict[int, int]:
    """When the windows closed in which the requests of a pool were; of one that left an open one, when it left."""
    most, wait = program.pools[pool].most, program.pools[pool].wait
    arrived, left, core = (trace.task(name).tolist() for name in ("arrived", "admitted", "core"))
    own = [number for number, task in enumerate(program.tasks) if task.pool == pool]
    # whom the limit of a queue turned away was in no window
    inside = [number for number in own if core[number] >= 0 or left[number] > arrived[number]]
    follows = [task.after is not None or task.behind is not None for task in program.tasks]
    closed = {number: left[number] for number in own}
    members: list[int] = []
    ends = 0

    def leave(cycle: int) -> None:
        members[:] = [each for each in members if core[each] >= 0 or left[each] > cycle]

    def close(cycle: int) -> None:
        closed.update((each, cycle) for each in members)
        members.clear()

    for number in sorted(inside, key=lambda each: (arrived[each], follows[each], each)):
        cycle = arrived[number]
        leave(min(cycle, ends))
        if members and ends < cycle:
            close(ends)
        leave(cycle)
        if not members:
            ends = cycle + wait
        members.append(number)
        if len(members) == most:
            close(cycle)
    leave(ends)
    close(ends)
    return closed
