"""Streams written in segments, so that a loop that one warp takes a million times costs no loop here.

A stream is a prologue, the rounds of a loop, and an epilogue. Each of these is written as if it were a stream of its
own, all rounds of all warps at once; then the segments of a stream are put one behind the other. What an instruction
waits for lies in its own segment, at a known place of the stream, or a known number of places before its segment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Kernel, KernelShape
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined
from lstmsim.model.sparse.ranges import firsts

__all__ = ["Piece", "at_place", "places_before", "written"]

Ints = NDArray[np.int64]
#: Places of a segment are below this; what is above says a place of the stream, or a distance before the segment.
_OF_STREAM, _BEFORE = 1 << 28, 1 << 29


@dataclass(frozen=True, eq=False)
class Piece:
    """Some consecutive segments, while they are written.

    grid: what they are written into; a segment is a stream of it.
    stream: shape (n,); the stream of each segment.
    place: shape (n,); which segment of its stream it is, from 0.
    """

    grid: Grid
    stream: Ints
    place: Ints

    def where(self, mask: NDArray[np.bool_]) -> tuple[Ints, Warps]:
        """The segments of a mask: their places in this piece, and what writes them.

        mask: shape (n,).
        """
        chosen = np.flatnonzero(mask)
        return chosen, self.grid.warps(chosen)


def at_place(warps: Warps, places: NDArray[np.integer]) -> Result:
    """The instructions that stand at these places of their streams.

    warps: segments of the streams.
    places: shape (n,).
    """
    return Result(warps.numbers, (places + _OF_STREAM).astype(np.int32))


def places_before(warps: Warps, distance: int) -> Result:
    """The instructions that stand so many places before the beginning of each segment.

    warps: the segments.
    distance: at least 1; 1 is the last instruction of the segment before.
    """
    return Result(warps.numbers, np.full(len(warps), _BEFORE + distance, np.int32))


def written(
    text: Callable[[Piece], None],
    counts: Ints,
    grid: Callable[[], Grid],
    shape: KernelShape,
    sm: NDArray[np.int32],
    size: int,
) -> Kernel:
    """The kernel whose streams consist of segments.

    text: writes the segments of a piece. Pieces come in the order of streams and, in a stream, of its segments.
    counts: shape (streams,); how many segments each stream has.
    grid: makes an empty grid.
    shape: what the kernel asks of a multiprocessor.
    sm: shape (blocks,); the multiprocessor of each block, -1 for any.
    size: how many segments a piece has at most.
    """
    begins = firsts(counts)
    total = int(begins[-1])
    if not total:
        return grid().kernel(shape, sm)
    alone = KernelShape("segment", 1)

    def piece(start: int) -> Kernel:
        numbers = np.arange(start, min(start + size, total), dtype=np.int64)
        stream = np.searchsorted(begins, numbers, "right") - 1
        into = grid()
        text(Piece(into, stream, numbers - begins[stream]))
        return into.kernel(alone, np.full(len(numbers), -1, np.int32))

    return _chained(joined(piece(start) for start in range(0, total, size)), begins, shape, sm)


def _chained(segments: Kernel, begins: Ints, shape: KernelShape, sm: NDArray[np.int32]) -> Kernel:
    """The segments of each stream one behind the other, and waits as places of the stream."""
    text = segments.instructions
    first = text.first[begins]
    offsets = (text.first[:-1] - np.repeat(first[:-1], np.diff(begins))).astype(np.int32)
    offset = np.repeat(offsets, np.diff(text.first_wait[text.first]))
    wait = text.wait
    known, before = (wait >= _OF_STREAM) & (wait < _BEFORE), wait >= _BEFORE
    places = wait + offset
    places[known] = wait[known] - _OF_STREAM
    places[before] = offset[before] - (wait[before] - _BEFORE)
    instructions = replace(text, first=first, wait=places)
    return replace(segments, shape=shape, sm=np.asarray(sm, np.int32), instructions=instructions)
