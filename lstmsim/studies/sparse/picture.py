"""A sparse product beside the other ways to do it, as bars."""

from __future__ import annotations

from lstmsim.report.pictures.bars import plot
from lstmsim.report.pictures.figures import Picture
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.sparse.result import SparseReport, SparseRow


def plot_ways(report: SparseReport, look: Look = SCREEN) -> Picture:
    """Draw the cycles of the product and of each other way to do it, launches left out.

    report: from `run_sparse`.
    look: how wide it is, and what it is made for.
    """
    rows = (SparseRow(report.method, report.figures), *report.baselines, *report.ablations)
    ways = [(each.name, None if each.figures is None else each.figures.span) for each in rows]
    title = f"{report.kernel} by {report.method} on {report.chip.name}: cycles without launches"
    return plot(ways, report.method, title, look)
