"""The frame of every page: one HTML file with its style, scripts and data, which loads nothing from anywhere.

Scripts are plain ES modules in files, joined here in the order in which they are named. A page can be read without
them. Texts of users go into a page as escaped text or as JSON that scripts show as text; browsers are told to run the
scripts of the frame only (Content-Security-Policy with hashes) and to take no text for markup (trusted types).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Part, grid
from lstmsim.report.figures_text import labelled
from lstmsim.report.html.markup import Markup, Section, element, escaped, joined, printable, region
from lstmsim.report.renderings import html_of

_HERE = Path(__file__).parent
#: The scripts of every page, and the one that draws the rows of a result.
_SCRIPTS, CHART = ("frame.js", "tables.js"), _HERE / "chart.js"
#: No network, no frames, no other script or style than those of these hashes.
_POLICY = (
    "default-src 'none'; {images}style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'"
)
#: A number that stands alone in a sentence, and is no part of a name.
_NUMBER = re.compile(r"(?<![\w.,-])(\d+(?:,\d{3})*(?:\.\d+)?)(?![\w%/-]|[.,]\d)")
#: Most rows of a result that its page holds.
MOST_ROWS = 20_000
#: Rows that a browser without scripts shows.
_PLAIN_ROWS = 40


def joined_scripts(files: Sequence[Path]) -> str:
    """Join ES modules into one: what they import from each other stands before them."""
    texts = (each.read_text(encoding="utf-8") for each in files)
    kept = (re.sub(r"^import [^;]*;\n|^export ", "", text, flags=re.MULTILINE) for text in texts)
    return '"use strict";\n' + "\n".join(kept)


def embedded(name: str, content: Any) -> Markup:
    """Make the element with plain data that scripts read as `data(name)`: nothing in it can end the element."""
    text = json.dumps(_printable(content), separators=(",", ":"), allow_nan=False)
    return Markup(f'<script type="application/json" id="data-{name}">{text.replace("<", chr(92) + "u003c")}</script>')


def _printable(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {printable(name): _printable(each) for name, each in content.items()}
    if isinstance(content, list | tuple):
        return [_printable(each) for each in content]
    return printable(content) if isinstance(content, str) else content


def page(
    title: str,
    header: Markup,
    sections: Sequence[Section],
    *,
    style: str = "",
    scripts: Sequence[Path] = (),
    data: Mapping[str, Any] = MappingProxyType({}),
    images: bool = False,
) -> str:
    """Make a page, a complete HTML document. Equal arguments give equal text.

    title: of the window.
    header: what stands above the links to the sections.
    style: further rules.
    scripts: further files; they find what those of the frame export.
    data: plain data by name, for scripts.
    images: whether the page has pictures in its text (`data:`); nothing else can load one.
    """
    style += _HERE.joinpath("page.css").read_text(encoding="utf-8")
    script = joined_scripts([*(_HERE / name for name in _SCRIPTS), *scripts])
    policy = _POLICY.format(images="img-src data:; " * images, style=_hash(style), script=_hash(script))
    links = [element("a", each.title, href=f"#{each.name}") for each in sections if each.title]
    nav = element("nav", joined(links, " "), aria_label="Parts of this page") if links else ""
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        element("title", f"{title} – lstmsim"),
        f"<style>{style}</style>",
    ]
    body: list[str] = [element("header", header, nav), element("main", joined([each.html for each in sections], "\n"))]
    body += [*(embedded(name, each) for name, each in data.items()), f'<script type="module">{script}</script>']
    top, below = "\n".join(head), "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{top}\n</head>\n<body>\n{below}\n</body>\n</html>\n'


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def shown(*parts: Part | str | None) -> Markup:
    """Show parts of a document and drawings, one below the other; a text is a note, and tables scroll."""
    made: list[str] = []
    for part in parts:
        if isinstance(part, Grid):
            made.append(region(part.title or "Numbers", "scroll", html_of(part)))
        elif isinstance(part, str):
            made.append(part if isinstance(part, Markup) or not part else element("p", part, class_="note"))
        elif part is not None:
            made.append(html_of(part))
    return joined(made)


def result_page(
    document: Document,
    title: str,
    *,
    command: str = "",
    records: Sequence[Mapping[str, Any]] = (),
    axes: Sequence[str] = (),
    baseline: Mapping[str, Any] | None = None,
    picture: str = "",
) -> str:
    """Make the page of a result: its document, and its rows as a chart of any two columns beside a table.

    document: what people read of the result.
    title: what was done.
    command: how the page came about.
    records: the rows; no row: no chart.
    axes: the columns of x, y and colour that are drawn first; missing: the first two with numbers, none.
    baseline: what stays in every chart, `words` on it, and `rows`, their numbers from 0; None: nothing.
    picture: SVG that stands first; what is in it cannot run.
    """
    sections = [Section("picture", "Picture", _image(picture))] if picture else []
    sections += [
        Section(f"part-{number}", each.title, joined([shown(part) for part in each.parts]))
        for number, each in enumerate(document.sections)
    ]
    data: dict[str, Any] = {}
    if records:
        data["rows"] = _rows(records, axes) | {"baseline": baseline}
        sections.append(Section("rows", "Every row", _without_scripts(len(records), data["rows"])))
    if command:
        sections.append(Section("origin", "How this was made", element("p", element("code", command))))
    names = [each.name for each in sections if each.name != "picture"]
    # of the rows of the page; without rows its first section
    answer = linked(document.headline, _NUMBER, "rows" if "rows" in names else "".join(names[:1]))
    header = joined([element("h1", title), *([element("p", answer, class_="answer")] * bool(answer))])
    return page(title, header, sections, scripts=[CHART] if records else [], data=data, images=bool(picture))


def linked(text: str, pattern: re.Pattern[str], target: str) -> Markup:
    """Make all that the group of a pattern finds in a text lead to `#target`; empty: nothing leads anywhere."""
    # what stands at odd places was found
    return joined(
        element("a", each, href=f"#{target}") if index % 2 and target else each
        for index, each in enumerate(pattern.split(text))
    )


def _image(svg: str) -> Markup:
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    return region("Picture", "wide", element("img", "", src=source, alt="what the tables below say, drawn"))


def _without_scripts(count: int, rows: Mapping[str, Any]) -> Markup:
    """The first of so many rows for a browser that runs no scripts, and how many rows the page leaves out."""
    more = f"The page has the first {MOST_ROWS:,} of {count:,} rows." if count > MOST_ROWS else ""
    texts = [any(isinstance(each, str) for each in values) for values in rows["values"]]
    columns = [Column(name, left=left) for name, left in zip(rows["columns"], texts, strict=True)]
    cells = zip(*rows["values"], strict=True)
    plain = grid(columns, cells, limit=_PLAIN_ROWS, more="rows, which a browser with scripts lists")
    return element("noscript", shown(plain)) + shown(more)


def _rows(records: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> dict[str, Any]:
    """The rows column by column; what is neither a number nor a text is written as one."""
    kept = records[:MOST_ROWS]
    names = list(dict.fromkeys(name for each in kept for name in each))
    return {
        "columns": names,
        "labels": {name: labelled(name) for name in names},
        "values": [[_plain(each.get(name)) for each in kept] for name in names],
        "axes": [name if name in names else None for name in axes[:3]],
        "line": "line" in axes[3:],
    }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return json.dumps(value, default=str)
