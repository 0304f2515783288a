"""The hash of HBP: which place of its block's table each row takes, by how many non-zeros it has there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["HASHES", "Placing", "Table", "bases", "literal_places", "placed"]

#: Strategies by name; the last two look at no entries.
HASHES = ("linear", "linear-warp", "shift", "sampled", "identity", "sort")

#: Most rows that `sampled` looks at, and the quantiles (in percent) through which its line goes.
_SAMPLED, _LOW, _HIGH = 64, 5, 95

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """What a strategy knows of the table of one block.

    m: rows of a whole block.
    end: entries of the table, the rows of this block.
    columns: columns of this block.
    omega: rows of a group, the lanes of a warp.
    scale: rows times columns of the matrix for each of its non-zeros; 0 for a matrix without any.
    shift: right and left shift of the strategy `shift`.
    """

    m: int
    end: int
    columns: int
    omega: int
    scale: Fraction
    shift: tuple[int, int] = (4, 8)


@dataclass(frozen=True, eq=False)
class Placing:
    """Where the rows of a block went.

    place: shape (rows,); the place of each row in the table.
    probes: shape (rows,); entries that probing one by one looks at, the taken one included.
    finds: entries that a structure of next free entries looks at for the same places, over all rows.
    """

    place: Ints
    probes: Ints
    finds: int


def placed(strategy: str, counts: Ints, table: Table) -> Placing:
    """The places of a block's rows.

    strategy: one of `HASHES`.
    counts: shape (rows,); non-zeros of each row in the block.
    table: the block.

    >>> table = Table(m=4, end=4, columns=8, omega=2, scale=Fraction(4))
    >>> placed("sort", np.array([3, 1, 2, 1]), table).place
    array([3, 0, 2, 1])
    >>> made = placed("linear", np.array([3, 1, 2, 1]), table)
    >>> made.place, made.probes
    (array([3, 1, 2, 0]), array([1, 1, 1, 3]))
    """
    nothing = np.zeros(len(counts), np.int64)
    if strategy == "identity":
        return Placing(np.arange(len(counts)), nothing, 0)
    if strategy == "sort":
        place = np.empty(len(counts), np.int64)
        place[np.argsort(counts, kind="stable")] = np.arange(len(counts))
        return Placing(place, nothing, 0)
    return literal_places(bases(strategy, counts, table), table.end)


def bases(strategy: str, counts: Ints, table: Table) -> Ints:
    """Where the search for a free entry begins for each row: the strategy's function of the row's non-zeros.

    Whole numbers only; of a matrix without non-zeros every base is 0. Bases behind the table are all alike: `end`.

    >>> bases("shift", np.array([0, 16, 40]), Table(512, 512, 64, 32, Fraction(10)))
    array([  0, 256, 512])
    """
    if not table.scale:
        return np.zeros(len(counts), np.int64)
    if strategy == "shift":
        right, left = table.shift
        return np.array([min(count >> right << left, table.end) for count in counts.tolist()], dtype=np.int64)
    if strategy == "sampled":
        return _sampled(counts, table.end)
    # floor(c * scale * m / (2 * columns)) with whole numbers of any size; each count occurs in many rows
    steps, unit = (table.m, 1) if strategy == "linear" else (table.m // table.omega, table.omega)
    slope = table.scale * steps / (2 * table.columns)
    values, back = np.unique(counts, return_inverse=True)
    made = [min(count * slope.numerator // slope.denominator * unit, table.end) for count in values.tolist()]
    return np.array(made, dtype=np.int64)[back]


def _sampled(counts: Ints, end: int) -> Ints:
    """Bases on the line through the low and the high quantile of some rows' non-zeros."""
    size = min(_SAMPLED, end)
    some = np.sort(counts[np.arange(size) * end // size])
    low, high = (int(some[percent * (size - 1) // 100]) for percent in (_LOW, _HIGH))
    if low == high:
        return np.full(len(counts), end // 2, dtype=np.int64)
    line: Ints = (counts - low) * (end - 1) // (high - low)
    return line.clip(0, end - 1)


def literal_places(base: Ints, end: int) -> Placing:
    """Rows in order take the first free entry of base, base + 1, base - 1, base + 2, ..; from the end if base >= end.

    The nearest free entries on both sides come from structures of next free entries; how many entries one would have
    looked at one by one follows from their distances. So a full table costs no square of its size.

    base: shape (rows,); at least 0.
    end: entries of the table, at least as many as rows.

    >>> made = literal_places(np.array([1, 1, 1, 9]), 4)
    >>> made.place, made.probes
    (array([1, 2, 0, 3]), array([1, 2, 3, 1]))
    """
    # above[i]: the next free entry from i on, or nearer to it; `end`: none. below[i + 1]: from i down; 0: none.
    above, below = list(range(end + 1)), list(range(end + 1))
    place, probes = [0] * len(base), [0] * len(base)
    finds = 0
    for row, start in enumerate(base.tolist()):
        up = down = start
        if start < end:
            finds += 1
            while above[up] != up:
                above[up] = up = above[above[up]]
                finds += 1
        else:
            up, down = end, end - 1
        down += 1
        finds += 1
        while below[down] != down:
            below[down] = down = below[below[down]]
            finds += 1
        down -= 1
        right, left = up - start, start - down
        if start >= end:
            taken, looked = down, end - down
        elif up < end and (down < 0 or right <= left):
            taken, looked = up, 1 + right + min(max(right - 1, 0), start)
        else:
            taken, looked = down, 1 + left + min(left, end - 1 - start)
        place[row], probes[row] = taken, looked
        above[taken], below[taken + 1] = taken + 1, taken
    return Placing(np.array(place, dtype=np.int64), np.array(probes, dtype=np.int64), finds)
