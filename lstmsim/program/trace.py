"""The trace: the record of a run that every engine makes. Metrics read nothing else.

Both engines give equal traces for the same program: same rows, same order, same numbers.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.trace_tables import HALTS, ISSUES, PAUSES, SEATS, SWITCHES, TABLES, TASKS

__all__ = ["Trace", "TraceBuilder"]

#: Places of the columns that are changed after a row was written.
_COUNT = ISSUES.place("count")
_PAUSES = TASKS.place("pauses")
_TAKEN = TASKS.place("taken")


@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a run. Each field is a table of shape (rows, columns).

    `lstmsim.program.trace_tables` describes the columns of the tables and the order of their rows.

    issues: when each operation issued, and what had held it back.
    switches: when units changed threads.
    tasks: what happened to each task, in the order of the program.
    pauses: when tasks had given up their threads.
    seats: the further threads of tasks that have several; the first thread is in `tasks`.
    halts: what operations had waited for when a pause put them off.

    >>> builder = TraceBuilder(tasks=1)
    >>> until = (0, 3) + (0,) * 9
    >>> builder.issue(3, 1, 1, (0, 0, 0, 0, 0, 0, 0), until)
    >>> builder.issue(4, 1, 1, (0, 0, 0, 0, 0, 0, 0), until)
    >>> builder.task(0, core=0, context=0, admitted=0, finish=9)
    >>> trace = builder.build()
    >>> trace.issue("start").tolist(), trace.issue("count").tolist(), trace.makespan_cycles
    ([3], [2], 9)
    """

    issues: NDArray[np.int64]
    switches: NDArray[np.int64]
    tasks: NDArray[np.int64]
    pauses: NDArray[np.int64] = field(default_factory=PAUSES.empty)
    seats: NDArray[np.int64] = field(default_factory=SEATS.empty)
    halts: NDArray[np.int64] = field(default_factory=HALTS.empty)

    def issue(self, name: str) -> NDArray[np.int64]:
        """One column of `issues` by its name."""
        return ISSUES.of(self.issues, name)

    def switch(self, name: str) -> NDArray[np.int64]:
        """One column of `switches` by its name."""
        return SWITCHES.of(self.switches, name)

    def task(self, name: str) -> NDArray[np.int64]:
        """One column of `tasks` by its name."""
        return TASKS.of(self.tasks, name)

    def pause(self, name: str) -> NDArray[np.int64]:
        """One column of `pauses` by its name."""
        return PAUSES.of(self.pauses, name)

    def seat(self, name: str) -> NDArray[np.int64]:
        """One column of `seats` by its name."""
        return SEATS.of(self.seats, name)

    def halt(self, name: str) -> NDArray[np.int64]:
        """One column of `halts` by its name."""
        return HALTS.of(self.halts, name)

    def spread(self, task: int) -> int:
        """How many of its cores a task with `wide` ran on; 1 for any other task."""
        return max(1, int(self.task("taken")[task]).bit_count())

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

    tasks: how many tasks the program has.
    """

    def __init__(self, tasks: int) -> None:
        self._rows, self._switches = array("q"), array("q")
        self._pauses, self._seats, self._halts = array("q"), array("q"), array("q")
        self._tasks = _no_tasks(tasks)
        self._open: dict[tuple[int, ...], tuple[tuple[int, ...], int, int]] = {}

    def issue(
        self, start: int, cycles: int, count: int, who: tuple[int, ...], until: tuple[int, ...], way: int = 0
    ) -> None:
        """Record `count` issues of `cycles` cycles each, from cycle `start` on.

        who: (core, unit, context, task, phase, iteration, operation).
        until: for each cause the cycle from which it no longer held the operation back.
        way: which of the equal units behind the unit's name it is.
        """
        unit = (*who[:2], way)
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
        self, task: int, *, core: int, context: int, admitted: int, finish: int, arrived: int = 0, taken: int = 0
    ) -> None:
        """Record that a task came at cycle `arrived` and ran in a context from `admitted` to `finish`."""
        self._tasks[task, :_PAUSES] = (core, context, admitted, finish, arrived)
        self._tasks[task, _TAKEN] = taken

    def pause(self, task: int, *, core: int, context: int, paused: int, resumed: int) -> None:
        """Record that a task gave up its thread at cycle `paused` and got one again at `resumed`."""
        self._pauses.extend((task, core, context, paused, resumed))
        self._tasks[task, _PAUSES] += 1

    def extend(self, tasks: int) -> None:
        """Make room for so many more tasks, behind those that there are."""
        self._tasks = np.concatenate([self._tasks, _no_tasks(tasks)])

    def tasks(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of some tasks as far as they are known; -1 everywhere before a task has left."""
        return self._tasks[numbers]

    def pauses(self, first: int = 0) -> NDArray[np.int64]:
        """The pauses so far, from the one that ended as number `first` on."""
        width = len(PAUSES.names)
        return np.array(self._pauses[width * first :], dtype=np.int64).reshape(-1, width)

    def seat(self, task: int, *, member: int, core: int, context: int) -> None:
        """Record that a task has this thread beside its first."""
        self._seats.extend((task, member, core, context))

    def halt(self, asked: int, who: tuple[int, ...], until: tuple[int, ...]) -> None:
        """Record that at cycle `asked` a thread puts off an operation that had waited.

        who: (core, unit, context, task).
        until: for each cause the cycle from which it no longer held the operation back.
        """
        self._halts.extend((asked, *who, *(min(each, asked) for each in until)))

    def build(self) -> Trace:
        """The finished trace, with sorted tables."""
        tables = (ISSUES, self._rows), (SWITCHES, self._switches), (PAUSES, self._pauses), (SEATS, self._seats)
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
