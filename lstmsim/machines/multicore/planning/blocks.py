"""Blocks that fit the caches (section 2.1 of docs/multicore.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lstmsim.machines.multicore.machine import Machine

__all__ = ["Blocks", "blocks_of"]


class Blocks(NamedTuple):
    """Sizes of the blocks that the loops around the micro-kernel take.

    mc: rows of A in the second cache.
    nc: columns of B in the last-level cache.
    kc: length of the sums of one micro-kernel, in the first cache.
    """

    mc: int
    nc: int
    kc: int


@lru_cache(maxsize=256)
def blocks_of(machine: Machine) -> Blocks:
    """The blocks that fill the caches of a machine as far as it says, in whole micro-tiles, each of one at least.

    machine: its caches, its micro-tile, and how much of a cache a block may fill.

    >>> from dataclasses import replace
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> blocks_of(TOY), blocks_of(replace(TOY, l1_sets=1, l1_ways=1)).kc
    (Blocks(mc=32, nc=256, kc=16), 8)
    """
    part, whole = machine.fill
    size = machine.element_bytes
    fitting = machine.l1_bytes * part // whole // ((machine.mr + machine.nr) * size)
    kc = _multiple(fitting, machine.k_unit)
    mc = _multiple(machine.l2_bytes * part // whole // (kc * size), machine.mr)
    nc = _multiple(machine.llc_bytes * part // whole // machine.cores_per_llc // (kc * size), machine.nr)
    return Blocks(mc, nc, kc)


def _multiple(number: int, unit: int) -> int:
    """The largest multiple of a unit that is not above a number, but one unit at least."""
    return max(unit, number // unit * unit)
