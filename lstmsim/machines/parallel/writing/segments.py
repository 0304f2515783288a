"""Streams written in segments and kernels written in pieces, so that no loop of a warp is a loop here.

A stream is a prologue, the rounds of a loop, and an epilogue. Each of these is written as if it were a stream of its
own, all rounds of all warps at once; then the segments of a stream are put one behind the other. An instruction waits
for one of its own segment, for one at a known place of the stream, or for one a known number of places before its
segment. Only one piece of a kernel is in hand at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Instructions, Kernel, KernelShape
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps
from lstmsim.model.sparse.csr import firsts

#: Marks a place that counts from the beginning of the whole stream. No stream is so long.
_ANCHOR = 1 << 30


def anchored(fragments: Ints, places: Ints) -> Result:
    """A result of an earlier fragment of the same stream."""
    return Result(fragments, (places + _ANCHOR).astype(np.int32))


def glued(kernel: Kernel, shape: KernelShape, sm: NDArray[np.int32], first: Ints) -> Kernel:
    """The kernel whose streams are fragments, one behind the other."""
    text = kernel.instructions
    if len(first) != len(sm) * shape.warps + 1 or first[-1] != len(text.first) - 1:
        raise ValueError("fragments and streams do not fit together")
    starts = text.first[first]
    offset = text.first[:-1] - np.repeat(starts[:-1], np.diff(first))
    waits = np.diff(text.first_wait[text.first])
    shift = np.repeat(offset.astype(np.int32), waits)
    wait = np.where(text.wait >= _ANCHOR, text.wait - _ANCHOR, text.wait + shift)
    whole = Instructions(starts, text.kind, text.count, text.first_wait, wait)
    return Kernel(shape, sm, whole, kernel.lsu, kernel.array, kernel.first_sector, kernel.sector)


Number = TypeVar("Number", bound=np.generic)


def joined(pieces: Iterable[Kernel]) -> Kernel:
    """One kernel with the blocks of the pieces, one piece behind the other."""
    shapes: list[KernelShape] = []
    firsts: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    narrow: tuple[list[NDArray[np.int32]], ...] = ([], [], [], [], [])
    kinds: tuple[list[NDArray[np.int8]]] = ([],)
    arrays: tuple[list[NDArray[np.int16]]] = ([],)
    for piece in pieces:
        text = piece.instructions
        shapes.append(piece.shape)
        _append(firsts, (text.first, text.first_wait, piece.first_sector))
        _append(narrow, (piece.sm, text.count, text.wait, piece.lsu, piece.sector))
        _append(kinds, (text.kind,))
        _append(arrays, (piece.array,))
    if len(set(shapes)) != 1:
        raise ValueError(f"pieces of one kernel are wanted, these are of {len(set(shapes))}")
    first, first_wait, first_sector = (_chained_pieces(each) for each in firsts)
    sm, count, wait, lsu, sector = (_drained(column) for column in narrow)
    kind, array = _drained(kinds[0]), _drained(arrays[0])
    return Kernel(shapes[0], sm, Instructions(first, kind, count, first_wait, wait), lsu, array, first_sector, sector)


def _append(columns: tuple[list[NDArray[Number]], ...], parts: tuple[NDArray[Number], ...]) -> None:
    for column, part in zip(columns, parts, strict=True):
        column.append(part)


def _chained_pieces(firsts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Beginnings of entries of several pieces as those of one."""
    ends = np.cumsum([0] + [int(first[-1]) for first in firsts])
    firsts[:] = [first[:-1] + end for first, end in zip(firsts, ends[:-1], strict=True)]
    firsts.append(ends[-1:])
    return _drained(firsts)


def _drained(column: list[NDArray[Number]]) -> NDArray[Number]:
    """The parts as one, given up as soon as they are copied."""
    whole = column[0] if len(column) == 1 else np.concatenate(column)
    column.clear()
    return whole


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
        """The segments of a mask: their places in this piece, and what writes them."""
        chosen = np.flatnonzero(mask)
        return chosen, self.grid.warps(chosen)


def at_place(warps: Warps, places: NDArray[np.integer]) -> Result:
    """The instructions that stand at these places of their streams."""
    return Result(warps.numbers, (places + _OF_STREAM).astype(np.int32))


def places_before(warps: Warps, distance: int) -> Result:
    """The instructions that stand so many places before the beginning of each segment."""
    return Result(warps.numbers, np.full(len(warps), _BEFORE + distance, np.int32))


def written(
    text: Callable[[Piece], None],
    counts: Ints,
    grid: Callable[[], Grid],
    shape: KernelShape,
    sm: NDArray[np.int32],
    size: int,
) -> Kernel:
    """The kernel whose streams consist of segments."""
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
