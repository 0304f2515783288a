"""The body of a phase, made of operations or of rows of the flat form."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.program.operations import Operation
from lstmsim.program.rows import Name, Rows, operations_of, rows_of

__all__ = ["Body"]


class Body:
    """The operations of one iteration (one time step), in issue order.

    A body is made of operations or of rows, and gives both. It makes what it was not made of when somebody asks for it,
    and keeps it. Two bodies are equal if their operations are.

    operations: the operations.

    >>> body = Body((Operation(0, count=3),))
    >>> body.size, Body.of_rows(body.rows, [("", ())]) == body
    (1, True)
    """

    __slots__ = ("_names", "_operations", "_rows")

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._operations: tuple[Operation, ...] | None = operations
        self._rows: Rows | None = None
        self._names: Sequence[Name] = ()

    @classmethod
    def of_rows(cls, rows: Rows, names: Sequence[Name]) -> Body:
        """A body from its rows, and of each row the operation's label and place."""
        body = cls.__new__(cls)
        body._operations, body._rows, body._names = None, rows, names
        return body

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations, in issue order."""
        operations = self._operations
        if operations is None:
            assert self._rows is not None, "a body has rows or operations"
            operations = self._operations = operations_of(self._rows, self._names)
        return operations

    @property
    def rows(self) -> Rows:
        """Its rows of the flat form."""
        rows = self._rows
        if rows is None:
            rows = self._rows = rows_of(self.operations)
        return rows

    @property
    def names(self) -> Sequence[Name]:
        """Label and place of each operation."""
        return self._names or [(each.label, each.place) for each in self.operations]

    @property
    def size(self) -> int:
        """How many operations it has."""
        return len(self._operations) if self._rows is None and self._operations is not None else self.rows.size

    def __eq__(self, other: object) -> bool:
        return self.operations == other.operations if isinstance(other, Body) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.operations)

    def __repr__(self) -> str:
        return f"Body(operations={self.operations!r})"
