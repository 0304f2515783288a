"""How does a column-wise NPU compare with Brainwave, the Intel NPU, V100 and Plasticine on the DeepBench tasks?

The 11 recurrent tasks of DeepBench in Zhao et al. 2019 (arXiv:1909.13654), Table 6. Simulated: the presets column-
npu-64k, brainwave-s10 and intel-npu-rtl. Published figures (`lstmsim.formats.tables.published`) of Brainwave, V100 and
Plasticine stand beside them, as printed. First one inference at a time, each machine at its own size and clock; then as
many at a time as a batch of the Intel NPU holds; then both at equal peak, the column-wise NPU built with the
multipliers and the clock of the other machine. What it loses, and why, is computed from these numbers. None of these
has room on the FPGA of the other machine: the answer is given by the fastest of the largest that have (`room.py`).

Run `python experiments/deepbench/run.py`; `--write` refreshes expected.md beside it. Pictures go to out/deepbench.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from experiments.deepbench.room import Placed, Tried, all_tried, fastest, placed
from experiments.deepbench.room_text import room_answer, room_section
from lstmsim import ColumnCore, ColumnNpu, Latency, Scenario, engines, load_scenario
from lstmsim.comparison.compare import compare
from lstmsim.comparison.defeats import defeats, lost_shares
from lstmsim.comparison.markdown import comparison_markdown, machines_markdown
from lstmsim.comparison.result import Comparison, Entry, Machine, geometric_mean
from lstmsim.comparison.rooms import room_on
from lstmsim.formats.scenario.scenario_file import load_chip, load_model
from lstmsim.formats.tables.devices_file import device, device_of
from lstmsim.formats.tables.published import deepbench, hardware
from lstmsim.plots.comparison import plot
from lstmsim.searches.candidates import limits_of, widest_vp
from lstmsim.searches.search import search
from lstmsim.targets.row.npu import RowNpu
from lstmsim.targets.row.shape import shape_of
from lstmsim.workload.precision import Precision

COLUMN, BRAINWAVE, INTEL = "column-npu-64k", "brainwave-s10", "intel-npu-rtl"
#: The published machine that the preset `BRAINWAVE` stands for, and all published ones.
BW_S10 = "Brainwave BW_S10"
DESIGNS = (BW_S10, "Plasticine", "Tesla V100")
#: Its published peak is of the operations that its published TOPS count; V100's is of wider ones.
WITH_PEAK = "Plasticine"
#: Words of 40 weights that each engine of the Intel NPU holds.
MEMORY_WORDS, MEMORY_SOURCE = 1024, "intel/fpga-npu, commit 6fead512"
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
    """The tasks in the order of the published table; `small`: three of them."""
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
    depths = Latency(**{key: latency * value for key, value in asdict(column_core().latency).items()})
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
        machines=(replace(rival, name=chip.name), *(base.machines[at] for at in beside)),
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
    """Everything that is compared; `small`: for three tasks."""
    engines.warm_up()
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
        rooms=tuple(each.room for each in places),
    )
    return comparison, places, tried


def room_columns(comparison: Comparison, chips: Sequence[ColumnNpu]) -> dict[str, list[str]]:
    """Give a column for each device of the other machines: has the chip of each row room there, with the task's
    weights?"""
    homes = dict.fromkeys(device_of(each.name) for each in comparison.machines[1:])
    pairs = [(chip, scenario((name,)).jobs[0].model) for chip, name in zip(chips, task_names(comparison), strict=True)]
    return {
        f"room on {home}": [room_on(chip, [model], Precision(), device(home)).short for chip, model in pairs]
        for home in homes
        if home is not None
    }


def too_large(names: Sequence[str]) -> dict[str, int]:
    """Give the tasks whose weights do not fit the Intel NPU, and their words: a product reads one of each engine a
    cycle."""
    shape, words = shape_of(intel_npu().cores[0]), {}
    for name in names:
        (layer,) = load_model(PREFIX + name).layers
        words[name] = sum(
            len(stage.gates) * shape.product_cycles(layer.units(stage.rows), layer.width(vector))
            for stage in layer.cell.stages
            for vector in stage.vectors
        )
    return {name: count for name, count in words.items() if count > MEMORY_WORDS}


def paragraphs(texts: Sequence[str]) -> list[str]:
    """Lines of at most 120 characters, an empty one after each text."""
    return [line for each in texts for line in (*textwrap.wrap(each, 120, break_on_hyphens=False), "")]


def task_names(comparison: Comparison) -> list[str]:
    """The tasks in the order of the rows."""
    return [each.name for each in comparison.workloads]


def rivalry(comparison: Comparison, column: int) -> list[str]:
    """Say which tasks take longer on the first machine, and why; if none does, name the one where it is least ahead."""
    other, names, lost = comparison.machines[column], task_names(comparison), defeats(comparison, column)
    title = f"* against {other.name} ({'published' if other.published else 'simulated'})"
    if not lost:
        closest, row = max((comparison.speedup(row, column) or 0.0, row) for row in range(len(names)))
        return [f"{title}: nowhere; least ahead on {names[row]}, {1 / closest:.2f} times as fast"]
    texts = [f"  * {each.workload}: {each.sentence}" for each in lost]
    return [f"{title}: {len(lost)} of {len(names)} tasks", *texts]


def losses(outcome: Results) -> list[str]:
    """Say against what the column-wise design loses, on which tasks, by how much and why; and where PEs idle."""
    lines = ["## Where the column-wise design loses", ""]
    settings = [("one inference, as published", outcome.single), ("a batch, as built", outcome.batched)]
    settings += [(f"at the peak of {each.comparison.machines[1].name}", each.comparison) for each in outcome.scaled]
    settings.append(("with room on the FPGA of Brainwave", outcome.roomy))
    for title, each in settings:
        lines += [f"{each.machines[0].name}, {title}:", ""]
        lines += [line for column in range(1, len(each.machines)) for line in rivalry(each, column)]
        lines.append("")
    own = outcome.scaled[0].comparison
    idle = [
        f"* {name}: {100 * (entries[0].utilization or 0):.1f} % useful; lost: {lost_shares(entries[0])}"
        for name, entries in zip(task_names(own), own.entries, strict=True)
        if (entries[0].utilization or 0) < 0.5
    ]
    lines += [f"Ahead or not, {own.machines[0].name} makes use of less than half of its PE-cycles on:", ""]
    return [*lines, *(idle or ["* no task"]), ""]


def peak_section(scaled: Scaled, starred: Sequence[tuple[str, str]]) -> list[str]:
    """One comparison at equal peak."""
    own, rival = scaled.comparison.machines[:2]
    eps = sorted({ep for ep, _ in scaled.shapes})
    named = zip(task_names(scaled.comparison), scaled.shapes, strict=True)
    shapes = ", ".join(f"{name} ({ep}, {vp})" for name, (ep, vp) in named)
    mean, worst = geometric_mean(list(scaled.at_common_ep)), max(scaled.at_common_ep)
    given = f"inferences: {scaled.inferences}, threads: {scaled.threads}, all else as in {COLUMN}"
    texts = [
        f"The column-wise NPU with {own.pes:,} multipliers at {own.frequency_mhz:g} MHz ({given}). (EP, VP) of each "
        "task is what the patent's greedy search chooses (EP doubles from 1, VP = min(Hw, NPE // EP), every step is "
        f"simulated): {shapes}.",
        f"EP from {eps[0]} to {eps[-1]} asks for a CAT-{eps[-1] // eps[0]} adder tree. With EP {scaled.common_ep} for "
        f"all tasks, the best single one, they take {mean:.3f} times as long (geometric mean), the worst {worst:.3f} "
        "times. The column-wise NPU's latencies are assumptions: with all of them doubled it is "
        f"{scaled.with_double_latency:.2f} times as fast as {rival.name} (geometric mean) instead of "
        f"{1 / (scaled.comparison.mean_speedup(1) or 1):.2f} times.",
    ]
    title = f"## At equal peak: the multipliers and the clock of {rival.name}"
    chips = [column_chip(own, ep, vp, scaled.threads) for ep, vp in scaled.shapes]
    columns = room_columns(scaled.comparison, chips)
    return [title, "", *paragraphs(texts), *comparison_markdown(scaled.comparison, starred, columns)]


def summary(outcome: Results) -> str:
    """The tables and what follows from them, as Markdown."""
    names, batch = task_names(outcome.single), intel_npu().cores[0].batch
    preset = scenario(SMALL).chip
    assert isinstance(preset, ColumnNpu)
    unfit = too_large(names)
    starred = [(name, INTEL) for name in unfit]
    sources = sorted({each.source for each in outcome.single.machines if each.published})
    large = ", ".join(f"{name} ({count:,})" for name, count in unfit.items()) or "none of these tasks"
    texts = [
        f"Published: {'; '.join(sources)}. {WITH_PEAK}'s utilization is its TOPS of its published peak.",
        "One inference at a time uses one thread of the column-wise NPU, and one of the "
        f"{batch} inferences that the Intel NPU takes in a batch.",
        f"\\* The weights do not fit the Intel NPU: {MEMORY_WORDS:,} words in the matrix memory of each engine "
        f"({MEMORY_SOURCE}). Simulated as if they did: {large}.",
    ]
    lines = ["# DeepBench on a column-wise NPU and on others", ""]
    lines += paragraphs(room_answer(outcome.roomy, outcome.places, outcome.tried, outcome.single, preset))
    lines += [*machines_markdown(outcome.single), *paragraphs(texts)]
    lines += room_section(outcome.roomy, outcome.places, outcome.tried)
    lines += [
        "## One inference: each machine at its own size and clock",
        "",
        *comparison_markdown(outcome.single, starred, room_columns(outcome.single, [preset] * len(names))),
    ]
    lines += [f"## {batch} inferences: a batch on the Intel NPU, jobs of their own on {COLUMN}", ""]
    lines += comparison_markdown(outcome.batched, starred, room_columns(outcome.batched, [preset] * len(names)))
    lines += [line for each in outcome.scaled for line in peak_section(each, starred)]
    return "\n".join([*lines, *losses(outcome)])


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    outcome = results(small)
    if not small:
        folder = Path(__file__).resolve().parents[2] / "out" / "deepbench"
        folder.mkdir(parents=True, exist_ok=True)
        plot(outcome.single, folder / "single.png")
        plot(outcome.scaled[0].comparison, folder / "equal_peak.png")
    return summary(outcome)


if __name__ == "__main__":
    from experiments.run import main

    main("deepbench")
