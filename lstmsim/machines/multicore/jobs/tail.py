"""The tail of a time step: what each thread makes of the gates for its units."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lstmsim.machines.multicore.jobs.arrays import Pass
from lstmsim.machines.multicore.lines.space import Matrix
from lstmsim.machines.multicore.lines.types import Runs
from lstmsim.machines.multicore.machine import Machine, up

__all__ = ["tail_cycles", "tail_runs", "units_of"]


def units_of(hidden: int, threads: int) -> Iterator[tuple[int, int]]:
    """The units of each thread that has some, as (first, end); threads without units are the last ones.

    >>> list(units_of(10, 4)), list(units_of(4, 3))
    ([(0, 3), (3, 6), (6, 9), (9, 10)], [(0, 2), (2, 4)])
    """
    each = up(hidden, threads)
    return ((first, min(first + each, hidden)) for first in range(0, hidden, each))


def tail_cycles(machine: Machine, one: Pass, units: int, batch: int) -> int:
    """Cycles of arithmetic for so many units of each sequence."""
    vectors = up(units * batch, machine.lanes)
    work = one.work
    return vectors * (work.activations * machine.activation_cycles + work.others * machine.elementwise_cycles)


def tail_runs(machine: Machine, one: Pass, units: tuple[int, int], step: int, batch: int) -> Runs:
    """What a tail touches: for each sequence its units of every gate, then of every further state, and of h.

    machine, one: of the pass.
    units: of the thread, as (first, end).
    step: time step.
    batch: how many sequences.
    """
    size = machine.element_bytes
    gates = [
        Matrix(places.c.address + gate * one.hidden * size, places.c.stride)
        for places, product in zip(one.places, one.products, strict=True)
        for gate in range(len(product.sums))
    ]
    written = [*one.states, one.h_written.at(step, batch, size)]
    address, stride = np.array([*gates, *written], dtype=np.int64).T
    rows = np.arange(batch)[:, None]
    addresses = (address + units[0] * size + rows * stride).ravel()
    write = np.arange(len(address)) >= len(gates)
    return Runs(addresses, np.full(len(addresses), (units[1] - units[0]) * size), np.tile(write, batch))
