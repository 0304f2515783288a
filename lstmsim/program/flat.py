"""The flat form of a program: tables of whole numbers in one row of 64 bits each, as the fast engine reads them.

docs/program_format.md specifies the form, its tables and its limits. A target may write tables directly, with numpy;
thousands of tasks may name one profile, and phases of many variants one body. The fast engine's core holds the limits
once more, as its last door (`lstmsim/engines/fast/core/check*.cpp`), with the same sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record

#: The version of the format. The core reads one version (`flat.hpp`).
FORMAT = 6


@record
class FlatTable:
    """One table of a flat program: its name, and its columns in order. docs/program_format.md says what they mean."""

    name: str
    columns: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return len(self.columns)

    def place(self, column: str) -> int:
        """The place of a column."""
        return self.columns.index(column)


_COLUMNS = {
    "head": "names busy switching drain idle input",
    "causes": "name",
    "cores": "kind contexts first_unit units accounted capacity shared mirrors first_held held",
    "units": "policy switch_cycles instances",
    "held": "weight_set",
    "weight_sets": "key size",
    "groups": "first_place places",
    "places": "first_thread_slot thread_slots",
    "thread_slots": "core",
    "profiles": "group weight_set loading affine preempts queue_limit patience first_variant variants "
    "first_moldable moldables pool sizes length",
    "variants": "kind members first_phase phases first_buffer buffers",
    "phases": "body repeat mirrored first_step first_extra extras first_barrier barriers",
    "extras": "cycles",
    "buffers": "slots cause",
    "bodies": "first_operation operations first_word words",
    "words": "word",
    "operations": "unit cycles count frame takes frees result_cycles work first_need needs ahead member extra arrives "
    "inference",
    "needs": "operation delay cause lag phase mirrored barrier",
    "tasks": "profile release frame_interval key key_from_arrival after behind starts ends until",
    "barriers": "arrivals",
    "pools": "most wait policy ragged",
    "sessions": "session move",
}
#: All tables, in their order.
FLAT_TABLES: Mapping[str, FlatTable] = {
    name: FlatTable(name, tuple(columns.split())) for name, columns in _COLUMNS.items()
}
#: How many columns each table has.
WIDTHS: Mapping[str, int] = {name: table.width for name, table in FLAT_TABLES.items()}


#: Numbers in front of the tables.
_DIRECTORY = 1 + 2 * len(FLAT_TABLES)


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """A program as one row of whole numbers of 64 bits, as the module says.

    `ProgramError` if the tables do not lie within the numbers. Whether they make sense is checked by the core.
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
    """A flat program from its tables, shape (rows, columns) or flat; those that are left out are empty.

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
    """A flat program from the numbers of its tables, as they are. Lists that follow each other become one array."""
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


class BodyRows(NamedTuple):
    """Rows of bodies of many programs in native memory, by their addresses, so that a program is a choice of bodies.

    addresses, sizes: of the tables operations, needs and bodies, and how many rows each has.
    pairs: for each that was asked for its first row of `bodies`, how many, a bound on the operations of a step, and
        whether it is refused; shape (pairs, 4).
    owner: what keeps the memory.
    """

    addresses: tuple[int, ...]
    sizes: tuple[int, ...]
    pairs: NDArray[np.int64]
    owner: object


#: The last cycle that a run may come to.
LATEST = 2**59 - 1
_CYCLES, _KEY, _CURSORS, _STREAMS = 2**50, 2**61, 2**20, 2**23

#: (table, column) -> the smallest and the largest number.
LIMITS: dict[tuple[str, str], tuple[int, int]] = {
    ("weight_sets", "size"): (0, _CYCLES),
    ("units", "switch_cycles"): (0, _CYCLES),
    ("units", "instances"): (1, _CURSORS),
    ("cores", "units"): (1, _CURSORS),
    ("cores", "contexts"): (1, _CURSORS),
    ("cores", "capacity"): (-1, LATEST),
    ("operations", "unit"): (0, _STREAMS),
    ("operations", "member"): (0, _STREAMS),
    ("operations", "inference"): (0, _STREAMS),
    ("operations", "cycles"): (1, _CYCLES),
    ("operations", "frame"): (0, _CYCLES),
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
    ("barriers", "arrivals"): (1, _CYCLES),
    ("sessions", "move"): (0, _CYCLES),
}


def check_limits(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first number that is too small or too large; the rows that columns name exist."""
    for (table, column), (low, high) in LIMITS.items():
        _between(flat, table, column, low, high)
    cycles, count = (flat.column("operations", name) for name in ("cycles", "count"))
    _between(flat, "operations", "count", 0, _CYCLES // cycles)
    _between(flat, "operations", "result_cycles", cycles, _CYCLES)
    _between(flat, "operations", "work", 0, _CYCLES // np.maximum(count, 1))
    operations = flat.column("bodies", "operations")[flat.column("phases", "body")]
    _between(flat, "phases", "repeat", 1, _CYCLES // np.maximum(operations, 1))
    _between(flat, "phases", "barriers", 0, _CYCLES // flat.column("phases", "repeat"))
    contexts, units = (flat.column("cores", name) for name in ("contexts", "units"))
    _sum("contexts", contexts, contexts * units)
    instances = flat.column("units", "instances")
    more = [
        int(own) * int((instances[first : first + count] - 1).sum())
        for own, first, count in zip(contexts, flat.column("cores", "first_unit"), units, strict=True)
    ]
    _sum("units", units, contexts * units + np.array(more, dtype=np.int64))


def refuse_row(table: str, values: NDArray[np.int64], wrong: NDArray[np.bool_], text: str) -> None:
    """Raise `ProgramError` with the first row that is wrong, if there is one."""
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
        reported = "and no value would do" if most < least else f"not {least} to {most}"
        refuse_row(table, values, wrong, f"{column} is {{}}, {reported}")


def _sum(column: str, values: NDArray[np.int64], more: NDArray[np.int64]) -> None:
    """Threads times units of all cores, with the instances of the units."""
    wrong = np.cumsum(more) > _CURSORS
    text = f"{column} is {{}}, so with the rows before it there are more than {_CURSORS} threads times units"
    refuse_row("cores", values, wrong, text)
