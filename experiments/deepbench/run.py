"""How does a column-wise NPU compare with Brainwave, the Intel NPU, V100 and Plasticine on the DeepBench tasks?

The 11 recurrent tasks of DeepBench in Zhao et al. 2019 (arXiv:1909.13654), Table 6. Simulated: the presets column-
npu-64k, brainwave-s10 and intel-npu-rtl. Published figures (`lstmsim.files.published`) of Brainwave, V100 and
Plasticine stand beside them, as printed. First one inference at a time, each machine at its own size and clock; then as
many at a time as a batch of the Intel NPU holds; then both at equal peak, the column-wise NPU built with the
multipliers and the clock of the other machine. What it loses, and why, is computed from these numbers. None of these
has room on the FPGA of the other machine: the answer is given by the fastest of the largest that have (`room.py`).

Run `python experiments/deepbench/run.py`; `--write` refreshes expected.md beside it; pictures.py draws.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

from experiments.deepbench.room_text import room_answer, room_section
from experiments.deepbench.settings import (
    BW_S10,
    COLUMN,
    INTEL,
    PREFIX,
    SMALL,
    WITH_PEAK,
    Results,
    Scaled,
    column_chip,
    intel_npu,
    results,
    scenario,
    task_names,
    time_of,
)
from experiments.deepbench.tables import comparison_markdown, machines_markdown
from experiments.holds import as_it_is, held_paragraph
from lstmsim import ColumnNpu
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.machines.row.npu import Shape
from lstmsim.model.model import Precision
from lstmsim.report.stability import Conclusions
from lstmsim.studies.compare.device_fits import fit_on
from lstmsim.studies.compare.report import defeats, lost_shares
from lstmsim.studies.compare.result import Comparison, geometric_mean
from lstmsim.studies.compare.run import compared
from lstmsim.studies.fit.device import device, device_of
from lstmsim.studies.shared.stability import Vary

#: Words of 40 weights that each engine of the Intel NPU holds.
MEMORY_WORDS, MEMORY_SOURCE = 1024, "intel/fpga-npu, commit 6fead512"


def room_columns(comparison: Comparison, chips: Sequence[ColumnNpu]) -> dict[str, list[str]]:
    """Give a column for each device of the other machines: has the chip of each row room there, with the task's
    weights?"""
    homes = dict.fromkeys(device_of(each.name) for each in comparison.machines[1:])
    pairs = [(chip, scenario((name,)).jobs[0].model) for chip, name in zip(chips, task_names(comparison), strict=True)]
    return {
        f"room on {home}": [fit_on(chip, [model], Precision(), device(home)).short for chip, model in pairs]
        for home in homes
        if home is not None
    }


def too_large(names: Sequence[str]) -> dict[str, int]:
    """Give the tasks whose weights do not fit the Intel NPU, and their words: a product reads one of each engine a
    cycle."""
    shape, words = Shape(intel_npu().cores[0]), {}
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


def conclusions(outcome: Results, vary: Vary = as_it_is) -> Conclusions:
    """Whether the chip with room on Brainwave's FPGA is faster than published, on each task and on those it holds."""
    column = next(at for at, each in enumerate(outcome.roomy.machines) if each.name == BW_S10)
    ratios: dict[str, float] = {}
    for place, row in zip(outcome.places, outcome.roomy.entries, strict=True):
        chip = vary(place.chip)
        own = row[0] if chip == place.chip else compared(scenario((place.task,)), [chip]).entries[0][0]
        ratios[place.task] = time_of(row[column]) / time_of(own)
    held = [ratios[each.task] for each in outcome.places if not each.streamed]
    mean = {f"the {len(held)} tasks held, geometric mean": geometric_mean(held) or 0.0}
    return {name: f"{'faster' if each > 1 else 'not faster'} than {BW_S10}" for name, each in (mean | ratios).items()}


def holds(outcome: Results) -> str:
    """Whether these conclusions hold, as a paragraph."""
    return held_paragraph([each.chip for each in outcome.places], partial(conclusions, outcome))


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    outcome = results(small)
    return summary(outcome) + ("" if small else holds(outcome))


if __name__ == "__main__":
    from experiments.run import main

    main("deepbench")
