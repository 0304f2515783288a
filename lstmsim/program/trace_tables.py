"""The tables of a trace: their columns, the meaning of each column, and the order of their rows.

All cells are whole numbers. Times are cycles. Cores, units, contexts (threads of a core) and tasks are numbered from 0,
as in the Program.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.program.stall_reasons import CAUSES

__all__ = ["HALTS", "ISSUES", "PAUSES", "SEATS", "SWITCHES", "TABLES", "TASKS", "TraceTable"]

Table = NDArray[np.int64]


@record
class TraceTable:
    """One table of a trace.

    name: name of the field of `Trace`.
    row: what a row says.
    columns: name of each column -> what a cell says, in the order of the columns.
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
        """The place of a column; `ValueError` if there is none of that name.

        >>> SEATS.place("core")
        2
        """
        return self.names.index(column)

    def of(self, table: Table, column: str) -> Table:
        """One column of a table, shape (rows,)."""
        values: Table = table[:, self.place(column)]
        return values

    def empty(self) -> Table:
        """The table without rows.

        >>> PAUSES.empty().shape
        (0, 5)
        """
        return np.zeros((0, len(self.columns)), dtype=np.int64)

    def ordered(self, table: Table) -> Table:
        """The rows in the canonical order. Equal rows stay in the order in which they come.

        >>> SEATS.ordered(np.array([[1, 1, 0, 0], [0, 2, 3, 1], [0, 1, 4, 0]])).tolist()
        [[0, 1, 4, 0], [0, 2, 3, 1], [1, 1, 0, 0]]
        """
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
    # several ways of a unit may start in one cycle, and a thread uses one of them
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
    "what became of a task; one that was turned away has core, context and finish -1",
    {
        "core": "where it ran, at last, with its first thread",
        "context": "of that core",
        "admitted": "when it got its first thread, or was turned away",
        "finish": "when its last result was there",
        "arrived": "when it came",
        "pauses": "how often it gave up its thread",
        "taken": "of a task with `wide` the sum of 2 ** i over the positions i in its `cores` of those it took; else 0",
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
    },
    order=("paused", "core", "context"),
)
SEATS = TraceTable(
    "seats",
    "a task has a thread beside its first",
    {
        "task": "which",
        "member": "as which of its members, from 1",
        "core": "of the thread",
        "context": "of the core",
    },
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
TABLES = (ISSUES, SWITCHES, TASKS, PAUSES, SEATS, HALTS)
