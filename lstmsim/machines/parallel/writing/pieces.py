"""Kernels written piece by piece, so that only a piece at a time is in hand while it is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Instructions, Kernel, KernelShape

__all__ = ["joined"]

Number = TypeVar("Number", bound=np.generic)


def joined(pieces: Iterable[Kernel]) -> Kernel:
    """One kernel with the blocks of the pieces, one piece behind the other.

    pieces: kernels of the same shape. Given one by one (by a generator), each is dropped as soon as it is read.
    """
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
    first, first_wait, first_sector = (_chained(each) for each in firsts)
    sm, count, wait, lsu, sector = (_drained(column) for column in narrow)
    kind, array = _drained(kinds[0]), _drained(arrays[0])
    return Kernel(shapes[0], sm, Instructions(first, kind, count, first_wait, wait), lsu, array, first_sector, sector)


def _append(columns: tuple[list[NDArray[Number]], ...], parts: tuple[NDArray[Number], ...]) -> None:
    for column, part in zip(columns, parts, strict=True):
        column.append(part)


def _chained(firsts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
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
