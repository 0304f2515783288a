"""Which lane evaluates which element of a stage in which turn, and who shares a result; docs/fusion.md, section 10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.fusion.plan import Owners

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Turn:
    """What lanes evaluate at once.

    number: of the pass (each thread's results, one after the other), and of the turn in it.
    streams: shape (n,); ascending numbers of the warps that take part.
    on: shape (n, lanes); which lanes do.
    elements: shape (n, lanes); their elements; 0 where a lane does not.
    """

    number: tuple[int, int]
    streams: Ints
    on: NDArray[np.bool_]
    elements: Ints


@dataclass(frozen=True, eq=False)
class Turns:
    """The elements of a stage in the order of their threads, the elements of a thread in the order of their turns.

    lanes, row: lanes of a warp, and lanes of all warps of a block.
    elements: shape (n,); the elements.
    lane: shape (n,); block * row + thread of each.
    step, turn: shape (n,); its pass, and its turn in that.
    most: the most elements that a thread has.
    """

    lanes: int
    row: int
    elements: Ints
    lane: Ints
    step: Ints
    turn: Ints
    most: int

    def of_blocks(self, begin: int, end: int) -> Iterator[Turn]:
        """The turns of the blocks from `begin` to before `end`, in order; their streams are counted from `begin` on."""
        first, last = np.searchsorted(self.lane, (begin * self.row, end * self.row)).tolist()
        if first == last:
            return
        part = slice(first, last)
        each = int(self.turn[part].max()) + 1
        code = self.step[part] * each + self.turn[part]
        order = np.argsort(code, kind="stable")
        bounds = np.flatnonzero(np.diff(code[order], prepend=-1, append=-1))
        lane, elements = self.lane[part][order] - begin * self.row, self.elements[part][order]
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            number = divmod(int(code[order[start]]), each)
            yield self._turn(number, lane[start:stop], elements[start:stop])

    def _turn(self, number: tuple[int, int], lane: Ints, elements: Ints) -> Turn:
        stream = lane // self.lanes
        new = np.diff(stream, prepend=-1) > 0
        place = (np.cumsum(new) - 1) * self.lanes + lane % self.lanes
        streams = stream[new]
        on = np.zeros((len(streams), self.lanes), bool)
        table = np.zeros((len(streams), self.lanes), np.int64)
        on.reshape(-1)[place] = True
        table.reshape(-1)[place] = elements
        return Turn(number, streams, on, table)


def turns_of(owners: Owners, lanes: int, warps: int, results: Ints | None = None) -> Turns:
    """The turns of a stage."""
    row = lanes * warps
    lane = owners.block.astype(np.int64) * row + owners.thread
    if results is None:
        order = _order(lane)
        lane = lane[order]
        turn, starts = _ranks(np.diff(lane, prepend=-1) > 0)
        return Turns(lanes, row, order, lane, np.zeros_like(turn), turn, _most(starts, len(lane)))
    order = np.lexsort((results, lane))
    lane, results = lane[order], results[order]
    thread_new = np.diff(lane, prepend=-1) > 0
    result_new = thread_new | (np.diff(results, prepend=-1) != 0)
    turn, _ = _ranks(result_new)
    _, starts = _ranks(thread_new)
    numbers = np.cumsum(result_new) - 1
    step = numbers - np.repeat(numbers[starts], np.diff(np.append(starts, len(lane))))
    return Turns(lanes, row, order, lane, step, turn, _most(starts, len(lane)))


def _order(lane: Ints) -> Ints:
    if (lane[1:] >= lane[:-1]).all():
        return np.arange(len(lane))
    return np.argsort(lane, kind="stable")


def _ranks(new: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The rank of each row in its run of rows, and where the runs begin."""
    starts = np.flatnonzero(new)
    return np.arange(len(new)) - np.repeat(starts, np.diff(np.append(starts, len(new)))), starts


def _most(starts: Ints, n: int) -> int:
    return int(np.diff(np.append(starts, n)).max(initial=0))


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
    """The spans of the first turn of a pass."""
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
    """The passes of a reduce in which, in some block, several warps have the same result, and at most how many have."""
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
