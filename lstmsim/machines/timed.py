"""Values that appear over time. It is an error to read a value before it is there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ReplayError
from lstmsim.model.numerics.arithmetic import Array

__all__ = ["ALWAYS", "NEVER", "Memory", "Timed"]

ALWAYS, NEVER = 0, 2**62


@dataclass(eq=False)
class Timed:
    """One vector.

    values: the value of each unit.
    since: for each unit the cycle from which its value is there.
    """

    values: Array
    since: NDArray[np.int64]

    @staticmethod
    def known(values: Array, since: int = ALWAYS) -> Timed:
        """A vector whose values are all there from cycle `since` on."""
        return Timed(values, np.full(len(values), since, dtype=np.int64))


@dataclass(eq=False)
class Memory:
    """A memory of vectors. A key that was never written is not there yet.

    held: key -> vector.
    latest: cycle from which all written values are there.

    >>> memory = Memory()
    >>> memory.write("h", slice(0, 2), np.array([5, 6]), np.array([10, 11]), width=4)
    >>> memory.read("h", slice(0, 2), np.array([11, 11]), "tile").tolist()
    [5, 6]
    >>> memory.read("h", slice(0, 2), np.array([10, 10]), "tile")
    Traceback (most recent call last):
    lstmsim.base.errors.ReplayError: tile reads element 1 of 'h' at cycle 10, but it is there only from cycle 11
    """

    held: dict[object, Timed] = field(default_factory=dict)
    latest: int = 0

    def write(self, key: object, units: slice, values: Array, since: NDArray[np.int64], width: int) -> None:
        """Write some units of a vector; `ReplayError` if one of them was written before.

        key: name of the vector.
        units: the units.
        values: their values.
        since: for each unit the cycle from which its value is there.
        width: how many units the vector has.
        """
        if key not in self.held:
            self.held[key] = Timed(np.zeros(width, values.dtype), np.full(width, NEVER, dtype=np.int64))
        timed = self.held[key]
        if (timed.since[units] != NEVER).any():
            raise ReplayError(f"{key!r} is computed twice (units {units.start} to {units.stop - 1})")
        timed.values[units] = values
        timed.since[units] = since
        self.latest = max(self.latest, int(since.max(initial=0)))

    def read(self, key: object, units: slice, cycles: NDArray[np.int64], who: str) -> Array:
        """Read some units of a vector; `ReplayError` if one of them is not there yet.

        cycles: for each unit the cycle at which it is used.
        who: the reader, for the error.
        """
        timed = self.held.get(key)
        if timed is not None and not (timed.since[units] > cycles).any():
            return timed.values[units]
        since = NEVER if timed is None else timed.since[units]
        late = int(np.flatnonzero(np.broadcast_to(since > cycles, cycles.shape))[0])
        element = units.start + late
        when = NEVER if timed is None else int(timed.since[element])
        there = "it has not been computed by then" if when == NEVER else f"it is there only from cycle {when}"
        raise ReplayError(f"{who} reads element {element} of {key!r} at cycle {int(cycles[late])}, but {there}")
