"""The looks of jobs in pictures, and texts that fit in them."""

from __future__ import annotations

from lstmsim.report.figures_text import cut
from lstmsim.report.looks import GROUP_HATCHES, JOB_STYLES, Style


def job_style(number: int) -> Style:
    """Give the style of a job by its place in the scenario; the first eight differ in colour, later ones also in hatch.

    >>> job_style(0).fill, job_style(8) == Style("#0072B2", "oo", "#FFFFFF")
    ('#0072B2', True)
    """
    base = JOB_STYLES[number % len(JOB_STYLES)]
    group = number // len(JOB_STYLES) % len(GROUP_HATCHES)
    return base if group == 0 else Style(base.fill, GROUP_HATCHES[group], base.ink)


def grey(fill: str) -> float:
    """Give the lightness of a colour on a grey printer, 0 to 1 (luma of ITU-R BT.601).

    >>> grey("#FFFFFF"), grey("#000000")
    (1.0, 0.0)
    """
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return round((0.299 * red + 0.587 * green + 0.114 * blue) / 255, 4)


def short(text: str, length: int = 26) -> str:
    """Cut text to one line of at most `length` characters.

    >>> short("a name that is far too long", 10)
    'a name th…'
    """
    line = "".join(char if char.isprintable() else " " for char in text)
    return cut(line, length)
