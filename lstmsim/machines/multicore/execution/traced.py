"""What the steps of a product do to the caches, and what that makes of them for the clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import CACHES, Counts, Division
from lstmsim.machines.multicore.execution.checks import check_division, check_length, estimated_accesses
from lstmsim.machines.multicore.execution.steps import Step, steps_of
from lstmsim.machines.multicore.execution.timed import counts_of, timed_steps
from lstmsim.machines.multicore.lines.caches import open_caches
from lstmsim.machines.multicore.lines.space import Places, Space, operands
from lstmsim.machines.multicore.lines.types import Runs, Stage, TimedStep
from lstmsim.machines.multicore.lines.walk import runs_of
from lstmsim.machines.multicore.machine import Machine

__all__ = ["Traced", "in_rounds", "traced"]

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
    """The steps in the order in which they drive the caches: the first of each thread, then the second ones.

    threads: of each thread its steps.
    """
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
