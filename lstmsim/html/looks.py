"""How jobs and waits look: the colours and hatches of the pictures, as styles and SVG patterns of a page.

A test holds the constants equal to those of `lstmsim.plots.styles`, which a page must not need: it would bring
matplotlib.
"""

from __future__ import annotations

from lstmsim.html.markup import Markup, element

__all__ = [
    "HATCH_GROUPS",
    "JOBS",
    "LOOKS",
    "LOSSES",
    "STATES",
    "job_class",
    "job_ink",
    "look_rules",
    "patterns",
    "state_class",
]

#: Fill, hatch and ink of jobs, waits, and the PE-cycles that no span shows.
JOBS = (
    ("#0072B2", "", "#FFFFFF"),
    ("#E69F00", "", "#000000"),
    ("#D55E00", "", "#FFFFFF"),
    ("#F0E442", "", "#000000"),
    ("#56B4E9", "...", "#000000"),
    ("#009E73", "..", "#FFFFFF"),
    ("#CC79A7", "++", "#000000"),
    ("#000000", "", "#FFFFFF"),
)
HATCH_GROUPS = ("", "oo", "**", "OO")
STATES = {
    "hazard": ("#E4E4E4", "////", "#666666"),
    "backpressure": ("#E4E4E4", "\\\\\\\\", "#666666"),
    "input": ("#F1F1F1", "xxx", "#777777"),
    "dispatch": ("#F1F1F1", "...", "#777777"),
    "reload": ("#DDDDDD", "++", "#555555"),
    "weights": ("#DDDDDD", "oo", "#555555"),
    "drain": ("#F4F4F4", "---", "#999999"),
    "switch": ("#C4C4C4", "|||", "#555555"),
    "ready": ("#F2F2F2", "", "#666666"),
    "idle": ("#FFFFFF", "", "#666666"),
}
LOSSES = {
    "useful": JOBS[0],
    "busy": JOBS[0],
    "padding": ("#9CCBE8", "", "#000000"),
    "unmapped": ("#D6E8F3", "..", "#4A7E9E"),
}

#: Looks of jobs; the next job looks like the first.
LOOKS = len(JOBS) * len(HATCH_GROUPS)

#: On a dark page waits are dark, with lighter hatches; black changes with white.
_DARK_STATES = {
    "hazard": ("#343A40", "#A0A7AE"),
    "backpressure": ("#343A40", "#A0A7AE"),
    "input": ("#2A2F34", "#8F979E"),
    "dispatch": ("#2A2F34", "#8F979E"),
    "reload": ("#3B4249", "#B0B7BE"),
    "weights": ("#3B4249", "#B0B7BE"),
    "drain": ("#262A2F", "#7A828A"),
    "switch": ("#4B5259", "#B9C0C7"),
    "ready": ("#2A2F34", "#A0A7AE"),
    "idle": ("#15191E", "#A0A7AE"),
    "unmapped": ("#1F3442", "#6FA3C2"),
}
_DARK_BLACK = ("#F2F2F2", "#000000")

#: Side of a pattern's tile and what is drawn on it.
_HATCHES = {
    "////": (6, "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
    "\\\\\\\\": (6, "M-1 -1L7 7M-1 5L1 7M5 -1L7 1"),
    "xxx": (6, "M-1 7L7 -1M-1 -1L7 7"),
    "...": (5, "M2 2h1v1h-1z"),
    "..": (7, "M3 3h1v1h-1z"),
    "---": (6, "M0 3h6"),
    "|||": (4, "M2 0v4"),
    "++": (7, "M0 3.5h7M3.5 0v7"),
    "oo": (8, "M2 4a2 2 0 1 0 4 0a2 2 0 1 0 -4 0"),
    "**": (8, "M4 2v4M2 3l4 2M2 5l4 -2"),
    "OO": (11, "M2 5.5a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"),
}


def job_class(number: int) -> str:
    """Class of a job by its place in the scenario; looks repeat after 32.

    >>> job_class(3), job_class(8 + 3), job_class(32 + 3)
    ('j3', 'j11', 'j3')
    """
    return f"j{number % LOOKS}"


def job_ink(number: int) -> str:
    """Class of text on a job, with a rim of the job's colour that keeps hatches off the letters.

    >>> job_ink(9)
    't1'
    """
    return f"t{number % len(JOBS)}"


def state_class(name: str) -> str:
    """Class of a wait, or of PE-cycles.

    >>> state_class("hazard")
    'w-hazard'
    """
    return f"w-{name}"


def _hatched() -> dict[str, tuple[str, str]]:
    """By class: the colours that it has and its hatch, empty for a plain fill."""
    found = {state_class(name): (f"w-{name}", look[1]) for name, look in (STATES | LOSSES).items()}
    for group, hatch in enumerate(HATCH_GROUPS):
        for number, look in enumerate(JOBS):
            found[f"j{group * len(JOBS) + number}"] = (f"j{number}", hatch if group else look[1])
    return found


def _values(dark: bool) -> str:
    values = {f"w-{name}": (look[0], look[2]) for name, look in (STATES | LOSSES).items()}
    values |= {f"j{number}": (look[0], look[2]) for number, look in enumerate(JOBS)}
    if dark:
        changed = {f"w-{name}": pair for name, pair in _DARK_STATES.items()} | {f"j{len(JOBS) - 1}": _DARK_BLACK}
        values = changed
    return ";".join(f"--{name}:{fill};--{name}-ink:{ink}" for name, (fill, ink) in values.items())


def look_rules(dark: bool = False) -> str:
    """The style rules of all looks; with `dark` only what a dark page changes.

    >>> "--j0:#0072B2" in look_rules(), "--j0:" in look_rules(dark=True)
    (True, False)
    """
    if dark:
        return f":root{{{_values(dark=True)}}}"
    fills = [
        f".{name}{{fill:{f'url(#p-{name})' if hatch else f'var(--{colour})'}}}"
        for name, (colour, hatch) in _hatched().items()
    ]
    inks = [f".t{number}{{fill:var(--j{number}-ink);stroke:var(--j{number})}}" for number in range(len(JOBS))]
    return f":root{{{_values(dark=False)}}}\n" + "".join(fills + inks)


def patterns() -> Markup:
    """The hatches, once for the whole page."""
    parts = []
    for name, (colour, hatch) in _hatched().items():
        if hatch:
            side, path = _HATCHES[hatch]
            ground = element("rect", width=side, height=side, style=f"fill:var(--{colour})")
            lines = element("path", d=path, style=f"stroke:var(--{colour}-ink);fill:none")
            units = "userSpaceOnUse"
            parts.append(element("pattern", ground, lines, id=f"p-{name}", width=side, height=side, patternUnits=units))
    return element("svg", element("defs", *parts), width=0, height=0, aria_hidden="true", class_="defs")
