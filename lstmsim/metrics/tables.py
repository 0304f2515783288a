"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["table"]


def table(rows: Sequence[Sequence[str]], left: Iterable[int] = ()) -> list[str]:
    """Aligned lines: the columns in `left` to the left, the others to the right.

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
