"""Writes the rows of a body, operation after operation, without an object for each, and keeps what was written.

A sweep sees most bodies once, and no engine looks at their operations. So they are made only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Generic, TypeVar

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
        frame: bool = False,
        takes: int = NONE,
        frees: int = NONE,
        result_cycles: int = 1,
        work: int = 0,
        member: int = 0,
    ) -> None:
        """Write an operation, which has the needs that were written since the last one.

        Arguments are those of `lstmsim.program.operations.Operation`; `NONE`: no buffer.
        """
        first, end = self._first_need, len(self._needs) // _NEED_WIDTH
        self._first_need = end
        self._operations += (unit, cycles, count, frame, takes, frees, result_cycles, work, first, end - first)
        self._operations += (0, member, NONE, NONE)
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


V = TypeVar("V")


class Kept(Generic[V]):
    """Results by key. If they are too many, the least recently used result goes first. The last one always stays.

    most, size: largest sum of the sizes of results, and what gives the size of one.
    """

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        self.most, self.size = most, size
        self.results: dict[Hashable, V] = {}
        self.total = 0
        self._lock = Lock()

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result of a key. `make` makes it if it is not in the store."""
        with self._lock:
            if key in self.results:
                # the last result in the order of the dictionary is the most recently used one
                result = self.results[key] = self.results.pop(key)
                return result
        made = make()
        with self._lock:
            if key not in self.results:
                self.results[key] = made
                self.total += self.size(made)
            while self.total > self.most and len(self.results) > 1:
                self.total -= self.size(self.results.pop(next(iter(self.results))))
        return made

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self.results.clear()
            self.total = 0
