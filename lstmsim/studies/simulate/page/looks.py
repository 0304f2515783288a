"""The looks of work and waits on pages: colours, hatches, and their rules in light and dark."""

from __future__ import annotations

from lstmsim.analysis.stall_words import NAMED
from lstmsim.report.html.markup import Markup, element
from lstmsim.report.styles import GROUP_HATCHES, JOB_STYLES

#: Looks of jobs; the next job looks like the first.
LOOKS = len(JOB_STYLES) * len(GROUP_HATCHES)

#: Side of a pattern's tile and what is drawn on it.
HATCHES = {
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
    "xx": (9, "M-1 10L10 -1M-1 -1L10 10"),
    "-": (9, "M0 4.5h9"),
    "OO": (11, "M2 5.5a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"),
}


def job_class(number: int) -> str:
    """Give the class of a job by its place in the scenario; looks repeat after 32."""
    return f"j{number % LOOKS}"


def state_class(name: str) -> str:
    """Give the class of a wait, or of PE-cycles."""
    return f"w-{name}"


def hatched() -> dict[str, tuple[str, str]]:
    """Give by class the name of its colours, and its hatch, empty for a plain fill."""
    hatches = {state_class(name): (f"w-{name}", named.style.hatch) for name, named in NAMED.items()}
    for group, hatch in enumerate(GROUP_HATCHES):
        for number, look in enumerate(JOB_STYLES):
            hatches[f"j{group * len(JOB_STYLES) + number}"] = (f"j{number}", hatch if group else look.hatch)
    return hatches


def _colours() -> str:
    """Fill and ink of each look as custom properties, on light and on dark pages."""
    light = {f"w-{name}": (named.style.fill, named.style.ink) for name, named in NAMED.items()}
    light |= {f"j{number}": (look.fill, look.ink) for number, look in enumerate(JOB_STYLES)}
    dark = {f"w-{name}": named.dark for name, named in NAMED.items() if named.dark}
    # black changes with white
    dark |= {f"j{len(JOB_STYLES) - 1}": ("#F2F2F2", "#000000")}
    values = ((name, *zip(pair, dark.get(name, pair), strict=True)) for name, pair in light.items())
    return ";".join(
        f"--{name}:light-dark({','.join(fill)});--{name}-ink:light-dark({','.join(ink)})" for name, fill, ink in values
    )


def look_rules() -> str:
    """Write the style rules of all looks, on light and dark pages."""
    fills = [
        f".{name}{{fill:{f'url(#p-{name})' if hatch else f'var(--{colour})'}}}"
        for name, (colour, hatch) in hatched().items()
    ]
    inks = [f".t{number}{{fill:var(--j{number}-ink);stroke:var(--j{number})}}" for number in range(len(JOB_STYLES))]
    return "".join([f":root{{{_colours()}}}\n", *fills, *inks, "\n"])


def patterns() -> Markup:
    """Make the hatches, once for the whole page."""
    parts = []
    for name, (colour, hatch) in hatched().items():
        if hatch:
            side, path = HATCHES[hatch]
            ground = element("rect", width=side, height=side, fill=f"var(--{colour})")
            lines = element("path", d=path, stroke=f"var(--{colour}-ink)", fill="none")
            units = "userSpaceOnUse"
            parts.append(element("pattern", ground, lines, id=f"p-{name}", width=side, height=side, patternUnits=units))
    return element("svg", element("defs", *parts), width=0, height=0, aria_hidden="true", class_="defs")
