"""Tasks without end: the fast engine on a window of tasks that is filled again and again.

A task of the Program is a template; what comes is a time and a template. Tasks that are done make room for others, so
memory grows with the number that is in the machine at once, and not with the number of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.engines.fast import layout as at
from lstmsim.engines.fast.run import BUDGET, FastRun
from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace_tables import TASKS

__all__ = ["Feed"]


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says.

    program: the machine, and templates for tasks; they may not come after others.
    chunks: as in `lstmsim.engines.feeds.Batches`.
    window: how many tasks can be in the machine at once, one for each template at least.
    budget: as in `lstmsim.engines.fast.run`.
    `InputError` if tasks go back in time.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=5),))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> chunks = np.array([(3 * number, 0, 0) for number in range(1000)]).reshape(10, 100, 3)
    >>> feed = Feed(program, chunks, window=700)
    >>> sum(len(numbers) for numbers, _, _ in feed.results()), feed.makespan_cycles
    (1000, 5000)
    """

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW, budget: int = BUDGET) -> None:
        check_templates(program)
        self.batches, self.window = Batches(chunks), max(window, len(program.tasks))
        filled = replace(program, tasks=program.tasks + program.tasks[:1] * (self.window - len(program.tasks)))
        self.run = FastRun(filled, keep=False, skipping=True, budget=budget, queue_room=self.window)
        T = self.run.tables
        self.tasks = (T[at.T_TASK], at.T_TASK_SIZE)
        self.variants = (T[at.T_VARIANT_OF], T[at.N_KINDS])
        templates = range(len(program.tasks))
        self.records = np.array([self._cells(self.tasks, number) for number in templates])
        self.kinds = np.array([self._cells(self.variants, number) for number in templates])
        self.numbers = np.full(self.window, -1, dtype=np.int64)
        self.templates = np.zeros(self.window, dtype=np.int64)
        self.fed = self.makespan_cycles = 0
        self._refill(np.arange(self.window))

    def _cells(self, part: tuple[int, int], number: int) -> list[int]:
        first = part[0] + number * part[1]
        return [int(each) for each in self.run.tables[first : first + part[1]]]

    @property
    def full_at(self) -> int | None:
        """The cycle of which not all had room; None if there was none."""
        return self.batches.full_at

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done; see `lstmsim.engines.feeds.Feed`."""
        done = False
        while not done:
            done = self.run.finish()
            rows = self._rows()
            over = np.flatnonzero((self.numbers >= 0) & (rows[:, 3] != 0))
            ends = np.where(rows[over, 3] < 0, rows[over, 2], rows[over, 3])
            over = over[np.lexsort((self.numbers[over], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(rows[over, 3].max(initial=0)))
            if len(over):
                yield self.numbers[over].copy(), self.templates[over].copy(), rows[over].copy()
            self.numbers[over] = -1
            if not done:
                self._refill(np.flatnonzero(self.numbers < 0))

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self.batches.stop()

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        return Totals(*self.run.counted(self.makespan_cycles), np.zeros((0, len(TASKS.names)), dtype=np.int64))

    def _rows(self) -> NDArray[np.int64]:
        first = int(self.run.state[at.S_TASKS])
        size = self.window * at.TASK_SIZE
        return np.array(self.run.state[first : first + size], dtype=np.int64).reshape(-1, len(TASKS.names))

    def _refill(self, free: Ints) -> None:
        """Put what comes next into the free places."""
        batch = self.batches.next(len(free))
        whole = len(batch)
        self._place(free[:whole], batch)
        T, S = self.run.tables, self.run.state
        T[at.N_ARRIVALS], S[at.ARRIVED], S[at.MORE] = whole, 0, int(self.batches.more)
        T[T[at.T_ARRIVAL] : T[at.T_ARRIVAL] + whole] = free[:whole].tolist()
        T[at.N_TASKS] = self.fed

    def _place(self, slots: Ints, batch: Ints) -> None:
        """Put tasks into places."""
        releases, templates, keys = batch.T
        records = self.records[templates]
        records[:, at.RELEASE], records[:, at.KEY] = releases, keys
        self._put(self.run.tables, self.tasks, slots, records)
        self._put(self.run.tables, self.variants, slots, self.kinds[templates])
        rows = np.zeros((len(slots), at.TASK_SIZE), dtype=np.int64)
        self._put(self.run.state, (self.run.state[at.S_TASKS], at.TASK_SIZE), slots, rows)
        self.numbers[slots], self.templates[slots] = self.fed + np.arange(len(slots)), templates
        self.fed += len(slots)

    def _put(self, sequence: Any, part: tuple[int, int], slots: Ints, records: Ints) -> None:
        """Write the records of these places."""
        first, size = int(part[0]), part[1]
        if isinstance(sequence, np.ndarray):
            sequence[first : first + self.window * size].reshape(-1, size)[slots] = records
            return
        for slot, record in zip(slots.tolist(), records.tolist(), strict=True):
            sequence[first + slot * size : first + (slot + 1) * size] = record
