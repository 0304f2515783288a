"""How long the arithmetic of a step takes a core."""

from __future__ import annotations

from lstmsim.machines.multicore.execution.steps import Step
from lstmsim.machines.multicore.machine import Machine, up

__all__ = ["compute_cycles"]


def compute_cycles(machine: Machine, step: Step) -> int:
    """Cycles of a step's arithmetic, with packing (section 6.1 of docs/multicore.md); at least 0.

    machine: its rates.
    step: a block of multiplications, or the adding of a buffer.
    """
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
