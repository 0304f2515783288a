"""A store of results for callers that ask for them again. Its bound is on the sizes of results, not on their number."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Kept"]

V = TypeVar("V")


class Kept(Generic[V]):
    """Results by key. If they are too many, the least recently used result goes first. The last one always stays.

    most: largest sum of the sizes of results, in the unit that `size` counts.
    size: gives the size of a result.

    >>> kept = Kept(most=5, size=len)
    >>> [kept.of(word, word.upper) for word in ("one", "two", "one")], list(kept.results)
    (['ONE', 'TWO', 'ONE'], ['one'])
    """

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        self.most, self.size = most, size
        self.results: dict[Hashable, V] = {}
        self.total = 0
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of a key. `make` makes it if it is not in the store."""
        with self._lock:
            if key in self.results:
                # the last result in the order of the dictionary is the most recently used one
                result = self.results[key] = self.results.pop(key)
                return result
        made = make()
        with self._lock:
            if key not in self.results:
                self.results[key] = made
                self.total += self.size(made)
            while self.total > self.most and len(self.results) > 1:
                self.total -= self.size(self.results.pop(next(iter(self.results))))
        return made

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self.results.clear()
            self.total = 0
