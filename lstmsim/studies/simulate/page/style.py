"""The style of a page: light or dark as the reader's system is, narrow or wide, and on A4.

How jobs and waits look: the colours and hatches of the pictures, as styles and SVG patterns of a page.

The looks are those of the pictures (`lstmsim.analysis.stall_words`, `lstmsim.report.looks`).
"""

from __future__ import annotations

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
    """Give the class of a job by its place in the scenario; looks repeat after 32.

    >>> job_class(3), job_class(8 + 3), job_class(32 + 3)
    ('j3', 'j11', 'j3')
    """
    return f"j{number % LOOKS}"


def job_ink(number: int) -> str:
    """Give the class of text on a job, with a rim of the job's colour that keeps hatches off the letters.

    >>> job_ink(9)
    't1'
    """
    return f"t{number % len(JOB_STYLES)}"


def state_class(name: str) -> str:
    """Give the class of a wait, or of PE-cycles.

    >>> state_class("hazard")
    'w-hazard'
    """
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
    """Write the style rules of all looks; with `dark` only what a dark page changes.

    >>> "--j0:#0072B2" in look_rules(), "--j0:" in look_rules(dark=True)
    (True, False)
    """
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


_LIGHT = """:root{color-scheme:light dark;--page:#FFFFFF;--ink:#1B1F23;--muted:#57606A;--line:#D5DAE0;
--card:#F4F7FA;--accent:#005A8F;--area:#5E7F95;--mark:#B0420A}"""
_DARK = """:root{--page:#15191E;--ink:#E6EAEE;--muted:#A9B2BB;--line:#3A424B;--card:#1D242C;
--accent:#7CC4F0;--area:#6F93AB;--mark:#FF9A5C}"""

_SCREEN = """*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main,header,footer{max-width:1080px;margin:0 auto;padding:0 24px}
header{padding-top:28px}
h1{font-size:1.7rem;line-height:1.2;margin:0;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
p{margin:.5rem 0;max-width:80ch}
a{color:var(--accent)}
.muted,.note,footer{color:var(--muted)}
.note,footer{font-size:.87rem}
.answer{font-size:1.08rem;border-left:4px solid var(--accent);background:var(--card);padding:.7rem 1rem;margin:1rem 0}
nav{font-size:.9rem}
nav a{margin-right:1rem;white-space:nowrap}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:1rem 0;padding:0}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.55rem .8rem}
.figures dt{color:var(--muted);font-size:.83rem}
.figures dd{margin:0;font-size:1.25rem;white-space:nowrap;font-weight:600;font-variant-numeric:tabular-nums}
.figures dd small{display:block;white-space:normal;font-size:.83rem;font-weight:400;color:var(--muted)}
figure{margin:.6rem 0}
figcaption,caption{font-weight:600;font-size:.9rem;text-align:left;padding:.3rem 0}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(330px,1fr));gap:24px}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.87rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .55rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th.l,td.l{text-align:left}
thead th{color:var(--muted);font-weight:600;vertical-align:bottom}
tbody th{font-weight:500}
td:not(.l){white-space:nowrap}
th,td{overflow-wrap:break-word}
section{overflow-x:auto}
.scroll,pre{max-height:30rem;overflow:auto;border:1px solid var(--line);border-radius:6px}
.scroll{padding:0 .4rem}
.scroll thead th{position:sticky;top:0;background:var(--page)}
.scroll .note{padding:0 .4rem}
pre{background:var(--card);padding:.8rem 1rem;font:12.5px/1.45 ui-monospace,Consolas,"DejaVu Sans Mono",monospace;
white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--accent)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.4rem 0;padding:0;font-size:.85rem}
.swatch{vertical-align:-1px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.print-only{display:none}
"""
_PICTURES = """svg{font-family:inherit}
figure>svg,.wide>svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
.wide>svg{min-width:680px}
.defs{position:absolute}
text{fill:var(--ink);font-size:11.5px}
text.tick{fill:var(--muted)}
text.on{pointer-events:none;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
text.halo{paint-order:stroke;stroke:var(--page);stroke-width:3px}
text.ink{fill:#000}
line.axis{stroke:var(--muted)}
line.grid{stroke:var(--line)}
line.mark{stroke:var(--mark);stroke-dasharray:4 3}
line.mean{stroke-dasharray:none}
.lane{fill:none;stroke:var(--line);stroke-width:.5}
.area{fill:var(--area)}
.dot{fill:var(--accent);fill-opacity:.6;stroke:var(--page);stroke-width:.5}
.edge{stroke:var(--muted);stroke-width:.5}
"""
_PRINT = """@page{size:A4;margin:14mm}
@media print{body{font-size:10pt}main,header,footer{max-width:none;padding:0}header{padding-top:0}
nav,summary{display:none}
section{overflow:visible}.scroll,pre,.wide{max-height:none;overflow:visible;border:0;padding:0}.wide>svg{min-width:0}
pre{background:none;font-size:7.5pt}.scroll tbody tr:nth-child(n+41){display:none}.print-only{display:block}
figure,table,.figures div,tr,.answer,svg{break-inside:avoid}
.scroll table{break-inside:auto}h2,caption,figcaption{break-after:avoid}h2{margin-top:1.2rem}
thead{display:table-header-group}
.scroll thead th{position:static}.pair{grid-template-columns:1fr 1fr}.figures{grid-template-columns:repeat(3,1fr)}
table{font-size:8.5pt}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def style_text() -> str:
    """Write the whole style sheet: nothing in it is loaded from anywhere. A dark system prints on white too.

    >>> "http" in style_text(), "@import" in style_text()
    (False, False)
    """
    dark = f"@media screen and (prefers-color-scheme:dark){{{_DARK}\n{look_rules(dark=True)}}}"
    return "\n".join([_LIGHT, look_rules(), dark, _SCREEN + _PICTURES + _PRINT])
