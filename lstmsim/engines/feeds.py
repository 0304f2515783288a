"""Tasks that keep coming: what every engine's feed takes, gives, and keeps to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals

#: Tasks that can be in the machine at once, waiting ones among them.
WINDOW = 8192

Ints = NDArray[np.int64]
#: Tasks that are done: their numbers in the order of coming, their templates, their rows (as in `Trace.tasks`).
Group = tuple[Ints, Ints, Ints]


class Feed(Protocol):
    """A run of tasks that come one after another, in the order of time, on the machine of a program.

    A task of the program is a template; what comes is a time and a template. Once more than `window` would be in the
    machine at once, nothing more comes; those that have come are finished.

    window: how many tasks there is room for.
    makespan_cycles: the last finish so far.
    """

    window: int
    makespan_cycles: int

    @property
    def full_at(self) -> int | None:
        """The cycle in which more than `window` would have been in the machine; None if there never were."""

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done, in the order in which they finish or are rejected, of equal ones that in
        which they came. More is asked for only when a group has been taken."""
        ...

    def pauses(self) -> Ints:
        """Give the pauses that have ended since they were asked for last, as rows of `Trace.pauses`: those of all tasks
        of the groups so far are among them."""
        ...

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        ...


def check_templates(program: Program) -> None:
    """Refuse templates that come after other tasks, and programs with barriers; `InputError`."""
    if any(task.after is not None for task in program.tasks):
        raise InputError(Mistake("tasks", "a task of a feed comes after no other"))
    if program.barriers:
        raise InputError(Mistake("barriers", "a program whose tasks are fed has no barriers"))


class Batches:
    """What comes, in batches that fit into free places, and never a part of what comes in one cycle.

    So tasks that come together are seen together, and a run of batches is the run of the whole.

    chunks: the tasks that come, in arrays of shape [tasks, 3]: the cycle in which a task comes, the number of its
        template among the program's tasks, and its key (`Task.key`). A chunk is taken when there is room for it.
    count, last: how many tasks have come, and the cycle in which the last of them came.
    full_at: the cycle of which not all had room; None if there was none. A part of that cycle came, and nothing more.
    """

    def __init__(self, chunks: Iterable[Ints]) -> None:
        self._chunks = iter(chunks)
        #: What has been taken from the chunks and has not come. The first `_looked_at` have been looked at.
        self._ahead: Ints = np.zeros((0, 3), dtype=np.int64)
        self._looked_at = 0
        self.full_at: int | None = None
        self.count = self.last = 0

    @property
    def more(self) -> bool:
        """Whether another batch will come."""
        return self._looked_at > 0

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self._ahead, self._chunks = self._ahead[: self._looked_at], iter(())

    def next(self, free: int) -> Ints:
        """Give the next batch; `InputError` if it goes back in time.

        free: how many places are free.
        """
        batch = self._next(free + 1)
        whole = len(batch)
        if whole > free:
            # the last one is of a cycle that is not whole; more may come in it
            others = np.flatnonzero(np.diff(batch[:, 0]))
            whole = int(others[-1]) + 1 if len(others) else 0
        self._looked_at = len(batch) - whole
        if len(batch) and not whole:
            # a part of a cycle is as good as a whole one once nothing comes behind it
            self.full_at, whole, self._looked_at = int(batch[0, 0]), free, 0
            self.stop()
        self._ahead = self._ahead[whole:]
        self._count(batch[:whole, 0])
        return batch[:whole]

    def _next(self, number: int) -> Ints:
        """So many of those that come next; fewer at the end."""
        known, chunks = len(self._ahead), [self._ahead]
        while known < number and (chunk := next(self._chunks, None)) is not None:
            chunks.append(chunk)
            known += len(chunk)
        self._ahead = np.concatenate(chunks)
        return self._ahead[:number]

    def _count(self, releases: Ints) -> None:
        back = np.flatnonzero(np.diff(releases, prepend=self.last) < 0)
        if len(back):
            at_fault = int(back[0])
            before = releases[at_fault - 1] if at_fault else self.last
            text = f"comes at cycle {releases[at_fault]:,}, before the one ahead of it ({before:,})"
            raise InputError(Mistake(f"request {self.count + at_fault}", text))
        self.last = int(releases[-1]) if len(releases) else self.last
        self.count += len(releases)
