"""The trace: what every engine records of a run, and the only thing that metrics read.

Both engines give equal traces for the same program: same rows, same order, same numbers.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.trace_tables import HALTS, ISSUES, PAUSES, SEATS, SWITCHES, TABLES, TASKS

__all__ = ["Trace", "TraceBuilder"]

#: Where the columns of a row stand that are changed afterwards.
_COUNT = ISSUES.place("count")
_PAUSES = TASKS.place("pauses")
_TAKEN = TASKS.place("taken")


@dataclass(frozen=True, eq=False)
class Trace:
    """What was recorded of a run: one table each, whose columns and order `lstmsim.program.trace_tables` describes.

    `issues`: when which operations issued, and what had held them back. Shape (rows, columns), as of all tables.
    `switches`: when units changed threads.
    `tasks`: what became of each task, in the order of the program.
    `pauses`: when tasks had given up their threads.
    `seats`: the threads of tasks that have several, without the first.
    `halts`: what operations had waited for that were put off by a pause.

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
        """Over how many of its cores a task with `wide` ran; 1 of any other task."""
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
    """Collects rows in any order of cores and units; joins issues that follow each other without a gap.

    A row of issues is kept open per unit until something else starts there.
    """

    def __init__(self, tasks: int) -> None:
        self._rows, self._switches = array("q"), array("q")
        self._pauses, self._seats, self._halts = array("q"), array("q"), array("q")
        self._tasks = np.full((tasks, len(TASKS.names)), -1, dtype=np.int64)
        self._tasks[:, [_PAUSES, _TAKEN]] = 0
        self._open: dict[tuple[int, ...], tuple[tuple[int, ...], int, int]] = {}

    def issue(self, start: int, cycles: int, count: int, who: tuple[int, ...], until: tuple[int, ...]) -> None:
        """`count` issues from `start`; `who` is (core, unit, context, task, phase, iteration, operation)."""
        unit = who[:2]
        before = self._open.get(unit)
        if before is not None and before[0] == who and before[2] == start:
            row = before[1]
            self._rows[row + _COUNT] += count
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
        self._tasks[task, :_PAUSES] = (core, context, admitted, finish, arrived)
        self._tasks[task, _TAKEN] = taken

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
        tables = (ISSUES, self._rows), (SWITCHES, self._switches), (PAUSES, self._pauses), (SEATS, self._seats)
        made = {
            table.name: table.ordered(np.frombuffer(rows, dtype=np.int64).reshape(-1, len(table.names)))
            for table, rows in (*tables, (HALTS, self._halts))
        }
        np.add.at(self._tasks[:, _PAUSES], PAUSES.of(made["pauses"], "task"), 1)
        return Trace(tasks=self._tasks, **made)
