"""The columns of the tables of programs: stage rows, sums, reads, needs, segments, vectors written, wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.layout import Column
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Program
from lstmsim.machines.column.rtl.rows import SegmentRow, SourceKind, StageRow
from lstmsim.machines.column.rtl.widths import turns_in

__all__ = ["SOURCES", "Table", "columns", "firsts", "program_tables", "write_stride"]

#: Number of each source of a column group in the table of reads.
SOURCES: dict[SourceKind, int] = {"frame": 0, "two": 1, "all_x": 2, "all_h": 3}

#: A table: its title and its columns.
Table = tuple[str, list[Column]]

T = TypeVar("T")


def columns(prefix: str, rows: Sequence[T], /, **given: tuple[int, Callable[[T], int]]) -> list[Column]:
    """Make columns of rows.

    prefix: of the columns' names.
    rows: the rows.
    given: name of a column in small letters -> least bits of an entry, and the entry of a row.

    >>> columns("P", [3, 5], twice=(1, lambda row: 2 * row))
    [Column(name='P_TWICE', values=(6, 10), least_bits=1)]
    """
    return [
        Column(f"{prefix}_{name.upper()}", tuple(give(row) for row in rows), least)
        for name, (least, give) in given.items()
    ]


def firsts(counts: Iterable[int]) -> list[int]:
    """Where each part begins in a table that has the parts one after another.

    >>> firsts([2, 3, 1])
    [0, 2, 5]
    """
    return [0, *accumulate(counts)][:-1]


@record
class _Placed:
    """A row and where it stands.

    plan: its core.
    program: its program.
    row: the row.
    """

    plan: CorePlan
    program: Program
    row: StageRow

    @property
    def words(self) -> str:
        """What the row is, in words."""
        row = self.row
        where = f"layer {row.layer}{' backward' if row.backward else ''} stage {row.stage}"
        return f"core {self.plan.number} model {self.program.model} {where}, {self.plan.kinds[row.kind].cell.name}"


def _placed(design: Design) -> list[_Placed]:
    programs = [(plan, program) for plan in design.cores for program in plan.programs if program is not None]
    return [_Placed(plan, program, row) for plan, program in programs for row in program.stages]


def program_tables(design: Design, wide: Mapping[str, int]) -> list[Table]:
    """Give the tables of all programs' rows.

    design: the design.
    wide: widths of the signals.
    """
    placed = _placed(design)
    sources = ", ".join(f"{number} {name}" for name, number in SOURCES.items())
    return [
        (_rows_told(placed), _stage_columns(placed, wide)),
        (f"R_: vectors read; R_SOURCE: {sources}", _read_columns(placed, wide)),
        ("N_: counters that a group waits for", _need_columns(placed, wide)),
        ("S_: segments", _segment_columns(placed)),
        ("V_: vectors written; V_MEMORY is also the number of the write port", _write_columns(placed, wide)),
    ]


def _rows_told(placed: Sequence[_Placed]) -> str:
    """The title of the table of rows: what each of them is."""
    told = (f"//   {number}: {one.words}" for number, one in enumerate(placed))
    return "\n".join(["P_: rows, a stage of a pass each; those of a program follow each other:", *told])


def _stage_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    unit, block, row = wide["W_UNIT"], wide["W_BLOCK"], wide["W_ROW"]
    reads = firsts(len(each.row.reads) for each in placed)
    segments = firsts(len(each.row.segments) for each in placed)
    made = columns(
        "P",
        placed,
        number=(row, lambda one: one.row.number),
        kind=(1, lambda one: one.row.kind),
        lane_pass=(1, lambda one: one.row.lane_pass),
        units=(unit, lambda one: one.row.units),
        blocks=(block, lambda one: one.row.blocks),
        last_units=(unit, lambda one: one.row.last_units),
        turns=(wide["W_NUMBER"], lambda one: turns_in(one.plan, one.row.units)),
        segments=(1, lambda one: len(one.row.segments)),
        weight_base=(wide["W_WEIGHT"], lambda one: one.row.weight_base),
        constant_base=(wide["W_CONSTANT"], lambda one: one.row.constant_base),
        turn_base=(wide["W_TURN"], lambda one: one.row.turn_base),
        last_of_pass=(1, lambda one: int(one.row.last_of_pass)),
        last_of_program=(1, lambda one: int(one.row is one.program.stages[-1])),
        backward=(1, lambda one: int(one.row.backward)),
        write_stride=(wide["W_ELEMENT"], lambda one: write_stride(one.program, one.row)),
    )
    made.append(Column("P_READ", tuple(reads), wide["W_READ"]))
    last_reads = (first + len(each.row.reads) - 1 for first, each in zip(reads, placed, strict=True))
    made.append(Column("P_LAST_READ", tuple(last_reads), wide["W_READ"]))
    made.append(Column("P_SEGMENT", tuple(segments), wide["W_SEGMENT"]))
    return made


def write_stride(program: Program, row: StageRow) -> int:
    """From a step of a row's pass's h to the next one, where all steps are kept; 0 where two are."""
    of_pass = (each for each in program.stages if each.first_of_pass == row.first_of_pass)
    writes = (write for each in of_pass for segment in each.segments for write in segment.writes)
    return next((write.stride for write in writes if write.slot == 0 and write.kept == "all"), 0)


def _read_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    reads = [read for one in placed for read in one.row.reads]
    widths = [one.plan.core.ep for one in placed for _ in one.row.reads]
    element = wide["W_ELEMENT"]
    made = columns(
        "R",
        reads,
        code=(1, lambda read: read.code),
        groups=(wide["W_GROUP"], lambda read: read.groups),
        source=(2, lambda read: SOURCES[read.source]),
        memory=(1, lambda read: max(0, read.memory)),
        base=(element, lambda read: read.base),
        stride=(element, lambda read: read.stride),
        lag=(1, lambda read: read.lag),
        needs=(1, lambda read: len(read.needs)),
    )
    lasts = tuple(read.elements - (read.groups - 1) * ep for read, ep in zip(reads, widths, strict=True))
    made.append(Column("R_LAST_ELEMENTS", lasts, wide["W_UNIT"]))
    made.append(Column("R_NEED", tuple(firsts(len(read.needs) for read in reads))))
    return made


def _need_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    needs = [need for one in placed for read in one.row.reads for need in read.needs]
    return columns(
        "N",
        needs,
        counter=(wide["W_COUNTER"], lambda need: need.counter),
        begin=(wide["W_UNIT"], lambda need: need.begin),
        end=(wide["W_UNIT"], lambda need: need.end),
        flipped=(1, lambda need: int(need.flipped)),
    )


def _segments(placed: Sequence[_Placed]) -> list[SegmentRow]:
    return [segment for one in placed for segment in one.row.segments]


def _segment_columns(placed: Sequence[_Placed]) -> list[Column]:
    segments = _segments(placed)
    made = columns(
        "S",
        segments,
        index=(1, lambda segment: segment.index),
        lane_segment=(1, lambda segment: segment.lane_segment),
        writes=(1, lambda segment: len(segment.writes)),
        last=(1, lambda segment: int(segment.last)),
    )
    made.append(Column("S_WRITE", tuple(firsts(len(segment.writes) for segment in segments))))
    return made


def _write_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    writes = [write for segment in _segments(placed) for write in segment.writes]
    return columns(
        "V",
        writes,
        memory=(1, lambda write: write.memory),
        counter=(wide["W_COUNTER"], lambda write: write.counter),
        all=(1, lambda write: int(write.kept == "all")),
        base=(wide["W_ELEMENT"], lambda write: write.base),
        stride=(wide["W_ELEMENT"], lambda write: write.stride),
    )
