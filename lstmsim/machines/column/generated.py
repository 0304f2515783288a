"""The column-wise NPU as generated hardware: what cannot be written as Verilog, and all files of a design."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files as package_files

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.plan import Plan
from lstmsim.machines.column.rtl.events import events as events
from lstmsim.machines.column.rtl.events import never_done, never_seen_numbers
from lstmsim.machines.column.rtl.events import words as words
from lstmsim.machines.column.rtl.lanes.lanes_module import lane_files
from lstmsim.machines.column.rtl.layout import headers, inlined, localparams
from lstmsim.machines.column.rtl.nest import begins
from lstmsim.machines.column.rtl.picking import data_header, pick_modules
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.planning import design as design
from lstmsim.machines.column.rtl.readme import memory_rows, number_rows, readme
from lstmsim.machines.column.rtl.tables import config
from lstmsim.machines.column.rtl.words import constants, frames, hex_text, passes_of, shifts_of, too_large, weights
from lstmsim.machines.rtl import Event
from lstmsim.model.model import Precision
from lstmsim.model.numerics.jobs import JobNumbers, Values
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

TOP, TESTBENCH, TIMING_DEFINE = "npu_top", "npu_tb", "NPU_TIMING_ONLY"
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
}

_HOST = "the queue of the hardware is in posting order; a host that sorts jobs before it posts them can do the same"

#: Key of a job -> whether the job has it, and why it is refused.
_OF_JOBS: dict[str, tuple[Callable[[Job], bool], str]] = {
    "split": (lambda job: bool(job.split), "must be left out: the exchange between cores is not written as Verilog"),
    "dispatch": (lambda job: job.dispatch != "fcfs", f"must be 'fcfs': {_HOST}"),
    "preemption": (lambda job: job.preempts, "must be false: a job keeps its context until it ends"),
    "queue_limit": (lambda job: job.queue_limit is not None, "must be left out: jobs are not rejected"),
    "patience": (lambda job: job.patience is not None, "must be left out: jobs are not rejected"),
    "initial": (
        lambda job: job.states_of is not None,
        "must not name a job: states begin with what a host has written before, and a job comes at a known cycle",
    ),
    "arrival": (
        lambda job: job.after is not None and job.states_of is None,
        "must not follow other jobs: a job comes at a cycle that is known beforehand",
    ),
}


def _of_jobs(scenario: Scenario, chip: ColumnNpu) -> Iterator[Mistake]:
    """Refuse keys of jobs, each key once: a scenario may have thousands of jobs."""
    for key, (has, text) in _OF_JOBS.items():
        names = [job.name for job in scenario.jobs if has(job.settled(len(chip.cores)))]
        if names:
            more = f" (as for {len(names) - 1:,} more)" if len(names) > 1 else ""
            yield Mistake(f"job {names[0]}: {key}", text + more)


def _of_cores(chip: ColumnNpu) -> Iterator[Mistake]:
    for number, core in enumerate(chip.cores):
        if core.tree_inputs not in (None, core.ep) and core.latency.add != 1:
            text = f"must be 1 where a configurable tail adds up in its tree, got {core.latency.add}"
            yield Mistake(f"chip {chip.name}: cores.{number}.latency.add", text)


def _of_weights(scenario: Scenario, chip: ColumnNpu) -> Iterator[Mistake]:
    """Refuse contents that take turns, are streamed, or lie on some cores only."""
    try:
        tight = Plan(chip, scenario.jobs).tight
    except InputError as error:
        yield from error.mistakes
        return
    if tight:
        key = "weight_kib" if chip.memory is None else "memory"
        text = "the weights of all models must fit on every core that their jobs may use; they stay there"
        yield Mistake(f"chip {chip.name}: {key}", text)


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
    mistakes = [*_of_jobs(scenario, chip), *_of_cores(chip)] or list(_of_weights(scenario, chip))
    return mistakes if mistakes or precision is None else too_large(design(scenario, precision))


def synthesis_remarks(design: Design) -> tuple[str, ...]:
    """Multipliers that no row block takes; latencies with which memories are of logic and not of blocks."""
    remarks = []
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
        own = {"README.md": readme(design, version, None)}
    else:
        own = written_files(design, numbers, version, deep)
        sizes += own.pop("rtl/npu_config.vh")
        known |= localparams(sizes)
        own |= {path: inlined(own[path], known) for path in ("rtl/npu_pick.v", "rtl/npu_tail_lane.v")}
    return {**fixed, **headers(fixed, known), "rtl/npu_config.vh": sizes, **own}


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
    bench = {f"sim/{each.name}": each for each in (folder / "sim").iterdir() if each.name.endswith((".v", ".sh"))}
    return {path: each.read_text(encoding="utf-8") for path, each in sorted({**modules, **bench}.items())}
