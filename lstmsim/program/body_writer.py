"""Writes the rows of a body, operation after operation, without an object for each.

A sweep sees most bodies once, and no engine looks at their operations. So they are made only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lstmsim.program.flat import FLAT_TABLES, WIDTHS
from lstmsim.program.operations import CAUSE_NUMBERS, Name, Rows
from lstmsim.program.program import Body

#: No buffer, or no phase.
NONE = -1
_HAZARD = CAUSE_NUMBERS["hazard"]
_OPERATION_WIDTH = WIDTHS["operations"]
_NEED_WIDTH = WIDTHS["needs"]
_OPERATION = FLAT_TABLES["needs"].place("operation")


class Home:
    """Where in a body some operations begin. Others may wait for them before that is known."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first = -1


class BodyWriter:
    """A body on its way."""

    def __init__(self) -> None:
        self._operations: list[int] = []
        self._needs: list[int] = []
        self._names: list[Name] = []
        #: Number of the first need of the next operation.
        self._first_need = 0
        #: Places in `_needs` of numbers of operations that count from a home.
        self._open: list[tuple[int, Home]] = []

    @property
    def size(self) -> int:
        """How many operations there are so far."""
        return len(self._names)

    def begin(self, home: Home) -> None:
        """Let the operations of a home begin here."""
        home.first = len(self._names)

    def need(
        self,
        home: Home | None,
        operation: int,
        delay: int,
        lag: int = 0,
        phase: int = NONE,
        mirrored: bool = False,
        cause: int = _HAZARD,
    ) -> None:
        """Let the next operation wait for another one; arguments as of `Dependence`, `NONE`: the same body.

        home: from where `operation` counts, in this body or in that of the earlier phase; None: from the body's first.
        cause: number of the wait's name (`lstmsim.program.operations.CAUSE_NUMBERS`).
        """
        needs = self._needs
        if home is not None:
            self._open.append((len(needs) + _OPERATION, home))
        needs += (operation, delay, cause, lag if phase == NONE else 0, phase, mirrored, 0)

    def operation(
        self,
        unit: int,
        label: str,
        place: tuple[int, ...],
        cycles: int = 1,
        count: int = 1,
        frame: int = 0,
        takes: int = NONE,
        frees: int = NONE,
        result_cycles: int = 1,
        work: int = 0,
        member: int = 0,
        inference: int = 0,
    ) -> None:
        """Write an operation, which has the needs that were written since the last one.

        Arguments are those of `lstmsim.program.operations.Operation`; `NONE`: no buffer.
        """
        first, end = self._first_need, len(self._needs) // _NEED_WIDTH
        self._first_need = end
        self._operations += (unit, cycles, count, frame, takes, frees, result_cycles, work, first, end - first)
        self._operations += (0, member, NONE, NONE, inference)
        self._names.append((label, place))

    def again(self, first: int, names: Sequence[Name]) -> None:
        """Write operations from `first` on once more under other names; neither they nor any after them have needs."""
        self._names += names
        begin = first * _OPERATION_WIDTH
        self._operations += self._operations[begin : begin + len(names) * _OPERATION_WIDTH]

    def body(self) -> Body:
        """The body, when all homes in it are known."""
        needs = self._needs
        for place, home in self._open:
            needs[place] += home.first
        self._open = []
        rows = Rows(np.array(self._operations, dtype=np.int64), np.array(needs, dtype=np.int64))
        return Body.of_rows(rows, self._names)
