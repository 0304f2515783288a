"""The first sentence on a sparse product: what is fastest here, and by how many cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lstmsim.machines.kernels import SparseFigures

if TYPE_CHECKING:
    from lstmsim.studies.sparse.run import SparseReport

__all__ = ["headline"]

#: The method that multiplies the zeros too.
_DENSE = "dense"


@dataclass(frozen=True)
class _Way:
    """A way to do the product that was simulated.

    name, method, note: as of its row. figures: what it came to.
    """

    name: str
    method: str
    figures: SparseFigures
    note: str = ""

    @property
    def cycles(self) -> int:
        """Without launches."""
        return self.figures.span


def headline(report: SparseReport) -> str:
    """Say in a sentence whether dense or sparse is faster here, or what a run came to that stands alone."""
    own = _Way(f"{report.method}, this run", report.method, report.figures)
    ways = [own, *_others(report)]
    sides = [[each for each in ways if (each.method == _DENSE) == dense] for dense in (True, False)]
    search = report.search
    searched = (
        "" if search is None else f", in the fastest of {len(search.tried) - search.refused:,} settings simulated"
    )
    if not all(sides):
        missing = "nothing" if len(ways) == 1 else f"nothing {'sparse' if sides[0] else 'dense'}"
        first = min(ways, key=lambda each: each.cycles)
        told = "" if first is own else f"; the fastest is {first.name}, {first.cycles:,}"
        return (
            f"{report.method} takes {own.cycles:,} cycles without launches{searched}; {missing} stands beside it{told}"
        )
    dense, sparse = (min(each, key=lambda way: way.cycles) for each in sides)
    of_own = "" if own in (dense, sparse) else f"; this run ({report.method}) takes {own.cycles:,}"
    more = "" if search is not None else ": --best simulates some hundred"
    other = f"; sparse in settings that were not simulated may be faster{more}" if dense.cycles <= sparse.cycles else ""
    return _verdict(dense, sparse) + of_own + other


def _others(report: SparseReport) -> Iterator[_Way]:
    """The rows beside a run. One in brackets is no way to do the product."""
    for each in report.beside:
        if each.figures is not None and not each.name.startswith("("):
            yield _Way(each.name, each.method, each.figures, each.note)


def _verdict(dense: _Way, sparse: _Way) -> str:
    """Which of the two is faster.

    dense, sparse: the fastest way of each kind.
    """
    cycles = f"{min(dense.cycles, sparse.cycles):,} against {max(dense.cycles, sparse.cycles):,} cycles"
    names = f"{dense.name}; {sparse.name}"
    if dense.cycles == sparse.cycles:
        return f"dense and sparse are equally fast here: {dense.cycles:,} cycles without launches ({names})"
    if dense.cycles < sparse.cycles and dense.note:
        part = f"for another amount of work: {dense.note}"
        return f"whether dense is faster here cannot be told: it takes {cycles} without launches, but {part}"
    won, lost = sorted((dense, sparse), key=lambda way: way.cycles)
    text = (
        f"{'dense' if won is dense else 'sparse'} is faster here: {cycles} without launches ({won.name}; {lost.name})"
    )
    made = won.figures.makespan, lost.figures.makespan
    if made[0] >= made[1]:
        text += f"; with the launches of their kernels it is not: {made[0]:,} against {made[1]:,}"
    return text
