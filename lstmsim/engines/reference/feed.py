"""Tasks that keep coming, on the reference engine: they are added to a run that stands still until then.

The whole run is kept, so memory grows with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lstmsim.engines.feeds import WINDOW, Batches, Coming, Group, check_templates
from lstmsim.engines.reference.run import Machine
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import TraceBuilder
from lstmsim.program.trace_tables import TASKS
from lstmsim.program.validate import validate

__all__ = ["Feed"]


class _FedMachine(Machine):
    """A machine that is told of its tasks while it runs. The tasks of its program are templates; none of them comes."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.templates = program.tasks
        self.program, self.trace = replace(program, tasks=()), TraceBuilder(0)

    def take(self, batch: Sequence[Coming]) -> None:
        """Let the tasks of a batch come."""
        first = len(self.program.tasks)
        tasks = tuple(replace(self.templates[each.template], release=each.release, key=each.key) for each in batch)
        self.program = replace(self.program, tasks=self.program.tasks + tasks)
        self.trace.extend(len(batch))
        self.expect(range(first, first + len(batch)))


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says.

    program: its tasks are templates, and come after no others.
    coming: what comes.
    window: how many tasks there is room for; one for each template at least.
    `InputError` if tasks go back in time.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=5),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> feed = Feed(program, (Coming(3 * number, 0, 0) for number in range(100)), window=70)
    >>> sum(len(numbers) for numbers, _, _ in feed.results()), feed.makespan_cycles
    (100, 500)
    """

    def __init__(self, program: Program, coming: Iterator[Coming], *, window: int = WINDOW) -> None:
        check_templates(program)
        validate(program)
        self.machine, self.batches = _FedMachine(program), Batches(coming)
        self.window = max(window, len(program.tasks))
        self.makespan_cycles = 0
        #: Numbers of the tasks that are in the machine, and the templates of all.
        self.inside: list[int] = []
        self.templates: list[int] = []
        self._fill()

    @property
    def full_at(self) -> int | None:
        """The cycle of which not all had room; None if there was none."""
        return self.batches.full_at

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done; see `lstmsim.engines.feeds.Feed`."""
        more = True
        while more:
            more = self.batches.more
            if more:
                # all of the cycle in which the last known one comes, and nothing of the next cycle
                self.machine.env.run(until=self.batches.last + 1)
            else:
                self.machine.finish()
            numbers = np.array(self.inside, dtype=np.int64)
            rows = self.machine.trace.tasks(numbers)
            admitted, finish = TASKS.of(rows, "admitted"), TASKS.of(rows, "finish")
            # a row is written when the task leaves
            done = np.flatnonzero(admitted >= 0)
            ends = np.where(finish[done] < 0, admitted[done], finish[done])
            done = done[np.lexsort((numbers[done], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finish[done].max(initial=0)))
            self.inside = np.delete(numbers, done).tolist()
            if len(done):
                templates = np.array([self.templates[number] for number in numbers[done].tolist()], dtype=np.int64)
                yield numbers[done], templates, rows[done]
            if more:
                self._fill()

    def totals(self) -> Totals:
        """The totals of all that has run, but for the tasks; see `lstmsim.engines.feeds.Feed`."""
        whole = totals_of(self.machine.program, self.machine.trace.build())
        return replace(whole, tasks=whole.tasks[:0])

    def _fill(self) -> None:
        batch = self.batches.next(self.window - len(self.inside))
        first = len(self.templates)
        self.inside += range(first, first + len(batch))
        self.templates += [each.template for each in batch]
        self.machine.take(batch)
