"""README.md of a design: how to run it, ports, memory maps, clock edges with its numbers, programs, what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lstmsim.base.wording import markdown
from lstmsim.machines.column.rtl.lanes.lane import CoreLanes, Pass, bits_of
from lstmsim.machines.column.rtl.lanes.lanes_module import SPACES
from lstmsim.machines.column.rtl.layout import depth_of, widths
from lstmsim.machines.column.rtl.picking import Shifts
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Kind, StageRow
from lstmsim.machines.column.rtl.words import parts_of, word_bits
from lstmsim.model.cell import Stage
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import VectorFormat

#: What `memory_rows` tells of a memory.
MEMORY_COLUMNS = ("core", "space", "memory", "words", "bits of a word", "what a word is, and where it lies")

#: What `number_rows` tells of a row.
NUMBER_COLUMNS = ("row", "1 of a frame's element stands for", "1 of h stands for")

#: Space, name, words, bits, meaning.
_Row = tuple[int, int, str, int, int, str]


def memory_rows(design: Design, passes: Mapping[Pass, FixedArithmetic], shifts: Shifts) -> list[_Row]:
    """Tell of each memory that the host fills what `MEMORY_COLUMNS` names."""
    rows: list[_Row] = []
    for plan in design.cores:
        if plan.kinds:
            rows += _of_words(design, plan, shifts)
            rows += _of_lanes(plan, CoreLanes.of(plan, passes, design.precision))
    return rows


def _of_words(design: Design, plan: CorePlan, shifts: Shifts) -> Iterator[_Row]:
    """Weights, frames, constants."""
    bits, precision = word_bits(design, plan, shifts), design.precision
    rows, ep, width, sums = plan.rows, plan.core.ep, plan.core.tail_width, plan.sums
    shift = "" if shifts.rows else f"shift {'-' if shifts.left < 0 else '+'} {abs(shifts.left)} ({shifts.bits}), "
    entry = f"factor ({precision.multiplier_bits}), {shift}bias (32)"
    order = "row blocks, column groups" if plan.core.block_order == "row" else "column groups, row blocks"
    tile = f"a tile, in the order of issue (models' rows, {order}): {rows} rows (unit * gates + gate) of {ep} weights"
    gates = _by_stage(plan, lambda stage: [each.name for each in stage.gates])
    names = _by_stage(plan, lambda stage: [each.name for each in stage.sums])
    turn = f"a turn: for each of {width} lanes {sums} sums of {entry}; sums {names}"
    reported = {
        "weights": (plan.weight_words, f"{tile}; gates {gates}"),
        "frames": (plan.frame_words, f"a column group: {ep} elements; {_frame_place(plan)}"),
        "constants": (plan.constant_words, turn),
    }
    for name, (words, text) in reported.items():
        parts = parts_of(bits[name])
        where = "" if parts == 1 else f"; {parts} places a word"
        yield plan.number, SPACES[name], name, words, bits[name], text + where


def _frame_place(plan: CorePlan) -> str:
    """Where a frame lies, and h before the first step."""
    place = "frame t of a job from its first frame word (below) + t * ceil(inputs / ep) on"
    if any(start >= 0 for row in plan.jobs if row is not None for start in row.h_starts):
        place += "; h before step 0 at JR_H_START of `npu_config.vh`"
    return place


def _by_stage(plan: CorePlan, names: Callable[[Stage], list[str]]) -> str:
    """Names in each stage of each kind of cell."""
    stages = [(kind.cell, number, stage) for kind in plan.kinds for number, stage in enumerate(kind.cell.stages)]
    reported = (
        f"of {markdown(cell.name)}{f' stage {number}' if len(cell.stages) > 1 else ''}: {' '.join(names(stage))}"
        for cell, number, stage in stages
    )
    return ", ".join(reported)


def number_rows(design: Design, passes: Mapping[Pass, FixedArithmetic]) -> list[tuple[object, ...]]:
    """Tell of each row of the models that writes h what `NUMBER_COLUMNS` names."""
    rows: list[tuple[object, ...]] = []
    models = [program.model for _, program in design.programs for _ in program.stages]
    for number, (row, model) in enumerate(zip(design.rows, models, strict=True)):
        own = passes[model, row.layer, row.direction]
        if any(write.slot == 0 for segment in row.segments for write in segment.writes):
            h = own.formats[own.layer.cell.output]
            assert isinstance(h, VectorFormat)
            rows.append((number, float(own.x.scale) if row.layer == 0 else "-", float(h.scale)))
    return rows


def _of_lanes(plan: CorePlan, lanes: CoreLanes) -> Iterator[_Row]:
    """Tables, parameters, states before the first step; each number is written alone."""
    names = {number: markdown(kind.cell.name) for number, kind in enumerate(plan.kinds)}
    low = {"parameters": bits_of(len(lanes.parameters)), "initial": bits_of(len(lanes.states))}
    if lanes.tables:
        count = 1 << lanes.cell_bits
        what = ", ".join(f"{number} {node} of {names[kind]}" for number, (kind, node) in enumerate(lanes.tables))
        entry = lanes.cell_bits + lanes.part_bits
        place = f"((table << {lanes.table_bits}) + number << {entry}) + (entry << {lanes.part_bits}) + part"
        rise = ", and above it the rise to the next one" if lanes.precision.activation == "linear" else ""
        text = f"an entry of a table{rise}, at `{place}`; tables: {what}"
        yield plan.number, SPACES["tables"], "tables", len(lanes.tables) * count, lanes.word_bits, text
    for name, held in (("parameters", lanes.parameters), ("initial", lanes.states)):
        words = plan.initial_words if name == "initial" else plan.turns
        if held and words:
            what = ", ".join(
                f"{number} {value} of {names[kind]}, stage {stage}" for number, (kind, value, stage) in enumerate(held)
            )
            turn = "turn" if name == "parameters" else "turn + JC_INITIAL of the job"
            place = f"(({turn} << {lanes.lane_bits}) + lane << {low[name]}) + number"
            text = f"a number of a unit, at `{place}`; numbers: {what}"
            yield plan.number, SPACES[name], name, words * plan.core.tail_width * len(held), 32, text


_RUN = """\
`sh sim/run.sh` simulates it with Icarus Verilog, writes `events.txt` and says `equal` if the hardware does in every
cycle what lstmsim says, else the lines of `diff golden/events.txt events.txt`. Section 10 of docs/rtl.md of lstmsim
describes modules and signals."""

_TIMING = """\
This design has no numbers: `sh sim/run.sh` simulates its control alone. `lstmsim rtl` without `--timing-only` adds
memories, array and lanes."""

_FILES = """\
Files: `rtl/` is the hardware (top: `npu_top`), `sim/` a host that loads it and logs what it does, `data/` what the host
writes into its memories, `golden/events.txt` what lstmsim says."""


def readme(
    design: Design, version: str, memories: Sequence[Sequence[object]] | None, numbers: Sequence[Sequence[object]] = ()
) -> str:
    """Give the text of `README.md`."""
    parts = [
        f"# {markdown(design.name)}: a column-wise NPU in Verilog",
        f"Written by lstmsim {version}.",
        _FILES,
        _TIMING if memories is None else _RUN,
        "## Cores",
        _table(
            ("core", *_CORE_KEYS, "rows built"),
            ([plan.number, *(getattr(plan.core, key) for key in _CORE_KEYS), plan.rows] for plan in design.cores),
        ),
        "Latencies in cycles:",
        _table(
            ("core", *vars(design.cores[0].core.latency)),
            ([plan.number, *vars(plan.core.latency).values()] for plan in design.cores),
        ),
        "## Ports of `npu_top`",
        "One clock, rising edge; `reset` is synchronous, and high in the cycle before cycle 0.",
        _table(("port", "bits", "meaning"), _ports(design)),
        "## What a host does",
        _HOST,
        "## Memory maps",
        _MAP,
        *([] if memories is None else [_table(MEMORY_COLUMNS, memories)]),
        "## Clock edges",
        "Cycle s is the cycle between two rising edges; docs/timing.md of lstmsim says what happens in it.",
        _table(("docs/timing.md", "here", *(f"core {plan.number}" for plan in design.cores)), _edges(design)),
        "## Models",
        *_models(design),
        *(() if memories is None else (_NUMBERS, _table(NUMBER_COLUMNS, numbers))),
        "## Jobs in posting order",
        _table(_JOB_COLUMNS, _jobs(design)),
        "## What is assumed",
        _ASSUMED,
    ]
    return "\n\n".join(parts) + "\n"


_CORE_KEYS = ("ep", "vp", "threads", "tail_width", "accumulator_banks", "thread_policy", "switch_cycles", "block_order")

_MAP = """\
`host_write` puts `host_data` at `host_address`: bits 31..28 are the space, 27..24 the core (15: all cores), 23..0 the
place inside. A word of more than 32 bits is written in parts, the lowest one first. Its place is its address times the
number of its parts (rounded up to a power of two), plus the part. What is written in a cycle is there in the next one.
The control store (sizes, rows of models, jobs) is in `rtl/npu_config.vh`, not on the bus. With `--most-jobs` what the
design knows of jobs is on the bus: space 7, the words of `data/jobs.hex`, all of them before a job is posted."""

_HOST = """\
* It writes the memories by the bus, during the reset or later. A line of `data/*.hex` is such a write: address and
  data, in hexadecimal. Weights and frames are in their memories before their job reads them.
* It counts `jobs_posted` up: the jobs of the table below, in its order, at any cycles. It counts the frames of each
  job, in any order among jobs. Both only rise. For each context (lowest first) the chip names a job in `frames_job`,
  and the host gives in the same cycle the count of this job in `frames_posted`: a choice without a register.
* It takes h from the outputs `h_...`, which it cannot hold up. A bit of `jobs_ended` is high in the cycle in which a
  job has finished in this context; `ended_job` says which.
* Each job runs once. A reset of one cycle, with both counts at 0, begins anew, also in the middle of a run; the
  memories keep what was written. So a host with further input writes frames into the same places and posts the jobs
  again."""

_NUMBERS = """\
Elements of frames and of h are whole numbers in two's complement, of b bits from -(2^(b-1) - 1) to 2^(b-1) - 1. A real
number is divided by what 1 stands for, and rounded half to even (docs/numerics.md of lstmsim has all formats):"""

_ASSUMED = """\
* Frames of all jobs have a place in the frame memories of every core on which the job may run.
* Memories answer within their latency. Block memories with an output register need `read` of at least 2, and the
  rotator of the vector memories one more. A latency of 0 is a memory that answers in the same cycle.
* Nothing is said about the clock that can be reached: registers are spread inside operations, but no tool has placed
  this design."""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [list(head), ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_JOB_COLUMNS = ("job", "name", "model", "steps", "arrival", "frame interval", "cores", "first frame word, by core")


def _jobs(design: Design) -> Iterator[Sequence[object]]:
    for number, job in enumerate(design.jobs):
        first = [row.frame_start for plan in design.cores if (row := plan.jobs[number]) is not None]
        name = job.name
        if number >= design.posted:
            name += f", member {job.member} of job {job.parent} on {job.members} cores (not posted)"
        names = [number, markdown(name), markdown(design.models[job.model])]
        cores = " ".join(map(str, job.cores))
        yield [*names, job.steps, job.arrival, job.frame_interval, cores, " ".join(map(str, first))]


def _ports(design: Design) -> Iterator[Sequence[object]]:
    """The ports of the top module."""
    wide = widths(design)
    contexts = len(design.cores) << wide["W_THREAD"]
    memories = sum(len(plan.memories) for plan in design.cores)
    most = max(plan.core.tail_width for plan in design.cores) * design.precision.vector_bits
    yield "`clock`, `reset`", "1, 1", "inputs"
    yield "`jobs_posted`", wide["W_JOBS"], "input: how many jobs the host has posted; a job is there in the next cycle"
    yield "`frames_job`", f"{contexts} x {wide['W_JOB']}", "output: the job that has a context in the next cycle"
    frames = "input: how many frames of that job are there from the next cycle on"
    yield "`frames_posted`", f"{contexts} x {wide['W_STEP']}", frames
    yield "`host_write`, `host_address`, `host_data`", "1, 32, 32", "inputs: the host's bus, a word a cycle"
    yield "`jobs_ended`", contexts, "output: by context, whether a job has finished there in this cycle"
    yield "`ended_job`", f"{contexts} x {wide['W_JOB']}", "output: which job that is"
    yield "`jobs_admitted`", contexts, "output: by context, whether a job may issue from this cycle on"
    yield "`admitted_job`", f"{contexts} x {wide['W_JOB']}", "output: which job that is"
    valid = "output: for each vector memory of all cores whether some of an h is there in the next cycle"
    yield "`h_valid`", memories, valid
    yield "`h_job`", f"{memories} x {wide['W_JOB']}", "output: of which job"
    row = "output: of which row of all models' tables below, one after another"
    yield "`h_row`", f"{memories} x {wide['W_ROW']}", row
    yield "`h_step`", f"{memories} x {wide['W_STEP']}", "output: of which step, in the order of computing"
    yield "`h_unit`, `h_count`", f"{memories} x {wide['W_UNIT']} each", "outputs: which units: first and how many"
    word = f"output: the units, {design.precision.vector_bits} bits each, the first one lowest"
    yield "`h_word`", f"{memories} x {most}", word


def _edges(design: Design) -> Iterator[Sequence[object]]:
    """The table of section 4 of docs/rtl.md with this design's numbers."""

    latencies = [plan.core.latency for plan in design.cores]
    sums = [plan.core.latency.mvm_cycles(plan.core.ep) for plan in design.cores]
    queued = [mvm - latency.convert for mvm, latency in zip(sums, latencies, strict=True)]
    same = [1] * len(latencies)
    yield "a tile issues at s", "operands' addresses are out in cycle s", *("s" for _ in same)
    yield "its products", "are added up at the end of this cycle", *(f"s + {each - 1}" for each in queued)
    yield (
        "its block, if the tile is the last one,",
        "reaches the tail's queue in",
        *(f"s + {each}" for each in queued),
    )
    yield "sums reach the tail", "the first turn's sums have passed the adapter", *(f"s + {each}" for each in sums)
    yield "a block starts in the tail at b", "its turn 0 is chosen in", *(f"b - {each.convert}" for each in latencies)
    yield "a bank is free from b + turns", "the credit goes up at the end of", *("b + turns - 1" for _ in same)
    yield "a unit is visible", "written at the end of the cycle before", *map(_visible, design.cores)
    yield "the delay line of turns", "entries behind the first", *map(depth_of, design.cores)
    yield "a job finishes at f", "its context is taken anew at the end of", *("f - 1" for _ in same)


def _visible(plan: CorePlan) -> str:
    """For each vector of each kind of cell when it is visible."""
    writes = {
        (row.kind, write.slot): write for row in plan.stages for segment in row.segments for write in segment.writes
    }
    names = [markdown(kind.cell.name) for kind in plan.kinds]
    reported = (
        f"{name} {'h' if slot == 0 else node}: its turn + {writes[kind.number, slot].visible_cycles}"
        for name, kind in zip(names, plan.kinds, strict=True)
        for slot, node in enumerate(kind.outputs)
    )
    return "; ".join(reported) or "nothing runs here"


def _models(design: Design) -> Iterator[str]:
    """The rows of all models on all cores, in the order of their numbers."""
    first = 0
    for plan, program in design.programs:
        order = "steps of all rows in turn" if program.interleaved else "all steps of a pass, then the next pass"
        yield f"{markdown(design.models[program.model])} on core {plan.number} ({order}):"
        yield _table(_ROW_COLUMNS, [_row_cells(row, plan.kinds[row.kind], first) for row in program.stages])
        first += len(program.stages)


_ROW_COLUMNS = (
    *("row", "pass", "layer", "direction", "stage", "cell"),
    *("row blocks", "units a block", "tiles a step", "reads"),
)


def _row_cells(row: StageRow, kind: Kind, first: int) -> list[object]:
    way = "backward" if row.backward else "forward"
    reads = ", ".join(f"{read.vector} ({read.elements})" for read in row.reads)
    units = row.units if row.units == row.last_units else f"{row.units}, last {row.last_units}"
    where = [first + row.number, row.number, row.layer, way, row.stage, markdown(kind.cell.name)]
    return [*where, row.blocks, units, row.tiles, reads]
