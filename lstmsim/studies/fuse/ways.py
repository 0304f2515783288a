"""A fused graph under every way to cut it, as bars."""

from __future__ import annotations

from lstmsim.base.wording import counted
from lstmsim.report.pictures.bars import plot
from lstmsim.report.pictures.figures import Picture
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.fuse.result import FusionReport


def plot_ways(report: FusionReport, look: Look = SCREEN) -> Picture:
    """Draw the cycles of each way to cut the graph into kernels, with their number.

    report: from `run_fusion`.
    look: how wide it is, and what it is made for.
    """

    def named(name: str, kernels: int) -> str:
        return f"{name} ({counted(kernels, 'kernel')})"

    rows = [*report.rows, *report.ablations]
    ways = [(named(each.name, len(each.kernels)), each.cycles) for each in rows]
    reported = report.reported
    return plot(ways, named(reported.name, len(reported.kernels)), f"{report.source}: cycles of ways to cut it", look)
