"""Who opened the gates of a run: of those that arrived there, the last one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.operations import Operation
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

__all__ = ["Opener", "openers"]


class Opener(NamedTuple):
    """The last arrival at a gate.

    cycle: when it came, which is when the gate opened.
    kind: `issues`, the end of a row of issues; `ends`, the finish of a task; `starts`, the admission of a task.
    number: the row, or the task.
    """

    cycle: int
    kind: str
    number: int


def openers(
    program: Program, trace: Trace, operations: list[Operation], numbers: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[int, Opener]:
    """The opener of each gate of a run.

    program, trace: what ran, and its trace.
    operations, numbers: operations that ran; for each row of issues the place of its operation there.
    end: when each row ended.

    Of arrivals in the same cycle the highest row or task counts, and a row before a task.
    """
    known: dict[int, Opener] = {}
    for gate, opener in (*_tasks(program, trace), *_rows(program, trace, operations, numbers, end)):
        if gate not in known or opener.cycle >= known[gate].cycle:
            known[gate] = opener
    return known


def _tasks(program: Program, trace: Trace) -> Iterator[tuple[int, Opener]]:
    admitted, finish = (trace.task(name).tolist() for name in ("admitted", "finish"))
    for number, task in enumerate(program.tasks):
        if task.starts is not None:
            yield task.starts, Opener(admitted[number], "starts", number)
        if task.ends is not None:
            yield task.ends, Opener(finish[number], "ends", number)


def _rows(
    program: Program, trace: Trace, operations: list[Operation], numbers: NDArray[np.int64], end: NDArray[np.int64]
) -> Iterator[tuple[int, Opener]]:
    arrives = np.array([-1 if each.arrives is None else each.arrives for each in operations], dtype=np.int64)
    kinds = [core.kind for core in program.cores]
    for row in np.flatnonzero(arrives[numbers] >= 0).tolist() if len(arrives) else ():
        task, phase, iteration = trace.issues[row, 4:7].tolist()
        phases = program.tasks[task].phases(kinds[int(trace.task("core")[task])], trace.spread(task))
        gate = phases[phase].gate(iteration, int(arrives[numbers[row]]))
        yield gate, Opener(int(end[row]), "issues", row)
