"""The style of a page: light or dark as the reader's system is, narrow or wide, and on A4."""

from __future__ import annotations

from lstmsim.studies.simulate.page.looks import look_rules

__all__ = ["style_text"]

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
