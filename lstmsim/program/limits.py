"""How large the numbers of a flat program may be, so that every sum of a run stays far within 64 bits.

docs/program_format.md lists these limits. The fast engine's core holds them once more, as its last door
(`lstmsim/engines/fast/core/check*.cpp`), with the same sentences.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat import FlatProgram

__all__ = ["LATEST", "LIMITS", "check_limits", "refuse_row"]

#: The last cycle that a run may come to.
LATEST = 2**59 - 1
_CYCLES, _KEY, _CURSORS, _STREAMS = 2**50, 2**61, 2**20, 2**23

#: (table, column) -> the smallest and the largest number.
LIMITS: dict[tuple[str, str], tuple[int, int]] = {
    ("contents", "size"): (0, _CYCLES),
    ("units", "switch_cycles"): (0, _CYCLES),
    ("units", "ways"): (1, _CURSORS),
    ("cores", "units"): (1, _CURSORS),
    ("cores", "contexts"): (1, _CURSORS),
    ("cores", "capacity"): (-1, LATEST),
    ("operations", "unit"): (0, _STREAMS),
    ("operations", "member"): (0, _STREAMS),
    ("operations", "cycles"): (1, _CYCLES),
    ("operations", "ahead"): (-_CYCLES, _CYCLES),
    ("needs", "delay"): (1, _CYCLES),
    ("needs", "lag"): (0, _CYCLES),
    ("extras", "cycles"): (0, _CYCLES),
    ("buffers", "slots"): (1, _CYCLES),
    ("phases", "first_step"): (-_CYCLES, _CYCLES),
    ("phases", "repeat"): (1, _CYCLES),
    ("variants", "members"): (1, _STREAMS),
    ("profiles", "queue_limit"): (-1, LATEST),
    ("profiles", "patience"): (-1, LATEST),
    ("tasks", "release"): (0, LATEST),
    ("tasks", "frame_interval"): (0, _CYCLES),
    ("tasks", "key"): (-_KEY, _KEY),
    ("gates", "arrivals"): (1, _CYCLES),
}


def check_limits(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first number that is too small or too large.

    flat: rows that its columns name must exist.

    >>> from lstmsim.program.flat import flat_program
    >>> check_limits(flat_program({"gates": [[3], [0]]}))
    Traceback (most recent call last):
    lstmsim.base.errors.ProgramError: table gates, row 1: arrivals is 0, not 1 to 1125899906842624
    """
    for (table, column), (low, high) in LIMITS.items():
        _between(flat, table, column, low, high)
    cycles, count = (flat.column("operations", name) for name in ("cycles", "count"))
    _between(flat, "operations", "count", 0, _CYCLES // cycles)
    _between(flat, "operations", "result_cycles", cycles, _CYCLES)
    _between(flat, "operations", "work", 0, _CYCLES // np.maximum(count, 1))
    operations = flat.column("bodies", "operations")[flat.column("phases", "body")]
    _between(flat, "phases", "repeat", 1, _CYCLES // np.maximum(operations, 1))
    _between(flat, "phases", "gates", 0, _CYCLES // flat.column("phases", "repeat"))
    contexts, units = (flat.column("cores", name) for name in ("contexts", "units"))
    _sum("contexts", contexts, contexts * units)
    ways = flat.column("units", "ways")
    more = [
        int(own) * int((ways[first : first + count] - 1).sum())
        for own, first, count in zip(contexts, flat.column("cores", "first_unit"), units, strict=True)
    ]
    _sum("units", units, contexts * units + np.array(more, dtype=np.int64))


def refuse_row(table: str, values: NDArray[np.int64], wrong: NDArray[np.bool_], text: str) -> None:
    """Raise `ProgramError` with the first row that is wrong, if there is one.

    table: its name.
    values: the numbers of the column, shape (rows,).
    wrong: whether each is, shape (rows,).
    text: the sentence, with {} where the number stands.
    """
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ProgramError(f"table {table}, row {row}: {text.format(int(values[row]))}")


def _between(
    flat: FlatProgram, table: str, column: str, low: int | NDArray[np.int64], high: int | NDArray[np.int64]
) -> None:
    values = flat.column(table, column)
    wrong = (values < low) | (values > high)
    if wrong.any():
        row = int(np.argmax(wrong))
        least, most = (int(np.broadcast_to(each, values.shape)[row]) for each in (low, high))
        told = "and no value would do" if most < least else f"not {least} to {most}"
        refuse_row(table, values, wrong, f"{column} is {{}}, {told}")


def _sum(column: str, values: NDArray[np.int64], more: NDArray[np.int64]) -> None:
    """Threads times units of all cores, with the ways of the units."""
    wrong = np.cumsum(more) > _CURSORS
    text = f"{column} is {{}}, so with the rows before it there are more than {_CURSORS} threads times units"
    refuse_row("cores", values, wrong, text)
