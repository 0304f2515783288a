"""`npu_config.vh`: the sizes of a design, the widths of its signals, and its control store."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.machines.column.rtl.layout import INTEGER, Column, bits_of, column_text, number_text
from lstmsim.machines.column.rtl.plan import Design, Program
from lstmsim.machines.column.rtl.row_tables import Table, columns, firsts, program_tables
from lstmsim.machines.column.rtl.rows import JobRow
from lstmsim.machines.column.rtl.tail_tables import tail_numbers, tail_tables
from lstmsim.machines.column.rtl.widths import depth_of, programs_of, stages_of, widths

__all__ = ["config"]

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
        "M",
        memories,
        slot=(INTEGER, lambda memory: memory.slot),
        elements=(INTEGER, lambda memory: memory.elements),
    )


def _program_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    programs: list[Program | None] = [program for plan in design.cores for program in plan.programs]
    made = columns(
        "G",
        programs,
        interleaved=(1, lambda one: 0 if one is None else int(one.interleaved)),
    )
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
