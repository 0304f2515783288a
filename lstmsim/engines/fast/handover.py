"""From what the loop of the fast engine has written down to the tables of a trace.

The loop has two sequences of rows. Beside issues and switches these hold rows of other tables: a row of issues without
an issue is a halt, and a row of switches whose core is `PAUSE_ROW` or `SEAT_ROW` is a pause or a seat. Here they part:
nobody behind this module sees such rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.engines.fast import layout
from lstmsim.program.trace import Trace
from lstmsim.program.trace_tables import HALTS, ISSUES, PAUSES, SEATS, SWITCHES

__all__ = ["table_of", "trace_of"]

Table = NDArray[np.int64]

#: Columns of a pause and of a seat in the places of those of a switch; empty: the number of the kind, or nothing.
_PAUSE = ("resumed", "", "task", "core", "context", "paused")
_SEAT = ("", "", "task", "member", "core", "context")
#: Columns of a halt that stand where an issue has columns of other names.
_HALT = {"asked": "start"}


def table_of(numbers: Any, rows: int, width: int) -> Table:
    """The first `rows` rows of `width` numbers of a sequence, as a table.

    >>> table_of([1, 2, 3, 4, 0, 0], 2, 2).tolist()
    [[1, 2], [3, 4]]
    """
    return np.array(numbers[: rows * width], dtype=np.int64).reshape(-1, width)


def trace_of(issues: Table, switches: Table, tasks: Table) -> Trace:
    """The trace that the loop has recorded.

    `issues`: its rows of issues and halts, shape (rows, columns of `ISSUES`).
    `switches`: its rows of switches, pauses and seats, shape (rows, columns of `SWITCHES`).
    `tasks`: what became of each task, as in the trace.

    >>> rows = [[5, 0, 0, 2, 0, 1], [9, layout.PAUSE_ROW, 4, 1, 0, 7], [0, layout.SEAT_ROW, 6, 1, 2, 0]]
    >>> trace = trace_of(ISSUES.empty(), np.array(rows), np.zeros((0, 7), dtype=np.int64))
    >>> len(trace.switches), trace.pause("resumed").tolist(), trace.seat("core").tolist()
    (1, [9], [2])
    """
    issued, kind = ISSUES.of(issues, "count") > 0, SWITCHES.of(switches, "core")
    halts, pauses, seats = issues[~issued], switches[kind == layout.PAUSE_ROW], switches[kind == layout.SEAT_ROW]
    return Trace(
        issues=ISSUES.ordered(issues[issued]),
        switches=SWITCHES.ordered(switches[kind >= 0]),
        tasks=tasks,
        pauses=PAUSES.ordered(pauses[:, [_PAUSE.index(name) for name in PAUSES.names]]),
        seats=SEATS.ordered(seats[:, [_SEAT.index(name) for name in SEATS.names]]),
        halts=HALTS.ordered(halts[:, [ISSUES.place(_HALT.get(name, name)) for name in HALTS.names]]),
    )
