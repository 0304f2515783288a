"""What the threads of jobs on a multi-core CPU waited for, read off the trace of any program of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.multicore.stages import CORE
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import CAUSE_NUMBERS
from lstmsim.program.program import Body, Phase, Program
from lstmsim.program.trace import Trace

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_OPERATIONS, _NEEDS = FLAT_TABLES["operations"], FLAT_TABLES["needs"]
_CONTENTION = CAUSE_NUMBERS["contention"]


@dataclass(frozen=True, eq=False)
class StepTimes:
    """The steps of a task, thread after thread, each thread's in their order. Columns of equal length; times in cycles.

    thread: whose step it is.
    start: when it began on its core.
    done: when its core was through with it, with the cycles that it has only because of lines of memory.
    end: when its lines were there too.
    free: from when on it could have begun: its thread's step before had ended, and its frame was there.
    of_memory: how many cycles its core had only because of lines of memory.
    contended: whether it waits for another thread's step on its piece of C.
    """

    thread: Numbers
    start: Numbers
    done: Numbers
    end: Numbers
    free: Numbers
    of_memory: Numbers
    contended: Flags


def step_times(program: Program, trace: Trace, number: int = 0) -> StepTimes:
    """The times of the steps of a task that ran."""
    task = program.tasks[number]
    first = int(trace.task("core")[number])
    place = next(each for each in task.places if each[0] == first)
    threads = sum(not program.cores[each].shared for each in place)
    admitted, arrived = int(trace.task("admitted")[number]), int(trace.task("arrived")[number])
    mine = trace.issue("task") == number
    parts = []
    for phase_number, phase in enumerate(task.phases(program.cores[first].kind)):
        own = mine & (trace.issue("phase") == phase_number)
        starts = np.zeros((phase.repeat, phase.body.size), dtype=np.int64)
        starts[trace.issue("iteration")[own], trace.issue("operation")[own]] = trace.issue("start")[own]
        parts.append(_of_phase(phase, threads, starts, arrived, task.frame_interval))
    columns = {one.name: np.concatenate([getattr(each, one.name) for each in parts]) for one in fields(StepTimes)}
    order = np.argsort(columns["thread"], kind="stable")
    times = StepTimes(**{name: column[order] for name, column in columns.items()})
    before = np.concatenate([[admitted], times.end[:-1]])
    before[np.diff(times.thread, prepend=-1) != 0] = admitted
    return replace(times, free=np.maximum(before, times.free))


def _of_phase(phase: Phase, threads: int, starts: Numbers, arrived: int, interval: int) -> StepTimes:
    """The steps of a phase, in its order; `free` is when their frames are there."""
    body = phase.body
    operations = body.rows.operations.reshape(-1, _OPERATIONS.width)
    member, unit, cycles, result, frame = (
        operations[:, _OPERATIONS.place(name)] for name in ("member", "unit", "cycles", "result_cycles", "frame")
    )
    # what a step has on memories stands behind what it has on its core
    on_core = np.flatnonzero(member < threads)
    is_step = unit[on_core] == CORE
    step = on_core[is_step]
    end = np.maximum.reduceat(starts + result, on_core, axis=1)[:, is_step]
    start = starts[:, step]
    frames = [arrived + phase.step(iteration) * interval for iteration in range(phase.repeat)]
    free = np.where(frame[step] > 0, np.array(frames)[:, None], 0)
    alike = (member[step], (result - cycles)[step], _contended(body)[step])
    thread, of_memory, contended = (np.tile(each, phase.repeat) for each in alike)
    done = (start + result[step]).ravel()
    return StepTimes(thread, start.ravel(), done, end.ravel(), free.ravel(), of_memory, contended)


def _contended(body: Body) -> Flags:
    """Whether each operation waits for a piece of C."""
    operations = body.rows.operations.reshape(-1, _OPERATIONS.width)
    needs = body.rows.needs.reshape(-1, _NEEDS.width)
    upto = np.concatenate([[0], np.cumsum(needs[:, _NEEDS.place("cause")] == _CONTENTION)])
    first, count = (operations[:, _OPERATIONS.place(name)] for name in ("first_need", "needs"))
    contended: Flags = upto[first + count] > upto[first]
    return contended


def waits_of(times: StepTimes) -> Mapping[str, int]:
    """Cycles of all threads by what they waited for: `contention`, `barrier`, `memory`.

    All of a step's wait is one for its piece of C if it waits for that at all: the step before it on the piece began
    behind the same barrier, so nothing held it longer.
    """
    wait = times.start - times.free
    later = np.append(times.thread[1:] == times.thread[:-1], False)
    behind = {"contention": times.contended, "barrier": ~times.contended}
    waits = {name: int(wait[some].sum()) for name, some in behind.items()}
    return waits | {"memory": int((times.end - times.done)[later].sum())}
