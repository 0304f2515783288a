"""Tasks without end: they are given to the core of the fast engine group by group.

A task of the Program is a template; what comes is a time and a template. Tasks that are done make room for others, so
memory grows with the number that is in the machine at once, and not with the number of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lstmsim.engines.fast.binding import Machine, Outcome, Table
from lstmsim.engines.fast.run import COUNTS, finish
from lstmsim.engines.fast.stuck import deadlock
from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace_tables import PAUSES, TASKS
from lstmsim.program.validate import validate

__all__ = ["Feed"]


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says.

    program: the machine, and templates for tasks; they may not come after others.
    chunks: as in `lstmsim.engines.feeds.Batches`.
    window: how many tasks can be in the machine at once, one for each template at least.
    `InputError` if tasks go back in time. `DeadlockError` if they get stuck.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=5),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> chunks = np.array([(3 * number, 0, 0) for number in range(1000)]).reshape(10, 100, 3)
    >>> feed = Feed(program, chunks, window=700)
    >>> sum(len(numbers) for numbers, _, _ in feed.results()), feed.makespan_cycles
    (1000, 5000)
    """

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> None:
        check_templates(program)
        validate(program)
        self.program, self.batches, self.window = program, Batches(chunks), max(window, len(program.tasks))
        self.machine = Machine(flat_of(program), fed=True)
        self.done = self.makespan_cycles = 0
        self._refill()

    @property
    def full_at(self) -> int | None:
        """The cycle of which not all had room; None if there was none."""
        return self.batches.full_at

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done; see `lstmsim.engines.feeds.Feed`."""
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

    def pauses(self) -> Ints:
        """Pauses of tasks that have ended since they were asked for last; see `lstmsim.engines.feeds.Feed`."""
        rows = self.machine.table(Table.PAUSES, len(PAUSES.names))
        self.machine.clear(Table.PAUSES)
        return rows

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self.batches.stop()

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        counted = self.machine.totals(self.makespan_cycles, COUNTS)
        return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], TASKS.empty())

    def _refill(self) -> None:
        """Let the next batch come."""
        batch = self.batches.next(self.window - (self.batches.count - self.done))
        self.machine.feed(batch, more=self.batches.more)
