"""The traffic of a recurrent job: its first three time steps in each pass, with caches that keep their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.gemm import GemmPlan
from lstmsim.machines.multicore.execution.product import in_rounds
from lstmsim.machines.multicore.execution.steps import steps_of
from lstmsim.machines.multicore.execution.timing import core_cycles, memory_cycles, timed_steps
from lstmsim.machines.multicore.jobs.arrays import Pass, Shape, laid_out, tail_cycles, tail_runs, units_of
from lstmsim.machines.multicore.lines.caches import Caches, open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Runs, Stage, TimedStep
from lstmsim.machines.multicore.lines.walk import runs_of
from lstmsim.machines.multicore.machine import Machine

#: Time steps of a pass that are traced; each later one has the counts of the last of them.
TRACED = 3

_Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TracedStep:
    """A time step.

    products, tail: what threads do up to the barrier behind the products, and behind that.
    counts: of both, over all threads: shape (2, len(COLUMNS) + memories).
    """

    products: Stage
    tail: Stage
    counts: _Counts


@dataclass(frozen=True, eq=False)
class TracedPass:
    """One direction of a layer.

    backward: whether it goes from the last time step to step 0.
    plans: of each product.
    steps: its first time steps, in its order.
    """

    backward: bool
    plans: tuple[GemmPlan, ...]
    steps: tuple[TracedStep, ...]


@dataclass(frozen=True, eq=False)
class TracedJob:
    """All passes, in their order."""

    passes: tuple[TracedPass, ...]


def alike(machine: Machine, first: int, threads: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What of a place its traffic depends on: which threads share a last-level cache, and the memory of each."""
    cores = range(first, first + threads)
    groups = tuple(machine.group(core) - machine.group(first) for core in cores)
    return groups, tuple(machine.domain(core) for core in cores)


@lru_cache(maxsize=64)
def traced(machine: Machine, shape: Shape, first: int) -> TracedJob:
    """Trace a job that finds the caches empty.

    machine: the machine.
    shape: the job.
    first: core of thread 0. Of places that are `alike`, callers name the first, so that each is traced once.
    """
    space = laid_out(machine, shape, first)
    tracer = _Tracer(machine, shape, first, open_caches(machine, space.arrays))
    return TracedJob(tuple(map(tracer.of_pass, space.passes)))


class _Tracer:
    def __init__(self, machine: Machine, shape: Shape, first: int, caches: Caches) -> None:
        self._machine, self._shape, self._first, self._caches = machine, shape, first, caches

    def of_pass(self, one: Pass) -> TracedPass:
        steps = range(min(self._shape.steps, TRACED))
        last = self._shape.steps - 1
        traced_steps = tuple(self._step(one, last - each if one.backward else each) for each in steps)
        return TracedPass(one.backward, one.plans, traced_steps)

    def _step(self, one: Pass, step: int) -> TracedStep:
        threads, frames = self._shape.threads, one.layer == 0
        own: list[list[TimedStep]] = [[] for _ in range(threads)]
        counts = sum(self._product(one, number, step, own) for number in range(len(one.divisions)))
        tail, after = self._tail(one, step)
        return TracedStep(Stage(tuple(map(tuple, own)), frames), Stage(tail, frames), np.array([counts, after]))

    def _product(self, one: Pass, number: int, step: int, own: list[list[TimedStep]]) -> _Counts:
        """Trace a product of a time step, and put its steps behind those that each thread has."""
        machine, division = self._machine, one.divisions[number]
        segments = one.segments(number, step, self._shape.batch, machine.element_bytes)
        places = one.places[number]._replace(a=segments)
        steps = in_rounds(steps_of(machine, division))
        counts = self._drive(
            [each.thread for each in steps], [runs_of(machine, division, places, each) for each in steps]
        )
        label = " ".join(one.products[number].sums)
        before = [len(each) for each in own]
        for each, timed in zip(steps, timed_steps(machine, steps, counts, (one.layer, one.direction)), strict=True):
            after = None if timed.after is None else (timed.after[0], before[timed.after[0]] + timed.after[1])
            own[each.thread].append(timed._replace(after=after, label=label))
        total: _Counts = counts.sum(axis=0)
        return total

    def _tail(self, one: Pass, step: int) -> tuple[tuple[tuple[TimedStep, ...], ...], _Counts]:
        """Trace the tail of a time step: its steps, and the counts over all threads."""
        machine, batch, threads = self._machine, self._shape.batch, self._shape.threads
        units = list(units_of(one.hidden, threads))
        counts = self._drive(range(len(units)), [tail_runs(machine, one, each, step, batch) for each in units])
        compute = np.array([tail_cycles(machine, one, end - begin, batch) for begin, end in units])
        cycles, paid = (each(machine, compute, counts).tolist() for each in (core_cycles, memory_cycles))
        lines = map(tuple, counts[:, len(COLUMNS) :].tolist())
        place = one.layer, one.direction
        steps = [
            (TimedStep(taken, own, label="tail", place=place, of_memory=of_memory),)
            for taken, own, of_memory in zip(cycles, lines, paid, strict=True)
        ]
        return (*steps, *((),) * (threads - len(units))), counts.sum(axis=0)

    def _drive(self, threads: Sequence[int], runs: Sequence[Runs]) -> _Counts:
        """Let steps touch their lines, one after the other."""
        return self._caches.drive([self._first + each for each in threads], runs)
