"""From what a step does and what the caches counted for it to what the clock needs to know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.gemm import Counts
from lstmsim.machines.multicore.execution.compute import compute_cycles
from lstmsim.machines.multicore.execution.steps import Step
from lstmsim.machines.multicore.execution.timing import core_cycles, memory_cycles
from lstmsim.machines.multicore.lines.types import COLUMNS, TimedStep
from lstmsim.machines.multicore.machine import Machine

__all__ = ["compute_of", "counts_of", "timed_steps"]


def compute_of(machine: Machine, steps: Sequence[Step]) -> NDArray[np.int64]:
    """Cycles of arithmetic of each step; shape (steps,).

    machine: its rates.
    steps: of any threads.
    """
    # tens of thousands of steps have a few sizes
    known: dict[tuple[int, int, int, bool, bool], int] = {}
    cycles = np.empty(len(steps), np.int64)
    for place, step in enumerate(steps):
        (m0, m1), (n0, n1), (k0, k1) = step.rows, step.columns, step.ks
        key = (m1 - m0, n1 - n0, k1 - k0, step.packs_b, step.gemv)
        if key not in known:
            known[key] = compute_cycles(machine, step)
        cycles[place] = known[key]
    return cycles


def timed_steps(
    machine: Machine, steps: Sequence[Step], rows: NDArray[np.int64], place: tuple[int, ...] = ()
) -> list[TimedStep]:
    """Steps of a product as the clock sees them, in the same order.

    machine: the machine.
    steps: of any threads.
    rows: what the caches counted for each; shape (steps, len(COLUMNS) + memories).
    place: layer and direction, of a recurrent job; for people.
    """
    compute = compute_of(machine, steps)
    cycles, paid = (each(machine, compute, rows).tolist() for each in (core_cycles, memory_cycles))
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
    """The traffic of some steps together.

    rows: what the caches counted for each; shape (steps, len(COLUMNS) + memories).
    """
    whole = rows.sum(axis=0).tolist()
    named = dict(zip(COLUMNS, whole, strict=False))
    return Counts(**named, memory=tuple(whole[len(COLUMNS) :]))
