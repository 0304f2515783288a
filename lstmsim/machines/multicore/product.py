"""A product alone: how long its steps take, its traffic, its program, and what a run of it came to (section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import CACHES, Counts, Division, GemmFigures, GemmWork
from lstmsim.machines.multicore.chip import MulticoreCpu, up
from lstmsim.machines.multicore.lines.caches import open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Places, Runs, Space, Stage, TimedStep, operands, runs_of
from lstmsim.machines.multicore.stages import CORE, Block, cores_of, phases_of, place_of
from lstmsim.machines.multicore.steps import Step, check_division, check_length, estimated_accesses, steps_of
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import CAUSE_NUMBERS
from lstmsim.program.program import Body, Phase, Program, Task
from lstmsim.program.trace import Trace


def core_cycles(chip: MulticoreCpu, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles from the start of each step until its core is through with it, at least 1; shape (steps,)."""
    read, write, remote = (counts[:, COLUMNS.index(name)] for name in ("memory_read", "memory_write", "remote"))
    memory = (read + write) * chip.core.core_memory_cycles_per_line + remote * chip.remote_cycles_per_line
    return _cycles(chip, compute, counts, memory)


def memory_cycles(chip: MulticoreCpu, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many cycles of each step its core has only because of lines from and to memory; shape (steps,).

    Arguments as of `core_cycles`.
    """
    without = np.zeros(len(counts), dtype=np.int64)
    return core_cycles(chip, compute, counts) - _cycles(chip, compute, counts, without)


def _cycles(
    chip: MulticoreCpu, compute: ArrayLike, counts: NDArray[np.int64], memory: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cycles of each step, whose lines from and to memory take so many."""
    near = counts[:, COLUMNS.index("l1_l2")] * chip.core.l2_cycles_per_line
    llc = counts[:, COLUMNS.index("l2_llc")] * chip.core.llc_cycles_per_line
    transfers = np.maximum(np.maximum(near, llc), memory) if chip.core.overlap else near + llc + memory
    cycles: NDArray[np.int64] = np.maximum(np.maximum(transfers, compute), 1)
    return cycles


def compute_cycles(chip: MulticoreCpu, step: Step) -> int:
    """Cycles of a step's arithmetic, with packing (section 6.1 of docs/multicore.md); at least 0."""
    rows = step.rows[1] - step.rows[0]
    columns = step.columns[1] - step.columns[0]
    if step.update:
        return up(rows * columns, chip.core.update_per_cycle)
    length = step.ks[1] - step.ks[0]
    whole, rest = divmod(rows, chip.core.mr)
    panels = up(columns, chip.core.nr)
    if step.gemv:
        return panels * _tile_cycles(chip, 1, length)
    packed = length * (whole * chip.core.mr + chip.core.rows(rest))
    if step.packs_b:
        packed += chip.core.nr * panels * length
    tiles = whole * _tile_cycles(chip, chip.core.mr, length)
    if rest:
        tiles += _tile_cycles(chip, chip.core.rows(rest), length)
    return up(packed, chip.core.pack_per_cycle) + panels * tiles


def _tile_cycles(chip: MulticoreCpu, rows: int, length: int) -> int:
    """Cycles of one call of the micro-kernel."""
    return up(length * rows * chip.core.nr, chip.core.macs_per_cycle) + chip.core.kernel_cycles


def compute_of(chip: MulticoreCpu, steps: Sequence[Step]) -> NDArray[np.int64]:
    """Cycles of arithmetic of each step; shape (steps,)."""
    # tens of thousands of steps have a few sizes
    known: dict[tuple[int, int, int, bool, bool], int] = {}
    cycles = np.empty(len(steps), np.int64)
    for place, step in enumerate(steps):
        (m0, m1), (n0, n1), (k0, k1) = step.rows, step.columns, step.ks
        key = (m1 - m0, n1 - n0, k1 - k0, step.packs_b, step.gemv)
        if key not in known:
            known[key] = compute_cycles(chip, step)
        cycles[place] = known[key]
    return cycles


def timed_steps(
    chip: MulticoreCpu, steps: Sequence[Step], rows: NDArray[np.int64], place: tuple[int, ...] = ()
) -> list[TimedStep]:
    """Steps of a product as the clock sees them, in the same order."""
    compute = compute_of(chip, steps)
    cycles, paid = (each(chip, compute, rows).tolist() for each in (core_cycles, memory_cycles))
    lines = map(tuple, rows[:, len(COLUMNS) :].tolist())
    return [
        TimedStep(taken, own, step.after, _work(step), "update" if step.update else "multiply", place, of_memory)
        for step, taken, own, of_memory in zip(steps, cycles, lines, paid, strict=True)
    ]


def _work(step: Step) -> int:
    """Useful multiply-accumulates of a step."""
    (m0, m1), (n0, n1), (k0, k1) = step.rows, step.columns, step.ks
    return (m1 - m0) * (n1 - n0) * (k1 - k0)


def counts_of(rows: NDArray[np.int64]) -> Counts:
    """The traffic of some steps together."""
    whole = rows.sum(axis=0).tolist()
    named = dict(zip(COLUMNS, whole, strict=False))
    return Counts(**named, memory=tuple(whole[len(COLUMNS) :]))


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


def traced(chip: MulticoreCpu, division: Division, caches: str = "cold") -> Traced:
    """The traffic of a product and its steps for the clock; thread t runs on core t.

    chip: with as many cores as there are threads.
    division: any cut of a product.
    caches: one of `lstmsim.machines.gemm.CACHES`; warm: the second of two equal products one after the other.
    `InputError` for a division that is none, for more threads than cores, and for a product that is too long.
    """
    division = replace(division, buffer=division.buffer and division.cut.p_k > 1)
    _check_product(chip, division)
    wanted = CACHES.index(caches) + 1
    kept = _kept(chip, division)
    if len(kept.passes) < wanted:
        kept.passes[:] = _passes(chip, division, wanted)
    rows = kept.passes[wanted - 1]
    steps = in_rounds(steps_of(chip, division))
    threads: list[list[TimedStep]] = [[] for _ in range(division.cut.threads)]
    for step, timed in zip(steps, timed_steps(chip, steps, rows), strict=True):
        threads[step.thread].append(timed)
    return Traced(division, Stage(tuple(map(tuple, threads))), counts_of(rows), counts_of(kept.passes[0]))


def _check_product(chip: MulticoreCpu, division: Division) -> None:
    check_division(division)
    threads = division.cut.threads
    if threads > len(chip.cores):
        raise InputError(Mistake("threads", f"must be at most {len(chip.cores)}, the number of cores, got {threads}"))
    check_length(chip, division)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What the caches counted for each step of a product, in rounds: of the first pass, then of the second."""

    passes: list[Rows] = field(default_factory=list)


@lru_cache(maxsize=64)
def _kept(chip: MulticoreCpu, division: Division) -> _Kept:
    """What is kept of a product."""
    return _Kept()


def _passes(chip: MulticoreCpu, division: Division, times: int) -> Iterator[Rows]:
    """What the caches count for each step, the product one time after another."""
    space = Space(chip)
    places = operands(space, chip, division)
    steps = in_rounds(steps_of(chip, division))
    caches = open_caches(chip, space.arrays)
    # a short walk is kept for the second time
    short = estimated_accesses(chip, division) <= _KEPT
    walk = list(_batches(chip, division, places, steps)) if short else None
    for _ in range(times):
        batches = walk or _batches(chip, division, places, steps)
        yield np.concatenate([caches.drive(cores, runs) for cores, runs in batches])


def _batches(chip: MulticoreCpu, division: Division, places: Places, steps: Sequence[Step]) -> Iterator[_Batch]:
    """Cores and runs of the steps, in batches of about `_HELD` runs."""
    cores: list[int] = []
    runs: list[Runs] = []
    held = 0
    for step in steps:
        cores.append(step.thread)
        runs.append(runs_of(chip, division, places, step))
        held += len(runs[-1].address)
        if held >= _HELD or step is steps[-1]:
            yield cores, runs
            cores, runs, held = [], [], 0


def program_of(chip: MulticoreCpu, stage: Stage, name: str) -> Program:
    """The Program of a product. It ends with the barrier of its threads."""
    first, *others = place_of(chip, 0, len(stage.steps))
    phases = phases_of(chip, [Block((stage,))])
    task = Task(name, ((0, phases),), (), (first,), partners=(tuple(others),))
    return Program(cores_of(chip), (task,))


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


def lowered(chip: MulticoreCpu, division: Division, caches: str = "cold") -> GemmWork:
    """A product with its traffic and its program.

    chip: with as many cores as there are threads.
    division: any cut of the product.
    caches: one of `lstmsim.machines.gemm.CACHES`.
    `InputError` as of `lstmsim.machines.multicore.product.traced`.
    """
    made = traced(chip, division, caches)
    return GemmWork(made.division, program_of(chip, made.stage, _NAME), made.counts, made)


def figures_of(chip: MulticoreCpu, work: GemmWork, trace: Trace) -> GemmFigures:
    """What the run of a product came to."""
    cut, times = work.division.cut, step_times(work.program, trace)
    finish = np.zeros(cut.threads, np.int64)
    np.maximum.at(finish, times.thread, times.end)
    steps = [step for steps in steps_of(chip, work.division) for step in steps]
    buffered = cut.threads * cut.mb * cut.nb * chip.element_bytes if work.division.buffer else 0
    return GemmFigures(
        makespan=trace.makespan_cycles,
        finish=tuple(finish.tolist()),
        waits=waits_of(times),
        counts=work.counts,
        compute=int(compute_of(chip, steps).sum()),
        of_memory=int(times.of_memory.sum()),
        buffer_bytes=buffered,
    )
