"""The looks of pictures: their widths and styles, and those of jobs.

Jobs have colours that colour-blind readers can tell apart, and hatches where colours look alike in grey.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import record

#: Inches of a picture's width by name: a column and the page of journals of the IEEE.
WIDTHS = MappingProxyType({"column": 3.5, "page": 7.16})


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


@record
class Look:
    """How wide a picture is, and what it is made for.

    width: a key of `WIDTHS`; None: as wide as what is drawn needs.
    style: `screen`; `paper`: a serif font, no title (it is the picture's `caption`); `slides`: large letters.

    >>> Look("column", "paper").inches
    3.5
    """

    width: Annotated[
        str | None,
        Key(
            "Width of the picture: column (3.5 inches) or page (7.16 inches), as in journals of the IEEE.",
            choices=tuple(WIDTHS),
            follows="what is drawn decides",
        ),
    ] = None
    style: Annotated[
        str,
        Key(
            "Letters of the picture; paper has no title: it is printed, for the caption.",
            choices=("screen", "paper", "slides"),
        ),
    ] = "screen"

    def __post_init__(self) -> None:
        refuse(Mistake(key, text) for key, text in mistakes_of(self))

    @property
    def inches(self) -> float | None:
        """The width in inches; None: what is drawn decides."""
        return None if self.width is None else WIDTHS[self.width]


#: The look of pictures for which none is asked.
SCREEN = Look()
