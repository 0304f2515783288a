"""Where instructions stand in their streams, and how those that need them look that up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Places", "Result", "later"]

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
_REMEMBERED = 16


class Result:
    """The place of an instruction in its stream, for each warp that issued it.

    numbers: shape (n,); ascending numbers of the streams.
    places: shape (n,); its place in each.
    """

    __slots__ = ("numbers", "places")

    def __init__(self, numbers: Numbers, places: NDArray[np.int32]) -> None:
        self.numbers = numbers
        self.places = places


def later(first: Result | None, then: Result | None) -> Result | None:
    """For each warp what `then` has of it, or else what `first` has: the last instruction of its kind.

    first, then: results, or None for no warp at all.

    >>> both, one = np.array([0, 1]), np.array([1])
    >>> later(Result(both, np.array([4, 4])), Result(one, np.array([5]))).places.tolist()
    [4, 5]
    """
    if first is None or then is None:
        return then if first is None else first
    if first.numbers is then.numbers:
        return then
    where = np.searchsorted(first.numbers, then.numbers)
    inside = np.minimum(where, len(first.numbers) - 1)
    if len(first.numbers) and (first.numbers[inside] == then.numbers).all():
        places = first.places.copy()
        places[where] = then.places
        return Result(first.numbers, places)
    numbers = np.union1d(first.numbers, then.numbers)
    places = np.empty(len(numbers), np.int32)
    for each in (first, then):
        places[np.searchsorted(numbers, each.numbers)] = each.places
    return Result(numbers, places)


class Places:
    """How some warps look up the places of results that other warps may have as well.

    numbers: shape (n,); ascending numbers of their streams.
    """

    __slots__ = ("_known", "numbers")

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        #: By identity of other warps' numbers: these, where these warps stand among them, which of these do not.
        self._known: dict[int, tuple[Numbers, NDArray[np.intp], Mask | None]] = {}

    def part_of(self, others: Numbers, where: NDArray[np.intp]) -> None:
        """Take it as known that these warps stand at `where` among others."""
        self._known[id(others)] = (others, where, None)

    def of(self, result: Result) -> NDArray[np.int32]:
        """Shape (n,); the place of a result in each stream, -1 where it has none."""
        if result.numbers is self.numbers:
            return result.places
        if not len(result.numbers):
            return np.full(len(self.numbers), -1, np.int32)
        known = self._known.get(id(result.numbers))
        if known is None:
            known = self._known[id(result.numbers)] = self._searched(result.numbers)
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        _, where, missing = known
        places = result.places[where]
        if missing is not None:
            places[missing] = -1
        return places

    def _searched(self, others: Numbers) -> tuple[Numbers, NDArray[np.intp], Mask | None]:
        where = np.searchsorted(others, self.numbers)
        where[where == len(others)] = 0
        missing = others[where] != self.numbers
        return others, where, missing if missing.any() else None
