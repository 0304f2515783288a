"""Ways to do the same as bars of their cycles, the one that is reported in a colour of its own."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.report.pictures.figures import Picture, drawn, letters, short
from lstmsim.report.styles import JOB_STYLES, SCREEN, Look

#: Most ways that are drawn, and letters of a name.
_MOST, _LETTERS = 24, 44


def plot(ways: Sequence[tuple[str, int | None]], reported: str, title: str = "", look: Look = SCREEN) -> Picture:
    """Draw a bar for each way.

    ways: the name of each, and its cycles; None: it was not simulated, and has no bar.
    reported: the name of the way that the result is about.
    title: of the picture.
    look: how wide it is, and what it is made for.
    """
    shown, left = ways[:_MOST], len(ways) - _MOST
    with drawn(None, (7.16, 0.9 + 0.26 * len(shown)), look=look) as figure:
        axes = figure.subplots()
        cycles = [each or 0 for _, each in shown]
        fills = [JOB_STYLES[0].fill if name == reported else "#9FB3C1" for name, _ in shown]
        axes.barh(range(len(shown)), cycles, 0.7, color=fills)
        for place, (_, each) in enumerate(shown):
            text = "not simulated" if each is None else f"{each:,}"
            axes.annotate(text, (each or 0, place), (3, 0), textcoords="offset points", va="center", size=letters(8))
        names = [short(name, _LETTERS) for name, _ in shown]
        axes.set_yticks(range(len(shown)), names, fontsize=letters(8), parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.14 * max(1, *cycles))
        axes.xaxis.set_major_formatter("{x:,.10g}")
        axes.set_xlabel("cycles" + (f"; {left:,} more ways are in the table" if left > 0 else ""))
        figure.head([title] * bool(title))
    return figure
