"""The columns of the tables of programs: stage rows, sums, reads, needs, segments, vectors written, wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from lstmsim.records import record
from lstmsim.targets.column.rtl.layout import Column
from lstmsim.targets.column.rtl.plan import CorePlan, Design
from lstmsim.targets.column.rtl.rows import ReadRow, SegmentRow, SourceKind, StageRow, Want
from lstmsim.targets.column.rtl.widths import turns_in
from lstmsim.workload.cell import Stage

__all__ = ["SOURCES", "Table", "columns", "firsts", "program_tables"]

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
    row: the row.
    program, segments: where in the tables the rows and the segments of its program begin.
    """

    plan: CorePlan
    row: StageRow
    program: int
    segments: int

    @property
    def stage(self) -> Stage:
        """The stage of its cell."""
        return self.plan.kinds[self.row.kind].cell.stages[self.row.stage]

    def turns(self, units: int) -> int:
        """Turns of a block of so many units."""
        return turns_in(self.plan, units)


def _placed(design: Design) -> list[_Placed]:
    placed: list[_Placed] = []
    rows = segments = 0
    for plan in design.cores:
        for program in plan.programs:
            if program is not None:
                placed += [_Placed(plan, row, rows, segments) for row in program.stages]
                rows += len(program.stages)
                segments += sum(len(row.segments) for row in program.stages)
    return placed


def program_tables(design: Design, wide: Mapping[str, int]) -> list[Table]:
    """Give the tables of all programs' rows.

    design: the design.
    wide: widths of the signals.
    """
    placed = _placed(design)
    sources = ", ".join(f"{number} {name}" for name, number in SOURCES.items())
    return [
        ("P_: rows, a stage of a pass each; those of a program follow each other", _stage_columns(placed, wide)),
        ("T_: sums of the rows' gates, in the order in which the lanes take them", _sum_columns(placed)),
        (f"R_: vectors read; R_SOURCE: {sources}; R_SLOTS: W_SLOT bits a gate, 0 none", _read_columns(placed, wide)),
        ("N_: counters that a group waits for", _need_columns(placed, wide)),
        ("S_: segments", _segment_columns(placed, wide)),
        ("V_: vectors written; V_MEMORY is also the number of the write port", _write_columns(placed, wide)),
        ("X_: values that a segment waits for; X_SEGMENT is a place in S_", _want_columns(placed, wide)),
    ]


def _stage_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    unit, block, row = wide["W_UNIT"], wide["W_BLOCK"], wide["W_ROW"]
    reads = firsts(len(each.row.reads) for each in placed)
    segments = firsts(len(each.row.segments) for each in placed)
    sums = firsts(len(each.stage.sums) for each in placed)
    made = columns(
        "P",
        placed,
        number=(row, lambda one: one.row.number),
        layer=(1, lambda one: one.row.layer),
        direction=(1, lambda one: one.row.direction),
        stage=(1, lambda one: one.row.stage),
        kind=(wide["W_KIND"], lambda one: one.row.kind),
        lane_pass=(wide["W_PASS"], lambda one: one.row.lane_pass),
        gates=(1, lambda one: one.row.gates),
        units=(unit, lambda one: one.row.units),
        blocks=(block, lambda one: one.row.blocks),
        last_units=(unit, lambda one: one.row.last_units),
        unit_count=(unit, lambda one: one.row.unit_count),
        tiles=(1, lambda one: one.row.tiles),
        groups=(1, lambda one: sum(read.groups for read in one.row.reads)),
        turns=(wide["W_NUMBER"], lambda one: one.turns(one.row.units)),
        last_turns=(wide["W_NUMBER"], lambda one: one.turns(one.row.last_units)),
        reads=(1, lambda one: len(one.row.reads)),
        segments=(1, lambda one: len(one.row.segments)),
        sums=(1, lambda one: len(one.stage.sums)),
        weight_base=(wide["W_WEIGHT"], lambda one: one.row.weight_base),
        constant_base=(wide["W_CONSTANT"], lambda one: one.row.constant_base),
        turn_base=(wide["W_TURN"], lambda one: one.row.turn_base),
        first_of_pass=(row, lambda one: one.program + one.row.first_of_pass),
        last_of_pass=(1, lambda one: int(one.row.last_of_pass)),
        last_of_program=(1, lambda one: int(one.row is _last(one))),
        backward=(1, lambda one: int(one.row.backward)),
        write_stride=(wide["W_ELEMENT"], _write_stride),
    )
    made.append(Column("P_READ", tuple(reads), wide["W_READ"]))
    last_reads = (first + len(each.row.reads) - 1 for first, each in zip(reads, placed, strict=True))
    made.append(Column("P_LAST_READ", tuple(last_reads), wide["W_READ"]))
    made.append(Column("P_SEGMENT", tuple(segments), wide["W_SEGMENT"]))
    made.append(Column("P_SUM", tuple(sums)))
    return made


def _write_stride(one: _Placed) -> int:
    """From a step of the pass's h to the next one, where all steps are kept; 0 where two are."""
    writes = (
        write
        for program in one.plan.programs
        if program is not None and any(row is one.row for row in program.stages)
        for row in program.stages
        if row.first_of_pass == one.row.first_of_pass
        for segment in row.segments
        for write in segment.writes
    )
    return next((write.stride for write in writes if write.slot == 0 and write.kept == "all"), 0)


def _last(one: _Placed) -> StageRow:
    """The last row of the same program."""
    program = next(
        each for each in one.plan.programs if each is not None and any(row is one.row for row in each.stages)
    )
    return program.stages[-1]


def _sum_columns(placed: Sequence[_Placed]) -> list[Column]:
    pairs = [
        (gate, slot) for one in placed for gate, each in enumerate(one.stage.gates) for slot in range(len(each.sums))
    ]
    return columns("T", pairs, gate=(1, lambda pair: pair[0]), slot=(1, lambda pair: pair[1]))


def _read_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    reads = [(read, one.plan.core.ep) for one in placed for read in one.row.reads]
    element = wide["W_ELEMENT"]
    made = columns(
        "R",
        reads,
        code=(1, lambda pair: pair[0].code),
        groups=(wide["W_GROUP"], lambda pair: pair[0].groups),
        elements=(wide["W_UNIT"], lambda pair: pair[0].elements),
        last_elements=(wide["W_UNIT"], lambda pair: pair[0].elements - (pair[0].groups - 1) * pair[1]),
        source=(2, lambda pair: SOURCES[pair[0].source]),
        memory=(1, lambda pair: max(0, pair[0].memory)),
        base=(element, lambda pair: pair[0].base),
        stride=(element, lambda pair: pair[0].stride),
        lag=(1, lambda pair: pair[0].lag),
        needs=(1, lambda pair: len(pair[0].needs)),
        slots=(1, lambda pair: _packed(pair[0], wide["W_SLOT"])),
    )
    made.append(Column("R_NEED", tuple(firsts(len(read.needs) for read, _ in reads))))
    return made


def _packed(read: ReadRow, bits: int) -> int:
    """For each gate its slot + 1, or 0 for none, side by side."""
    return sum((slot + 1) << (gate * bits) for gate, slot in enumerate(read.slots))


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


def _segment_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    segments = [(segment, one) for one in placed for segment in one.row.segments]
    made = columns(
        "S",
        segments,
        number=(wide["W_SEGMENT"], lambda pair: pair[0].number),
        row=(wide["W_ROW"], lambda pair: pair[1].program + pair[0].stage_row),
        index=(1, lambda pair: pair[0].index),
        lane_segment=(wide["W_LANE_SEGMENT"], lambda pair: pair[0].lane_segment),
        writes=(1, lambda pair: len(pair[0].writes)),
        wants=(1, lambda pair: len(pair[0].wants)),
        last=(1, lambda pair: int(pair[0].last)),
    )
    made.append(Column("S_WRITE", tuple(firsts(len(segment.writes) for segment, _ in segments))))
    made.append(Column("S_WANT", tuple(firsts(len(segment.wants) for segment, _ in segments))))
    return made


def _write_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    writes = [write for segment in _segments(placed) for write in segment.writes]
    return columns(
        "V",
        writes,
        slot=(1, lambda write: write.slot),
        memory=(1, lambda write: write.memory),
        counter=(wide["W_COUNTER"], lambda write: write.counter),
        all=(1, lambda write: int(write.kept == "all")),
        base=(wide["W_ELEMENT"], lambda write: write.base),
        stride=(wide["W_ELEMENT"], lambda write: write.stride),
        visible_cycles=(1, lambda write: write.visible_cycles),
    )


def _want_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    wants: list[tuple[Want, int]] = [
        (want, one.segments) for one in placed for segment in one.row.segments for want in segment.wants
    ]
    return columns(
        "X",
        wants,
        segment=(wide["W_SEGMENT"], lambda pair: pair[1] + pair[0].segment),
        cycles=(1, lambda pair: pair[0].cycles),
        lag=(1, lambda pair: pair[0].lag),
        reduced=(1, lambda pair: int(pair[0].reduced)),
    )
