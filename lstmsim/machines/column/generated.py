"""The column-wise NPU as generated hardware: what cannot be written as Verilog, and all files of a design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files

from lstmsim.base.errors import Mistake
from lstmsim.machines.column.hardware import table_part
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.rtl.board import board_files as board_files
from lstmsim.machines.column.rtl.board import path_words as path_words
from lstmsim.machines.column.rtl.board import schedule_mistakes as schedule_mistakes
from lstmsim.machines.column.rtl.events import events as events
from lstmsim.machines.column.rtl.events import never_done, never_seen_numbers
from lstmsim.machines.column.rtl.events import words as words
from lstmsim.machines.column.rtl.lanes.lanes_module import lane_files
from lstmsim.machines.column.rtl.layout import JOB_SPACE, headers, inlined, job_table, localparams, number_text
from lstmsim.machines.column.rtl.nest import begins, job_bits
from lstmsim.machines.column.rtl.picking import data_header, pick_modules
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.planning import design as design
from lstmsim.machines.column.rtl.readme import memory_rows, number_rows, readme
from lstmsim.machines.column.rtl.tables import config
from lstmsim.machines.column.rtl.words import (
    constants,
    frames,
    hex_text,
    passes_of,
    shifts_of,
    stream_text,
    too_large,
    weights,
)
from lstmsim.machines.column.subset import outside
from lstmsim.machines.hardware import Stored
from lstmsim.machines.rtl import Event
from lstmsim.model.model import Precision
from lstmsim.model.numerics.jobs import JobNumbers, Values
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

TOP, TESTBENCH, TIMING_DEFINE, NETLIST_DEFINE = "npu_top", "npu_tb", "NPU_TIMING_ONLY", "NPU_NETLIST"
#: Instance in the Verilog text -> the part as which its cells are counted.
PARTS = {
    "array": "array",
    "adapter": "adapter",
    "pick": "adapter",
    "constant_memory": "adapter",
    "weight_memory": "weights",
    "frame_memory": "frames",
    "datapath": "vectors",
    "lanes": "lanes",
    "issue": "issue",
    "tail": "tail control",
    "dispatch": "dispatch",
    "jobs": "table of jobs",
}
#: File -> the part of its registers: their signals have as many names as modules read them, so no name says whose.
REGISTERS = {"npu_jobs.v": PARTS["jobs"]}


def written_files(
    design: Design, numbers: Mapping[int, JobNumbers], version: str, deep: bool = False
) -> dict[str, str]:
    """Give the files by path; of `npu_config.vh` the part that depends on numbers."""
    passes = passes_of(design, numbers)
    shifts, (lanes, writes) = shifts_of(design, passes), lane_files(design, numbers, passes, deep)
    return {
        "README.md": readme(design, version, memory_rows(design, passes, shifts), number_rows(design, passes)),
        "rtl/npu_config.vh": data_header(design, shifts),
        "rtl/npu_pick.v": pick_modules(design, shifts),
        **lanes,
        "data/weights.hex": hex_text(weights(design, passes)),
        "data/frames.hex": hex_text(frames(design, passes, numbers)),
        **({"data/stream.hex": stream_text(design, passes)} if design.memory is not None else {}),
        "data/constants.hex": hex_text(constants(design, passes, shifts)),
        **{f"data/{space}.hex": hex_text(own) for space, own in writes.items()},
    }


#: Latency, the least with which block memories can be used, and for what.
_ASYNCHRONOUS = (
    ("read", 1, "weights, frames and vectors are"),
    ("convert", 1, "constants of the adapters are"),
    ("activation", 2, "activation tables are"),
)


def refusals(scenario: Scenario, precision: Precision | None) -> list[Mistake]:
    """Why a scenario is outside the subset, each with its key; empty if it is inside."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    mistakes = outside(chip, scenario.jobs)
    return mistakes if mistakes or precision is None else too_large(design(scenario, precision))


def table_mistakes(design: Design) -> list[Mistake]:
    """Why the jobs of a design cannot be a table that the host writes, or do not fit it."""
    assert design.capacity is not None
    most, steps = design.capacity
    mistakes = []
    if design.split:
        mistakes.append(Mistake("jobs", "split over cores: their members are no table yet; leave out most_jobs"))
    if len(design.queues) > 1:
        mistakes.append(Mistake("jobs", "run on different cores: their queues are no table yet; leave out most_jobs"))
    if design.memory is not None:
        mistakes.append(Mistake("chip.memory", "jobs of streamed weights are no table yet; leave out most_jobs"))
    if any(row is not None and row.initial >= 0 for plan in design.cores for row in plan.jobs):
        mistakes.append(Mistake("jobs", "bring initial states, which are no table yet; leave out most_jobs"))
    if len(design.jobs) > most:
        mistakes.append(Mistake("jobs", f"{len(design.jobs)} jobs do not fit a table of {most}"))
    text = "steps do not fit a table of jobs of up to"
    mistakes += [
        Mistake(f"jobs.{job.index}.steps", f"{job.steps} {text} {steps}") for job in design.jobs if job.steps > steps
    ]
    # the frames of the jobs at hand are few, those of a full table may be too many
    text = f"with frames of {most:,} jobs of {steps:,} steps,"
    return [*mistakes, *(Mistake("most_jobs", f"{text} {each.sentence}") for each in too_large(design))]


def table_needs(design: Design) -> Stored:
    """What jobs need as a table that the host writes, with the frames of a full table in the chip's memories."""
    assert design.capacity is not None
    most, steps = design.capacity
    chip, core = job_bits(design)
    rows = ((program.model, row) for _, program in design.programs for row in program.stages)
    read = {model: each.elements for model, row in rows for each in row.reads if each.source == "frame"}
    # each place of the table has room for the longest job of the widest frames
    frames = {design.models[max(read, key=lambda each: read[each])]: most * steps} if read else {}
    registers = most * (chip + core * len(design.cores))
    kept = dict.fromkeys(design.models, steps)
    return Stored(kept, frames, most, row_bits=chip + core, parts=(table_part(PARTS["jobs"], registers),))


def synthesis_remarks(design: Design) -> tuple[str, ...]:
    """Multipliers that no row block takes; latencies with which memories are of logic and not of blocks."""
    remarks = []
    if design.split:
        text = "queues and memories of the links between cores are built, and lstmsim fit does not count them"
        remarks.append(f"chip.exchange: {text}")
    for plan in design.cores:
        built = plan.rows * plan.core.ep
        if built < plan.core.npe:
            text = f"{built} multipliers are built, because no row block takes more; lstmsim fit counts all"
            remarks.append(f"chip.cores.{plan.number}.npe {plan.core.npe}: {text}")
        for key, least, what in _ASYNCHRONOUS:
            cycles = getattr(plan.core.latency, key)
            if cycles < least:
                path = f"chip.cores.{plan.number}.latency.{key}"
                remarks.append(f"{path} {cycles}: {what} read without a register, so no block memory takes them")
    return tuple(remarks)


def posted(design: Design) -> tuple[int, ...]:
    """The jobs in posting order, by their indices in the scenario."""
    return tuple(job.index for job in design.jobs)


def files(
    design: Design, numbers: Mapping[int, JobNumbers] | None, version: str, deep: bool = False
) -> Mapping[str, str]:
    """The files of a design by path."""
    fixed, sizes = _fixed(), config(design)
    words = fixed.pop("rtl/npu_words.vh")
    known = localparams(sizes + words + begins(design))
    if numbers is None:
        # control alone is not what anybody synthesizes
        del fixed["sim/synth.ys"]
        own = {"README.md": readme(design, version, None)}
    else:
        own = written_files(design, numbers, version, deep)
        sizes += own.pop("rtl/npu_config.vh")
        known |= localparams(sizes)
        own |= {path: inlined(own[path], known) for path in ("rtl/npu_pick.v", "rtl/npu_tail_lane.v")}
    table = design.capacity is not None
    if table:
        # only the testbench knows how many the host posts
        known |= localparams(number_text([("POSTED", design.job_places)]))
    known, number, count = job_table(known, table)
    if table:
        entries = ((JOB_SPACE << 28 | at, number >> 32 * at & _WORD) for at in range(count))
        own["data/jobs.hex"] = hex_text(entries)
    return {**fixed, **headers(fixed, known), "rtl/npu_config.vh": sizes, **own}


_WORD = (1 << 32) - 1


def unexercised(
    design: Design,
    program: Program,
    trace: Trace,
    events: Sequence[Event],
    numbers: Mapping[int, JobNumbers] | None,
    values: Mapping[int, Values] | None,
) -> tuple[str, ...]:
    """What a run never did, of its control and of its numbers."""
    seen = () if numbers is None else never_seen_numbers(numbers, values)
    return (*never_done(design, program, trace, events), *seen)


def _fixed() -> dict[str, str]:
    """The files that are the same for every design."""
    folder = package_files("lstmsim.machines.column.rtl") / "verilog"
    modules = {f"rtl/{each.name}": each for each in folder.iterdir() if each.name.endswith((".v", ".vh"))}
    ends = (".v", ".sh", ".vlt", ".ys")
    bench = {f"sim/{each.name}": each for each in (folder / "sim").iterdir() if each.name.endswith(ends)}
    return {path: each.read_text(encoding="utf-8") for path, each in sorted({**modules, **bench}.items())}
