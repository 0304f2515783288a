"""Pools in which tasks wait for company (docs/batching.md), on the reference engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from lstmsim.engines.reference.waiting import Waiting
from lstmsim.program.program import Pool


@dataclass
class Window:
    """Tasks that go together; ends: the cycle in which the window closes if it is not full before."""

    ends: int
    members: list[Waiting] = field(default_factory=list)


class Company:
    """A pool in a run.

    waiting: tasks of a pool without windows; opened, closed: the windows of others.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.waiting: list[Waiting] = []
        self.opened: Window | None = None
        self.closed: list[Window] = []

    @property
    def in_rounds(self) -> bool:
        """Whether tasks wait again between two steps."""
        return self.pool.policy == "continuous"

    @property
    def ragged(self) -> bool:
        """Whether tasks of one batch end one by one. In a round all have the same step."""
        return self.pool.ragged and not self.in_rounds

    @property
    def all(self) -> list[Waiting]:
        """All tasks that wait here."""
        opened = self.opened.members if self.opened else []
        return [*self.waiting, *opened, *(each for window in self.closed for each in window.members)]

    def join(self, newcomer: Waiting, now: int) -> int:
        """Let a task wait. Gives the cycle in which the pool must be looked at because of it."""
        if self.pool.policy != "window":
            self.waiting.append(newcomer)
            return now if self.in_rounds else now + self.pool.wait
        if self.opened is None:
            self.opened = Window(now + self.pool.wait)
        self.opened.members.append(newcomer)
        ends = self.opened.ends
        if len(self.opened.members) == self.pool.most:
            self._close()
        return ends

    def close_due(self, now: int) -> None:
        """Close the window whose time has come."""
        if self.opened is not None and self.opened.ends <= now:
            self._close()

    def _close(self) -> None:
        assert self.opened is not None, "it is asked only of an open window"
        self.closed.append(self.opened)
        self.opened = None

    def leave(self, one: Waiting) -> None:
        """Let a task go that has lost patience. Windows that nobody is left in are gone."""
        if one in self.waiting:
            self.waiting.remove(one)
        for window in [*self.closed, *([self.opened] if self.opened else [])]:
            if one in window.members:
                window.members.remove(one)
        self.closed = [window for window in self.closed if window.members]
        if self.opened is not None and not self.opened.members:
            self.opened = None

    def ripe(self, now: int) -> bool:
        """Whether the tasks that wait now may go."""
        if self.pool.policy == "window":
            return bool(self.closed)
        oldest = min((each.arrived for each in self.waiting), default=None)
        due = oldest is not None and oldest + self.pool.wait <= now
        return due or self.in_rounds or len(self.waiting) >= self.pool.most

    def looked_at(self) -> Iterator[Waiting]:
        """The tasks that are looked at: all, or for each closed window the one whose turn comes first."""
        yield from self.waiting
        for window in self.closed:
            yield min(window.members, key=lambda each: each.turn)

    def take(self, first: Waiting, core: int) -> list[Waiting]:
        """The batch of a task that has found a place on a core, the one that leads it first; it waits no more."""
        if self.pool.policy == "window":
            window = next(each for each in self.closed if first in each.members)
            self.closed.remove(window)
            batch = sorted(window.members, key=lambda each: each.turn)
        else:
            able = (each for each in self.waiting if any(place[0] == core for place in each.places))
            others = sorted((each for each in able if each.turn > first.turn), key=lambda each: each.turn)
            batch = [first, *others[: self.pool.most - 1]]
            self.waiting = [each for each in self.waiting if each not in batch]
        # in a round all run one step
        return batch if self.in_rounds else sorted(batch, key=lambda each: -each.task.length)

    def places_of_begun(self, cores: Collection[int]) -> int:
        """How many free contexts of some cores those take who have begun there and wait."""
        on = Counter(each.places[0][0] for each in self.waiting if each.begun)
        return sum(-(-count // self.pool.most) for core, count in on.items() if core in cores)
