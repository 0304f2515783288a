"""Tasks that keep coming: what every engine's feed takes, gives, and keeps to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import InputError, Mistake
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals

__all__ = ["WINDOW", "Batches", "Coming", "Feed", "Group", "check_templates"]

#: Tasks that can be in the machine at once, waiting ones among them.
WINDOW = 8192

#: Tasks that are done: their numbers in the order of coming, their templates, their rows (as in `Trace.tasks`).
Group = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class Coming(NamedTuple):
    """A task that comes: when, number of its template among the program's tasks, its key (`Task.key`)."""

    release: int
    template: int
    key: int


class Feed(Protocol):
    """A run of tasks that come one after another, in the order of time, on the machine of a program.

    A task of the program is a template; what comes is a time and a template. Once more than `window` would be in the
    machine at once, nothing more comes; those that have come are finished.

    window: how many tasks there is room for.
    full_at: the cycle in which there were more; None if there never were.
    makespan_cycles: the last finish so far.
    """

    window: int
    makespan_cycles: int

    @property
    def full_at(self) -> int | None: ...

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done, in the order in which they finish or are turned away, of equal ones that in
        which they came. More is asked for only when a group has been taken."""
        ...

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        ...


def check_templates(program: Program) -> None:
    """Refuse templates that come after other tasks; `InputError`."""
    if any(task.after is not None for task in program.tasks):
        raise InputError(Mistake("tasks", "a task of a feed comes after no other"))


class Batches:
    """What comes, in batches that fit into free places, and never a part of what comes in one cycle.

    So tasks that come together are seen together, and a run of batches is the run of the whole.

    full_at: the cycle of which not all had room; None if there was none. A part of that cycle came, and nothing more.

    >>> batches = Batches(iter([Coming(0, 0, 0), Coming(3, 0, 0), Coming(3, 0, 0)]))
    >>> [each.release for each in batches.next(2)], batches.more
    ([0], True)
    >>> [each.release for each in batches.next(2)], batches.more
    ([3, 3], False)
    """

    def __init__(self, coming: Iterator[Coming]) -> None:
        self.coming = coming
        self.pending: list[Coming] = []
        self.full_at: int | None = None
        self.count = self.last = 0

    @property
    def more(self) -> bool:
        """Whether another batch will come."""
        return bool(self.pending)

    def next(self, free: int) -> list[Coming]:
        """Give the next batch; `InputError` if it goes back in time.

        free: how many places are free.
        """
        batch = self.pending + list(islice(self.coming, max(0, free + 1 - len(self.pending))))
        whole = len(batch)
        if whole > free:
            # the last one is of a cycle that is not whole; more may come in it
            whole = next((at for at in range(whole - 1, 0, -1) if batch[at].release != batch[at - 1].release), 0)
        if batch and not whole:
            # a part of a cycle is as good as a whole one once nothing comes behind it
            self.full_at, self.coming = batch[0].release, iter(())
            batch, self.pending = batch[:free], []
        else:
            batch, self.pending = batch[:whole], batch[whole:]
        for each in batch:
            if each.release < self.last:
                text = f"comes at cycle {each.release:,}, before the one ahead of it ({self.last:,})"
                raise InputError(Mistake(f"request {self.count}", text))
            self.last = each.release
            self.count += 1
        return batch
