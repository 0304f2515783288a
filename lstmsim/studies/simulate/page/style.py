"""The style of a page: light or dark, narrow, wide or on A4; colours and hatches are those of the pictures."""

from __future__ import annotations

from pathlib import Path

from lstmsim.analysis.stall_words import NAMED
from lstmsim.report.html.markup import Markup, element
from lstmsim.report.looks import GROUP_HATCHES, JOB_STYLES

#: Looks of jobs; the next job looks like the first.
LOOKS = len(JOB_STYLES) * len(GROUP_HATCHES)

#: On a dark page black changes with white.
_DARK_BLACK = ("#F2F2F2", "#000000")

#: Side of a pattern's tile and what is drawn on it.
_HATCHES = {
    "////": (6, "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
    "\\\\\\\\": (6, "M-1 -1L7 7M-1 5L1 7M5 -1L7 1"),
    "//": (10, "M-1 11L11 -1M-1 1L1 -1M9 11L11 9"),
    "\\\\": (10, "M-1 -1L11 11M-1 9L1 11M9 -1L11 1"),
    "xxx": (6, "M-1 7L7 -1M-1 -1L7 7"),
    "...": (5, "M2 2h1v1h-1z"),
    "..": (7, "M3 3h1v1h-1z"),
    "---": (6, "M0 3h6"),
    "|||": (4, "M2 0v4"),
    "++": (7, "M0 3.5h7M3.5 0v7"),
    "+": (12, "M0 6h12M6 0v12"),
    "oo": (8, "M2 4a2 2 0 1 0 4 0a2 2 0 1 0 -4 0"),
    "**": (8, "M4 2v4M2 3l4 2M2 5l4 -2"),
    "OO": (11, "M2 5.5a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"),
}


def job_class(number: int) -> str:
    """Give the class of a job by its place in the scenario; looks repeat after 32."""
    return f"j{number % LOOKS}"


def job_ink(number: int) -> str:
    """Give the class of text on a job, with a rim of the job's colour that keeps hatches off the letters."""
    return f"t{number % len(JOB_STYLES)}"


def state_class(name: str) -> str:
    """Give the class of a wait, or of PE-cycles."""
    return f"w-{name}"


def _hatched() -> dict[str, tuple[str, str]]:
    """By class: the name of its colours, and its hatch, empty for a plain fill."""
    hatches = {state_class(name): (f"w-{name}", named.style.hatch) for name, named in NAMED.items()}
    for group, hatch in enumerate(GROUP_HATCHES):
        for number, look in enumerate(JOB_STYLES):
            hatches[f"j{group * len(JOB_STYLES) + number}"] = (f"j{number}", hatch if group else look.hatch)
    return hatches


def _values(dark: bool) -> str:
    if dark:
        values = {f"w-{name}": named.dark for name, named in NAMED.items() if named.dark}
        values |= {f"j{len(JOB_STYLES) - 1}": _DARK_BLACK}
    else:
        values = {f"w-{name}": (named.style.fill, named.style.ink) for name, named in NAMED.items()}
        values |= {f"j{number}": (look.fill, look.ink) for number, look in enumerate(JOB_STYLES)}
    return ";".join(f"--{name}:{fill};--{name}-ink:{ink}" for name, (fill, ink) in values.items())


def look_rules(dark: bool = False) -> str:
    """Write the style rules of all looks; with `dark` only what a dark page changes."""
    if dark:
        return f":root{{{_values(dark=True)}}}"
    fills = [
        f".{name}{{fill:{f'url(#p-{name})' if hatch else f'var(--{colour})'}}}"
        for name, (colour, hatch) in _hatched().items()
    ]
    inks = [f".t{number}{{fill:var(--j{number}-ink);stroke:var(--j{number})}}" for number in range(len(JOB_STYLES))]
    return f":root{{{_values(dark=False)}}}\n" + "".join(fills + inks)


def patterns() -> Markup:
    """Make the hatches, once for the whole page."""
    parts = []
    for name, (colour, hatch) in _hatched().items():
        if hatch:
            side, path = _HATCHES[hatch]
            ground = element("rect", width=side, height=side, style=f"fill:var(--{colour})")
            lines = element("path", d=path, style=f"stroke:var(--{colour}-ink);fill:none")
            units = "userSpaceOnUse"
            parts.append(element("pattern", ground, lines, id=f"p-{name}", width=side, height=side, patternUnits=units))
    return element("svg", element("defs", *parts), width=0, height=0, aria_hidden="true", class_="defs")


def style_text() -> str:
    """Write the whole style sheet: nothing in it is loaded from anywhere. A dark system prints on white too."""
    text = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return text.replace("/* looks */", look_rules()).replace("/* dark looks */", look_rules(dark=True))
