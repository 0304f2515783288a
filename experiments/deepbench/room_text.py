"""The answer, and the section about the chip that has room, in words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from experiments.deepbench.room import BANDWIDTH, BANDWIDTH_SOURCE, Placed, Tried, fastest, held_by_all
from experiments.deepbench.tables import comparison_markdown
from lstmsim import ColumnNpu
from lstmsim.base.wording import counted, listed, ranged
from lstmsim.files.published import deepbench, hardware
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.model.model import Precision
from lstmsim.studies.compare.device_fits import fit_on
from lstmsim.studies.compare.result import Comparison, geometric_mean
from lstmsim.studies.fit.device import device, device_of

BW_S10 = "Brainwave BW_S10"
INTEL = "intel-npu-rtl"
#: The task whose weights stand for all where only the size of the chip matters.
ANY_TASK = "deepbench-lstm-512-25"


def faster(comparison: Comparison, rows: Sequence[int], column: int) -> list[float]:
    """How many times as fast the base is in these rows."""
    return [1 / (comparison.speedup(row, column) or 1.0) for row in rows]


def mean_of(values: Sequence[float]) -> str:
    """The geometric mean, with three digits."""
    return f"{geometric_mean(list(values)) or 0.0:#.3g}"


def room_answer(
    comparison: Comparison, places: Sequence[Placed], tried: Sequence[Tried], unlimited: Comparison, preset: ColumnNpu
) -> list[str]:
    """Give the answer of the experiment in words, the chip that has room first.

    comparison: its last machine is the published one.
    """
    last, own = len(comparison.machines) - 1, comparison.machines[0]
    home = places[0].room.device
    whole = [row for row, each in enumerate(places) if not each.streamed]
    every = faster(comparison, range(len(places)), last)
    kept = [every[row] for row in whole]
    rival = comparison.machines[last].name
    column = next(at for at, each in enumerate(unlimited.machines) if each.name == rival)
    big = faster(unlimited, range(len(unlimited.workloads)), column)
    model = load_model(ANY_TASK)
    home_room = fit_on(preset, [model], Precision(), device(home))
    nx = device(device_of(INTEL) or "")
    here, there = preset.cores[0].npe, fit_on(preset, [model], Precision(), nx)
    precision = next(row.precision for row in hardware() if row.design == rival)
    chosen, widths = fastest(tried), [f"{each.tail_width}" for each in tried]
    mine = f"{own.pes:,} multipliers of int8 and a tail of {chosen.tail_width} lanes, at {own.frequency_mhz:g} MHz"
    eps = sorted({each.chip.cores[0].ep for each in places})
    most = max(each.npe for each in tried)
    larger = f" (one with {most:,} multipliers fits, and is slower: see below)" if most > chosen.npe else ""
    rule = (
        f"It was chosen among the largest chips that fit with {listed(widths, 'and')} lanes: it has the least "
        f"geometric mean of the times of the {len(held_by_all(tried))} tasks whose weights all of these hold"
        f"{larger}. It has one thread, and EP {eps[0]} to {eps[-1]} with the VP that follows: for each task "
        "the fastest."
    )
    homeless = ", ".join(each.name for each in unlimited.machines if each.published and device_of(each.name) is None)
    return [
        f"**On the FPGA of {rival} ({home}) the fastest of the column-wise chips tried that fit has {mine}.** One "
        f"inference at a time it is {mean_of(kept)} times as fast as published of {rival} on the "
        f"{counted(len(kept), 'task')} whose weights its block RAM holds (geometric mean; faster on "
        f"{sum(each > 1 for each in kept)}, slower on {sum(each < 1 for each in kept)}), and "
        f"{mean_of(every)} times on all {len(every)}: it loses the {len(every) - len(kept)} whose weights it has to "
        f"stream by a factor of {ranged(*(f'{1 / pick(set(every) - set(kept)):.0f}' for pick in (max, min)))}."
        if len(kept) < len(every)
        else f"**On {home} the fastest of the column-wise chips tried that fit has {mine}.** It is {mean_of(every)} "
        "times as fast.",
        rule,
        f"{preset.name}, without a limit ({here:,} multipliers), is {mean_of(big)} times as fast as published of "
        f"{rival} (all {len(big)} tasks), and **does not fit** that FPGA: {home_room.reason.partition(': ')[2]} (with "
        f"the weights of {ANY_TASK.removeprefix('deepbench-')}). The two chips at equal peak are larger still. What "
        "these win is what the design would do with more multipliers than there are, not a victory on that FPGA.",
        f"The precisions differ: {rival} computes in {precision}; the column-wise chips compute in int8. Narrower "
        "weights take less block RAM and narrower multipliers less of the device, which is how it has 96,000 of them. "
        "No column-wise chip of such a precision is compared here.",
        f"On the FPGA of {INTEL} ({nx.name}) {preset.name} does not fit either: {there.reason.partition(': ')[2]}. "
        "What the largest chip is that fits there cannot be told: the table has no source for multipliers of a tail in "
        "its tensor blocks, nor for its numbers of M20K blocks and ALMs.",
        f"{homeless}: no device known (a chip of its own, or no chip that anybody has built).",
    ]


def room_words(each: Placed) -> str:
    """Give the verdict on one task; for a task that streams also how much."""
    if not each.streamed:
        return each.room.short
    used = each.room.short.partition(";")[0]
    return f"{used}; weights do not fit: {100 * each.streamed:.0f} % come from the memory in every step"


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """List for each width of the tail the largest chip and how fast it is."""
    theirs = {row.task: row.latency_ms or 0.0 for row in deepbench() if (row.design, row.batch) == (BW_S10, 1)}
    lines = []
    for each in tried:
        kept = [theirs[task] / each.held[task] for task in held_by_all(tried)]
        every = [theirs[place.task] / (place.entry.ms or 0.0) for place in each.places]
        text = f"* {each.tail_width} lanes: {each.npe:,} multipliers; {mean_of(kept)} times"
        text += f", {mean_of(every)} times on all {len(every)}" if len(every) == len(theirs) else ""
        lines.append(text + " (the one shown)" * (each == fastest(tried)))
    return lines


def room_section(comparison: Comparison, places: Sequence[Placed], tried: Sequence[Tried]) -> list[str]:
    """The tables of the chip that has room, and the chips among which it was chosen."""
    home, chosen = places[0].room.device, fastest(tried)
    shapes = ", ".join(f"{each.task} ({each.chip.cores[0].ep}, {each.chip.cores[0].vp})" for each in places)
    choice = (
        f"A wider tail takes DSP blocks from the array. These are the largest chips that fit {home} by the lanes of "
        "their tail (as many multipliers as its DSP blocks give beside those of a tail that runs LSTM and GRU, with "
        f"the logic sufficient at the upper end of its estimate), and how many times as fast as published of {BW_S10} "
        f"they are, as a geometric mean over the {len(held_by_all(tried))} tasks whose weights all of them hold:"
    )
    texts = [
        f"The clock is Brainwave's, and that such a chip reaches it with all blocks in use is an assumption. One "
        f"thread, {chosen.tail_width} lanes; (EP, VP) of each task is the fastest on the walk of the patent's greedy "
        f"search whose memories fit: {shapes}.",
        "Weights that the block RAM does not hold come in every step from a memory beside the FPGA: "
        f"{BANDWIDTH:g} GB/s ({BANDWIDTH_SOURCE}).",
    ]
    columns = {f"room on {home}": [room_words(each) for each in places]}
    lines = [f"## One inference: the fastest column-wise chip tried that has room on {home}", ""]
    lines += [*wrapped(choice), *tried_lines(tried), ""]
    lines += [line for each in texts for line in wrapped(each)]
    return [*lines, *comparison_markdown(comparison, (), columns)]


def wrapped(text: str) -> list[str]:
    """Lines of at most 120 characters and an empty one."""
    return [*textwrap.wrap(text, 120, break_on_hyphens=False), ""]
