"""Which lanes and warps of a block share results of a reduce; docs/fusion.md, section 10.2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.targets.parallel.fused.turns import Turn, Turns

__all__ = ["Holders", "Spans", "holders_of"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Spans:
    """The results of the warps of a turn.

    results: shape (n, lanes); the result of each lane; any where a lane is off.
    alike: shape (n,); whether two lanes of a warp have the same result.
    heads: shape (n, lanes); of each result of a warp one lane, the first one.
    sharing: shape (n, lanes); how many warps of the block have a lane's result, 0 where a lane is off.
    lowest: shape (n, lanes); of `heads`, whether no lower warp of the block has the result.
    """

    results: Ints
    alike: Mask
    heads: Mask
    sharing: Ints
    lowest: Mask


@dataclass(frozen=True, eq=False)
class Holders:
    """Which warps have elements of a result, in any pass.

    keys: shape (n,); block * count + result of each pair that occurs, ascending.
    lowest, warps: shape (n,); of each pair the lowest warp, and how many there are.
    count: of all results.
    block_warps: warps of a block.
    """

    keys: Ints
    lowest: Ints
    warps: Ints
    count: int
    block_warps: int

    @property
    def crosses(self) -> bool:
        """Whether in some block some result spans warps."""
        return bool(self.warps.max(initial=1) > 1)

    def spans(self, turn: Turn, begin: int, results: Ints) -> Spans:
        """The spans of the first turn of a pass.

        turn: the turn.
        begin: the block from which its streams are counted.
        results: shape (n, lanes); the result of each lane.

        >>> from lstmsim.fusion.plan import Owners
        >>> from lstmsim.targets.parallel.fused.turns import turns_of
        >>> owners = Owners(np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
        >>> results = np.array([7, 7, 7, 8])
        >>> turns = turns_of(owners, 2, 2, results)
        >>> (turn,) = turns.of_blocks(0, 1)
        >>> spans = holders_of(turns, results, 9).spans(turn, 0, results.reshape(2, 2))
        >>> spans.alike.tolist(), spans.heads.tolist()
        ([True, False], [[True, False], [True, True]])
        >>> spans.sharing.tolist(), spans.lowest.tolist()
        ([[2, 2], [2, 1]], [[True, False], [False, True]])
        """
        block, warp = np.divmod(turn.streams, self.block_warps)
        keys = (block + begin)[:, None] * self.count + results
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        heads = _heads(results, turn.on)
        alike = np.count_nonzero(heads, axis=1) < np.count_nonzero(turn.on, axis=1)
        lowest = heads & (self.lowest[at] == warp[:, None])
        return Spans(results, alike, heads, self.warps[at] * turn.on, lowest)


def _heads(results: Ints, on: Mask) -> Mask:
    """Of each result of a row the first place that is on."""
    row, lane = np.nonzero(on)
    result = results[row, lane]
    order = np.lexsort((result, row))
    first = order[_new(row[order], result[order])]
    heads = np.zeros(on.shape, bool)
    heads[row[first], lane[first]] = True
    return heads


def holders_of(turns: Turns, results: Ints, count: int) -> Holders:
    """Which warps have elements of each result.

    turns: of the whole kernel.
    results: shape (n,); the result of each of `turns.elements`.
    count: of all results.
    """
    begin = np.flatnonzero(turns.turn == 0)
    step = turns.step[begin]
    # small numbers are sorted fast
    begin = begin[np.argsort(step.astype(np.uint16) if step.max(initial=0) < 1 << 16 else step, kind="stable")]
    stream, result = turns.lane[begin] // turns.lanes, results[begin]
    # neighbours in a warp have the same result as a rule: there are fewer rows to sort
    new = _new(stream, result)
    warps = turns.row // turns.lanes
    block, warp = np.divmod(stream[new], warps)
    keys = block * count + result[new]
    order = np.lexsort((warp, keys))
    keys, warp = keys[order], warp[order]
    starts = np.flatnonzero(_new(keys))
    others = np.add.reduceat(_new(keys, warp).astype(np.int64), starts) if len(starts) else starts
    return Holders(keys[starts], warp[starts], others, count, warps)


def _new(*columns: Ints) -> Mask:
    """Which rows differ from the one before in some column; the first one does."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new
