"""Which lanes and warps share a result of a reduce in a pass; docs/fusion.md, section 10.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.fused.turns import Turn, Turns

__all__ = ["Spans", "spanning_passes", "spans_of"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Spans:
    """The results of the warps of a turn.

    results: shape (n, lanes); the result of each lane, 0 where a lane is off.
    alike: shape (n,); whether two lanes of a warp have the same result.
    heads: shape (n, lanes); of each result of a warp one lane, the first one.
    spanning: shape (n, lanes); of these, whether other warps of the block have the result as well.
    lowest: shape (n, lanes); of these, whether no lower warp of the block has the result.
    """

    results: Ints
    alike: Mask
    heads: Mask
    spanning: Mask
    lowest: Mask


def spans_of(turn: Turn, results: Ints, warps: int) -> Spans:
    """The spans of the first turn of a pass.

    turn: all blocks of the pass that are written together.
    results: shape (n, lanes); the result of each lane.
    warps: of a block.

    >>> turn = Turn((0, 0), np.array([0, 1]), np.ones((2, 2), bool), np.zeros((2, 2), np.int64))
    >>> spans = spans_of(turn, np.array([[7, 7], [7, 8]]), 2)
    >>> spans.alike.tolist(), spans.heads.tolist()
    ([True, False], [[True, False], [True, True]])
    >>> spans.spanning.tolist(), spans.lowest.tolist()
    ([[True, False], [True, False]], [[True, False], [False, True]])
    """
    row, lane = np.nonzero(turn.on)
    result = results[row, lane]
    block = turn.streams[row] // warps
    order = np.lexsort((result, block))
    heads, spanning, lowest = (np.zeros(turn.on.shape, bool) for _ in range(3))
    row, lane, result, block = row[order], lane[order], result[order], block[order]
    first = _new(result, block)
    head = first | _new(row)
    number = np.cumsum(first) - 1
    heads[row[head], lane[head]] = True
    lowest[row[first], lane[first]] = True
    several = np.bincount(number[head]) > 1
    mask = head & several[number]
    spanning[row[mask], lane[mask]] = True
    alike = np.count_nonzero(heads, axis=1) < np.count_nonzero(turn.on, axis=1)
    return Spans(results, alike, heads, spanning, lowest)


def spanning_passes(turns: Turns, results: Ints) -> dict[int, int]:
    """The passes of a reduce in which, in some block, several warps have the same result, and at most how many have.

    turns: of the whole kernel.
    results: shape (n,); the result of each of `turns.elements`.
    """
    begin = np.flatnonzero(turns.turn == 0)
    step = turns.step[begin]
    # small numbers are sorted fast
    begin = begin[np.argsort(step.astype(np.uint16) if step.max(initial=0) < 1 << 16 else step, kind="stable")]
    keys = [turns.step[begin], turns.lane[begin] // turns.lanes, results[begin]]
    # neighbours in a warp have the same result as a rule: there are fewer rows to sort
    keys = [each[_new(*keys)] for each in keys]
    step, stream, result = keys
    block = stream // (turns.row // turns.lanes)
    order = np.lexsort((stream, result, block, step))
    step, block, result, stream = (each[order] for each in (step, block, result, stream))
    new = _new(step, block, result)
    other = new | _new(stream)
    starts = np.flatnonzero(new)
    most = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
    if len(starts):
        np.maximum.at(most, step[starts], np.add.reduceat(other.astype(np.int64), starts))
    return {number: warps for number, warps in enumerate(most.tolist()) if warps > 1}


def _new(*columns: Ints) -> Mask:
    """Which rows differ from the one before in some column; the first one does."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new
