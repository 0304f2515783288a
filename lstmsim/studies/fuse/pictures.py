"""Pictures of fused graphs: the graph itself, and the blocks of its kernels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lstmsim.studies.fuse.run import FusionReport, simulated_row
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture

__all__ = ["plot_fusion", "plot_kernels"]


def plot_fusion(report: FusionReport, path: Path | None = None) -> Picture:
    """Draw the graph: its sub-graphs framed, groups in colour, where each value lies.

    report: what `run_fusion` gives.
    path: the picture's file (.png, .svg or .pdf); None: no file.

    `InputError` for a graph of more nodes than one can look at.
    """
    from lstmsim.studies.fuse import picture as plots

    expect(report, (FusionReport,), "plot_fusion", "what run_fusion gives")
    title = f"{report.graph.name} on {report.chip.name}"
    row = report.stitched
    if row is not None and row.cycles is not None:
        # the picture shows calls of libraries too, which these cycles do not have
        title += f", fused part: {row.cycles:,} cycles"
    return plots.plot(report.plan, path, title=title)


def plot_kernels(report: FusionReport, path: Path | None = None) -> Picture:
    """Draw the blocks of each core over time, in the mode that is told in full, and how much each core has issued.

    report: what `run_fusion` gives.
    path: the picture's file (.png, .svg or .pdf); None: no file.

    `InputError` if nothing was simulated.
    """
    from lstmsim.report.pictures import blocks as plots

    expect(report, (FusionReport,), "plot_kernels", "what run_fusion gives")
    figures = simulated_row(report, "timeline").figures
    assert figures is not None
    title = f"{report.graph.name} by {report.mode} on {report.chip.name}: {figures.makespan:,} cycles"
    return plots.plot(figures.blocks, figures.busy, path, title=title)
