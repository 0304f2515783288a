"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["table"]


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
