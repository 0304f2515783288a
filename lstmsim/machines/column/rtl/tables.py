"""The tables that only the tail reads: when results are there, and what blocks wait for beside their sums.

A row names a block whose start was stamped, and how many cycles later the waiting block may start. The stamps of a
thread have a place for every row block of every segment whose values others wait for.

`npu_config.vh`: the sizes of a design, the widths of its signals, and its control store, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.layout import (
    INTEGER,
    Column,
    bits_of,
    column_text,
    depth_of,
    number_text,
    programs_of,
    stages_of,
    turns_in,
    widths,
)
from lstmsim.machines.column.rtl.plan import CorePlan, Design, JobRow, Program, SegmentRow, SourceKind, StageRow, Want


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


#: Number of each source of a column group in the table of reads.
SOURCES: dict[SourceKind, int] = {"frame": 0, "two": 1, "all_x": 2, "all_h": 3}

#: A table: its title and its columns.
Table = tuple[str, list[Column]]

T = TypeVar("T")


def columns(prefix: str, rows: Sequence[T], /, **given: tuple[int, Callable[[T], int]]) -> list[Column]:
    """Make columns of rows.

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
    """Give the tables of all programs' rows."""
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


def _segments_tables(placed: Sequence[_Placed]) -> list[SegmentRow]:
    return [segment for one in placed for segment in one.row.segments]


def _segment_columns(placed: Sequence[_Placed]) -> list[Column]:
    segments = _segments_tables(placed)
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
    writes = [write for segment in _segments_tables(placed) for write in segment.writes]
    return columns(
        "V",
        writes,
        memory=(1, lambda write: write.memory),
        counter=(wide["W_COUNTER"], lambda write: write.counter),
        all=(1, lambda write: int(write.kept == "all")),
        base=(wide["W_ELEMENT"], lambda write: write.base),
        stride=(wide["W_ELEMENT"], lambda write: write.stride),
    )


_HEAD = """\
// Sizes, widths and tables of this design; section 10 of lstmsim's docs/rtl.md names them. This file has localparams
// only. The testbench includes it; npu_<module>.vh has what a module reads of it. NAME_B is the width of an entry of
// NAME; entry 0 is in the lowest bits; negative entries are in two's complement. The signals `row`, `read`, `segment`
// are places in P_, R_, S_; counters are numbered within their program."""


def config(design: Design) -> str:
    """Give the text of `npu_config.vh`."""
    wide = widths(design)
    parts = [
        _HEAD,
        number_text(_counts(design)),
        "",
        "// widths of signals",
        number_text([*wide.items(), *tail_numbers(design)]),
    ]
    tables: list[Table] = [
        ("C_: cores", _core_columns(design)),
        ("M_: vector memories, by core", _memories(design)),
        ("G_: programs, at core * MODELS + model; G_ROW is a place in P_", _program_columns(design, wide)),
        ("J_: jobs in posting order; J_NEXT is the next job of the same queue, or JOBS", _job_columns(design, wide)),
        (
            "Q_: queues; Q_FIRST is a job, and Q_CORES has a bit for each core that the queue's jobs may run on",
            _queue_columns(design, wide),
        ),
        ("JC_: jobs by core, at core * JOBS + job", _job_core_columns(design, wide)),
        ("JR_: rows of jobs by core, at ((core * JOBS + job) << JR_SHIFT) + P_NUMBER", _job_row_columns(design, wide)),
        *program_tables(design, wide),
        *tail_tables(design),
    ]
    for title, own in tables:
        parts += ["", f"// {title}", *(column_text(each) for each in own)]
    return "\n".join(parts) + "\n"


def _counts(design: Design) -> list[tuple[str, int]]:
    plans, rows, precision = design.cores, stages_of(design), design.precision
    return [
        ("CORES", len(plans)),
        ("JOBS", len(design.jobs)),
        ("MODELS", len(design.models)),
        ("QUEUES", len(design.queues)),
        ("ROWS", len(rows)),
        ("MOST_THREADS", max(plan.core.threads for plan in plans)),
        ("MOST_COUNTERS", max(program.counters for program in programs_of(design))),
        ("MOST_NEEDS", max(len(read.needs) for row in rows for read in row.reads)),
        ("MOST_WRITES", max(len(segment.writes) for row in rows for segment in row.segments)),
        ("JR_SHIFT", (_most_rows(design) - 1).bit_length()),
        ("WEIGHT_BITS", precision.weight_bits),
        ("VECTOR_BITS", precision.vector_bits),
        ("ACCUMULATOR_BITS", precision.accumulator_bits),
        ("MULTIPLIER_BITS", precision.multiplier_bits),
        ("TAIL_BITS", precision.tail_bits),
    ]


def _most_rows(design: Design) -> int:
    return max(len(program.stages) for program in programs_of(design))


def _core_columns(design: Design) -> list[Column]:
    plans = design.cores
    # the tail's latencies are in its depths
    latencies = [
        Column(f"C_{name.upper()}", tuple(int(getattr(plan.core.latency, name)) for plan in plans), INTEGER)
        for name in ("read", "multiply", "add", "accumulate", "convert")
    ]
    made = columns(
        "C",
        plans,
        ep=(INTEGER, lambda plan: plan.core.ep),
        rows=(INTEGER, lambda plan: plan.rows),
        levels=(INTEGER, lambda plan: plan.tree_levels),
        threads=(INTEGER, lambda plan: plan.core.threads),
        banks=(INTEGER, lambda plan: plan.core.accumulator_banks),
        tail_width=(INTEGER, lambda plan: plan.core.tail_width),
        fine=(INTEGER, lambda plan: int(plan.core.thread_policy == "fine")),
        switch_cycles=(1, lambda plan: plan.core.switch_cycles),
        column_order=(INTEGER, lambda plan: int(plan.core.block_order == "column")),
        depth=(INTEGER, depth_of),
        weight_words=(INTEGER, lambda plan: max(1, plan.weight_words)),
        frame_words=(INTEGER, lambda plan: max(1, plan.frame_words)),
        constant_words=(INTEGER, lambda plan: max(1, plan.constant_words)),
        turns=(INTEGER, lambda plan: max(1, plan.turns)),
        kinds=(INTEGER, lambda plan: len(plan.kinds)),
        memories=(INTEGER, lambda plan: len(plan.memories)),
    )
    made.append(Column("C_MEMORY", tuple(firsts(len(plan.memories) for plan in plans)), INTEGER))
    return [*made, *latencies]


def _memories(design: Design) -> list[Column]:
    memories = [memory for plan in design.cores for memory in plan.memories]
    return columns(
        "M", memories, slot=(INTEGER, lambda memory: memory.slot), elements=(INTEGER, lambda memory: memory.elements)
    )


def _program_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    programs: list[Program | None] = [program for plan in design.cores for program in plan.programs]
    made = columns("G", programs, interleaved=(1, lambda one: 0 if one is None else int(one.interleaved)))
    rows = firsts(0 if one is None else len(one.stages) for one in programs)
    # a program that is not there may stand behind the last row
    made.append(Column("G_ROW", tuple(rows), wide["W_ROW"]))
    return made


def _job_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    made = columns(
        "J",
        design.jobs,
        model=(bits_of(len(design.models) - 1), lambda job: job.model),
        steps=(wide["W_STEP"], lambda job: job.steps),
        arrival=(1, lambda job: job.arrival),
        frame_interval=(1, lambda job: job.frame_interval),
    )
    # the next job of the same queue, or how many jobs there are
    behind: dict[int, int] = {}
    nexts = []
    for number, job in reversed(list(enumerate(design.jobs))):
        nexts.append(behind.get(job.queue, len(design.jobs)))
        behind[job.queue] = number
    return [*made, Column("J_NEXT", tuple(nexts[::-1]), wide["W_JOBS"])]


def _queue_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    made = columns("Q", design.queues, cores=(len(design.cores), lambda cores: sum(1 << core for core in cores)))
    numbers = [job.queue for job in design.jobs]
    return [*made, Column("Q_FIRST", tuple(map(numbers.index, range(len(design.queues)))), wide["W_JOBS"])]


def _job_core_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    rows: list[JobRow | None] = [row for plan in design.cores for row in plan.jobs]
    return columns(
        "JC",
        rows,
        frame_start=(wide["W_FRAME"], lambda row: 0 if row is None else row.frame_start),
        frame_end=(wide["W_FRAME"], lambda row: 0 if row is None else row.frame_end),
        started=(1, lambda row: int(row is not None and row.initial >= 0)),
        initial=(wide["W_TURN"], lambda row: 0 if row is None else max(0, row.initial)),
    )


def _job_row_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    most = 1 << (_most_rows(design) - 1).bit_length()
    rows = [(row, place) for plan in design.cores for row in plan.jobs for place in range(most)]

    def take(row: JobRow | None, name: str, place: int) -> int:
        values: tuple[int, ...] = () if row is None else getattr(row, name)
        return max(0, values[place]) if place < len(values) else 0

    return columns(
        "JR",
        rows,
        x_start=(wide["W_ELEMENT"], lambda pair: take(pair[0], "x_starts", pair[1])),
        write_start=(wide["W_ELEMENT"], lambda pair: take(pair[0], "write_starts", pair[1])),
        h_start=(wide["W_FRAME"], lambda pair: take(pair[0], "h_starts", pair[1])),
    )
