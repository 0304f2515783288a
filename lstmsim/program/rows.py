"""The rows of a body in the flat form (`lstmsim.program.flat`), from its operations and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.flat import WIDTHS
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.stall_reasons import CAUSES

__all__ = ["CAUSE_NUMBERS", "Name", "Rows", "operations_of", "rows_of", "some"]

#: Label and place of an operation, for people.
Name = tuple[str, tuple[int, ...]]

#: Names of causes of waiting -> their numbers in the flat form.
CAUSE_NUMBERS = {name: number for number, name in enumerate(CAUSES)}
_OPERATION_WIDTH, _NEED_WIDTH = WIDTHS["operations"], WIDTHS["needs"]


class Rows(NamedTuple):
    """The rows of a body. `first_need` is counted from the body's own first need.

    operations, needs: numbers of the rows, shape (numbers,).
    """

    operations: NDArray[np.int64]
    needs: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many operations the body has."""
        return len(self.operations) // _OPERATION_WIDTH


def rows_of(operations: Sequence[Operation]) -> Rows:
    """The rows of operations.

    >>> rows = rows_of([Operation(0), Operation(0, count=3, needs=(Dependence(0, 5, lag=1),))])
    >>> rows.size, rows.needs.tolist()
    (2, [0, 5, 1, 1, -1, 0, 0])
    """
    numbers: list[int] = []
    needs: list[int] = []
    for each in operations:
        numbers += (each.unit, each.cycles, each.count, each.frame)
        numbers += (-1 if each.takes is None else each.takes, -1 if each.frees is None else each.frees)
        numbers += (each.result_cycles, each.work, len(needs) // _NEED_WIDTH, len(each.needs))
        numbers += (each.ahead, each.member, -1 if each.extra is None else each.extra)
        numbers.append(-1 if each.arrives is None else each.arrives)
        for need in each.needs:
            phase = -1 if need.phase is None else need.phase
            lag = need.lag if need.phase is None else 0
            needs += (need.operation, need.delay, CAUSE_NUMBERS[need.cause], lag, phase, need.mirrored, need.gate)
    return Rows(np.array(numbers, dtype=np.int64), np.array(needs, dtype=np.int64))


def operations_of(rows: Rows, names: Iterable[Name]) -> tuple[Operation, ...]:
    """The operations that rows stand for.

    rows: with rows that are there (`lstmsim.program.flat_rows`).
    names: of each operation.

    >>> operations = (Operation(0, label="x"), Operation(0, count=3, needs=(Dependence(0, 5, lag=1),)))
    >>> operations_of(rows_of(operations), [("x", ()), ("", ())]) == operations
    True
    """
    needs = tuple(
        Dependence(operation, delay, CAUSES[cause], lag, some(phase), bool(mirrored), bool(gate))
        for operation, delay, cause, lag, phase, mirrored, gate in rows.needs.reshape(-1, _NEED_WIDTH).tolist()
    )
    operations = []
    for row, (label, place) in zip(rows.operations.reshape(-1, _OPERATION_WIDTH).tolist(), names, strict=True):
        unit, cycles, count, frame, takes, frees, result_cycles, work, first, own, ahead, member, extra, arrives = row
        operations.append(
            Operation(
                unit=unit,
                cycles=cycles,
                count=count,
                needs=needs[first : first + own],
                frame=bool(frame),
                takes=some(takes),
                frees=some(frees),
                result_cycles=result_cycles,
                work=work,
                label=label,
                place=place,
                ahead=ahead,
                member=member,
                extra=some(extra),
                arrives=some(arrives),
            )
        )
    return tuple(operations)


def some(number: int) -> int | None:
    """A number, or None for the -1 that stands for none."""
    return None if number == -1 else number
