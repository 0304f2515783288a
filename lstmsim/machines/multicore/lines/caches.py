"""The caches of all cores, driven line by line (section 5 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.multicore.lines.native import OWN_LIBRARY, NativeCaches
from lstmsim.machines.multicore.lines.plain import PlainCaches
from lstmsim.machines.multicore.lines.types import Array, Runs
from lstmsim.machines.multicore.machine import Machine
from lstmsim.native.missing import warn_once

__all__ = ["Caches", "open_caches"]


class Caches(Protocol):
    """All caches of a machine, in the state in which the accesses so far have left them."""

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> NDArray[np.int64]:
        """Let steps touch their lines; what was counted, shape (steps, len(COLUMNS) + memories).

        cores: of each step its core.
        runs: of each step what it touches. Steps come one after the other.
        `ValueError` for a core that is not there, or a run outside the space.
        """


def open_caches(machine: Machine, arrays: Sequence[Array]) -> Caches:
    """Empty caches for the lines of some arrays: those in C++, or the plain ones with the same numbers, and a warning.

    machine: whose caches they are.
    arrays: the whole space, one behind the other.
    `ValueError` if the arrays do not lie so.
    """
    reason = OWN_LIBRARY.absence()
    if reason is None:
        return NativeCaches(machine, arrays)
    what = f"the caches of a multi-core CPU have no library, because {reason}"
    warn_once(what, "plain Python counts instead", stacklevel=2)
    return PlainCaches(machine, arrays)
