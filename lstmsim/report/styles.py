"""The looks of jobs: colours that colour-blind readers can tell apart, and hatches where colours look alike in grey."""

from __future__ import annotations

from lstmsim.base.records import record


@record
class Style:
    """The look of an area: fill and ink (of hatch and text) as `#RRGGBB`, letters of matplotlib's hatches."""

    fill: str
    hatch: str = ""
    ink: str = "#000000"


#: The looks of the first jobs. The eight colours are from Okabe and Ito (2008, "Color Universal Design"). The first
#: four and black differ in lightness. In grey, each of the other three looks like one of these, so it has a hatch.
JOB_STYLES = (
    Style("#0072B2", ink="#FFFFFF"),
    Style("#E69F00"),
    Style("#D55E00", ink="#FFFFFF"),
    Style("#F0E442"),
    Style("#56B4E9", hatch="..."),
    Style("#009E73", hatch="..", ink="#FFFFFF"),
    Style("#CC79A7", hatch="++"),
    Style("#000000", ink="#FFFFFF"),
)

#: The hatches of groups of eight jobs. All groups have the same colours; the first group keeps its own hatches.
GROUP_HATCHES = ("", "oo", "**", "OO")
