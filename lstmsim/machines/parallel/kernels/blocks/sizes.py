"""Rows and columns of the blocks of HBP where nobody gives them."""

from __future__ import annotations

__all__ = ["block_sizes"]

#: Rows and columns that the rule starts from, and the fewest columns.
_ROWS, _COLUMNS, _FEWEST_COLUMNS = 512, 4096, 64


def block_sizes(
    shape: tuple[int, int], warp: int, wanted: int, m: int | None = None, n: int | None = None
) -> tuple[int, int]:
    """Rows and columns of a block: the largest of the rule with which there are enough blocks, else the smallest.

    The rule starts from 512 x 4096, halves the columns down to 64 and then the rows down to a warp's lanes.

    shape: rows and columns of the matrix.
    warp: lanes of a warp, a power of two.
    wanted: how many blocks are enough, one for each warp of the grid.
    m, n: rows and columns that are given; None: by the rule.

    >>> block_sizes((512, 256), 32, 64), block_sizes((4096, 16384), 32, 640), block_sizes((512, 256), 32, 64, n=128)
    ((32, 64), (512, 128), (32, 128))
    """
    rows = max(warp, _ROWS) if m is None else m
    columns = _COLUMNS if n is None else n
    while max(1, -(-shape[0] // rows)) * max(1, -(-shape[1] // columns)) < wanted:
        if n is None and columns > _FEWEST_COLUMNS:
            columns //= 2
        elif m is None and rows > warp:
            rows //= 2
        else:
            break
    return rows, columns
