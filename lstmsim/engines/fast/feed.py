"""Tasks without end: requests are given to the core of the fast engine group by group.

A task of the Program is a template; what comes is a time, a template and a rank. Requests that are done make room for
others. So memory grows with the number of those that are in the machine at once, and not with the number of all.
"""

from __future__ import annotations

from collections.abc import Iterator

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

#: Requests that can be in the machine at once, waiting ones among them.
WINDOW = 8192

Numbers = NDArray[np.int64]


class Feed:
    """Runs requests that come one after another, in the order of time, on the machine of a program.

    program: its tasks are the templates; none of them may come after another one.
    chunks: requests, shape (requests, 3), columns: release, number of the template, key (`Task.key`).
    window: how many requests may be in the machine at once. Before there would be more, nothing more comes, and
        `full_at` is the cycle in which that was; those that have come are finished.
    `InputError` if requests go back in time.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=5),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> requests = np.array([(3 * number, 0, 0) for number in range(1000)])
    >>> feed = Feed(program, iter([requests]), window=700)
    >>> sum(len(numbers) for numbers, _, _ in feed.results()), feed.makespan_cycles
    (1000, 5000)
    """

    def __init__(self, program: Program, chunks: Iterator[Numbers], *, window: int = WINDOW) -> None:
        if any(task.after is not None for task in program.tasks):
            raise InputError(Mistake("tasks", "a task of a feed comes after no other"))
        validate(program)
        self.program, self.chunks, self.window = program, chunks, max(window, len(program.tasks))
        self.machine = Machine(flat_of(program), fed=True)
        self.pending: Numbers = np.zeros((0, 3), dtype=np.int64)
        self.fed = self.done = self.last = self.makespan_cycles = 0
        self.full_at: int | None = None
        self._refill()

    def results(self) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """Groups of requests that are done, in the order in which they finish or are turned away, of equal ones that in
        which they came: their numbers in the order of coming, their templates, their rows (as in `Trace.tasks`)."""
        outcome = Outcome.HUNGRY
        while outcome is not Outcome.DONE:
            outcome = finish(self.machine)
            if outcome is Outcome.STUCK:
                raise deadlock(self.program, *self.machine.waits())
            over = self.machine.table(Table.OVER, 2 + len(TASKS.names))
            self.machine.clear(Table.OVER)
            self.done += len(over)
            finishes = TASKS.of(over[:, 2:], "finish")
            ends = np.where(finishes < 0, TASKS.of(over[:, 2:], "admitted"), finishes)
            over = over[np.lexsort((over[:, 0], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finishes.max(initial=0)))
            if len(over):
                yield over[:, 0], over[:, 1], over[:, 2:]
            if outcome is Outcome.HUNGRY:
                self._refill()

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        counted = self.machine.totals(self.makespan_cycles, COUNTS)
        return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], TASKS.empty())

    def _refill(self) -> None:
        """Let what comes next come, as far as there is room, but never a part of what comes in one cycle."""
        room = self.window - (self.fed - self.done)
        batch = self._next(room + 1)
        whole = len(batch)
        if whole > room:
            # the last one is of a cycle that is not whole; more may come in it
            changes = np.flatnonzero(np.diff(batch[:, 0]))
            whole = int(changes[-1]) + 1 if len(changes) else 0
        if len(batch) and not whole:
            # a part of a cycle is as good as a whole one once nothing comes behind it
            self.full_at, self.chunks = int(batch[0, 0]), iter(())
            batch, self.pending = batch[:room], batch[:0]
        else:
            batch, self.pending = batch[:whole], np.concatenate([batch[whole:], self.pending])
        self._check(batch)
        self.machine.feed(batch, more=len(self.pending) > 0)
        self.fed += len(batch)

    def _next(self, most: int) -> Numbers:
        """Up to so many requests that come next; `pending` keeps the others that are there."""
        parts, count = [self.pending], len(self.pending)
        while count < most and (chunk := next(self.chunks, None)) is not None:
            parts.append(chunk)
            count += len(chunk)
        requests = np.concatenate(parts)
        self.pending = requests[most:]
        return requests[:most]

    def _check(self, batch: Numbers) -> None:
        releases = np.concatenate([[self.last], batch[:, 0]])
        back = np.flatnonzero(np.diff(releases) < 0)
        if len(back):
            place = int(back[0])
            text = f"comes at cycle {releases[place + 1]:,}, before the one ahead of it ({releases[place]:,})"
            raise InputError(Mistake(f"request {self.fed + place}", text))
        self.last = int(releases[-1])
