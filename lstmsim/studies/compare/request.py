"""Comparisons of chips: what users ask, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lstmsim import engines
from lstmsim.studies.shared.arguments import refuse, wrong_name, wrong_names
from lstmsim.studies.shared.loading import Path, Source, load_at_clocks
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.compare.result import Comparison

#: What a chip is named by, in words.
_CHIP = "a preset's name or a chip's file"


def compare(
    scenario: Source,
    chips: str | Sequence[str] = (),
    *,
    base: str | None = None,
    each: bool = False,
    published: bool = False,
    engine: str = "fast",
    overrides: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run the same jobs on the scenario's chip and on others.

    Arrivals by the second come so at each chip's own clock; the jobs of a ready `Scenario` have their cycles already.
    For jobs that come over time, entries have latencies with intervals (`Entry.latencies`, `Comparison.latency_ratio`).

    scenario: a path, a mapping, or a `Scenario`.
    chips: presets or chip files to compare with.
    base: a chip that takes the place of the scenario's own.
    each: run every distinct model alone, a row each.
    published: show the published DeepBench figures of the same tasks, too.
    engine: a key of `lstmsim.engines.ENGINES`.
    overrides: texts like `"chip.cores.0.ep=16"`.
    progress: is called with runs done and in all.

    >>> comparison = compare({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}, ["intel-npu-rtl"])
    >>> [machine.name for machine in comparison.machines]
    ['column-npu-64k', 'intel-npu-rtl']
    """
    from lstmsim.files.published import deepbench
    from lstmsim.studies.compare.run import chips_of
    from lstmsim.studies.compare.run import compare as comparing

    refuse(wrong_names("chips", chips, _CHIP), wrong_name("base", base, _CHIP))
    loaded, at_clock = load_at_clocks(scenario, overrides)
    rows = deepbench() if published else ()
    machines = chips_of(loaded, [chips] if isinstance(chips, str) else chips, base)
    return comparing(
        loaded,
        machines,
        each=each,
        published=rows,
        engine=engines.running(engine),
        progress=progress,
        at_clock=at_clock,
    )


def plot_comparison(comparison: Comparison, path: Path | None = None) -> Picture:
    """Draw a comparison as bars.

    comparison: what `compare` gave.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    """
    from lstmsim.studies.compare import picture as plots
    from lstmsim.studies.compare.result import Comparison

    expect(comparison, (Comparison,), "plot_comparison", "a Comparison, as lstmsim.compare gives it")
    return plots.plot(comparison, path)
