"""The trace: what every engine records of a run, and the only thing that metrics read.

Both engines give equal traces for the same program: same rows, same order, same numbers.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import CAUSES

__all__ = ["ISSUE_COLUMNS", "PAUSE_COLUMNS", "SWITCH_COLUMNS", "TASK_COLUMNS", "Trace", "TraceBuilder", "by_time"]

#: A row of `Trace.issues`: `count` issues in a row of one operation, each `cycles` long. The `..._until` columns give,
#: per cause, the cycle from which it no longer held the operation back (0: it never did).
ISSUE_COLUMNS = (
    *("start", "core", "unit", "context", "task", "phase", "iteration", "operation", "count", "cycles"),
    *(f"{cause}_until" for cause in CAUSES),
)
#: A row of `Trace.switches`: from `start`, `cycles` long, the unit changes from one thread to another.
SWITCH_COLUMNS = ("start", "core", "unit", "cycles", "before", "after")
#: Row i of `Trace.tasks`: where task i ran (at last), from its admission to its finish, when it had arrived, and how
#: often it was paused. One that was turned away has core, context and finish -1, and the cycle of that as `admitted`.
TASK_COLUMNS = ("core", "context", "admitted", "finish", "arrived", "pauses")
#: A row of `Trace.pauses`: the thread that a task gave up, and from when to when it had none.
PAUSE_COLUMNS = ("task", "core", "context", "paused", "resumed")


def _column(table: NDArray[np.int64], names: tuple[str, ...], name: str) -> NDArray[np.int64]:
    column: NDArray[np.int64] = table[:, names.index(name)]
    return column


@dataclass(frozen=True, eq=False)
class Trace:
    """Tables of whole numbers, shapes (n, len(..._COLUMNS)); issues and switches sorted by (start, core, unit), pauses
    by (paused, core, context).

    >>> builder = TraceBuilder(tasks=1)
    >>> builder.issue(3, 1, 1, (0, 0, 0, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0))
    >>> builder.issue(4, 1, 1, (0, 0, 0, 0, 0, 0, 0), (0, 3, 0, 0, 0, 0))
    >>> builder.task(0, core=0, context=0, admitted=0, finish=9)
    >>> trace = builder.build()
    >>> trace.issue("start").tolist(), trace.issue("count").tolist(), trace.makespan_cycles
    ([3], [2], 9)
    """

    issues: NDArray[np.int64]
    switches: NDArray[np.int64]
    tasks: NDArray[np.int64]
    pauses: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, len(PAUSE_COLUMNS)), dtype=np.int64))

    def issue(self, name: str) -> NDArray[np.int64]:
        """One column of `issues` by its name in `ISSUE_COLUMNS`."""
        return _column(self.issues, ISSUE_COLUMNS, name)

    def switch(self, name: str) -> NDArray[np.int64]:
        """One column of `switches` by its name in `SWITCH_COLUMNS`."""
        return _column(self.switches, SWITCH_COLUMNS, name)

    def task(self, name: str) -> NDArray[np.int64]:
        """One column of `tasks` by its name in `TASK_COLUMNS`."""
        return _column(self.tasks, TASK_COLUMNS, name)

    def pause(self, name: str) -> NDArray[np.int64]:
        """One column of `pauses` by its name in `PAUSE_COLUMNS`."""
        return _column(self.pauses, PAUSE_COLUMNS, name)

    @property
    def makespan_cycles(self) -> int:
        """The cycle from which every task is finished."""
        return int(self.task("finish").max(initial=0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        names = ("issues", "switches", "tasks", "pauses")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]


class TraceBuilder:
    """Collects rows in any order of cores and units; joins issues that follow each other without a gap.

    A row of issues is kept open per unit until something else starts there.
    """

    def __init__(self, tasks: int) -> None:
        self._rows = array("q")
        self._switches = array("q")
        self._pauses = array("q")
        self._tasks = np.full((tasks, len(TASK_COLUMNS)), -1, dtype=np.int64)
        self._tasks[:, -1] = 0
        self._open: dict[tuple[int, ...], tuple[tuple[int, ...], int, int]] = {}

    def issue(self, start: int, cycles: int, count: int, who: tuple[int, ...], until: tuple[int, ...]) -> None:
        """`count` issues from `start`; `who` is (core, unit, context, task, phase, iteration, operation)."""
        unit = who[:2]
        before = self._open.get(unit)
        if before is not None and before[0] == who and before[2] == start:
            row = before[1]
            self._rows[row + 8] += count
        else:
            row = len(self._rows)
            self._rows.extend((start, *who, count, cycles, *until))
        self._open[unit] = (who, row, start + count * cycles)

    def switch(self, start: int, core: int, unit: int, cycles: int, before: int, after: int) -> None:
        """From `start` the unit changes from thread `before` to thread `after`."""
        self._switches.extend((start, core, unit, cycles, before, after))

    def task(self, task: int, *, core: int, context: int, admitted: int, finish: int, arrived: int = 0) -> None:
        """Task number `task` came at `arrived` and ran in that context from `admitted` to `finish`."""
        self._tasks[task, :-1] = (core, context, admitted, finish, arrived)

    def pause(self, task: int, *, core: int, context: int, paused: int, resumed: int) -> None:
        """Task number `task` gave up its thread at `paused` and got one again at `resumed`."""
        self._pauses.extend((task, core, context, paused, resumed))

    def build(self) -> Trace:
        """The finished trace, sorted."""
        issues = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, len(ISSUE_COLUMNS))
        switches = np.frombuffer(self._switches, dtype=np.int64).reshape(-1, len(SWITCH_COLUMNS))
        pauses = np.frombuffer(self._pauses, dtype=np.int64).reshape(-1, len(PAUSE_COLUMNS))
        np.add.at(self._tasks[:, -1], pauses[:, 0], 1)
        pauses = pauses[np.lexsort((pauses[:, 2], pauses[:, 1], pauses[:, 3]))]
        return Trace(by_time(issues), by_time(switches), self._tasks, pauses)


def by_time(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of issues or switches in the canonical order: by start, core and unit."""
    return table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
