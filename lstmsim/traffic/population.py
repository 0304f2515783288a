"""How many requests wait and run at each cycle, and on how many servers: areas, largest numbers, windows over time.

All are whole numbers, exact.

`Past` finds the time up to which the past is complete, although requests are known only when they finish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake

Ints = NDArray[np.int64]

#: Most windows that are kept; when they are full, two become one.
WINDOWS = 256


@dataclass(frozen=True)
class Window:
    """Part of a run: requests waiting and running and servers taken, summed over its cycles; finished requests."""

    start_cycle: int
    width_cycles: int
    waiting_cycles: int
    running_cycles: int
    taken_cycles: int
    finished: int

    @property
    def queue_length(self) -> float:
        """Requests that wait, on average over the window."""
        return self.waiting_cycles / self.width_cycles

    @property
    def running(self) -> float:
        """Requests that run, on average over the window."""
        return self.running_cycles / self.width_cycles

    @property
    def taken(self) -> float:
        """Servers taken, on average over the window."""
        return self.taken_cycles / self.width_cycles


class Population:
    """Sweeps over changes in the order of time. At each cycle all changes of that cycle take effect together.

    waiting, running, taken: requests waiting and running, and servers taken, at cycle `now`.
    waiting_area, running_area: the first two summed over all cycles.
    most_waiting, most_inside: the most requests that waited, and that waited or ran, at one time.
    first_cycle: the cycle of the first change, -1 before it.
    """

    def __init__(self) -> None:
        self.waiting = self.running = self.taken = 0
        self.waiting_area = self.running_area = 0
        self.most_waiting = self.most_inside = 0
        self.first_cycle = self.now = -1
        self._width = 1
        self._sums = [[0] * WINDOWS for _ in range(4)]

    def apply(self, times: Ints, waiting: Ints, running: Ints, taken: Ints) -> None:
        """Take changes in any order, none of them before changes of earlier calls; shape [changes] each."""
        if not len(times):
            return
        order = np.argsort(times, kind="stable")
        times, waiting, running, taken = times[order], waiting[order], running[order], taken[order]
        firsts = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
        if self.first_cycle < 0:
            self.first_cycle = self.now = int(times[0])
        waits = np.cumsum(np.add.reduceat(waiting, firsts)) + self.waiting
        runs = np.cumsum(np.add.reduceat(running, firsts)) + self.running
        servers = np.cumsum(np.add.reduceat(taken, firsts)) + self.taken
        self.most_waiting = max(self.most_waiting, int(waits.max()))
        self.most_inside = max(self.most_inside, int((waits + runs).max()))
        before = ((self.waiting, waits), (self.running, runs), (self.taken, servers))
        levels = [np.concatenate([[level], levels]) for level, levels in before]
        self._sweep(times, times[firsts], levels, (running < 0) & (waiting == 0))
        self.waiting, self.running, self.taken = int(waits[-1]), int(runs[-1]), int(servers[-1])
        self.now = int(times[-1])

    def _sweep(self, times: Ints, distinct: Ints, levels: list[Ints], finishes: NDArray[np.bool_]) -> None:
        """Add areas and finishes up to the last of the times, window by window."""
        end = int(distinct[-1])
        while end > self.first_cycle + self._width * WINDOWS:
            self._sums = [_in_pairs(each) for each in self._sums]
            self._width *= 2
        # A request that finishes at an edge was at work up to it: it counts for the window that ends there. So the
        # first window is the one that ends at `now`, where `now` is an edge: finishes of that cycle may still come.
        first, last = (max(0, at - 1 - self.first_cycle) // self._width for at in (self.now, end))
        edges = self.first_cycle + self._width * np.arange(first + 1, last + 2)
        edges[-1] = end
        knots = np.concatenate([[self.now], distinct])
        done = np.searchsorted(times[finishes], edges, side="right")
        until = [*(_integral(knots, each, edges) for each in levels), done.tolist()]
        self.waiting_area += until[0][-1]
        self.running_area += until[1][-1]
        for sums, totals in zip(self._sums, until, strict=True):
            for place, (before, total) in enumerate(zip([0, *totals], totals, strict=False), first):
                sums[place] += total - before

    @property
    def span_cycles(self) -> int:
        """Cycles from the first change to the last."""
        return self.now - self.first_cycle

    @property
    def windows(self) -> tuple[Window, ...]:
        """The run so far, cut into equal parts (the last may be shorter)."""
        windows = []
        for place, sums in enumerate(zip(*self._sums, strict=True)):
            start = self.first_cycle + place * self._width
            if start < self.now:
                windows.append(Window(start, min(self._width, self.now - start), *sums))
        return tuple(windows)


def _integral(knots: Ints, levels: Ints, edges: Ints) -> list[int]:
    """Areas from the first knot to each edge under the function that is `levels[i]` from knot i on; exact."""
    if int(levels.max()) * int(knots[-1] - knots[0]) >= 2**62:
        knots, levels, edges = (each.astype(object) for each in (knots, levels, edges))
    areas = np.concatenate([[0], np.cumsum(levels[:-1] * np.diff(knots))])
    piece = np.searchsorted(knots, edges, side="right") - 1
    totals: list[int] = (areas[piece] + levels[piece] * (edges - knots[piece])).tolist()
    return totals


def _in_pairs(sums: list[int]) -> list[int]:
    """Sums of neighbouring pairs, filled up with zeros to the old length."""
    joined = [one + two for one, two in zip(sums[::2], sums[1::2], strict=True)]
    return joined + [0] * (len(sums) - len(joined))


class Past:
    """Sweeps the population up to the last arrival before which nothing new can be learned, and forgets all before it.

    next: the first number that has not come.
    most_ahead: the most requests that were remembered at once because an earlier one had not come.
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
