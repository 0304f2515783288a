"""Documents as people read them: text for the terminal, Markdown for reports, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lstmsim.report.document import Document, Facts, Grid, Part, Text
from lstmsim.report.tables import WIDTH, folded, table, wrapped

if TYPE_CHECKING:
    from lstmsim.report.html.markup import Markup


def text(document: Document) -> str:
    """Show a document as text of at most 100 columns, without a final newline."""
    sections = ["\n".join(folded(document.headline))]
    for each in document.sections:
        lines = [each.title] if each.title else []
        sections.append("\n".join([*lines, *(line for part in each.parts for line in _lines(part))]))
    return "\n\n".join(filter(None, sections))


def _lines(part: Part) -> list[str]:
    if isinstance(part, Text):
        return folded(part.text, part.hang)
    if isinstance(part, Facts):
        return [line for name, said in part.pairs for line in wrapped(name, said, part.width)]
    title = folded(part.title) if part.title else []
    return [*title, *_table_lines(part), *([part.left_out] if part.left_out else [])]


def _table_lines(grid: Grid) -> list[str]:
    """The rows of a table, in several blocks where they are too wide and may be split."""
    cells = [[each.head for each in grid.columns], *grid.shown] if grid.headed else grid.shown
    if not cells:
        return []
    lines: list[str] = []
    for block in _blocks(grid, cells):
        lines += [""] if lines else []
        kept = [[row[at] for at in block] for row in cells]
        lines += table(kept, left=[number for number, at in enumerate(block) if grid.columns[at].left])
    return lines


def _blocks(grid: Grid, cells: list[list[str]]) -> list[list[int]]:
    """The numbers of the columns of each block."""
    first = list(range(grid.repeated))
    if not grid.repeated:
        return [list(range(len(grid.columns)))]
    widths = [2 + max(map(len, column)) for column in zip(*cells, strict=True)]
    blocks = [list(first)]
    for at in range(grid.repeated, len(widths)):
        if len(blocks[-1]) > len(first) and sum(widths[each] for each in (*blocks[-1], at)) - 2 > WIDTH:
            blocks.append(list(first))
        blocks[-1].append(at)
    return blocks


def markdown(document: Document) -> str:
    """Show a document as Markdown, without a final newline."""
    blocks = [f"**{_marked(document.headline)}**"] if document.headline else []
    for section in document.sections:
        blocks += [f"### {_marked(section.title)}"] if section.title else []
        blocks += [block for part in section.parts for block in _markdown_of(part)]
    return "\n\n".join(blocks)


def _marked(text: str) -> str:
    return " ".join(text.translate({ord(each): f"\\{each}" for each in "\\`*_<>|[]"}).split())


def _markdown_of(part: Part) -> Iterator[str]:
    if isinstance(part, Text):
        yield "\n".join(("" if part.kind == "text" else "> ") + _marked(each) for each in part.text.splitlines())
    elif isinstance(part, Facts):
        yield "\n".join(
            f"- **{_marked(name)}**: {_marked(said)}" if name else f"- {_marked(said)}" for name, said in part.pairs
        )
    else:
        if part.title:
            yield _marked(part.title)
        heads = [each.head if part.headed else "" for each in part.columns]
        rules = ["---" if each.left else "---:" for each in part.columns]
        rows = [map(_marked, heads), rules, *(map(_marked, row) for row in part.shown)]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
        if part.left_out:
            yield part.left_out


def html(document: Document) -> str:
    """Show a document as an HTML fragment, with all text escaped.

    >>> from lstmsim.report.document import Document
    >>> html(Document.of("a < b"))
    '<div><p><strong>a &lt; b</strong></p></div>'
    """
    from lstmsim.report.html.markup import element, joined

    headline = [element("p", element("strong", document.headline))] if document.headline else []
    sections = [
        joined([*([element("h4", each.title)] if each.title else []), *(html_of(part) for part in each.parts)])
        for each in document.sections
    ]
    return element("div", *headline, *sections)


def html_of(part: Part) -> Markup:
    """Show a part of a document as HTML."""
    from lstmsim.report.html.markup import element, joined, table

    if isinstance(part, Text):
        kind = None if part.kind == "text" else part.kind
        return joined([element("p", each, class_=kind) for each in part.text.splitlines()])
    if isinstance(part, Facts):
        return element(
            "dl", *(item for name, said in part.pairs for item in (element("dt", name), element("dd", said)))
        )
    rows = [list(row) for row in part.shown]
    for at, column in enumerate(part.columns):
        for row, values in zip(rows, part.rows, strict=False):
            value = values[at]
            if column.bar and isinstance(value, int | float):
                # no style attribute: a page allows its own style sheet only
                bar = element("rect", width=8 * column.bar * value, height=10, fill="#0072b2")
                row[at] = element("svg", bar, width=8 * column.bar, height=10, aria_hidden="true")
    heads = [each.head if part.headed else "" for each in part.columns]
    left = [at for at, each in enumerate(part.columns) if each.left]
    return joined([table(heads, rows, left, part.title), *([element("p", part.left_out)] if part.left_out else [])])
