"""The machines and the settings in which they run the DeepBench tasks: what is simulated, before any words about it.

The settings are one inference, a batch, equal peak, and room on the FPGA of another machine (`room.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial

from experiments.deepbench.room import Placed, Tried, all_tried, fastest, placed
from lstmsim import ColumnCore, ColumnNpu, Latency, load_scenario
from lstmsim.files.published import deepbench, hardware
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.row.npu import RowNpu
from lstmsim.model.scenario import Scenario
from lstmsim.studies.compare.result import Comparison, Entry, Machine, geometric_mean
from lstmsim.studies.compare.run import compared as compare
from lstmsim.studies.fit.device import device, device_of
from lstmsim.studies.search.array import limits_of, widest_vp
from lstmsim.studies.search.run import search

COLUMN, BRAINWAVE, INTEL = "column-npu-64k", "brainwave-s10", "intel-npu-rtl"
#: The published machine that the preset `BRAINWAVE` stands for, and all published ones.
BW_S10 = "Brainwave BW_S10"
DESIGNS = (BW_S10, "Plasticine", "Tesla V100")
#: Its published peak is of the operations that its published TOPS count; V100's is of wider ones.
WITH_PEAK = "Plasticine"
#: What the names of the models have beside those of the tasks.
PREFIX = "deepbench-"
SMALL = ("lstm-256-150", "lstm-2048-25", "gru-2816-750")
#: The tasks among these that are quick where weights have to be streamed.
SMALL_ROOM = ("lstm-256-150", "lstm-2048-25")


@dataclass(frozen=True)
class Scaled:
    """The column-wise NPU with the multipliers and the clock of another machine.

    shapes: (EP, VP) of each task as the greedy search chooses them.
    common_ep: the one EP that is best for all tasks.
    at_common_ep: how many times as long each task takes with that EP.
    with_double_latency: how many times as fast as the other machine the NPU is (geometric mean) with pipelines twice as
    deep.
    """

    comparison: Comparison
    inferences: int
    threads: int
    shapes: tuple[tuple[int, int], ...]
    common_ep: int
    at_common_ep: tuple[float, ...]
    with_double_latency: float


@dataclass(frozen=True)
class Results:
    """The same tasks in four settings.

    single: one inference each.
    batched: a batch of the Intel NPU each.
    scaled: the NPU with the peak of each other machine.
    roomy: the fastest of the chips that were tried on Brainwave's FPGA.
    places, tried: what those chips did.
    """

    single: Comparison
    batched: Comparison
    scaled: tuple[Scaled, ...]
    roomy: Comparison
    places: tuple[Placed, ...]
    tried: tuple[Tried, ...]


def tasks(small: bool = False) -> tuple[str, ...]:
    """Give the tasks in the order of the published table; `small`: three of these tasks."""
    every = tuple(row.task for row in deepbench() if row.design == BW_S10)
    return tuple(each for each in every if each in SMALL) if small else every


@cache
def scenario(names: tuple[str, ...], count: int = 1) -> Scenario:
    """`count` inferences of each of these tasks, all there at cycle 0."""
    return load_scenario({"chip": COLUMN, "jobs": [{"model": PREFIX + each, "count": count} for each in names]})


def intel_npu() -> RowNpu:
    """The Intel NPU."""
    chip = load_chip(INTEL)
    assert isinstance(chip, RowNpu)
    return chip


def time_of(entry: Entry) -> float:
    """Give the milliseconds of a workload that was run."""
    assert entry.ms is not None
    return entry.ms


def batched(names: Sequence[str]) -> Comparison:
    """Compare batches: the Intel NPU runs the inferences as one batch, the column-wise NPU as jobs of their own."""
    chip, batch = intel_npu(), intel_npu().cores[0].batch
    parts = []
    for name in names:
        many = scenario((name,), batch)
        one = replace(many, jobs=(replace(many.jobs[0], batch=batch),))
        parts.append((compare(many, [many.chip]), compare(one, [chip])))
    return replace(
        parts[0][0],
        each=True,
        machines=parts[0][0].machines + parts[0][1].machines,
        workloads=tuple(replace(own.workloads[0], name=name) for name, (own, _) in zip(names, parts, strict=True)),
        entries=tuple(own.entries[0] + other.entries[0] for own, other in parts),
    )


def column_core() -> ColumnCore:
    """The core of the column-wise preset."""
    preset = scenario(SMALL).chip
    assert isinstance(preset, ColumnNpu)
    return preset.cores[0]


def column_chip(
    machine: Machine, ep: int, vp: int, threads: int, latency: int = 1, tail_width: int | None = None
) -> ColumnNpu:
    """Build the column-wise preset with a machine's multipliers and clock, and adder trees for the EP.

    latency: how many times as deep the pipelines are.
    tail_width: of another tail; None: the preset's.
    """
    assert machine.pes is not None
    assert machine.frequency_mhz is not None
    depths = Latency(**{key: latency * value for key, value in asdict(column_core().latency).items() if value})
    core = replace(column_core(), threads=threads, tree_inputs=None, cat=1, latency=depths)
    core = replace(core, npe=machine.pes, ep=ep, vp=vp, tail_width=tail_width or core.tail_width)
    return ColumnNpu(f"column-wise, {machine.pes:,} PEs", machine.frequency_mhz, (core,))


def at_peak_of(base: Comparison, names: Sequence[str], column: int, inferences: int) -> Scaled:
    """Compare with another first machine: the column-wise NPU of the size and clock of machine `column`.

    That machine and its published figures stand beside it. One inference at a time has no use for a second thread.
    """
    rival = base.machines[column]
    assert rival.pes is not None
    threads = 1 if inferences == 1 else column_core().threads
    jobs = [scenario((name,), inferences) for name in names]

    def entry(row: int, ep: int, latency: int = 1) -> Entry:
        vp, _ = widest_vp(limits_of([jobs[row].jobs[0].model]), rival.pes or 0, ep)
        return compare(jobs[row], [column_chip(rival, ep, vp, threads, latency)]).entries[0][0]

    chip = column_chip(rival, 1, 4, threads)
    walks = [search(replace(each, chip=chip), rival.pes).common.walk for each in jobs]
    shapes = tuple((walk.chosen.ep, walk.chosen.vp) for walk in walks)
    own = [entry(row, ep) for row, (ep, _) in enumerate(shapes)]
    ratios = {
        ep: tuple(time_of(entry(row, ep)) / time_of(each) for row, each in enumerate(own))
        for ep in sorted({point.ep for walk in walks for point in walk.path})
    }
    common = min(ratios, key=lambda ep: geometric_mean(list(ratios[ep])) or 0.0)
    beside = [column, *(at for at, each in enumerate(base.machines) if (rival.name, each.name) == (BRAINWAVE, BW_S10))]
    slow = [time_of(entry(row, ep, latency=2)) for row, (ep, _) in enumerate(shapes)]
    faster = [time_of(base.entries[row][column]) / ms for row, ms in enumerate(slow)]
    comparison = replace(
        base,
        machines=(replace(rival, name=chip.name, stands_for=""), *(base.machines[at] for at in beside)),
        entries=tuple((each, *(base.entries[row][at] for at in beside)) for row, each in enumerate(own)),
    )
    return Scaled(comparison, inferences, threads, shapes, common, ratios[common], geometric_mean(faster) or 0.0)


def with_peak(comparison: Comparison) -> Comparison:
    """Add the published peak of the design that prints no multipliers, and its utilization: TOPS of peak TOPS."""
    (column,) = (at for at, each in enumerate(comparison.machines) if each.name == WITH_PEAK)
    most = next(row.peak_tops for row in hardware() if row.design == WITH_PEAK) or 0.0
    machines, entries = list(comparison.machines), [list(row) for row in comparison.entries]
    machines[column] = replace(machines[column], peak_tops=most)
    for row in entries:
        row[column] = replace(row[column], utilization=(row[column].tops or 0.0) / most)
    return replace(comparison, machines=tuple(machines), entries=tuple(map(tuple, entries)))


def results(small: bool = False) -> Results:
    """Compare the machines in all settings; `small`: for three tasks."""
    names, batch = tasks(small), intel_npu().cores[0].batch
    own = scenario(names)
    rows = [row for row in deepbench() if row.design in DESIGNS]
    single = compare(own, [own.chip, load_chip(BRAINWAVE), intel_npu()], each=True, published=rows)
    named = tuple(replace(each, name=name) for each, name in zip(single.workloads, names, strict=True))
    single = with_peak(replace(single, workloads=named))
    several = batched(names)
    scaled = at_peak_of(single, names, 1, 1), at_peak_of(several, names, 1, batch)
    return Results(single, several, scaled, *with_room(single, SMALL_ROOM if small else names))


def with_room(base: Comparison, names: Sequence[str]) -> tuple[Comparison, tuple[Placed, ...], tuple[Tried, ...]]:
    """Run the fastest of the largest column-wise chips that have room on Brainwave's FPGA, at its clock.

    The preset that stands for Brainwave and its published figures stand beside the chip. The chip is the fastest for
    all tasks, also where only some tasks are shown.
    """
    rival, on = base.machines[1], device(device_of(BW_S10) or "")

    def make(npe: int, ep: int, width: int) -> ColumnNpu:
        return column_chip(replace(rival, pes=npe), ep, npe // ep, threads=1, tail_width=width)

    whole = len(names) == len(tasks())
    tried = all_tried({each: scenario((each,)) for each in tasks()}, make, on, whole)
    chosen = fastest(tried)
    npe, ran = chosen.npe, {each.task: each for each in chosen.places}
    own_chip = partial(make, width=chosen.tail_width)
    places = tuple(ran.get(each) or placed(each, scenario((each,)), npe, own_chip, on) for each in names)
    rows = [task_names(base).index(each) for each in names]
    beside = [at for at, each in enumerate(base.machines) if each.name in (BRAINWAVE, BW_S10)]
    own = replace(rival, name=own_chip(npe, 64).name, pes=npe, peak_tops=2 * npe * (rival.frequency_mhz or 0) / 1e6)
    comparison = replace(
        base,
        machines=(own, *(base.machines[at] for at in beside)),
        workloads=tuple(base.workloads[row] for row in rows),
        entries=tuple(
            (each.entry, *(base.entries[row][at] for at in beside)) for each, row in zip(places, rows, strict=True)
        ),
        device_fits=tuple(each.room for each in places),
    )
    return comparison, places, tried


def task_names(comparison: Comparison) -> list[str]:
    """The tasks in the order of the rows."""
    return [each.name for each in comparison.workloads]
