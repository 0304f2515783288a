"""Accounts: every cycle of every core has exactly one name, and so has every PE-cycle.

A cycle is `busy` or `switch` if the core's array issued or switched. Otherwise the threads of the core decide. The
cycle bears the first of the names of `PRIORITY` that any thread has. If no thread has one, the cycle is `idle`.

A main unit with several ways is as many units: the cycles of each way are named by its own threads. A core without a
main unit has no names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.issued import issued_operations
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.program.waits import CoreSpans, Intervals, core_spans

__all__ = ["PRIORITY", "NamedCycles", "named_cycles", "totals_of", "useful_work"]

#: The order in which a core looks for the name of a cycle.
PRIORITY = CYCLE_NAMES[:-1]


@dataclass(frozen=True, eq=False)
class NamedCycles:
    """The cycles of a core's main unit, or of one of its ways, from 0 to the makespan, as named segments.

    names: all names.
    edges: cycles; segment i covers `edges[i] <= cycle < edges[i+1]`.
    name: for each segment the place of its name in `names`.
    """

    names: tuple[str, ...]
    edges: NDArray[np.int64]
    name: NDArray[np.int8]

    def each(self) -> tuple[str, ...]:
        """The name of every cycle from 0 on."""
        return tuple(self.names[index] for index in np.repeat(self.name, np.diff(self.edges)).tolist())

    def totals(self) -> dict[str, int]:
        """Cycles by name; they add up to the makespan."""
        lengths = np.diff(self.edges)
        return {name: int(lengths[self.name == index].sum()) for index, name in enumerate(self.names)}


def named_cycles(
    program: Program, trace: Trace, core: int, spans: CoreSpans | None = None, way: int = 0
) -> NamedCycles:
    """Name every cycle of a core; a core without an accounted unit has no names.

    program, trace: the lowered scenario and its run.
    core: number of the core.
    spans: intervals of the core, if the caller has them.
    way: which of several ways of the accounted unit it is.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3), Operation(0, needs=(Dependence(0, 5),), result_cycles=4)))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> {name: n for name, n in named_cycles(program, run(program), 0).totals().items() if n}
    {'busy': 4, 'hazard': 4, 'drain': 3}
    """
    described = program.cores[core]
    if described.accounted is None:
        return NamedCycles(CYCLE_NAMES, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int8))
    spans = (spans or core_spans(program, trace, core)).of_way(way, described.units[described.accounted].ways)
    by_name: Mapping[str, Intervals] = {"busy": spans.busy, "switch": spans.switch, **spans.waits}
    ends = [array for each in by_name.values() for array in (each.start, each.end)]
    edges = np.unique(np.concatenate([*ends, np.array([0, trace.makespan_cycles])]))
    names = CYCLE_NAMES
    name = np.full(max(len(edges) - 1, 0), names.index("idle"), dtype=np.int8)
    for index in reversed(range(len(PRIORITY))):
        each = by_name[PRIORITY[index]]
        change = np.zeros(len(edges), dtype=np.int64)
        np.add.at(change, np.searchsorted(edges, each.start), 1)
        np.add.at(change, np.searchsorted(edges, each.end), -1)
        name[np.cumsum(change)[:-1] > 0] = index
    return NamedCycles(names, edges, name)


def useful_work(program: Program, trace: Trace) -> list[int]:
    """Count the useful multiply-accumulates that each core issued.

    `ProgramError` if a sum does not fit into 64 bits.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3, work=8),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 2),)),), (), (0,)),))
    >>> useful_work(program, run(program))
    [48]
    """
    operations, index = issued_operations(program, trace)
    work = np.array([operation.work for operation in operations], dtype=np.int64)
    done = work[index] * trace.issue("count")
    if done.sum(dtype=float) >= 2**63:
        raise ProgramError("a sum does not fit into 64 bits")
    return [int(done[trace.issue("core") == core].sum()) for core in range(len(program.cores))]


def totals_of(program: Program, trace: Trace) -> Totals:
    """The totals of a run, read off its trace.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3, work=8),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 2),)),), (), (0,)),))
    >>> totals_of(program, run(program)).cycles.tolist()
    [[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    """
    cycles = np.array([_core_totals(program, trace, core) for core in range(len(program.cores))], dtype=np.int64)
    issues = np.bincount(trace.issue("core"), weights=trace.issue("count"), minlength=len(program.cores))
    work = np.array(useful_work(program, trace), dtype=np.int64)
    return Totals(cycles.reshape(-1, len(CYCLE_NAMES)), work, issues.astype(np.int64), trace.tasks, trace.pauses)


def _core_totals(program: Program, trace: Trace, core: int) -> list[int]:
    """The cycles of a core by name, over all ways of its accounted unit."""
    described, spans = program.cores[core], core_spans(program, trace, core)
    ways = 1 if described.accounted is None else described.units[described.accounted].ways
    named = [named_cycles(program, trace, core, spans, way).totals() for way in range(ways)]
    return [sum(each[name] for each in named) for name in CYCLE_NAMES]
