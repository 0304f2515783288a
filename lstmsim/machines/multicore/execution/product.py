"""A product alone: its traffic, its program, and what a run of it came to (docs/multicore.md, section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import CACHES, Counts, Division, GemmFigures, GemmWork
from lstmsim.machines.multicore.execution.stages import CORE, Block, cores_of, phases_of, place_of
from lstmsim.machines.multicore.execution.steps import Step, check_division, check_length, estimated_accesses, steps_of
from lstmsim.machines.multicore.execution.timing import compute_of, counts_of, timed_steps
from lstmsim.machines.multicore.lines.caches import open_caches
from lstmsim.machines.multicore.lines.space import Places, Runs, Space, Stage, TimedStep, operands
from lstmsim.machines.multicore.lines.walk import runs_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import CAUSE_NUMBERS
from lstmsim.program.program import Body, Phase, Program, Task
from lstmsim.program.trace import Trace

Rows = NDArray[np.int64]
#: Cores and runs of some steps.
_Batch = tuple[list[int], list[Runs]]

#: Runs of bytes after which the caches are driven with them.
_HELD = 1 << 20
#: About most accesses of lines of a walk that is kept for the second of two passes.
_KEPT = 1 << 22


@dataclass(frozen=True, eq=False)
class Traced:
    """A product whose lines went through the caches.

    division: of which product; without a buffer that nobody needs.
    stage: its steps for the clock.
    counts: its traffic.
    cold_counts: the traffic of the same product with empty caches; equal to `counts` if caches are cold.
    """

    division: Division
    stage: Stage
    counts: Counts
    cold_counts: Counts


def in_rounds(threads: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps in the order in which they drive the caches: the first of each thread, then the second ones."""
    return [step for together in zip_longest(*threads) for step in together if step is not None]


def traced(machine: Machine, division: Division, caches: str = "cold") -> Traced:
    """The traffic of a product and its steps for the clock; thread t runs on core t.

    machine: with as many cores as there are threads.
    division: any cut of a product.
    caches: one of `lstmsim.machines.gemm.CACHES`; warm: the second of two equal products one after the other.
    `InputError` for a division that is none, for more threads than cores, and for a product that is too long.
    """
    division = replace(division, buffer=division.buffer and division.cut.p_k > 1)
    _check(machine, division)
    wanted = CACHES.index(caches) + 1
    kept = _kept(machine, division)
    if len(kept.passes) < wanted:
        kept.passes[:] = _passes(machine, division, wanted)
    rows = kept.passes[wanted - 1]
    steps = in_rounds(steps_of(machine, division))
    threads: list[list[TimedStep]] = [[] for _ in range(division.cut.threads)]
    for step, timed in zip(steps, timed_steps(machine, steps, rows), strict=True):
        threads[step.thread].append(timed)
    return Traced(division, Stage(tuple(map(tuple, threads))), counts_of(rows), counts_of(kept.passes[0]))


def _check(machine: Machine, division: Division) -> None:
    check_division(division)
    threads = division.cut.threads
    if threads > machine.cores:
        raise InputError(Mistake("threads", f"must be at most {machine.cores}, the number of cores, got {threads}"))
    check_length(machine, division)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What the caches counted for each step of a product, in rounds: of the first pass, then of the second."""

    passes: list[Rows] = field(default_factory=list)


@lru_cache(maxsize=64)
def _kept(machine: Machine, division: Division) -> _Kept:
    """What is kept of a product."""
    return _Kept()


def _passes(machine: Machine, division: Division, times: int) -> Iterator[Rows]:
    """What the caches count for each step, the product one time after another."""
    space = Space(machine)
    places = operands(space, machine, division)
    steps = in_rounds(steps_of(machine, division))
    caches = open_caches(machine, space.arrays)
    # a short walk is kept for the second time
    short = estimated_accesses(machine, division) <= _KEPT
    walk = list(_batches(machine, division, places, steps)) if short else None
    for _ in range(times):
        batches = walk or _batches(machine, division, places, steps)
        yield np.concatenate([caches.drive(cores, runs) for cores, runs in batches])


def _batches(machine: Machine, division: Division, places: Places, steps: Sequence[Step]) -> Iterator[_Batch]:
    """Cores and runs of the steps, in batches of about `_HELD` runs."""
    cores: list[int] = []
    runs: list[Runs] = []
    held = 0
    for step in steps:
        cores.append(step.thread)
        runs.append(runs_of(machine, division, places, step))
        held += len(runs[-1].address)
        if held >= _HELD or step is steps[-1]:
            yield cores, runs
            cores, runs, held = [], [], 0


def program_of(machine: Machine, stage: Stage, name: str) -> Program:
    """The Program of a product. It ends with the barrier of its threads."""
    first, *others = place_of(machine, 0, len(stage.steps))
    phases = phases_of(machine, [Block((stage,))])
    task = Task(name, ((0, phases),), (), (first,), partners=(tuple(others),))
    return Program(cores_of(machine), (task,))


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


#: Name of the only task of a product.
_NAME = "product"


def lowered(machine: Machine, division: Division, caches: str = "cold") -> GemmWork:
    """A product with its traffic and its program.

    machine: with as many cores as there are threads.
    division: any cut of the product.
    caches: one of `lstmsim.machines.gemm.CACHES`.
    `InputError` as of `lstmsim.machines.multicore.execution.product.traced`.
    """
    made = traced(machine, division, caches)
    return GemmWork(made.division, program_of(machine, made.stage, _NAME), made.counts, made)


def figures_of(machine: Machine, work: GemmWork, trace: Trace) -> GemmFigures:
    """What the run of a product came to."""
    cut, times = work.division.cut, step_times(work.program, trace)
    finish = np.zeros(cut.threads, np.int64)
    np.maximum.at(finish, times.thread, times.end)
    steps = [step for steps in steps_of(machine, work.division) for step in steps]
    buffered = cut.threads * cut.mb * cut.nb * machine.element_bytes if work.division.buffer else 0
    return GemmFigures(
        makespan=trace.makespan_cycles,
        finish=tuple(finish.tolist()),
        waits=waits_of(times),
        counts=work.counts,
        compute=int(compute_of(machine, steps).sum()),
        of_memory=int(times.of_memory.sum()),
        buffer_bytes=buffered,
    )
