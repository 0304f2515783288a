"""The columns that only the tail reads: when results are there, and what blocks wait for."""

from __future__ import annotations

from lstmsim.machines.column.rtl.awaits import Awaits, ages, awaits
from lstmsim.machines.column.rtl.layout import INTEGER, Column, bits_of
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Program
from lstmsim.machines.column.rtl.rows import SegmentRow

__all__ = ["tail_numbers", "tail_tables"]


def _programs(design: Design) -> list[tuple[CorePlan, Program]]:
    return [(plan, program) for plan in design.cores for program in plan.programs if program is not None]


def _segments(program: Program) -> list[SegmentRow]:
    return [segment for row in program.stages for segment in row.segments]


def _awaited(design: Design) -> list[Awaits]:
    return [awaits(program, plan.core.tail_width) for plan, program in _programs(design)]


def _results(segment: SegmentRow) -> int:
    """From a turn of the segment until all is there that the end of a job waits for."""
    return next((write.visible_cycles for write in segment.writes if write.slot == 0), 1)


def _visible(plan: CorePlan) -> list[int]:
    """For each vector memory, cycles from a turn until what it writes is visible: always as many."""
    cycles = {
        write.memory: write.visible_cycles
        for program in plan.programs
        if program is not None
        for segment in _segments(program)
        for write in segment.writes
    }
    return [cycles.get(memory.number, 1) for memory in plan.memories]


def tail_numbers(design: Design) -> list[tuple[str, int]]:
    """Give the plain numbers that only the tail reads.

    design: the design.
    """
    results = [
        plan.core.latency.convert + _results(each) for plan, program in _programs(design) for each in _segments(program)
    ]
    rows = [len(own) for each in _awaited(design) for own in each.rows]
    return [("MOST_AWAITS", max(rows)), ("W_DELAY", bits_of(max(results)))]


def tail_tables(design: Design) -> list[tuple[str, list[Column]]]:
    """Give the tables that only the tail reads, each with its title.

    design: the design.
    """
    awaited = _awaited(design)
    segments = [segment for _, program in _programs(design) for segment in _segments(program)]
    starts, blocks = _firsts(awaited)
    rows = [(row, first) for each, first in zip(awaited, blocks, strict=True) for own in each.rows for row in own]
    singles = [each for one in awaited for each in one.blocks]
    stamps = [stamp for each in awaited for stamp in each.stamps]
    counts = [len(own) for each in awaited for own in each.rows]
    places = {id(plan): 1 for plan in design.cores}
    for (plan, _), each in zip(_programs(design), awaited, strict=True):
        places[id(plan)] = max(places[id(plan)], each.places)
    segment_columns = [
        Column("S_RESULT_CYCLES", tuple(map(_results, segments))),
        Column("S_GIVES", tuple(int(stamp >= 0) for stamp in stamps)),
        Column("S_STAMP", tuple(max(0, stamp) for stamp in stamps)),
        Column("S_A", tuple(starts)),
        Column("S_AS", tuple(counts)),
    ]
    await_columns = [
        Column("A_STAMP", tuple(row.stamp for row, _ in rows)),
        Column("A_OWN", tuple(int(row.own) for row, _ in rows)),
        Column("A_LAG", tuple(row.lag for row, _ in rows)),
        Column("A_CYCLES", tuple(row.cycles for row, _ in rows)),
        Column("A_TABLE", tuple(int(row.first >= 0) for row, _ in rows)),
        Column("A_FIRST", tuple(first + max(0, row.first) for row, first in rows)),
        Column("O_STAMP", tuple(each.stamp for each in singles)),
        Column("O_CYCLES", tuple(each.cycles for each in singles)),
    ]
    core_columns = [
        Column("C_AGES", tuple(int(ages(plan.programs)) for plan in design.cores), INTEGER),
        Column("C_STAMPS", tuple(places[id(plan)] for plan in design.cores), INTEGER),
        Column("M_VISIBLE_CYCLES", tuple(cycles for plan in design.cores for cycles in _visible(plan)), INTEGER),
    ]
    return [
        (
            "S_: of each segment, cycles from a turn until its results are there; stamps of starts; rows in A_",
            segment_columns,
        ),
        ("A_: starts of blocks that a segment's blocks wait for; O_: the same for single blocks", await_columns),
        ("C_, M_: cores whose tail compares ages; cycles until a memory's vectors are visible", core_columns),
    ]


def _firsts(awaited: list[Awaits]) -> tuple[list[int], list[int]]:
    """Where each segment's rows begin in A_, and each program's in O_."""
    starts, blocks = [], []
    row = block = 0
    for each in awaited:
        blocks.append(block)
        block += len(each.blocks)
        for own in each.rows:
            starts.append(row)
            row += len(own)
    return starts, blocks
