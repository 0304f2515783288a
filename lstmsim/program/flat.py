"""The flat form of a program: tables of whole numbers, one after the other. The fast engine's core reads it as it is.

A flat program is one row of 64-bit numbers. It begins with `FORMAT`. Then each table of `FLAT_TABLES` has two numbers:
where its first row begins, and how many rows it has. Then come the tables themselves. The rows of a table stand one
after the other.

Numbers of rows count from 0. A column `first_X` with a column of a count names rows in a row of another table. `-1`
stands for "none". A target may write tables directly, with numpy; thousands of tasks may name one profile, and phases
of many variants one body.

The tables of a flat program (`lstmsim.program.flat`): their columns, and what a number in each column says.

How large the numbers of a flat program may be, so that every sum of a run stays far within 64 bits.

docs/program_format.md lists these limits. The fast engine's core holds them once more, as its last door
(`lstmsim/engines/fast/core/check*.cpp`), with the same sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record

#: The version of the format. The core reads one version (`flat.hpp`).
FORMAT = 3


@record
class FlatTable:
    """One table of a flat program.

    name: its name.
    row: what a row stands for.
    columns: name of each column -> what a number in it says, in the order of the columns.
    """

    name: str
    row: str
    columns: Mapping[str, str]

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return len(self.columns)

    def place(self, column: str) -> int:
        """The place of a column."""
        return tuple(self.columns).index(column)


#: All tables, in their order.
FLAT_TABLES: Mapping[str, FlatTable] = {
    table.name: table
    for table in (
        FlatTable(
            "head",
            "the program; there is one row",
            {
                "names": "how many names a core's cycles can have (`lstmsim.program.stall_reasons.CYCLE_NAMES`)",
                "busy": "number of the name of a cycle in which the accounted unit issues",
                "switching": "... in which it changes threads",
                "drain": "... in which no operation for it is left, but results are not there yet",
                "idle": "... in which there is nothing to do",
                "input": "number of the cause of a wait for a frame",
            },
        ),
        FlatTable(
            "causes",
            "a cause of waiting, the strongest first",
            {"name": "number of the name of a cycle in which a thread waits for this cause"},
        ),
        FlatTable(
            "cores",
            "a core",
            {
                "kind": "cores of one kind run the same variant of a task",
                "contexts": "how many threads it has",
                "first_unit": "its units",
                "units": "how many",
                "accounted": "which of them is accounted; -1: none",
                "capacity": "how much content its memory holds; -1: any amount",
                "shared": "1 if it has threads for the tasks of all other cores",
                "mirrors": "1 if its threads stand for the threads of all cores that are not shared",
                "first_held": "contents in its memory at the start, the least recently used first",
                "held": "how many",
            },
        ),
        FlatTable(
            "units",
            "a unit of a core",
            {
                "policy": "number of its policy (`lstmsim.program.policy.POLICIES`)",
                "switch_cycles": "cycles of a change of the active thread",
                "ways": "how many equal units stand behind it",
            },
        ),
        FlatTable("held", "a content in a memory at the start", {"content": "which"}),
        FlatTable(
            "contents",
            "a content that tasks need in memories",
            {"key": "its number in the program; -1: room for one task alone", "size": "in the unit of `capacity`"},
        ),
        FlatTable(
            "groups",
            "places that the same tasks may use",
            {"first_place": "the places, in the order of the tasks' cores", "places": "how many"},
        ),
        FlatTable(
            "places",
            "a place where a task may run",
            {"first_seat": "its cores, in the order of the task's members", "seats": "how many"},
        ),
        FlatTable("seats", "a core of a place", {"core": "which"}),
        FlatTable(
            "profiles",
            "what many tasks have in common",
            {
                "group": "where they may run",
                "content": "what they need in memories; -1: nothing",
                "loading": "how many of their first phases load it",
                "affine": "1 if they prefer a place that holds it",
                "preempts": "1 if they ask others to pause",
                "queue_limit": "with how many waiting before them they are turned away; -1: never",
                "patience": "after how many cycles of waiting they are turned away; -1: never",
                "first_variant": "their variants for kinds of cores",
                "variants": "how many",
                "first_wide": "their variants for several of their cores at once",
                "wides": "how many",
            },
        ),
        FlatTable(
            "variants",
            "phases and buffers of a task on a kind of core, or on several of its cores",
            {
                "kind": "of the place's first core",
                "members": "how many cores",
                "first_phase": "its phases",
                "phases": "how many",
                "first_buffer": "its buffers",
                "buffers": "how many",
            },
        ),
        FlatTable(
            "phases",
            "a body that repeats",
            {
                "body": "which",
                "repeat": "how many iterations",
                "mirrored": "1 if the steps descend",
                "first_step": "the time step of iteration 0",
                "first_extra": "its columns of extra cycles, one after the other, each with a row for each iteration",
                "extras": "how many columns",
                "first_gate": "gate 0 of iteration 0",
                "gates": "how many gates an iteration has",
            },
        ),
        FlatTable("extras", "an iteration of a phase", {"cycles": "that some operations take more"}),
        FlatTable(
            "buffers",
            "a buffer of each thread of a variant",
            {"slots": "how many", "cause": "number of the cause of a wait for a slot"},
        ),
        FlatTable(
            "bodies",
            "the operations of one iteration",
            {
                "first_operation": "its rows of `operations` in issue order; of a packed body -1",
                "operations": "how many operations it has",
                "first_word": "its rows of `words`; of a body that is not packed -1",
                "words": "how many",
            },
        ),
        FlatTable(
            "words",
            "an operation, or one of the needs that follow it, of a packed body",
            {
                "word": "of an operation: 256 times a row of `operations`, whose needs do not count, plus how many "
                "needs follow; of a need: 2**32 times a row of `needs`, plus 2**31, plus what stands in place of its "
                "`operation`"
            },
        ),
        FlatTable(
            "operations",
            "some issues in a row of the same kind",
            {
                "unit": "number of the unit of its core",
                "cycles": "length of each issue",
                "count": "how many issues; 0: it only waits, as the last operation of its stream",
                "frame": "1 if the first issue waits for the task's input frame",
                "takes": "the variant's buffer of which the first issue takes a slot; -1: none",
                "frees": "the variant's buffer of which a slot is free at the end of the last issue; -1: none",
                "result_cycles": "cycles from the start of the last issue to its results",
                "work": "useful multiply-accumulates of one issue",
                "first_need": "what the first issue waits for",
                "needs": "how many",
                "ahead": "how many steps after the iteration's own step the frame is",
                "member": "which of the task's cores runs it",
                "extra": "the phase's column of extra cycles that it takes; -1: none",
                "arrives": "the gate of the body at which it arrives; -1: none",
            },
        ),
        FlatTable(
            "needs",
            "a dependence",
            {
                "operation": "place of the other operation in its body, or number of a gate of the body",
                "delay": "cycles after the start of the other operation's last issue, at least 1",
                "cause": "number of the cause of a wait for it",
                "lag": "in the same body, how many iterations earlier the other operation is",
                "phase": "the variant's earlier phase with the other operation; -1: the same body",
                "mirrored": "1 if the other operation's iteration is counted from the end of that phase",
                "gate": "1 if `operation` is the number of a gate",
            },
        ),
        FlatTable(
            "tasks",
            "a task",
            {
                "profile": "what it has in common with others",
                "release": "cycle of its arrival, or cycles from the end of the task that it comes after",
                "frame_interval": "cycles between its frames",
                "key": "its rank",
                "key_from_arrival": "1 if its arrival is added to its rank",
                "after": "an earlier task that it comes after; -1: none",
                "behind": "a gate that it comes after; -1: none",
                "starts": "a gate at which it arrives when it is admitted; -1: none",
                "ends": "a gate at which it arrives when it finishes; -1: none",
                "until": "a gate before which it does not finish; -1: none",
            },
        ),
        FlatTable("gates", "a gate", {"arrivals": "how many must arrive there before it opens"}),
    )
}

#: How many columns each table has.
WIDTHS: Mapping[str, int] = {name: table.width for name, table in FLAT_TABLES.items()}


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
        told = "and no value would do" if most < least else f"not {least} to {most}"
        refuse_row(table, values, wrong, f"{column} is {{}}, {told}")


def _sum(column: str, values: NDArray[np.int64], more: NDArray[np.int64]) -> None:
    """Threads times units of all cores, with the ways of the units."""
    wrong = np.cumsum(more) > _CURSORS
    text = f"{column} is {{}}, so with the rows before it there are more than {_CURSORS} threads times units"
    refuse_row("cores", values, wrong, text)
