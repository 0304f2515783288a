"""Finds the time up to which the past is complete, although requests are known only when they finish."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.traffic.population import Population

__all__ = ["Past"]

Ints = NDArray[np.int64]


class Past:
    """Sweeps the population up to the last arrival before which nothing new can be learned, and forgets all before it.

    next: the first number that has not come.
    most_ahead: the most requests that were remembered at once because an earlier one had not come.

    >>> past = Past()
    >>> past.change(np.array([[5, 8], [0, 0], [1, -1], [1, -1]]))
    >>> past.settle(np.array([[1], [5]]))
    >>> past.next, past.most_ahead
    (0, 1)
    """

    def __init__(self) -> None:
        self.population = Population()
        self.next = self.most_ahead = self._last_arrival = 0
        self._ahead: Ints = np.zeros((2, 0), dtype=np.int64)
        self._changes: Ints = np.zeros((4, 0), dtype=np.int64)

    def change(self, changes: Ints) -> None:
        """Take changes of the population in any order: a row of times, and rows of changes as in `Population.apply`."""
        self._changes = np.concatenate([self._changes, changes], axis=1)

    def settle(self, arrived: Ints) -> None:
        """Take requests whose changes are here, as rows of their numbers and arrivals, and sweep what is complete.

        `InputError` for a number that comes twice, and for numbers that do not follow the arrivals.
        """
        ahead = np.concatenate([self._ahead, arrived], axis=1)
        ahead = ahead[:, np.argsort(ahead[0], kind="stable")]
        numbers, cycles = ahead
        gaps = np.flatnonzero(numbers != self.next + np.arange(len(numbers)))
        whole = int(gaps[0]) if len(gaps) else len(numbers)
        twice = np.flatnonzero(np.diff(numbers) == 0)
        if len(twice):
            raise InputError(Mistake(f"request {numbers[twice[0]]}", "comes twice"))
        back = np.flatnonzero(np.diff(cycles[:whole], prepend=self._last_arrival) < 0)
        if len(back):
            at = int(back[0])
            text = f"arrives at {cycles[at]}, before the one with the number below; numbers must follow arrivals"
            raise InputError(Mistake(f"request {numbers[at]}", text))
        self._ahead = ahead[:, whole:]
        self.most_ahead = max(self.most_ahead, len(numbers) - whole)
        if whole:
            self.next += whole
            self._last_arrival = int(cycles[whole - 1])
            self._sweep(self._changes[0] < self._last_arrival)

    def _sweep(self, past: NDArray[np.bool_]) -> None:
        """Apply the chosen changes to the population and forget them."""
        self.population.apply(*self._changes[:, past])
        self._changes = self._changes[:, ~past]

    def finish(self) -> Population:
        """Sweep all that is left and give the population; `InputError` if a number below the highest is missing."""
        if self._ahead.shape[1]:
            text = f"has not finished, but request {self._ahead[0, 0]} has; a result needs all of those before"
            raise InputError(Mistake(f"request {self.next}", text))
        self._sweep(np.ones(self._changes.shape[1], dtype=np.bool_))
        return self.population
