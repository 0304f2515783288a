"""The trace: the record of a run that every engine makes, its tables and totals. Metrics read nothing else.

Both engines give equal traces for the same program: same rows, same order, same numbers. All cells are whole numbers.
Times are cycles. Cores, units, contexts (threads of a core) and tasks are numbered from 0, as in the Program.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.program.stall_reasons import CAUSES

Table = NDArray[np.int64]


@record
class TraceTable:
    """One table of a trace: the field of `Trace`, what a row says, and what a cell of each column says.

    order: columns by which the rows are sorted, the first one first; empty: row i belongs to task i.
    """

    name: str
    row: str
    columns: Mapping[str, str]
    order: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def place(self, column: str) -> int:
        """The place of a column; `ValueError` if there is none of that name."""
        return self.names.index(column)

    def of(self, table: Table, column: str) -> Table:
        """One column of a table, shape (rows,)."""
        values: Table = table[:, self.place(column)]
        return values

    def empty(self) -> Table:
        """The table without rows."""
        return np.zeros((0, len(self.columns)), dtype=np.int64)

    def ordered(self, table: Table) -> Table:
        """The rows in the canonical order. Equal rows stay in the order in which they come."""
        columns = [np.ascontiguousarray(self.of(table, column)) for column in self.order]
        if _in_order(columns):
            return table
        return table[np.lexsort(columns[::-1])]


def _in_order(columns: list[Table]) -> bool:
    """Whether rows are sorted by these columns already, the first one first."""
    later = np.zeros(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in columns:
        step = np.diff(column)
        if bool((~later & (step < 0)).any()):
            return False
        later |= step > 0
    return True


_UNTIL = {
    f"{cause}_until": f"from when on `{cause}` no longer held the operation back; 0: it never did" for cause in CAUSES
}
_BY_TIME = ("core", "unit")

ISSUES = TraceTable(
    "issues",
    "some issues in a row of one operation",
    {
        "start": "of the first of them",
        "core": "where",
        "unit": "of the core",
        "context": "whose operation it is",
        "task": "of the operation",
        "phase": "of the task",
        "iteration": "of the phase",
        "operation": "its place in the body of the phase",
        "count": "how many issues",
        "cycles": "how long each of them takes the unit",
        **_UNTIL,
    },
    # several instances of a unit may start in one cycle, and a thread uses one of them
    order=("start", *_BY_TIME, "context"),
)
SWITCHES = TraceTable(
    "switches",
    "a unit changes from one thread to another",
    {
        "start": "when it begins to",
        "core": "where",
        "unit": "of the core",
        "cycles": "how long that takes",
        "before": "the context from which",
        "after": "the context to which",
    },
    order=("start", *_BY_TIME, "after"),
)
TASKS = TraceTable(
    "tasks",
    "what became of a task; one that was rejected has core, context and finish -1",
    {
        "core": "where it ran, at last, with its first thread",
        "context": "of that core",
        "admitted": "when it got its first thread, or was rejected",
        "finish": "when its last result was there",
        "arrived": "when it came",
        "pauses": "how often it gave up its thread",
        "taken": "of a moldable task the sum of 2 ** i over the positions i in its `cores` of those it took; else 0",
        "batch": "of a task that ran in a batch the number of the task that led it; else -1",
    },
)
PAUSES = TraceTable(
    "pauses",
    "a task had no thread for a while",
    {
        "task": "which",
        "core": "of the thread that it gave up",
        "context": "that it gave up",
        "paused": "from when",
        "resumed": "until when: then it had a thread of the same core again",
        "batch": "of a task that goes on in rounds the number of the task that led the round; else -1",
    },
    order=("paused", "core", "context", "task"),
)
THREAD_SLOTS = TraceTable(
    "thread_slots",
    "a task has a thread beside its first",
    {"task": "which", "member": "as which of its members, from 1", "core": "of the thread", "context": "of the core"},
    order=("task", "member"),
)
HALTS = TraceTable(
    "halts",
    "a task that was asked to pause put off an operation that had waited until then; or one of no issue has waited",
    {
        "asked": "when it was asked; of an operation of no issue, until when it waited",
        "core": "where",
        "unit": "that the operation waited for",
        "context": "whose operation it is",
        "task": "which",
        **{name: f"{meaning}; at most `asked`" for name, meaning in _UNTIL.items()},
    },
    order=("asked", *_BY_TIME),
)

#: All tables of a trace, in the order of its fields.
TABLES = (ISSUES, SWITCHES, TASKS, PAUSES, THREAD_SLOTS, HALTS)


#: Places of the columns that are changed after a row was written.
_COUNT = ISSUES.place("count")
_PAUSES = TASKS.place("pauses")
_TAKEN = TASKS.place("taken")
_BATCH = TASKS.place("batch")


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a run: tables of shape (rows, columns), in the order that `lstmsim.program.trace` describes.

    issues, switches: when operations issued, and what had held them back; when units changed threads.
    tasks, pauses: what happened to each task, in the order of the program; when tasks had given up their threads.
    thread_slots: the further threads of tasks that have several; the first thread is in `tasks`.
    halts: what operations had waited for when a pause put them off.
    """

    issues: NDArray[np.int64]
    switches: NDArray[np.int64]
    tasks: NDArray[np.int64]
    pauses: NDArray[np.int64] = field(default_factory=PAUSES.empty)
    thread_slots: NDArray[np.int64] = field(default_factory=THREAD_SLOTS.empty)
    halts: NDArray[np.int64] = field(default_factory=HALTS.empty)

    def issue(self, name: str) -> NDArray[np.int64]:
        """One column of `issues` by its name."""
        return ISSUES.of(self.issues, name)

    @cached_property
    def _of_units(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        # one sort for all units: a device has hundreds of them, and a scan of all rows for each takes long
        where = np.stack([self.issue(name) for name in _BY_TIME])
        order = np.lexsort(where[::-1])
        where = where[:, order]
        heads = np.flatnonzero(np.append(True, (np.diff(where) != 0).any(axis=0))[: len(order)])
        rows = np.split(order, heads[1:])
        return dict(zip(zip(*where[:, heads].tolist(), strict=True), rows, strict=False))

    def issues_on(self, core: int, unit: int) -> NDArray[np.int64]:
        """The places of all rows of `issues` of one unit of a core, in their order."""
        return self._of_units.get((core, unit), np.zeros(0, dtype=np.int64))

    def switch(self, name: str) -> NDArray[np.int64]:
        """One column of `switches` by its name."""
        return SWITCHES.of(self.switches, name)

    def task(self, name: str) -> NDArray[np.int64]:
        """One column of `tasks` by its name."""
        return TASKS.of(self.tasks, name)

    def pause(self, name: str) -> NDArray[np.int64]:
        """One column of `pauses` by its name."""
        return PAUSES.of(self.pauses, name)

    def thread_slot(self, name: str) -> NDArray[np.int64]:
        """One column of `thread_slots` by its name."""
        return THREAD_SLOTS.of(self.thread_slots, name)

    def halt(self, name: str) -> NDArray[np.int64]:
        """One column of `halts` by its name."""
        return HALTS.of(self.halts, name)

    def spread(self, task: int) -> int:
        """How many of its cores a moldable task ran on; 1 for any other task."""
        return max(1, int(self.task("taken")[task]).bit_count())

    def size(self, task: int) -> int:
        """How many tasks ran together in the batch of a task; 1 if it ran alone."""
        leads = self.task("batch")
        return 1 if leads[task] < 0 else int((leads == leads[task]).sum())

    @property
    def makespan_cycles(self) -> int:
        """The cycle from which every task is finished."""
        return int(self.task("finish").max(initial=0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return all(np.array_equal(getattr(self, table.name), getattr(other, table.name)) for table in TABLES)

    __hash__ = None  # type: ignore[assignment]


class TraceBuilder:
    """A builder of traces. It takes rows in any order of cores and units.

    Issues of one operation that follow each other without a gap become one row. The row of each unit, or of each way of
    a unit that has several, is kept open until something else starts there.
    """

    def __init__(self, tasks: int) -> None:
        self._rows, self._switches = array("q"), array("q")
        self._pauses, self._thread_slots, self._halts = array("q"), array("q"), array("q")
        self._tasks = _no_tasks(tasks)
        self._open: dict[tuple[int, ...], tuple[tuple[int, ...], int, int]] = {}

    def issue(
        self, start: int, cycles: int, count: int, who: tuple[int, ...], until: tuple[int, ...], instance: int = 0
    ) -> None:
        """Record `count` issues of `cycles` cycles each, from cycle `start` on.

        who: (core, unit, context, task, phase, iteration, operation); instance: of the equal units of that name.
        until: for each cause the cycle from which it no longer held the operation back.
        """
        unit = (*who[:2], instance)
        before = self._open.get(unit)
        if before is not None and before[0] == who and before[2] == start:
            row = before[1]
            self._rows[row + _COUNT] += count
        else:
            row = len(self._rows)
            self._rows.extend((start, *who, count, cycles, *until))
        self._open[unit] = (who, row, start + count * cycles)

    def switch(self, start: int, core: int, unit: int, cycles: int, before: int, after: int) -> None:
        """Record that a unit changes from thread `before` to thread `after`, from cycle `start` on."""
        self._switches.extend((start, core, unit, cycles, before, after))

    def task(
        self,
        task: int,
        *,
        core: int,
        context: int,
        admitted: int,
        finish: int,
        arrived: int = 0,
        taken: int = 0,
        batch: int = -1,
    ) -> None:
        """Record that a task came at cycle `arrived` and ran in a context from `admitted` to `finish`."""
        self._tasks[task, :_PAUSES] = (core, context, admitted, finish, arrived)
        self._tasks[task, _TAKEN] = taken
        self._tasks[task, _BATCH] = batch

    def pause(self, task: int, core: int, context: int, paused: int, batch: int, *, resumed: int) -> None:
        """Record that a task gave up its thread at cycle `paused`, then as one of a batch, and had one at `resumed`."""
        self._pauses.extend((task, core, context, paused, resumed, batch))
        self._tasks[task, _PAUSES] += 1

    def extend(self, tasks: int) -> None:
        """Make room for so many more tasks after the known ones."""
        self._tasks = np.concatenate([self._tasks, _no_tasks(tasks)])

    def tasks(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of some tasks as far as they are known; -1 everywhere before a task has left."""
        return self._tasks[numbers]

    def pauses(self, first: int = 0) -> NDArray[np.int64]:
        """The pauses so far, from the one that ended as number `first` on."""
        width = len(PAUSES.names)
        return np.array(self._pauses[width * first :], dtype=np.int64).reshape(-1, width)

    def take_thread_slot(self, task: int, *, member: int, core: int, context: int) -> None:
        """Record that a task has this thread in addition to its first."""
        self._thread_slots.extend((task, member, core, context))

    def halt(self, asked: int, who: tuple[int, ...], until: tuple[int, ...]) -> None:
        """Record that at cycle `asked` a thread (core, unit, context, task) puts off an operation that had waited."""
        self._halts.extend((asked, *who, *(min(each, asked) for each in until)))

    def build(self) -> Trace:
        """The finished trace, with sorted tables."""
        tables = (
            (ISSUES, self._rows),
            (SWITCHES, self._switches),
            (PAUSES, self._pauses),
            (THREAD_SLOTS, self._thread_slots),
        )
        made = {
            table.name: table.ordered(np.frombuffer(rows, dtype=np.int64).reshape(-1, len(table.names)))
            for table, rows in (*tables, (HALTS, self._halts))
        }
        return Trace(tasks=self._tasks, **made)


def _no_tasks(count: int) -> NDArray[np.int64]:
    """Rows of tasks that have not run."""
    rows = np.full((count, len(TASKS.names)), -1, dtype=np.int64)
    rows[:, [_PAUSES, _TAKEN]] = 0
    return rows


@dataclass(frozen=True, eq=False)
class Totals:
    """The totals of a run.

    cycles: how many cycles of each core bear each name, shape (cores, names in the order of `CYCLE_NAMES`).
    work, issues: useful multiply-accumulates, and issues of all units, of each core.
    tasks, pauses: as in `Trace`.
    makespan_cycles: the cycle from which every task is finished.
    """

    cycles: NDArray[np.int64]
    work: NDArray[np.int64]
    issues: NDArray[np.int64]
    tasks: NDArray[np.int64]
    pauses: NDArray[np.int64] = field(default_factory=PAUSES.empty)
    makespan_cycles: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "makespan_cycles", int(self.task("finish").max(initial=0)))

    def task(self, name: str) -> NDArray[np.int64]:
        """One column of `tasks` by its name."""
        return TASKS.of(self.tasks, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Totals):
            return NotImplemented
        names = ("cycles", "work", "issues", "tasks", "pauses")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]
