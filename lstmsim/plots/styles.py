"""How jobs and waits look: colours that the colour-blind keep apart, and hatches where a grey printer would not."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STATE_STYLES", "Style", "grey", "job_style", "short"]


@dataclass(frozen=True)
class Style:
    """A fill, a hatch, and the colour of hatch and text on it."""

    fill: str
    hatch: str = ""
    ink: str = "#000000"


# The eight colours of Okabe and Ito (2008, "Color Universal Design"). The first four and black differ in lightness; the
# other three look like one of those in grey and so carry a hatch.
_JOBS = (
    Style("#0072B2", ink="#FFFFFF"),
    Style("#E69F00"),
    Style("#D55E00", ink="#FFFFFF"),
    Style("#F0E442"),
    Style("#56B4E9", hatch="..."),
    Style("#009E73", hatch="..", ink="#FFFFFF"),
    Style("#CC79A7", hatch="++"),
    Style("#000000", ink="#FFFFFF"),
)
_GROUP_HATCHES = ("", "oo", "**", "OO")

#: Waits are light and neutral, each cause with a hatch of its own; `busy` has the colour of its job.
STATE_STYLES = {
    "hazard": Style("#E4E4E4", "////", "#666666"),
    "backpressure": Style("#E4E4E4", "\\\\\\\\", "#666666"),
    "input": Style("#F1F1F1", "xxx", "#777777"),
    "dispatch": Style("#F1F1F1", "...", "#777777"),
    "reload": Style("#DDDDDD", "++", "#555555"),
    "weights": Style("#DDDDDD", "oo", "#555555"),
    "drain": Style("#F4F4F4", "---", "#999999"),
    "switch": Style("#C4C4C4", "|||", "#555555"),
    "ready": Style("#F2F2F2", "", "#666666"),
    "idle": Style("#FFFFFF", "", "#666666"),
}


def job_style(number: int) -> Style:
    """The style of a job by its place in the scenario; the first eight differ in colour, the next ones also in hatch.

    >>> job_style(0).fill, job_style(8) == Style("#0072B2", "oo", "#FFFFFF")
    ('#0072B2', True)
    """
    base = _JOBS[number % len(_JOBS)]
    group = number // len(_JOBS) % len(_GROUP_HATCHES)
    return base if group == 0 else Style(base.fill, _GROUP_HATCHES[group], base.ink)


def grey(fill: str) -> float:
    """Lightness of a colour on a grey printer, 0 to 1 (luma of ITU-R BT.601).

    >>> grey("#FFFFFF"), grey("#000000")
    (1.0, 0.0)
    """
    red, green, blue = (int(fill[at : at + 2], 16) for at in (1, 3, 5))
    return round((0.299 * red + 0.587 * green + 0.114 * blue) / 255, 4)


def short(text: str, length: int = 26) -> str:
    """Text on one line of at most `length` characters.

    >>> short("a name that is far too long", 10)
    'a name th…'
    """
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if len(line) <= length else line[: length - 1] + "…"
