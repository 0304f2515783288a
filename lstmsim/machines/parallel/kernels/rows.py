"""Rows of a sparse matrix: how they are stored, put in order, bundled, dealt to blocks and SMs, and summed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import Mistake
from lstmsim.base.keys import Key
from lstmsim.machines.parallel.kernel import Made, Memory
from lstmsim.machines.parallel.kernels.options import refuse
from lstmsim.model.sparse.csr import Csr, Dcsr

Ints = NDArray[np.int64]

ALIGNMENTS = ("reverse", "none", "pad")

#: Keys that options of several kernels have.
ORDER = Key("rows as they are (plain) or longest first (sorted)", choices=("plain", "sorted"))
DISPATCH = Key(
    "blocks on demand, or given to multiprocessors beforehand in runs (static), in turn by falling load (round), or to "
    "and fro by falling load (snake); hybrid: the heavier half to and fro, the rest on demand",
    choices=("demand", "static", "round", "snake", "hybrid"),
)
VECTOR = Key(
    "elements that a lane loads, computes and stores at once",
    low=1,
    high=4,
    rule=lambda value: "" if value in (1, 2, 4) else "must be 1, 2 or 4",
)
REGISTERS = Key("registers of a thread", low=0)


def default_vector(size: int) -> int:
    """The widest vector of 4, 2 or 1 elements that divides a size."""
    return 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1


def allocated(entries: int) -> int:
    """How many entries an array has room for: at least 1, a multiple of 4."""
    return -(-max(1, entries) // 4) * 4


def bad_lanes(value: int | None, warp: int) -> Mistake | None:
    """What is wrong with the option `lanes`, or None."""
    if value is None or (0 < value <= warp and value & (value - 1) == 0):
        return None
    return Mistake("lanes", f"must be a power of two up to the {warp} lanes of a warp, got {value}")


def addressable(arrays: tuple[Memory, ...], element_bytes: int = 4) -> tuple[Memory, ...]:
    """These arrays; `InputError` if one has more elements than an address of a lane can tell apart."""
    most = np.iinfo(np.int32).max
    refuse(
        Mistake(each.name, f"must have at most {most} elements, got {each.elements}")
        for each in arrays
        if each.elements > most
    )
    return arrays if element_bytes == 4 else tuple(replace(each, bytes=element_bytes) for each in arrays)


@dataclass(frozen=True, eq=False)
class RowsMade(Made):
    """Kernels whose warps have rows of a sparse matrix.

    run, result, metrics: as of `Made`.
    order: the rows of the format in the order in which they are bundled; None if that is their own.
    placing: the multiprocessor of each block in grid order; None if they go on demand.
    lockstep_waste: places that bundles take until their longest row ends, for each entry.
    """

    order: list[int] | None
    placing: list[int] | None
    lockstep_waste: float


@dataclass(frozen=True, eq=False)
class Stored:
    """The rows of a matrix as a kernel finds them in memory, and where it begins and ends in each.

    vector: how many elements of `cols` and of `values` a lane loads at once.
    row: shape (n,); the row of the matrix that each stored row is.
    length: shape (n,); entries of each row, without fill.
    masked: shape (n,); how many elements before its first entry each row loads.
    start: shape (n,); where the loads of each row begin in `cols` and `values`.
    end: shape (n,); how many elements from there on each row has, masked ones and fill among them.
    cols, values: shape (stored entries,); fill is column 0 and value 0.
    """

    vector: int
    row: Ints
    length: Ints
    masked: Ints
    start: Ints
    end: Ints
    cols: Ints
    values: NDArray[Any]


def stored(matrix: Csr | Dcsr, vector: int, align: str) -> Stored:
    """The matrix as a kernel finds it in memory."""
    offset = matrix.row_ptr[:-1]
    length = np.diff(matrix.row_ptr)
    row = matrix.row_numbers if isinstance(matrix, Dcsr) else np.arange(matrix.rows, dtype=np.int64)
    nothing = np.zeros(len(length), np.int64)
    if align == "none":
        return Stored(1, row, length, nothing, offset, length, matrix.cols, matrix.values)
    if align == "reverse":
        masked = np.where(length > 0, offset % vector, 0)
        return Stored(vector, row, length, masked, offset - masked, length + masked, matrix.cols, matrix.values)
    end = -(-length // vector) * vector
    start = np.cumsum(end) - end
    cols = np.zeros(int(end.sum()), np.int64)
    values = np.zeros(len(cols), matrix.values.dtype)
    place = np.arange(matrix.entries) + np.repeat(start - offset, length)
    cols[place], values[place] = matrix.cols, matrix.values
    return Stored(vector, row, length, nothing, start, end, cols, values)


@dataclass(frozen=True, eq=False)
class Dealt:
    """The blocks of a grid, and the rows of their bundles.

    order: shape (n,); places of stored rows in the order in which they are bundled.
    tile, bundle: shape (blocks,); what each block of the grid works on.
    sm: shape (blocks,); its multiprocessor, -1 for any.
    """

    order: Ints
    tile: Ints
    bundle: Ints
    sm: NDArray[np.int32]

    def rows(self, warps: int, rows: int, share: bool = False) -> Ints:
        """The places of the stored rows of each subwarp, -1 for none, shape (blocks * warps, rows)."""
        of_block = rows if share else rows * warps
        place = np.repeat(self.bundle * of_block, warps)
        if not share:
            place += np.tile(np.arange(warps) * rows, len(self.bundle))
        places = place[:, None] + np.arange(rows)
        padded = np.append(self.order, -1)
        which: Ints = padded[np.minimum(places, len(self.order))]
        return which


def ordered(length: Ints, order: str) -> Ints:
    """Places of rows as they are, or by length, longest first."""
    return np.argsort(-length, kind="stable") if order == "sorted" else np.arange(len(length), dtype=np.int64)


def dealt(order: Ints, loads: Ints, bundle: int, dispatch: str, sms: int) -> Dealt:
    """The grid of tiles and bundles of rows."""
    tiles, bundles = len(loads), -(-len(order) // bundle)
    blocks = tiles * bundles
    natural = np.arange(blocks, dtype=np.int64)
    sm = np.full(blocks, -1, np.int64)
    if dispatch == "static":
        sm = natural * sms // max(1, blocks)
    elif dispatch != "demand" and blocks:
        load = np.add.reduceat(loads[:, order], np.arange(0, len(order), bundle), axis=1).reshape(-1)
        ranks, natural = natural, np.argsort(-load, kind="stable")
        turn, place = ranks // sms, ranks % sms
        sm = np.where((turn % 2 == 1) & (dispatch != "round"), sms - 1 - place, place)
        if dispatch == "hybrid":
            sm[blocks // 2 :] = -1
    tile, which = np.divmod(natural, max(1, bundles))
    return Dealt(order, tile, which, sm.astype(np.int32))


def gathered(grid: Dealt, blocks: int) -> tuple[Dealt, Ints]:
    """The blocks of a grid in the hands of fewer thread blocks, each of which works on several one after the other.

    Returns the grid with the blocks of each thread block side by side, and where those of each begin, shape
    (blocks + 1,).
    """
    side_by_side = np.argsort(grid.sm, kind="stable")
    first = np.searchsorted(grid.sm[side_by_side], np.arange(blocks + 1))
    anywhere = np.full(len(grid.sm), -1, np.int32)
    return Dealt(grid.order, grid.tile[side_by_side], grid.bundle[side_by_side], anywhere), first


Values = NDArray[Any]

#: With fewer sums than this still going on, each is finished on its own.
_FEW = 24
_AT_ONCE = 1 << 14


def add_in_order(sums: Values, first: Ints, term: Callable[[Ints], Values]) -> None:
    """Add to each sum its terms, one after the other."""
    lengths = np.diff(first)
    order = np.argsort(-lengths, kind="stable")
    begins, falling = first[:-1][order], -lengths[order]
    # so many sums have more than k terms, k = 0, 1, ..
    longest = int(-falling[0]) if len(falling) else 0
    work = sums[order]
    step = 0
    while step < longest:
        going = int(np.searchsorted(falling, -step, "left"))
        if going < _FEW:
            break
        work[:going] += term(begins[:going] + step)
        step += 1
    for which in range(int(np.searchsorted(falling, -step, "left")) if step < longest else 0):
        end = int(begins[which] - falling[which])
        for start in range(int(begins[which]) + step, end, _AT_ONCE):
            terms = term(np.arange(start, min(start + _AT_ONCE, end), dtype=np.int64))
            terms[0] += work[which]
            # unlike a sum, what accumulates gives every sum on the way, and so adds in order
            work[which] = np.add.accumulate(terms, axis=0)[-1]
    sums[order] = work


def tree(lanes: Values) -> Values:
    """The sum that lanes side by side make by halves: lane l gets that of lane l + h, for h = half, quarter, .. 1.

    Gives shape (..,).
    """
    half = lanes.shape[-1] // 2
    while half:
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
        half //= 2
    result: Values = lanes[..., 0]
    return result
