"""`npu_config.vh`: the sizes of a design, the widths of its signals, and its control store, row by row.

Blocks of the tail wait for other blocks, too: a row names a block whose start was stamped, and how many cycles
later the waiting block may start. A thread has a stamp for every row block of every segment whose values others wait
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from lstmsim.machines.column.rtl.layout import (
    INTEGER,
    Column,
    bits_of,
    column_text,
    depth_of,
    firsts,
    number_text,
    turns_in,
    widths,
)
from lstmsim.machines.column.rtl.plan import (
    CorePlan,
    Design,
    JobRow,
    Program,
    SegmentRow,
    SourceKind,
    StageRow,
    Want,
    WriteRow,
)
from lstmsim.machines.column.rtl.words import STREAM_TITLE, stream_columns, stream_counts

#: Number of each source of a column group in the table of reads.
SOURCES: dict[SourceKind, int] = {"frame": 0, "two": 1, "all_x": 2, "all_h": 3}

#: A table: its title and its columns.
Table = tuple[str, list[Column]]


def columns(
    prefix: str, rows: Sequence[Any], names: str, wide: Mapping[str, int] | None = None, /, **made: Callable[[Any], int]
) -> list[Column]:
    """Make columns of rows: each of `names` is an attribute of a row, unless `made` gives it. Behind `=` stands the
    field of `wide` or the number of bits that an entry has at least; 1 without it.

    >>> columns("P", [3 + 4j], "real=N twice=8", {"W_N": 5}, twice=lambda row: 2 * row.imag)
    [Column(name='P_REAL', values=(3,), least_bits=5), Column(name='P_TWICE', values=(8,), least_bits=8)]
    """
    every = []
    for name, _, least in (each.partition("=") for each in names.split()):
        values = tuple(int(each) for each in map(made.get(name) or attrgetter(name), rows))
        bits = (wide or {})[f"W_{least}"] if least.isalpha() else int(least or 1)
        every.append(Column(f"{prefix}_{name.upper()}", values, bits))
    return every


class _Placed(NamedTuple):
    """A row, its program and its core."""

    plan: CorePlan
    program: Program
    row: StageRow

    @property
    def words(self) -> str:
        """What the row is, in words."""
        row = self.row
        where = f"layer {row.layer}{' backward' if row.backward else ''} stage {row.stage}"
        return f"core {self.plan.number} model {self.program.model} {where}, {self.plan.kinds[row.kind].cell.name}"


def _program_tables(design: Design, wide: Mapping[str, int]) -> list[Table]:
    """The tables of all programs' rows, of which each refers to the next ones."""
    placed = [_Placed(plan, program, row) for plan, program in design.programs for row in program.stages]
    reads = [(read, one.plan.core.ep) for one in placed for read in one.row.reads]
    segments = [segment for one in placed for segment in one.row.segments]
    sources = ", ".join(f"{number} {name}" for name, number in SOURCES.items())
    reported = (f"//   {number}: {one.words}" for number, one in enumerate(placed))
    read_columns = columns(
        "R",
        [read for read, _ in reads],
        "code groups=GROUP source=2 memory base=ELEMENT stride=ELEMENT lag needs",
        wide,
        source=lambda read: SOURCES[read.source],
        memory=lambda read: max(0, read.memory),
        needs=lambda read: len(read.needs),
    )
    lasts = tuple(read.elements - (read.groups - 1) * ep for read, ep in reads)
    read_columns.append(Column("R_LAST_ELEMENTS", lasts, wide["W_UNIT"]))
    read_columns.append(Column("R_NEED", firsts(len(read.needs) for read, _ in reads)))
    needs = [need for read, _ in reads for need in read.needs]
    of_segments = columns("S", segments, "index lane_segment writes last", writes=lambda segment: len(segment.writes))
    of_segments.append(Column("S_WRITE", firsts(len(segment.writes) for segment in segments)))
    writes = [write for segment in segments for write in segment.writes]
    written = "memory counter=COUNTER all base=ELEMENT stride=ELEMENT"
    return [
        (
            "\n".join(["P_: rows, a stage of a pass each; those of a program follow each other:", *reported]),
            _stage_columns(placed, wide),
        ),
        (f"R_: vectors read; R_SOURCE: {sources}", read_columns),
        (
            "N_: counters that a group waits for",
            columns("N", needs, "counter=COUNTER begin=UNIT end=UNIT flipped member", wide),
        ),
        ("S_: segments", of_segments),
        (
            "V_: vectors written; V_MEMORY is also the number of the write port",
            columns("V", writes, written, wide, all=lambda write: write.kept == "all"),
        ),
    ]


def _stage_columns(placed: Sequence[_Placed], wide: Mapping[str, int]) -> list[Column]:
    rows = [one.row for one in placed]
    made = columns("P", rows, "number=ROW kind lane_pass units=UNIT blocks=BLOCK last_units=UNIT", wide)
    made += columns("P", placed, "turns=NUMBER", wide, turns=lambda one: turns_in(one.plan, one.row.units))
    made += columns(
        "P",
        rows,
        "segments weight_base=WEIGHT constant_base=CONSTANT turn_base=TURN last_of_pass",
        wide,
        segments=lambda row: len(row.segments),
    )
    made += columns("P", placed, "last_of_program", last_of_program=lambda one: one.row is one.program.stages[-1])
    made += columns("P", rows, "backward")
    stride = columns(
        "P", placed, "write_stride=ELEMENT", wide, write_stride=lambda one: write_stride(one.program, one.row)
    )
    reads = firsts(len(row.reads) for row in rows)
    last_reads = tuple(first + len(row.reads) - 1 for first, row in zip(reads, rows, strict=True))
    segments = firsts(len(row.segments) for row in rows)
    of_reads = [Column("P_READ", reads, wide["W_READ"]), Column("P_LAST_READ", last_reads, wide["W_READ"])]
    return [*made, *stride, *of_reads, Column("P_SEGMENT", segments, wide["W_SEGMENT"])]


def write_stride(program: Program, row: StageRow) -> int:
    """From a step of a row's pass's h to the next one, where all steps are kept; 0 where two are."""
    of_pass = (each for each in program.stages if each.first_of_pass == row.first_of_pass)
    writes = (write for each in of_pass for segment in each.segments for write in segment.writes)
    return next((write.stride for write in writes if write.slot == 0 and write.kept == "all"), 0)


_HEAD = """\
// Sizes, widths and tables of this design; section 10 of lstmsim's docs/rtl.md names them. This file has localparams
// only. The testbench includes it; npu_<module>.vh has what a module reads of it. NAME_B is the width of an entry of
// NAME; entry 0 is in the lowest bits; negative entries are in two's complement. The signals `row`, `read`, `segment`
// are places in P_, R_, S_; counters are numbered within their program."""


def config(design: Design) -> str:
    """Give the text of `npu_config.vh`."""
    wide = widths(design)
    awaited = [_awaits(program, plan.core.tail_width) for plan, program in design.programs]
    signals = number_text([*wide.items(), *_tail_numbers(design, awaited)])
    parts = [_HEAD, number_text(_counts(design)), "", "// widths of signals", signals]
    tables: list[Table] = [
        ("C_: cores", _core_columns(design)),
        (
            "M_: vector memories, by core",
            columns(
                "M", [each for plan in design.cores for each in plan.memories], f"slot={INTEGER} elements={INTEGER}"
            ),
        ),
        ("G_: programs, at core * MODELS + model; G_ROW is a place in P_", _program_columns(design, wide)),
        ("J_: jobs in posting order; J_NEXT is the next job of the same queue, or JOBS", _job_columns(design, wide)),
        (
            "Q_: queues; Q_FIRST is a job, and Q_CORES has a bit for each core that the queue's jobs may run on",
            _queue_columns(design, wide),
        ),
        ("JC_: jobs by core, at core * JOBS + job", _job_core_columns(design, wide)),
        ("JR_: rows of jobs by core, at ((core * JOBS + job) << JR_SHIFT) + P_NUMBER", _job_row_columns(design, wide)),
        *_program_tables(design, wide),
        *_link_tables(design),
        (STREAM_TITLE, stream_columns(design, wide)),
        *_tail_tables(design, awaited),
    ]
    for title, own in tables:
        parts += ["", f"// {title}", *(column_text(each) for each in own)]
    return "\n".join(parts) + "\n"


def _counts(design: Design) -> list[tuple[str, int]]:
    plans, rows = design.cores, design.rows
    bits = ("weight_bits", "vector_bits", "accumulator_bits", "multiplier_bits", "tail_bits")
    return [
        ("CORES", len(plans)),
        ("JOBS", design.job_places),
        ("POSTED", design.posted),
        ("SPLITS", int(design.split)),
        ("STEP_SHIFT", design.step_shift),
        ("MOST_MEMBERS", max(job.members for job in design.jobs)),
        ("MOST_PLACES", max(len(each.cores) for each in design.queues)),
        ("MOST_RATE", max(map(design.rate, range(len(plans))))),
        *stream_counts(design),
        ("LINK_CYCLES", design.exchange.visible_cycles),
        ("MODELS", len(design.models)),
        ("QUEUES", len(design.queues)),
        ("ROWS", len(rows)),
        ("MOST_THREADS", max(plan.core.threads for plan in plans)),
        ("MOST_COUNTERS", max(program.counters for _, program in design.programs)),
        ("MOST_NEEDS", max(len(read.needs) for row in rows for read in row.reads)),
        ("MOST_WRITES", max(len(segment.writes) for row in rows for segment in row.segments)),
        ("JR_SHIFT", (_most_rows(design) - 1).bit_length()),
        *((name.upper(), getattr(design.precision, name)) for name in bits),
    ]


def _most_rows(design: Design) -> int:
    return max(len(program.stages) for _, program in design.programs)


def _core_columns(design: Design) -> list[Column]:
    plans = design.cores
    cores = [plan.core for plan in plans]
    made = columns("C", cores, "ep=32") + columns("C", plans, "rows=32 levels=32", levels=lambda plan: plan.tree_levels)
    made += columns(
        "C",
        cores,
        "threads=32 banks=32 tail_width=32 fine=32 switch_cycles column_order=32",
        banks=lambda core: core.accumulator_banks,
        fine=lambda core: core.thread_policy == "fine",
        column_order=lambda core: core.block_order == "column",
    )
    sizes = ("weight_words", "frame_words", "constant_words", "turns")
    made += columns("C", plans, "depth=32", depth=depth_of)
    sized = {name: [getattr(plan, name) for plan in plans] for name in sizes}
    sized["weight_words"] = list(map(design.weight_words, plans))
    made += [Column(f"C_{name.upper()}", tuple(max(1, each) for each in own), INTEGER) for name, own in sized.items()]
    made += columns(
        "C", plans, "kinds=32 memories=32", kinds=lambda plan: len(plan.kinds), memories=lambda plan: len(plan.memories)
    )
    made.append(Column("C_MEMORY", firsts(len(plan.memories) for plan in plans), INTEGER))
    # the tail's latencies are in its depths
    return made + columns("C", [core.latency for core in cores], "read=32 multiply=32 add=32 accumulate=32 convert=32")


def _program_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    programs: list[Program | None] = [program for plan in design.cores for program in plan.programs]
    made = columns("G", programs, "interleaved", interleaved=lambda one: one is not None and one.interleaved)
    made += columns("G", programs, "timed", timed=lambda one: one is not None and one.timed)
    rows = firsts(0 if one is None else len(one.stages) for one in programs)
    # a program that is not there may stand after the last row
    return [*made, Column("G_ROW", rows, wide["W_ROW"])]


def _job_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    model = bits_of(len(design.models) - 1)
    made = columns("J", design.table_jobs, f"model={model} steps=STEP arrival frame_interval", wide)
    made += columns("J", design.table_jobs, "parent=JOB member", wide)
    # the next job of the same queue, or how many jobs there are
    behind: dict[int, int] = {}
    nexts = []
    posted = design.table_jobs if design.capacity else design.jobs[: design.posted]
    for number, job in reversed(list(enumerate(posted))):
        nexts.append(behind.get(job.queue, len(posted)))
        behind[job.queue] = number
    parents = [job.parent for job in design.table_jobs[len(posted) :]]
    more = tuple(len(posted) + parents.index(each) if each in parents else 0 for each in range(len(posted)))
    most = tuple(max(job.members for job in design.table_jobs if job.parent == each) for each in range(len(posted)))
    return [
        *made,
        Column("J_NEXT", tuple(nexts[::-1]), wide["W_JOBS"]),
        Column("J_MORE", more, wide["W_JOB"]),
        Column("J_MOST", most),
    ]


def _queue_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    allowed = tuple(sum(1 << core for core in set(each.cores)) for each in design.queues)
    numbers = [job.queue for job in design.jobs]
    first = tuple(map(numbers.index, range(len(design.queues))))
    many = [len(each.cores) for each in design.queues]
    return [
        Column("Q_CORES", allowed, len(design.cores)),
        Column("Q_FIRST", first, wide["W_JOBS"]),
        Column("Q_SPLIT", tuple(("", "fixed", "auto").index(each.split) for each in design.queues), 2),
        Column("Q_PLACE", firsts(many)),
        Column("Q_MEMBERS", tuple(many)),
        Column("QP_CORE", tuple(core for each in design.queues for core in each.cores), wide["W_CORE"]),
    ]


def _link_tables(design: Design) -> list[Table]:
    """The tables of the links between cores."""
    of_segments = [
        (program, segment, first)
        for (_, program), first in zip(design.programs, _first_vectors(design), strict=True)
        for segment in program.segments
    ]
    sends: list[list[tuple[int, int]]] = []
    for _, segment, first in of_segments:
        # first what is visible first, then by name
        rows = [(each.visible_cycles, each.node, first[each]) for each in segment.writes if each.sent]
        sends.append([(row, cycles) for cycles, _, row in sorted(rows)])
    most = [1] * len(design.cores)
    for plan, program in design.programs:
        blocks = sum(
            program.stages[each.stage_row].blocks for each in program.segments for one in each.writes if one.sent
        )
        most[plan.number] = max(most[plan.number], blocks * max(job.steps for job in design.jobs))
    sent = {
        (plan.number, one.memory)
        for plan, program in design.programs
        for each in program.segments
        for one in each.writes
        if one.sent
    }
    timed = tuple(
        int(program.timed) for _, program in design.programs for each in program.segments for _ in each.writes
    )
    return [
        (
            "Links between cores: of each segment its rows in X_; V_ row and cycles from a turn until it may be sent",
            [
                Column("S_SEND", firsts(map(len, sends))),
                Column("S_SENDS", tuple(map(len, sends))),
                Column("X_VECTOR", tuple(row for own in sends for row, _ in own)),
                Column("X_CYCLES", tuple(cycles for own in sends for _, cycles in own)),
                Column("V_TIMED", timed),
                Column("C_RATE", tuple(map(design.rate, range(len(design.cores)))), INTEGER),
                Column("C_SENDS", tuple(most), INTEGER),
                Column("C_HOMES", tuple(int(design.homes(core)) for core in range(len(design.cores))), INTEGER),
                Column(
                    "M_SENT",
                    tuple(int((plan.number, each.number) in sent) for plan in design.cores for each in plan.memories),
                    INTEGER,
                ),
            ],
        )
    ]


def _first_vectors(design: Design) -> Iterator[dict[WriteRow, int]]:
    """For each program the place of each of its vectors in V_."""
    place = 0
    for _, program in design.programs:
        writes = [write for segment in program.segments for write in segment.writes]
        yield {write: place + number for number, write in enumerate(writes)}
        place += len(writes)


def _job_core_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    # where a job may not run, all is 0
    rows = [row or JobRow(0, 0, (), ()) for plan in design.cores for row in design.job_rows(plan)]
    return columns(
        "JC",
        rows,
        "frame_start=FRAME frame_end=FRAME started initial=TURN",
        wide,
        started=lambda row: row.initial >= 0,
        initial=lambda row: max(0, row.initial),
    )


def _job_row_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    most = 1 << (_most_rows(design) - 1).bit_length()
    rows = [row for plan in design.cores for row in design.job_rows(plan)]

    def filled(name: str) -> tuple[int, ...]:
        every = (() if row is None else getattr(row, name) for row in rows)
        return tuple(max(0, each) for values in every for each in (*values, *(0,) * (most - len(values))))

    widths_of = {"x_start": "ELEMENT", "write_start": "ELEMENT", "h_start": "FRAME"}
    return [Column(f"JR_{name.upper()}", filled(f"{name}s"), wide[f"W_{bits}"]) for name, bits in widths_of.items()]


class _Await(NamedTuple):
    """What every block of a segment waits for."""

    stamp: int  # index in the thread's stamps
    own: bool  # whether the number of the waiting block is added to that index
    lag: int  # 1 if the value is of the step before: then blocks of step 0 do not wait
    cycles: int  # from the start of the giving block until the start of the waiting one
    first: int = -1  # row of block 0 among the rows of single blocks that say index and cycles instead; -1: none do


class _Awaits(NamedTuple):
    """What the segments of a program wait for."""

    stamps: list[int]  # for each segment the index of its block 0; -1: nobody waits for it
    rows: list[list[_Await]]  # for each segment its rows
    # rows (index, cycles) for single blocks, where row blocks of two segments are not the same units; 0 cycles: the
    # block waits for nothing
    blocks: list[tuple[int, int]]
    size: int  # of a thread's stamps


def _awaits(program: Program, tail_width: int) -> _Awaits:
    """Say what the blocks of a program wait for, and where the stamps are."""
    segments = program.segments
    given = {want.segment for each in segments for want in each.wants}
    stamps, count = [], 0
    for each in segments:
        stamps.append(count if each.number in given else -1)
        count += program.stages[each.stage_row].blocks if each.number in given else 0
    rows: list[list[_Await]] = []
    blocks: list[tuple[int, int]] = []
    for each in segments:
        rows.append([])
        for want in each.wants:
            here, there = program.stages[each.stage_row], program.stages[segments[want.segment].stage_row]
            row, more = _await(here, there, want, stamps[want.segment], len(blocks), tail_width)
            rows[-1] += [row] if row else []
            blocks += more
    return _Awaits(stamps, rows, blocks, count)


def _await(
    here: StageRow, there: StageRow, want: Want, stamp: int, first: int, tail_width: int
) -> tuple[_Await | None, list[tuple[int, int]]]:
    """A want as a row, perhaps with rows for single blocks; no row if the order of the blocks is enough."""
    if want.reduced:
        cycles = (there.last_units - 1) // tail_width + want.cycles
        return (_Await(stamp + there.blocks - 1, False, want.lag, cycles) if cycles > 0 else None), []
    if (here.units, here.unit_count) == (there.units, there.unit_count):
        return (_Await(stamp, True, want.lag, want.cycles) if want.cycles > 0 else None), []
    blocks = [_overlap(here, number, there, want.cycles, stamp, tail_width) for number in range(here.blocks)]
    if not any(cycles for _, cycles in blocks):
        return None, []
    return _Await(stamp, False, want.lag, 0, first), blocks


def _overlap(here: StageRow, number: int, there: StageRow, cycles: int, stamp: int, tail_width: int) -> tuple[int, int]:
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
            return stamp + block, delay
    return stamp, 0


def _results(segment: SegmentRow) -> int:
    """From a turn of the segment until all is there that the end of a job waits for."""
    return next((write.visible_cycles for write in segment.writes if write.slot == 0), 1)


def _tail_numbers(design: Design, awaited: Sequence[_Awaits]) -> list[tuple[str, int]]:
    """The plain numbers that only the tail reads."""
    results = (
        plan.core.latency.convert + _results(one) for plan, program in design.programs for one in program.segments
    )
    most = max(len(own) for each in awaited for own in each.rows)
    return [("MOST_AWAITS", most), ("W_DELAY", bits_of(max(results)))]


def _ages(plan: CorePlan) -> bool:
    """Whether the tail of a core compares ages: a segment waits for values, or a stage has several segments."""
    return any(each.index or each.wants for row in plan.stages for each in row.segments)


def _tail_tables(design: Design, awaited: Sequence[_Awaits]) -> list[Table]:
    """The tables that only the tail reads."""
    stamps = [stamp for each in awaited for stamp in each.stamps]
    counts = [len(own) for each in awaited for own in each.rows]
    rows = [
        (row, first)
        for each, first in zip(awaited, firsts(len(one.blocks) for one in awaited), strict=True)
        for own in each.rows
        for row in own
    ]
    segments = [segment for _, program in design.programs for segment in program.segments]
    singles = [each for one in awaited for each in one.blocks]
    places = {plan.number: 1 for plan in design.cores}
    visible: dict[tuple[int, int], int] = {}
    for (plan, program), each in zip(design.programs, awaited, strict=True):
        places[plan.number] = max(places[plan.number], each.size)
        # what a vector memory has is visible always as many cycles after a turn
        writes = (write for segment in program.segments for write in segment.writes)
        visible |= {(plan.number, write.memory): write.visible_cycles for write in writes}
    cycles = [visible.get((plan.number, memory.number), 1) for plan in design.cores for memory in plan.memories]
    return [
        (
            "S_: of each segment, cycles from a turn until its results are there; stamps of starts; rows in A_",
            [
                Column("S_RESULT_CYCLES", tuple(map(_results, segments))),
                Column("S_GIVES", tuple(int(stamp >= 0) for stamp in stamps)),
                Column("S_STAMP", tuple(max(0, stamp) for stamp in stamps)),
                Column("S_A", firsts(counts)),
                Column("S_AS", tuple(counts)),
            ],
        ),
        (
            "A_: starts of blocks that a segment's blocks wait for; O_: the same for single blocks",
            [
                *columns("A", [row for row, _ in rows], "stamp own lag cycles table", table=lambda row: row.first >= 0),
                Column("A_FIRST", tuple(first + max(0, row.first) for row, first in rows)),
                Column("O_STAMP", tuple(stamp for stamp, _ in singles)),
                Column("O_CYCLES", tuple(each for _, each in singles)),
            ],
        ),
        (
            "C_, M_: cores whose tail compares ages; cycles until a memory's vectors are visible",
            [
                Column("C_AGES", tuple(int(_ages(plan)) for plan in design.cores), INTEGER),
                Column("C_STAMPS", tuple(places.values()), INTEGER),
                Column("M_VISIBLE_CYCLES", tuple(cycles), INTEGER),
            ],
        ),
    ]
