"""The tables that only the tail reads: when results are there, and what blocks wait for beside their sums.

A row names a block whose start was stamped, and how many cycles later the waiting block may start. The stamps of a
thread have a place for every row block of every segment whose values others wait for.
"""

from __future__ import annotations

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.layout import INTEGER, Column, bits_of
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Program, SegmentRow, StageRow, Want


@record
class AwaitRow:
    """What every block of a segment waits for.

    stamp: place in the thread's stamps.
    own: whether the number of the waiting block is added to that place.
    lag: 1 if the value is of the step before: then blocks of step 0 do not wait.
    cycles: from the start of the giving block until the start of the waiting one.
    first: row of block 0 among the `BlockAwait`s that say place and cycles instead; -1: none do.
    """

    stamp: int
    own: bool
    lag: int
    cycles: int
    first: int = -1


@record
class BlockAwait:
    """What one block waits for, where row blocks of the two segments are not the same units.

    stamp: place in the thread's stamps.
    cycles: from the start of the giving block until the start of the waiting one; 0: it waits for nothing.
    """

    stamp: int
    cycles: int


@record
class Awaits:
    """What the segments of a program wait for.

    stamps: for each segment the place of its block 0; -1: nobody waits for it.
    rows: for each segment its rows.
    blocks: rows for single blocks.
    places: size of a thread's stamps.
    """

    stamps: tuple[int, ...]
    rows: tuple[tuple[AwaitRow, ...], ...]
    blocks: tuple[BlockAwait, ...]
    places: int


def ages(programs: tuple[Program | None, ...]) -> bool:
    """Whether the tail of a core compares ages: a segment waits for values, or a stage has several segments."""
    every = (each for program in programs if program for stage in program.stages for each in stage.segments)
    return any(each.index or each.wants for each in every)


def awaits(program: Program, tail_width: int) -> Awaits:
    """Say what the blocks of a program wait for, and where the stamps are."""
    segments = [each for stage in program.stages for each in stage.segments]
    given = {want.segment for each in segments for want in each.wants}
    stamps, places = [], 0
    for each in segments:
        stamps.append(places if each.number in given else -1)
        places += program.stages[each.stage_row].blocks if each.number in given else 0
    rows: list[tuple[AwaitRow, ...]] = []
    blocks: list[BlockAwait] = []
    for each in segments:
        own: list[AwaitRow] = []
        for want in each.wants:
            row, more = _row(program, segments, each, want, stamps[want.segment], len(blocks), tail_width)
            own += row
            blocks += more
        rows.append(tuple(own))
    return Awaits(tuple(stamps), tuple(rows), tuple(blocks), places)


def _row(
    program: Program,
    segments: list[SegmentRow],
    reader: SegmentRow,
    want: Want,
    stamp: int,
    first: int,
    tail_width: int,
) -> tuple[list[AwaitRow], list[BlockAwait]]:
    """A want as a row, perhaps with rows for single blocks; no row if the order of the blocks is enough."""
    here, there = program.stages[reader.stage_row], program.stages[segments[want.segment].stage_row]
    if want.reduced:
        cycles = (there.last_units - 1) // tail_width + want.cycles
        return ([AwaitRow(stamp + there.blocks - 1, False, want.lag, cycles)] if cycles > 0 else []), []
    if (here.units, here.unit_count) == (there.units, there.unit_count):
        return ([AwaitRow(stamp, True, want.lag, want.cycles)] if want.cycles > 0 else []), []
    blocks = [_overlap(here, number, there, want.cycles, stamp, tail_width) for number in range(here.blocks)]
    if not any(each.cycles for each in blocks):
        return [], []
    return [AwaitRow(stamp, False, want.lag, 0, first)], blocks


def _overlap(here: StageRow, number: int, there: StageRow, cycles: int, stamp: int, tail_width: int) -> BlockAwait:
    """What a block waits for of the blocks of another stage that have some of its units.

    Of those that it waits for at all, the last one is there last, because a block starts after all turns of the one
    before it.
    """
    start = number * here.units
    last = min(start + here.units, here.unit_count) - 1
    for block in range(last // there.units, start // there.units - 1, -1):
        begin = block * there.units
        low, high = max(start, begin), min(last, begin + there.units - 1)
        units = range(low, min(high, low + tail_width) + 1)  # all differences of turns are among these
        delay = cycles + max((unit - begin) // tail_width - (unit - start) // tail_width for unit in units)
        if delay > 0:
            return BlockAwait(stamp + block, delay)
    return BlockAwait(stamp, 0)


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
    """Give the plain numbers that only the tail reads."""
    results = [
        plan.core.latency.convert + _results(each) for plan, program in _programs(design) for each in _segments(program)
    ]
    rows = [len(own) for each in _awaited(design) for own in each.rows]
    return [("MOST_AWAITS", max(rows)), ("W_DELAY", bits_of(max(results)))]


def tail_tables(design: Design) -> list[tuple[str, list[Column]]]:
    """Give the tables that only the tail reads, each with its title."""
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
