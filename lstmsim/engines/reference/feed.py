"""Tasks that keep coming, on the reference engine: they are added to a run that stands still until then.

The whole run is kept, so memory grows with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.engines.reference.run import Machine
from lstmsim.program.accounts import totals_of
from lstmsim.program.program import Program
from lstmsim.program.trace import TASKS, Totals, TraceBuilder
from lstmsim.program.validate import validate


class _FedMachine(Machine):
    """A machine that is told of its tasks while it runs. The tasks of its program are templates; none of them comes."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.templates = program.tasks
        self.program, self.trace = replace(program, tasks=()), TraceBuilder(0)

    def take(self, batch: Ints) -> None:
        """Let the tasks of a batch come."""
        first = len(self.program.tasks)
        tasks = tuple(replace(self.templates[own], release=release, key=key) for release, own, key in batch.tolist())
        self.program = replace(self.program, tasks=self.program.tasks + tasks)
        self.trace.extend(len(batch))
        self.expect(range(first, first + len(batch)))


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says.

    program: its tasks are templates, and come after no others.
    chunks: what comes, as in `lstmsim.engines.feeds.Batches`.
    window: how many tasks there is room for; one for each template at least.
    `InputError` if tasks go back in time.
    """

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> None:
        check_templates(program)
        validate(program)
        self.machine, self.batches = _FedMachine(program), Batches(chunks)
        self.window = max(window, len(program.tasks))
        #: How many pauses have been told, and the last finish.
        self.told = self.makespan_cycles = 0
        #: Numbers of the tasks that are in the machine, and the templates of all.
        self.inside: Ints = np.zeros(0, dtype=np.int64)
        self.templates: Ints = np.zeros(0, dtype=np.int64)
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
            numbers = self.inside
            rows = self.machine.trace.tasks(numbers)
            admitted, finish = TASKS.of(rows, "admitted"), TASKS.of(rows, "finish")
            # a row is written when the task leaves
            done = np.flatnonzero(admitted >= 0)
            ends = np.where(finish[done] < 0, admitted[done], finish[done])
            done = done[np.lexsort((numbers[done], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finish[done].max(initial=0)))
            self.inside = np.delete(numbers, done)
            if len(done):
                yield numbers[done], self.templates[numbers[done]], rows[done]
            if more:
                self._fill()

    def pauses(self) -> Ints:
        """Pauses of tasks that have ended since they were asked for last; see `lstmsim.engines.feeds.Feed`."""
        new = self.machine.trace.pauses(self.told)
        self.told += len(new)
        return new

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self.batches.stop()

    def totals(self) -> Totals:
        """The totals of all that has run, but for the tasks; see `lstmsim.engines.feeds.Feed`."""
        whole = totals_of(self.machine.program, self.machine.trace.build())
        return replace(whole, tasks=whole.tasks[:0])

    def _fill(self) -> None:
        batch = self.batches.next(self.window - len(self.inside))
        first = len(self.templates)
        self.inside = np.append(self.inside, np.arange(first, first + len(batch)))
        self.templates = np.append(self.templates, batch[:, 1])
        self.machine.take(batch)
