"""From an issue of a trace to its operation of the program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import Operation, Phase, Program
from lstmsim.program.trace import Trace

__all__ = ["issued_operations", "issued_steps"]


def _per_phase(program: Program, trace: Trace, fill: int) -> NDArray[np.int64]:
    width = max((len(phases) for task in program.tasks for _, phases in task.variants), default=1)
    wide = {id(task.wide): task.wide for task in program.tasks}
    width = max(width, *(len(each.phases) for one in wide.values() for each in one), 1)
    return np.full((len(program.tasks), width), fill, dtype=np.int64)


def _phases_that_ran(program: Program, trace: Trace) -> Iterator[tuple[int, tuple[Phase, ...]]]:
    """Yield each task that was not turned away with its phases for the core on which it ran."""
    for number, core in enumerate(trace.task("core").tolist()):
        if core >= 0:
            yield number, program.tasks[number].phases(program.cores[core].kind, trace.spread(number))


def issued_operations(program: Program, trace: Trace) -> tuple[list[Operation], NDArray[np.int64]]:
    """List all operations of the bodies that ran, and for each row of `trace.issues` the place of its operation.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, label="a"), Operation(0, label="b")))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 2),)),), (), (0,)),))
    >>> operations, index = issued_operations(program, run(program))
    >>> [operations[i].label for i in index]
    ['a', 'b', 'a', 'b']
    """
    operations: list[Operation] = []
    first: dict[int, list[int]] = {}
    base = _per_phase(program, trace, 0)
    for number, phases in _phases_that_ran(program, trace):
        if id(phases) not in first:
            first[id(phases)] = []
            for phase in phases:
                first[id(phases)].append(len(operations))
                operations.extend(phase.body.operations)
        base[number, : len(phases)] = first[id(phases)]
    return operations, base[trace.issue("task"), trace.issue("phase")] + trace.issue("operation")


def issued_steps(program: Program, trace: Trace) -> NDArray[np.int64]:
    """The time step of each row of `trace.issues` (`Phase.step` says how steps are counted)."""
    first, sign = _per_phase(program, trace, 0), _per_phase(program, trace, 1)
    for number, phases in _phases_that_ran(program, trace):
        first[number, : len(phases)] = [phase.step(0) for phase in phases]
        sign[number, : len(phases)] = [-1 if phase.mirrored else 1 for phase in phases]
    operations, index = issued_operations(program, trace)
    ahead = np.array([operation.ahead for operation in operations], dtype=np.int64)[index]
    where = trace.issue("task"), trace.issue("phase")
    steps: NDArray[np.int64] = first[where] + sign[where] * (trace.issue("iteration") + ahead)
    return steps
