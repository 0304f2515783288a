"""Names that travel beside a flat program: what its tables do not hold, because no cycle depends on it."""

from __future__ import annotations

import numpy as np

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import Writer
from lstmsim.program.program import Body, Buffer, Operation, Phase, Program
from lstmsim.program.tabled import TabledProgram

__all__ = ["FlatNames", "default_names", "names_of"]

#: Most contents in all memories together. The core of the fast engine takes no more, either.
_MOST_HELD = 2**24


@record
class FlatNames:
    """What people read of a flat program.

    tasks: name of each task.
    units: of each row of `units` the name, whether timelines show it, and the name of the way of its results.
    buffers: name of each row of `buffers`.
    operations: of each row of `operations` its label and its place (layer, direction, ...).
    held: for each core, keys of all contents in its memory at the start; the tables have those that some task needs.
    chip: name of the machine.
    frequency_mhz: its clock. 1,000 MHz is an assumption, because timelines write a cycle as a nanosecond.
    unit: what people call the accounted unit of a core.
    """

    tasks: tuple[str, ...]
    units: tuple[tuple[str, bool, str], ...]
    buffers: tuple[str, ...]
    operations: tuple[tuple[str, tuple[int, ...]], ...]
    held: tuple[tuple[int, ...], ...]
    chip: str = "program"
    frequency_mhz: float = 1000.0
    unit: str = "array"

    def check(self, flat: FlatProgram) -> None:
        """Raise `ProgramError` unless these are names for this flat program.

        >>> from lstmsim.program.flat import flat_program
        >>> flat = flat_program({"buffers": [[2, 0]]})
        >>> FlatNames((), (), (), (), ()).check(flat)
        Traceback (most recent call last):
        lstmsim.base.errors.ProgramError: there are names for 0 rows of table buffers, which has 1
        """
        for table in ("tasks", "units", "buffers", "operations"):
            names, rows = len(getattr(self, table)), len(flat.table(table))
            if names != rows:
                raise ProgramError(f"there are names for {names} rows of table {table}, which has {rows}")
        held = held_by_tables(flat)
        if len(self.held) != len(held):
            raise ProgramError(f"there are contents for {len(self.held)} cores, and the program has {len(held)}")
        known = set(flat.column("contents", "key").tolist())
        for core, (said, keys) in enumerate(zip(self.held, held, strict=True)):
            if tuple(key for key in said if key in known) != keys:
                raise ProgramError(f"core {core}: holds contents {keys} by its tables, and {said} by its names")


class _Namer(Writer):
    """Writes the tables once more, to see which body and buffer has which rows."""

    def __init__(self) -> None:
        super().__init__()
        self.operation_rows: list[Operation] = []
        self.buffer_rows: list[Buffer] = []

    def body(self, body: Body) -> int:
        known = len(self.bodies)
        number = super().body(body)
        if number == known:
            self.operation_rows += body.operations
        return number

    def variant(self, kind: int, members: int, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> None:
        super().variant(kind, members, phases, buffers)
        self.buffer_rows += buffers


def names_of(program: Program) -> FlatNames:
    """The names that belong to `flat_of(program)`.

    >>> from lstmsim.program.program import *
    >>> core = Core(0, (Unit("array", "coarse"),))
    >>> task = Task("job", ((0, (Phase(Body((Operation(0, label="x"),)), 1),)),), (), (0,))
    >>> names_of(Program((core,), (task,))).operations
    (('x', ()),)
    """
    if isinstance(program, TabledProgram):
        names: FlatNames = program.names
        return names
    namer = _Namer()
    namer.tasks(program.tasks)
    return FlatNames(
        tasks=tuple(task.name for task in program.tasks),
        units=tuple((each.name, each.shown, each.pipeline) for core in program.cores for each in core.units),
        buffers=tuple(each.name for each in namer.buffer_rows),
        operations=tuple((each.label, each.place) for each in namer.operation_rows),
        held=tuple(core.held for core in program.cores),
    )


def default_names(flat: FlatProgram) -> FlatNames:
    """Plain names for a flat program that has none: tasks `t0`, buffers `b0`, units of a core `u0`.

    >>> from lstmsim.program.flat import flat_program
    >>> default_names(flat_program({"tasks": [[0] * 10] * 2})).tasks
    ('t0', 't1')
    """
    rows = np.arange(len(flat.table("units")))
    # a unit is counted from the last row before it with which the units of some core begin
    begins = np.union1d(flat.column("cores", "first_unit"), [0])
    numbers = rows - begins[np.searchsorted(begins, rows, "right") - 1]
    return FlatNames(
        tasks=tuple(f"t{number}" for number in range(len(flat.table("tasks")))),
        units=tuple((f"u{number}", True, "") for number in numbers.tolist()),
        buffers=tuple(f"b{number}" for number in range(len(flat.table("buffers")))),
        operations=(("", ()),) * len(flat.table("operations")),
        held=held_by_tables(flat),
    )


def held_by_tables(flat: FlatProgram) -> tuple[tuple[int, ...], ...]:
    """For each core the keys of the contents that it holds at the start, as far as the tables know."""
    keys = flat.column("contents", "key")[flat.column("held", "content")].tolist()
    firsts, counts = flat.column("cores", "first_held"), flat.column("cores", "held")
    if counts.sum() > _MOST_HELD:
        raise ProgramError(f"cores hold {counts.sum():,} contents together, at most {_MOST_HELD:,}")
    spans = zip(firsts.tolist(), counts.tolist(), strict=True)
    return tuple(tuple(keys[first : first + count]) for first, count in spans)
