"""Pictures of results. Each function returns its picture, and writes a file if a path is given; a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError
from lstmsim.studies.shared.arguments import refuse, wrong_whole, wrong_wholes
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import Run, expect
from lstmsim.studies.simulate.saving import load_trace

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.accuracy.accuracy_study import AccuracyReport
    from lstmsim.studies.compare.result import Comparison
    from lstmsim.studies.sweep.merge import Merged
    from lstmsim.studies.sweep.run import SweepResult
    from lstmsim.traffic.load_latency import LoadLatency

__all__ = ["plot", "plot_accuracy", "plot_comparison", "plot_load_latency", "plot_sweep", "timeline"]


def plot(
    timeline: Timeline | Run,
    path: Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Sequence[int] | None = None,
) -> Picture:
    """Draw a timeline, `start <= cycle < end`, of all or some cores.

    timeline: a timeline, or a run.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    start, end: the first cycle, and the cycle before which the picture ends; None: all.
    cores: numbers of the cores drawn; None: all.
    """
    from lstmsim.studies.simulate import picture as plots

    expect(timeline, (Run, Timeline), "plot", "a Run or a Timeline, as lstmsim.trace(scenario) gives it")
    refuse([] if cores is None else wrong_wholes("cores", cores), wrong_whole("start", start), wrong_whole("end", end))
    drawn = timeline.timeline if isinstance(timeline, Run) else timeline
    return plots.plot(drawn, path, start=start, end=end, cores=cores)


def timeline(
    trace: Path,
    path: Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Sequence[int] | None = None,
) -> Picture:
    """Draw a saved trace, `start <= cycle < end`, of all or some cores.

    trace: the file that `save_trace` or `lstmsim simulate --trace` wrote.
    path: the picture's file; None: no file.
    start, end, cores: as in `plot`.

    `InputError` if the file is no trace, or if there is no such window or core.

    >>> import tempfile, pathlib, lstmsim
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trace.csv")
    ...     scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]}
    ...     lstmsim.save_trace(lstmsim.trace(scenario), file)
    ...     timeline(file, start=0, end=100)._repr_png_()[1:4]
    b'PNG'
    """
    return plot(load_trace(trace), path, start=start, end=end, cores=cores)


def plot_accuracy(report: AccuracyReport, path: Path | None = None) -> Picture:
    """Draw the widths of an accuracy report.

    report: with at least one width.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    """
    from lstmsim.studies.accuracy import picture as plots
    from lstmsim.studies.accuracy.accuracy_study import AccuracyReport
    from lstmsim.studies.accuracy.accuracy_text import job_title

    expect(report, (AccuracyReport,), "plot_accuracy", "an AccuracyReport, as lstmsim.accuracy gives it")
    if not report.by_bits:
        raise InputError("nothing to draw: ask for accuracy(..., bits=range(4, 13))")
    bits = sorted(report.by_bits)
    every = [report.by_bits[each] for each in bits]
    curves = [
        (job_title(job), [study.jobs[number].accuracy.sqnr_db for study in every])
        for number, job in enumerate(every[0].jobs)
    ]
    words = [study.words.unchanged for study in every if study.words is not None]
    title = f"{report.scenario}: fixed point against float64"
    return plots.plot(bits, curves, words or None, path, title=title)


def plot_comparison(comparison: Comparison, path: Path | None = None) -> Picture:
    """Draw a comparison as bars.

    comparison: what `compare` gave.
    path: the picture's file (.png, .svg or .pdf), with its numbers beside it as .csv; None: no file.
    """
    from lstmsim.studies.compare import picture as plots
    from lstmsim.studies.compare.result import Comparison

    expect(comparison, (Comparison,), "plot_comparison", "a Comparison, as lstmsim.compare gives it")
    return plots.plot(comparison, path)


def plot_load_latency(
    curves: LoadLatency, path: Path | None = None, *, percentile: float = 99.0, cdf_at: float | None = None
) -> Picture:
    """Draw latency against load, a curve for each machine.

    curves: what `load_latency` gave.
    path: the picture's file; None: no file.
    percentile: the percentile of the latencies that is drawn.
    cdf_at: the load whose distribution is drawn; None: the highest load at which all machines are stable.

    `InputError` for a percentile or a load that was not measured.
    """
    from lstmsim.studies.serve import picture as plots
    from lstmsim.traffic.load_latency import LoadLatency

    expect(curves, (LoadLatency,), "plot_load_latency", "a LoadLatency, as lstmsim.load_latency gives it")
    return plots.plot(curves, path, percentile=percentile, cdf_at=cdf_at)


def plot_sweep(
    swept: SweepResult | Merged, path: Path | None = None, *, kind: str | None = None, objectives: Sequence[str] = ()
) -> Picture:
    """Draw the results of a sweep.

    swept: what `sweep` or `merge` gave.
    path: the picture's file, with its numbers beside it as .csv; None: no file.
    kind: `heatmap`, `utilization` or `pareto`; None: what the sweep varies decides.
    objectives: the two that are drawn.
    """
    from lstmsim.studies.sweep import picture as plots
    from lstmsim.studies.sweep.merge import Merged
    from lstmsim.studies.sweep.run import SweepResult
    from lstmsim.studies.sweep.store import Store

    expect(swept, (SweepResult, Merged), "plot_sweep", "a SweepResult or Merged, as lstmsim.sweep and merge give them")
    with Store(swept.path, create=False) as store:
        return plots.plot(store, path, kind=kind, objectives=objectives)
