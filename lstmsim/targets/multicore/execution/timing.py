"""How long a step takes its core (section 6.2 of docs/multicore.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.targets.multicore.lines.types import COLUMNS
from lstmsim.targets.multicore.machine import Machine

__all__ = ["core_cycles"]


def core_cycles(machine: Machine, compute: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles from the start of each step until its core is through with it, at least 1; shape (steps,).

    machine: its rates, and whether transfers overlap.
    compute: cycles of arithmetic of each step.
    counts: what the caches counted, a row for each step, as `Caches.drive` gives it.

    >>> from lstmsim.targets.multicore.toy import TOY
    >>> counts = dict.fromkeys(COLUMNS, 0) | {"l1_l2": 13, "l2_llc": 13, "memory_read": 7}
    >>> core_cycles(TOY, [60], np.array([[*counts.values(), 7]])).tolist()
    [60]
    """
    l1_l2, l2_llc, read, write, remote = (
        counts[:, COLUMNS.index(name)] for name in ("l1_l2", "l2_llc", "memory_read", "memory_write", "remote")
    )
    near = l1_l2 * machine.l2_cycles_per_line
    llc = l2_llc * machine.llc_cycles_per_line
    memory = (read + write) * machine.core_memory_cycles_per_line + remote * machine.remote_cycles_per_line
    transfers = np.maximum(np.maximum(near, llc), memory) if machine.overlap else near + llc + memory
    cycles: NDArray[np.int64] = np.maximum(np.maximum(transfers, compute), 1)
    return cycles
