"""Tasks that wait, and pools where they wait for company (docs/batching.md), on the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lstmsim.engines.reference.thread import Boundary
from lstmsim.program.program import Pool, Task

#: A place where a task may run: one core for each of the task's threads, the task's first core first.
Place = tuple[int, ...]


@dataclass(frozen=True)
class Waiting:
    """A task that waits since the cycle `arrived`; `paused_at`: boundary from which a paused task goes on."""

    rank: int
    arrived: int
    number: int
    task: Task
    places: tuple[Place, ...]
    paused_at: Boundary | None = None

    @property
    def turn(self) -> tuple[int, int, int]:
        """The sorting key for the order in which the dispatcher looks at waiting tasks."""
        return self.rank, self.arrived, self.number

    def reneges(self, now: int) -> bool:
        """Whether the task has waited longer than its patience. A task that has run once waits for ever."""
        patience = self.task.patience
        return self.paused_at is None and patience is not None and now - self.arrived > patience


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
    def all(self) -> list[Waiting]:
        """All tasks that wait here."""
        opened = self.opened.members if self.opened else []
        return [*self.waiting, *opened, *(each for window in self.closed for each in window.members)]

    def join(self, newcomer: Waiting, now: int) -> int:
        """Let a task wait. Gives the cycle in which the pool must be looked at because of it."""
        if not self.pool.window:
            self.waiting.append(newcomer)
            return now + self.pool.wait
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
        if self.pool.window:
            return bool(self.closed)
        oldest = min((each.arrived for each in self.waiting), default=None)
        due = oldest is not None and oldest + self.pool.wait <= now
        return due or len(self.waiting) >= self.pool.most

    def looked_at(self) -> Iterator[Waiting]:
        """The tasks that are looked at: all, or for each closed window the one whose turn comes first."""
        yield from self.waiting
        for window in self.closed:
            yield min(window.members, key=lambda each: each.turn)

    def take(self, first: Waiting) -> list[Waiting]:
        """The batch of a task that has found a place, in order of turn; it waits no more."""
        if self.pool.window:
            window = next(each for each in self.closed if first in each.members)
            self.closed.remove(window)
            return sorted(window.members, key=lambda each: each.turn)
        others = sorted((each for each in self.waiting if each.turn > first.turn), key=lambda each: each.turn)
        batch = [first, *others[: self.pool.most - 1]]
        self.waiting = [each for each in self.waiting if each not in batch]
        return batch
