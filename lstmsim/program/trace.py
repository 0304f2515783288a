"""The trace: what every engine records of a run, and the only thing that metrics read.

Both engines give equal traces for the same program: same rows, same order, same numbers.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.cycles import CAUSES

__all__ = [
    *("HALT_COLUMNS", "ISSUE_COLUMNS", "PAUSE_COLUMNS", "SEAT_COLUMNS", "SWITCH_COLUMNS", "TASK_COLUMNS"),
    *("Trace", "TraceBuilder", "by_time"),
]

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
#: `taken`: of a task with `wide` the sum of 2 ** i over the positions i in its `cores` of those that it took; else 0.
TASK_COLUMNS = ("core", "context", "admitted", "finish", "arrived", "pauses", "taken")
#: A row of `Trace.pauses`: the thread that a task gave up, and from when to when it had none.
PAUSE_COLUMNS = ("task", "core", "context", "paused", "resumed")
#: A row of `Trace.seats`: a thread that a task has beside its first, as its member number `member`.
SEAT_COLUMNS = ("task", "member", "core", "context")
#: A row of `Trace.halts`: a task that was asked to pause at `asked` had waited until then with an operation that it put
#: off; and until when, up to `asked`, each cause held that back.
HALT_COLUMNS = ("asked", "core", "unit", "context", "task", *(f"{cause}_until" for cause in CAUSES))


def _none(columns: tuple[str, ...]) -> NDArray[np.int64]:
    return np.zeros((0, len(columns)), dtype=np.int64)


def _column(table: NDArray[np.int64], names: tuple[str, ...], name: str) -> NDArray[np.int64]:
    column: NDArray[np.int64] = table[:, names.index(name)]
    return column


@dataclass(frozen=True, eq=False)
class Trace:
    """Tables of whole numbers, shapes (n, len(..._COLUMNS)); issues, switches and halts sorted by (start, core, unit),
    pauses by (paused, core, context), seats by (task, member).

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
    pauses: NDArray[np.int64] = field(default_factory=lambda: _none(PAUSE_COLUMNS))
    seats: NDArray[np.int64] = field(default_factory=lambda: _none(SEAT_COLUMNS))
    halts: NDArray[np.int64] = field(default_factory=lambda: _none(HALT_COLUMNS))

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

    def seat(self, name: str) -> NDArray[np.int64]:
        """One column of `seats` by its name in `SEAT_COLUMNS`."""
        return _column(self.seats, SEAT_COLUMNS, name)

    def halt(self, name: str) -> NDArray[np.int64]:
        """One column of `halts` by its name in `HALT_COLUMNS`."""
        return _column(self.halts, HALT_COLUMNS, name)

    def spread(self, task: int) -> int:
        """Over how many of its cores a task with `wide` ran; 1 of any other task."""
        return max(1, int(self.task("taken")[task]).bit_count())

    @property
    def makespan_cycles(self) -> int:
        """The cycle from which every task is finished."""
        return int(self.task("finish").max(initial=0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        names = ("issues", "switches", "tasks", "pauses", "seats", "halts")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]


class TraceBuilder:
    """Collects rows in any order of cores and units; joins issues that follow each other without a gap.

    A row of issues is kept open per unit until something else starts there.
    """

    def __init__(self, tasks: int) -> None:
        self._rows = array("q")
        self._switches = array("q")
        self._pauses, self._seats, self._halts = array("q"), array("q"), array("q")
        self._tasks = np.full((tasks, len(TASK_COLUMNS)), -1, dtype=np.int64)
        self._tasks[:, -2:] = 0
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

    def task(
        self, task: int, *, core: int, context: int, admitted: int, finish: int, arrived: int = 0, taken: int = 0
    ) -> None:
        """Task number `task` came at `arrived` and ran in that context from `admitted` to `finish`."""
        self._tasks[task, :-2] = (core, context, admitted, finish, arrived)
        self._tasks[task, -1] = taken

    def pause(self, task: int, *, core: int, context: int, paused: int, resumed: int) -> None:
        """Task number `task` gave up its thread at `paused` and got one again at `resumed`."""
        self._pauses.extend((task, core, context, paused, resumed))

    def seat(self, task: int, *, member: int, core: int, context: int) -> None:
        """Task number `task` has that thread beside its first."""
        self._seats.extend((task, member, core, context))

    def halt(self, asked: int, who: tuple[int, ...], until: tuple[int, ...]) -> None:
        """At `asked` a thread puts off an operation with which it had waited; `who`: (core, unit, context, task)."""
        self._halts.extend((asked, *who, *(min(each, asked) for each in until)))

    def build(self) -> Trace:
        """The finished trace, sorted."""
        issues, switches, pauses, seats, halts = (
            np.frombuffer(rows, dtype=np.int64).reshape(-1, len(columns))
            for rows, columns in (
                (self._rows, ISSUE_COLUMNS),
                (self._switches, SWITCH_COLUMNS),
                (self._pauses, PAUSE_COLUMNS),
                (self._seats, SEAT_COLUMNS),
                (self._halts, HALT_COLUMNS),
            )
        )
        np.add.at(self._tasks[:, -2], pauses[:, 0], 1)
        pauses = pauses[np.lexsort((pauses[:, 2], pauses[:, 1], pauses[:, 3]))]
        seats = seats[np.lexsort((seats[:, 1], seats[:, 0]))]
        return Trace(by_time(issues), by_time(switches), self._tasks, pauses, seats, by_time(halts))


def by_time(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of issues or switches in the canonical order: by start, core and unit."""
    return table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]
