"""Tasks without end: they are given to the core of the fast engine group by group.

A task of the Program is a template; what comes is a time and a template. Tasks that are done make room for others, so
memory grows with the number that is in the machine at once, and not with the number of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lstmsim.engines.fast.binding import Machine, Outcome, Table
from lstmsim.engines.fast.run import COUNTS, finish
from lstmsim.engines.fast.stuck import deadlock
from lstmsim.errors import InputError, Mistake
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace_tables import TASKS
from lstmsim.program.validate import validate

__all__ = ["WINDOW", "Feed"]

Ints = NDArray[np.int64]

#: Tasks that can be in the machine at once, waiting ones among them.
WINDOW = 8192


class Feed:
    """Runs tasks that come one after another, in the order of time, on the machine of a program.

    program: the machine, and templates for tasks; they may not come after others.
    chunks: the tasks that come, in arrays of shape [tasks, 3]: the cycle in which a task comes, the number of its
        template among the program's tasks, and its key (`Task.key`). A chunk is taken when there is room for it.
    window: how many tasks can be in the machine at once, one for each template at least.
    `InputError` if tasks go back in time.

    Once more than `window` would be in the machine at once, nothing more comes, and `full_at` is the cycle in which
    that was; those that have come are finished. `makespan_cycles` is the last finish so far.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=5),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> chunks = np.array([(3 * number, 0, 0) for number in range(1000)]).reshape(10, 100, 3)
    >>> feed = Feed(program, chunks, window=700)
    >>> sum(len(numbers) for numbers, _, _ in feed.results()), feed.makespan_cycles
    (1000, 5000)
    """

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> None:
        if any(task.after is not None for task in program.tasks):
            raise InputError(Mistake("tasks", "a task of a feed comes after no other"))
        validate(program)
        self.program, self.window = program, max(window, len(program.tasks))
        self._machine = Machine(flat_of(program), fed=True)
        self._fed = self._done = self._last = self.makespan_cycles = 0
        self.full_at: int | None = None
        self._chunks = iter(chunks)
        #: What has been taken from the chunks and is not in the machine. The first `_looked_at` have been looked at.
        self._ahead: Ints = np.zeros((0, 3), dtype=np.int64)
        self._looked_at = 0
        self._refill()

    def results(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Groups of tasks that are done, in the order in which they finish or are turned away, of equal ones that in
        which they came: their numbers in the order of coming, their templates, their rows (as in `Trace.tasks`)."""
        outcome = Outcome.HUNGRY
        while outcome is not Outcome.DONE:
            outcome = finish(self._machine)
            if outcome is Outcome.STUCK:
                raise deadlock(self.program, *self._machine.waits())
            over = self._machine.table(Table.OVER, 2 + len(TASKS.names))
            self._machine.clear(Table.OVER)
            self._done += len(over)
            finishes = TASKS.of(over[:, 2:], "finish")
            ends = np.where(finishes < 0, TASKS.of(over[:, 2:], "admitted"), finishes)
            over = over[np.lexsort((over[:, 0], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finishes.max(initial=0)))
            if len(over):
                yield over[:, 0], over[:, 1], over[:, 2:]
            if outcome is Outcome.HUNGRY:
                self._refill()

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self._ahead, self._chunks = self._ahead[: self._looked_at], iter(())

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        counted = self._machine.totals(self.makespan_cycles, COUNTS)
        return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], TASKS.empty())

    def _refill(self) -> None:
        """Let what comes next come, as far as there is room, but never a part of what comes in one cycle."""
        room = self.window - (self._fed - self._done)
        batch = self._next(room + 1)
        whole = len(batch)
        if whole > room:
            # the last one is of a cycle that is not whole; more may come in it
            others = np.flatnonzero(np.diff(batch[:, 0]))
            whole = int(others[-1]) + 1 if len(others) else 0
        self._looked_at = len(batch) - whole
        if len(batch) and not whole:
            # a part of a cycle is as good as a whole one once nothing comes behind it
            self.full_at, whole, self._looked_at = int(batch[0, 0]), room, 0
            self.stop()
        self._ahead = self._ahead[whole:]
        self._check(batch[:whole])
        self._machine.feed(batch[:whole], more=self._looked_at > 0)
        self._fed += whole

    def _next(self, number: int) -> Ints:
        """So many of those that come next; fewer at the end."""
        known, chunks = len(self._ahead), [self._ahead]
        while known < number and (chunk := next(self._chunks, None)) is not None:
            chunks.append(chunk)
            known += len(chunk)
        self._ahead = np.concatenate(chunks)
        return self._ahead[:number]

    def _check(self, batch: Ints) -> None:
        """`InputError` if one of those that come goes back in time."""
        back = np.flatnonzero(np.diff(batch[:, 0], prepend=self._last) < 0)
        if len(back):
            place = int(back[0])
            before = batch[place - 1, 0] if place else self._last
            text = f"comes at cycle {batch[place, 0]:,}, before the one ahead of it ({before:,})"
            raise InputError(Mistake(f"request {self._fed + place}", text))
        self._last = int(batch[-1, 0]) if len(batch) else self._last
