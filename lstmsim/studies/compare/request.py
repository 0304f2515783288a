"""Comparisons of chips: options, what users call, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from os import fspath
from typing import TYPE_CHECKING, Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, Overrides, Path, Progress, Source, names_of, takes

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.compare.result import Comparison


@record
class CompareRequest:
    """A scenario, and the chips that run its jobs."""

    scenario: Source
    chips: Annotated[
        Path | Sequence[Path],
        Key("Compare with this chip, a preset or a file.", flag="--chip", metavar="NAME_OR_PATH", repeatable=True),
    ] = ()
    _: KW_ONLY
    base: Annotated[
        Path | None, Key("Compare with this chip instead of the scenario's own.", metavar="NAME_OR_PATH")
    ] = None
    each: Annotated[bool, Key("Run every model alone, one row for each, instead of the scenario as a whole.")] = False
    published: Annotated[bool, Key("Show published figures of the same tasks, too (DeepBench).")] = False
    engine: Engine = "fast"
    overrides: Overrides = ()
    progress: Progress = None


@takes(CompareRequest)
def compare(request: CompareRequest) -> Comparison:
    """Run the same jobs on the scenario's chip and on others.

    Arrivals by the second come so at each chip's own clock; the jobs of a ready `Scenario` have their cycles already.
    For jobs that come over time, entries have latencies with intervals (`Entry.latencies`, `Comparison.latency_ratio`).

    >>> comparison = compare({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}, ["intel-npu-rtl"])
    >>> [machine.name for machine in comparison.machines]
    ['column-npu-64k', 'intel-npu-rtl']
    """
    from lstmsim import engines
    from lstmsim.files.published import deepbench
    from lstmsim.studies.compare.run import chips_of
    from lstmsim.studies.compare.run import compare as comparing
    from lstmsim.studies.shared.loading import load_at_clocks

    loaded, at_clock = load_at_clocks(request.scenario, request.overrides)
    return comparing(
        loaded,
        chips_of(loaded, names_of(request.chips), None if request.base is None else fspath(request.base)),
        each=request.each,
        published=deepbench() if request.published else (),
        engine=engines.running(request.engine),
        progress=request.progress,
        at_clock=at_clock,
    )


def plot_comparison(comparison: Comparison, path: Path | None = None) -> Picture:
    """Draw a comparison as bars.

    comparison: what `compare` gave.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    """
    from lstmsim.studies.compare import picture as plots
    from lstmsim.studies.compare.result import Comparison
    from lstmsim.studies.simulate.run import expect

    expect(comparison, (Comparison,), "plot_comparison", "a Comparison, as lstmsim.compare gives it")
    return plots.plot(comparison, path)
