"""How jobs look: colours that the colour-blind keep apart, and hatches where a grey printer would not."""

from __future__ import annotations

from lstmsim.records import record

__all__ = ["GROUP_HATCHES", "JOB_STYLES", "Style"]


@record
class Style:
    """A fill, a hatch, and the colour of hatch and text on it.

    `fill`, `ink`: colours as `#RRGGBB`. `hatch`: letters of matplotlib's hatches, empty for none.
    """

    fill: str
    hatch: str = ""
    ink: str = "#000000"


#: The looks of the first jobs. The eight colours are those of Okabe and Ito (2008, "Color Universal Design"). The first
#: four and black differ in lightness; the other three look like one of those in grey and so carry a hatch.
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

#: The hatches of the next groups of jobs, which have the same colours; the first group keeps its own.
GROUP_HATCHES = ("", "oo", "**", "OO")
