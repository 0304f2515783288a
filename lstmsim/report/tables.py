"""Lines of text for the terminal: tables, paragraphs, names with a text. `WIDTH` is how long a line may be."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

#: Columns of the terminal that texts take at most.
WIDTH = 100


def folded(text: str, hang: int = 0) -> list[str]:
    """Lines of at most 100 columns. A percent sign stays with its number, and a name with its hyphens.

    text: a newline in it ends a line.
    hang: by so many characters further lines are indented.
    """
    return [line for each in text.splitlines() for line in _wrapped(each, hang)]


def _wrapped(text: str, indent: int) -> list[str]:
    kept = text.replace(" %", "\xa0%")
    lines = textwrap.wrap(kept, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)
    return [each.replace("\xa0", " ") for each in lines]


def wrapped(name: str, text: str, width: int = 13) -> list[str]:
    """A name, and the text that begins `width` characters after its start, in lines.

    >>> wrapped("chip", "v100")
    ['chip         v100']
    """
    return _wrapped(f"{name:<{width}}{text}", width)


def table(rows: Sequence[Sequence[str]], left: Iterable[int] = ()) -> list[str]:
    """Align the cells of rows, and return lines.

    rows: texts of the cells.
    left: numbers of the columns that are aligned to the left; the others are aligned to the right.

    >>> table([["job", "cycles"], ["a", "1,423"]], left=[0])
    ['job  cycles', 'a     1,423']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = set(left)
    lines = []
    for row in rows:
        cells = (
            cell.ljust(width) if index in aligned else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines
