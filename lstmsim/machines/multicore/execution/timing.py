"""How long a step takes its core (section 6 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.machines.gemm import Counts
from lstmsim.machines.multicore.execution.steps import Step
from lstmsim.machines.multicore.lines.space import COLUMNS, TimedStep
from lstmsim.machines.multicore.machine import Machine, up


def core_cycles(machine: Machine, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles from the start of each step until its core is through with it, at least 1; shape (steps,)."""
    read, write, remote = (counts[:, COLUMNS.index(name)] for name in ("memory_read", "memory_write", "remote"))
    memory = (read + write) * machine.core_memory_cycles_per_line + remote * machine.remote_cycles_per_line
    return _cycles(machine, compute, counts, memory)


def memory_cycles(machine: Machine, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many cycles of each step its core has only because of lines from and to memory; shape (steps,).

    Arguments as of `core_cycles`.
    """
    without = np.zeros(len(counts), dtype=np.int64)
    return core_cycles(machine, compute, counts) - _cycles(machine, compute, counts, without)


def _cycles(
    machine: Machine, compute: ArrayLike, counts: NDArray[np.int64], memory: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cycles of each step, whose lines from and to memory take so many."""
    near = counts[:, COLUMNS.index("l1_l2")] * machine.l2_cycles_per_line
    llc = counts[:, COLUMNS.index("l2_llc")] * machine.llc_cycles_per_line
    transfers = np.maximum(np.maximum(near, llc), memory) if machine.overlap else near + llc + memory
    cycles: NDArray[np.int64] = np.maximum(np.maximum(transfers, compute), 1)
    return cycles


def compute_cycles(machine: Machine, step: Step) -> int:
    """Cycles of a step's arithmetic, with packing (section 6.1 of docs/multicore.md); at least 0."""
    rows = step.rows[1] - step.rows[0]
    columns = step.columns[1] - step.columns[0]
    if step.update:
        return up(rows * columns, machine.update_per_cycle)
    length = step.ks[1] - step.ks[0]
    whole, rest = divmod(rows, machine.mr)
    panels = up(columns, machine.nr)
    if step.gemv:
        return panels * _tile_cycles(machine, 1, length)
    packed = length * (whole * machine.mr + machine.rows(rest))
    if step.packs_b:
        packed += machine.nr * panels * length
    tiles = whole * _tile_cycles(machine, machine.mr, length)
    if rest:
        tiles += _tile_cycles(machine, machine.rows(rest), length)
    return up(packed, machine.pack_per_cycle) + panels * tiles


def _tile_cycles(machine: Machine, rows: int, length: int) -> int:
    """Cycles of one call of the micro-kernel."""
    return up(length * rows * machine.nr, machine.macs_per_cycle) + machine.kernel_cycles


def compute_of(machine: Machine, steps: Sequence[Step]) -> NDArray[np.int64]:
    """Cycles of arithmetic of each step; shape (steps,)."""
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
    """Steps of a product as the clock sees them, in the same order."""
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
    """The traffic of some steps together."""
    whole = rows.sum(axis=0).tolist()
    named = dict(zip(COLUMNS, whole, strict=False))
    return Counts(**named, memory=tuple(whole[len(COLUMNS) :]))
