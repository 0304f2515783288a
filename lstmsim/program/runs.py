"""Runs: when each task had threads, from its admission, or a return, to the next pause or to its finish.

A task in a pool that goes on step by step has a run for each of its rounds, and others are in the same batch then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import Program
from lstmsim.program.trace import PAUSES, TASKS, Table, Trace

Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of tasks, columns of equal length, sorted by (task, start).

    task: which; core, context: where, with its first thread; start, end: from when until when.
    batch: the task that led the batch in which it ran; -1: it ran alone.
    """

    task: Column
    core: Column
    context: Column
    start: Column
    end: Column
    batch: Column

    @property
    def leads(self) -> NDArray[np.bool_]:
        """Whether the run is that of a thread: the task was alone, or led its batch."""
        leads: NDArray[np.bool_] = (self.batch < 0) | (self.batch == self.task)
        return leads

    def where(self, kept: NDArray[np.bool_]) -> Runs:
        """Some of the runs."""
        return Runs(*(column[kept] for column in vars(self).values()))

    @property
    def sizes(self) -> Column:
        """How many tasks ran together in the batch of each run; 1 for one that was alone."""
        sizes = np.ones(len(self.task), dtype=np.int64)
        pooled = np.flatnonzero(self.batch >= 0)
        span = int(self.start.max(initial=0)) + 1
        _, own, counts = np.unique(
            self.batch[pooled] * span + self.start[pooled], return_inverse=True, return_counts=True
        )
        sizes[pooled] = counts[own]
        return sizes

    @property
    def numbers(self) -> Column:
        """The how-manieth run of its task each is, from 0."""
        rows = np.arange(len(self.task))
        first = np.searchsorted(self.task, self.task)
        numbers: Column = rows - first
        return numbers

    @property
    def last_ends(self) -> dict[int, int]:
        """When the last run of each task ended."""
        return dict(zip(self.task.tolist(), self.end.tolist(), strict=True))

    def of(self, task: Column, cycle: Column) -> Column:
        """The place of the run of a task in which a cycle lies."""
        span = int(self.end.max(initial=0)) + 1
        places: Column = np.searchsorted(self.task * span + self.start, task * span + cycle, side="right") - 1
        return places


def runs_of(tasks: Table, pauses: Table) -> Runs:
    """The runs of all tasks that were not rejected; tables as in `Trace`."""
    finish, batch = TASKS.of(tasks, "finish"), TASKS.of(tasks, "batch")
    own = np.flatnonzero(TASKS.of(tasks, "core") >= 0)
    # the thread of a batch is free when the last of its members has finished
    ends = finish.copy()
    pooled = own[batch[own] >= 0]
    np.maximum.at(ends, batch[pooled], finish[pooled])
    ends = np.where(batch == np.arange(len(tasks)), ends, finish)
    pauses = pauses[np.lexsort((PAUSES.of(pauses, "paused"), PAUSES.of(pauses, "task")))]
    paused, back = PAUSES.of(pauses, "task"), PAUSES.of(pauses, "resumed")
    last = TASKS.of(tasks, "admitted").copy()
    since = last[paused]
    again = np.flatnonzero(paused[1:] == paused[:-1]) + 1
    since[again] = back[again - 1]
    np.maximum.at(last, paused, back)
    columns = {
        "task": (paused, own),
        "core": (PAUSES.of(pauses, "core"), TASKS.of(tasks, "core")[own]),
        "context": (PAUSES.of(pauses, "context"), TASKS.of(tasks, "context")[own]),
        "start": (since, last[own]),
        "end": (PAUSES.of(pauses, "paused"), ends[own]),
        "batch": (PAUSES.of(pauses, "batch"), batch[own]),
    }
    runs = Runs(**{name: np.concatenate(parts) for name, parts in columns.items()})
    # in one cycle a run that was over at once stands first
    order = np.lexsort((runs.end, runs.start, runs.task))
    return Runs(*(column[order] for column in vars(runs).values()))


def companies(runs: Runs, turn: Callable[[int], Any]) -> dict[tuple[int, int], list[int]]:
    """The tasks of each batch, by the task that led it and the cycle in which it began; one that was alone is one.

    turn: what tasks are sorted by.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for task, start, lead in zip(runs.task.tolist(), runs.start.tolist(), runs.batch.tolist(), strict=True):
        found.setdefault((task if lead < 0 else lead, start), []).append(task)
    return {key: sorted(tasks, key=turn) for key, tasks in found.items()}


def inferences(program: Program, trace: Trace) -> dict[tuple[int, int], list[int]]:
    """The tasks of each batch, as `companies`, in the order of the inferences that the operations name."""
    arrived = trace.task("arrived").tolist()

    def turn(number: int) -> tuple[int, ...]:
        task, came = program.tasks[number], arrived[number]
        ragged = task.pool is not None and program.pools[task.pool].ragged and not task.in_rounds(program.pools)
        return (-task.length if ragged else 0, task.key + (came if task.key_from_arrival else 0), came, number)

    return companies(runs_of(trace.tasks, trace.pauses), turn)


def in_rounds(trace: Trace) -> bool:
    """Whether tasks ran in rounds, so that what a row of issues belongs to is not told by its task alone."""
    return bool((trace.pause("batch") >= 0).any())
