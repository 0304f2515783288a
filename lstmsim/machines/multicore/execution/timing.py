"""How long a step takes its core (section 6.2 of docs/multicore.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.machines.multicore.lines.types import COLUMNS
from lstmsim.machines.multicore.machine import Machine

__all__ = ["core_cycles", "memory_cycles"]


def core_cycles(machine: Machine, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles from the start of each step until its core is through with it, at least 1; shape (steps,).

    machine: its rates, and whether transfers overlap.
    compute: cycles of arithmetic of each step.
    counts: what the caches counted, a row for each step, as `Caches.drive` gives it.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> counts = dict.fromkeys(COLUMNS, 0) | {"l1_l2": 13, "l2_llc": 13, "memory_read": 7}
    >>> core_cycles(TOY, [60], np.array([[*counts.values(), 7]])).tolist()
    [60]
    """
    read, write, remote = (counts[:, COLUMNS.index(name)] for name in ("memory_read", "memory_write", "remote"))
    memory = (read + write) * machine.core_memory_cycles_per_line + remote * machine.remote_cycles_per_line
    return _cycles(machine, compute, counts, memory)


def memory_cycles(machine: Machine, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many cycles of each step its core has only because of lines from and to memory; shape (steps,).

    Arguments as of `core_cycles`.

    >>> from dataclasses import replace
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> machine = replace(TOY, core_memory_cycles_per_line=9)
    >>> counts = dict.fromkeys(COLUMNS, 0) | {"l1_l2": 13, "l2_llc": 13, "memory_read": 7}
    >>> memory_cycles(machine, [60], np.array([[*counts.values(), 7]])).tolist()
    [3]
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
