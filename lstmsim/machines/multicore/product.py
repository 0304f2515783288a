"""A product alone: how long its steps take, its traffic, its program, and what a run of it came to (section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import CACHES, Counts, Division, GemmFigures, GemmWork
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.caches import open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Places, Runs, Space, Stage, TimedStep, operands, runs_of
from lstmsim.machines.multicore.stages import Block, cores_of, in_order, memory_parts, phases_of, place_of
from lstmsim.machines.multicore.steps import (
    Step,
    check_division,
    check_length,
    compute_cycles,
    estimated_accesses,
    in_rounds,
    steps_of,
)
from lstmsim.program.program import Program, Task
from lstmsim.program.trace import Trace

Rows = NDArray[np.int64]
#: Cores and runs of some steps.
_Batch = tuple[list[int], list[Runs]]

#: Runs of bytes after which the caches are driven with them.
_HELD = 1 << 20
#: About most accesses of lines of a walk that is kept for the second of two passes.
_KEPT = 1 << 22


def core_cycles(chip: MulticoreCpu, compute: ArrayLike, counts: Rows) -> tuple[Rows, Rows]:
    """Of each step: cycles until its core is through with it, at least 1, and those only because of lines of memory."""
    column = dict(zip(COLUMNS, counts.T, strict=False))
    core = chip.core
    near, llc = column["l1_l2"] * core.l2_cycles_per_line, column["l2_llc"] * core.llc_cycles_per_line
    memory = (column["memory_read"] + column["memory_write"]) * core.core_memory_cycles_per_line
    memory = memory + column["remote"] * chip.remote_cycles_per_line

    def cycles(memory: Rows) -> Rows:
        transfers = np.maximum(np.maximum(near, llc), memory) if core.overlap else near + llc + memory
        whole: Rows = np.maximum(np.maximum(transfers, compute), 1)
        return whole

    whole = cycles(memory)
    return whole, whole - cycles(np.zeros_like(memory))


def compute_of(chip: MulticoreCpu, steps: Sequence[Step]) -> Rows:
    """Cycles of arithmetic of each step; shape (steps,)."""
    # tens of thousands of steps have a few sizes
    known: dict[tuple[int, int, int, bool, bool], int] = {}
    cycles = np.empty(len(steps), np.int64)
    for index, step in enumerate(steps):
        key = (*step.sizes, step.packs_b, step.gemv)
        if key not in known:
            known[key] = compute_cycles(chip, step)
        cycles[index] = known[key]
    return cycles


def timed_steps(
    chip: MulticoreCpu, steps: Sequence[Step], rows: Rows, place: tuple[int, ...] = ()
) -> Iterator[TimedStep]:
    """Steps of a product as the clock sees them, in the same order."""
    cycles, paid = core_cycles(chip, compute_of(chip, steps), rows)
    lines = map(tuple, rows[:, len(COLUMNS) :].tolist())
    for step, taken, own, of_memory in zip(steps, cycles.tolist(), lines, paid.tolist(), strict=True):
        rows_of_c, columns, ks = step.sizes
        label = "update" if step.update else "multiply"
        yield TimedStep(taken, own, step.after, rows_of_c * columns * ks, label, place, of_memory)


class Traced(NamedTuple):
    """A product whose lines went through the caches: without a buffer that nobody needs, its steps, its traffic."""

    division: Division
    stage: Stage
    counts: Counts


def traced(chip: MulticoreCpu, division: Division, caches: str = "cold") -> Traced:
    """The traffic of a product and its steps for the clock; thread t runs on core t.

    caches: one of `lstmsim.machines.gemm.CACHES`; warm: the second of two equal products one after the other.
    `InputError` for a division that is none, for more threads than cores, and for a product that is too long.
    """
    division = replace(division, buffer=division.buffer and division.cut.p_k > 1)
    check_division(division)
    count, cores = division.cut.threads, len(chip.cores)
    if count > cores:
        raise InputError(Mistake("threads", f"must be at most {cores}, the number of cores, got {count}"))
    check_length(chip, division)
    wanted = CACHES.index(caches) + 1
    kept = _kept(chip, division)
    if len(kept.passes) < wanted:
        kept.passes[:] = _passes(chip, division, wanted)
    rows = kept.passes[wanted - 1]
    steps = in_rounds(steps_of(chip, division))
    threads: list[list[TimedStep]] = [[] for _ in range(count)]
    for step, timed in zip(steps, timed_steps(chip, steps, rows), strict=True):
        threads[step.thread].append(timed)
    return Traced(division, Stage(tuple(map(tuple, threads))), _counts_of(rows))


def _counts_of(rows: Rows) -> Counts:
    """The traffic of some steps together."""
    whole = rows.sum(axis=0).tolist()
    return Counts(**dict(zip(COLUMNS, whole, strict=False)), memory=tuple(whole[len(COLUMNS) :]))


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


def program_of(chip: MulticoreCpu, stage: Stage) -> Program:
    """The Program of a product. It ends with the barrier of its threads."""
    first, *others = place_of(chip, 0, len(stage.steps))
    task = Task("product", ((0, phases_of(chip, [Block((stage,))])),), (), (first,), gang=(tuple(others),))
    return Program(cores_of(chip), (task,))


def lowered(chip: MulticoreCpu, division: Division, caches: str = "cold") -> GemmWork:
    """A product with its traffic and its program; arguments and errors as of `traced`."""
    made = traced(chip, division, caches)
    return GemmWork(made.division, program_of(chip, made.stage), made.counts, made.stage)


def figures_of(chip: MulticoreCpu, work: GemmWork, trace: Trace) -> GemmFigures:
    """The figures of the run of a product.

    All of a step's wait is one for its piece of C if it waits for that at all: the step before it on the piece began
    after the same barrier, so nothing held it longer. Lines that come when a thread's last step is done hold nobody.
    """
    cut, stage = work.division.cut, work.own
    starts = np.zeros(len(trace.issue("start")), np.int64)
    starts[trace.issue("operation")] = trace.issue("start")
    # operations of steps have the order of `in_order`; only the barrier stands after them
    start = iter(starts.tolist())
    finish, late = [0] * cut.threads, [0] * cut.threads
    waits = {"contention": 0, "barrier": 0, "memory": 0}
    of_memory = 0
    for thread, _, step in in_order(stage):
        begin = next(start)
        done = end = begin + step.cycles
        for _, _, there in memory_parts(chip, thread, step):
            end = max(end, next(start) + there)
        waits["contention" if step.after else "barrier"] += begin - finish[thread]
        waits["memory"] += late[thread]
        finish[thread], late[thread] = end, end - done
        of_memory += step.of_memory
    return GemmFigures(
        makespan=trace.makespan_cycles,
        finish=tuple(finish),
        waits=waits,
        counts=work.counts,
        compute=int(compute_of(chip, in_rounds(steps_of(chip, work.division))).sum()),
        of_memory=of_memory,
        buffer_bytes=cut.threads * cut.mb * cut.nb * chip.element_bytes if work.division.buffer else 0,
    )
