"""The flat form of a program: tables of whole numbers, one after the other. The fast engine's core reads it as it is.

A flat program is one row of 64-bit numbers. It begins with `FORMAT`. Then each table of `FLAT_TABLES` has two numbers:
where its first row begins, and how many rows it has. Then come the tables themselves. The rows of a table stand one
after the other.

Numbers of rows count from 0. A column `first_X` with a column of a count names rows in a row of another table. `-1`
stands for "none". A target may write tables directly, with numpy; thousands of tasks may name one profile, and phases
of many variants one body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat_tables import FLAT_TABLES, FORMAT, WIDTHS

__all__ = ["FLAT_TABLES", "FORMAT", "WIDTHS", "FlatProgram", "flat_program", "joined"]

#: Numbers in front of the tables.
_DIRECTORY = 1 + 2 * len(FLAT_TABLES)


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """A program as one row of whole numbers.

    words: the numbers, shape (count,), 64 bits each, as the module says.

    `ProgramError` if the tables do not lie within the numbers. Whether they make sense is checked by the core.

    >>> flat = flat_program({"causes": [[2], [3]]})
    >>> flat.table("causes").tolist(), len(flat.table("tasks"))
    ([[2], [3]], 0)
    """

    words: NDArray[np.int64]

    def __post_init__(self) -> None:
        words = self.words
        if words.dtype != np.int64 or words.ndim != 1 or not words.flags.c_contiguous:
            raise ProgramError(f"a flat program is one row of 64-bit numbers, not {words.dtype} of shape {words.shape}")
        if len(words) < _DIRECTORY or words[0] != FORMAT:
            raise ProgramError(f"not a flat program of format {FORMAT}")

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        directory = self.words[1:_DIRECTORY].tolist()
        return dict(zip(FLAT_TABLES, zip(directory[::2], directory[1::2], strict=True), strict=True))

    def table(self, name: str) -> NDArray[np.int64]:
        """A table as a view, shape (rows, columns)."""
        (first, rows), width = self._places[name], FLAT_TABLES[name].width
        if first < 0 or rows < 0 or first + rows * width > len(self.words):
            raise ProgramError(f"table {name} does not lie in the program")
        return self.words[first : first + rows * width].reshape(rows, width)

    def column(self, table: str, column: str) -> NDArray[np.int64]:
        """A column of a table as a view, shape (rows,)."""
        values: NDArray[np.int64] = self.table(table)[:, FLAT_TABLES[table].place(column)]
        return values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatProgram):
            return NotImplemented
        return all(np.array_equal(self.table(name), other.table(name)) for name in FLAT_TABLES)

    __hash__ = None  # type: ignore[assignment]


def flat_program(tables: Mapping[str, ArrayLike]) -> FlatProgram:
    """A flat program from its tables.

    tables: name of a table -> its rows, shape (rows, columns) or flat; those that are left out are empty.

    `ProgramError` for an unknown table and for rows of another width.
    """
    unknown = set(tables) - set(FLAT_TABLES)
    if unknown:
        raise ProgramError(f"no table {min(unknown)!r}; there are: {', '.join(FLAT_TABLES)}")
    parts: dict[str, Sequence[int] | NDArray[np.int64]] = {}
    for name, table in FLAT_TABLES.items():
        part = np.asarray(tables.get(name, ()), dtype=np.int64).ravel()
        if len(part) % table.width:
            raise ProgramError(f"table {name}: {len(part)} numbers are no rows of {table.width}")
        parts[name] = part
    return joined(parts)


def joined(parts: Mapping[str, Sequence[int] | NDArray[np.int64]]) -> FlatProgram:
    """A flat program from the numbers of its tables, which are taken as they are.

    parts: for each table its numbers, row after row. Lists that follow each other become one array: that is quicker.
    """
    numbers, end = [FORMAT], _DIRECTORY
    for name, width in WIDTHS.items():
        size = len(parts[name])
        numbers += (end, size // width)
        end += size
    arrays: list[NDArray[np.int64]] = []
    for name in WIDTHS:
        part = parts[name]
        if part.__class__ is list or part.__class__ is tuple:
            numbers += part
        else:
            arrays += (np.array(numbers, dtype=np.int64), np.asarray(part))
            numbers = []
    return FlatProgram(np.concatenate([*arrays, np.array(numbers, dtype=np.int64)]))
