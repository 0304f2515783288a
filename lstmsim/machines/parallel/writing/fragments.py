"""Streams that are written in fragments: parts of a warp's work that do not wait for each other, side by side.

A warp that works on one thing after the other (groups of rows, slices of a block) would need a loop in Python over
these things. Written as streams of their own, all of them advance together, and are then put one behind the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Instructions, Kernel, KernelShape
from lstmsim.machines.parallel.writing.places import Result

__all__ = ["anchored", "glued"]

Ints = NDArray[np.int64]

#: Marks a place that counts from the beginning of the whole stream. No stream is so long.
_ANCHOR = 1 << 30


def anchored(fragments: Ints, places: Ints) -> Result:
    """A result of an earlier fragment of the same stream.

    fragments: shape (n,); ascending numbers of the fragments that wait for it.
    places: shape (n,); its place in the whole stream.
    """
    return Result(fragments, (places + _ANCHOR).astype(np.int32))


def glued(kernel: Kernel, shape: KernelShape, sm: NDArray[np.int32], first: Ints) -> Kernel:
    """The kernel whose streams are fragments, one behind the other.

    kernel: the fragments, in order, as blocks of one warp.
    shape: what the whole kernel asks of a multiprocessor.
    sm: shape (blocks,); the multiprocessor of each block, -1 for any.
    first: shape (streams + 1,); stream s has the fragments from `first[s]` to `first[s + 1]`.

    >>> from lstmsim.machines.parallel.writing.streams import Grid
    >>> grid = Grid(32, {})
    >>> one, more = grid.warps([0]), grid.warps([1, 2])
    >>> _, z = one.alu(), one.alu()
    >>> more.shfl([more.alu(waits=[anchored(more.numbers, np.array([1, 1]))])]).places.tolist()
    [1, 1]
    >>> parts = grid.kernel(KernelShape("parts", 1), np.full(3, -1))
    >>> whole = glued(parts, KernelShape("whole", 1), np.array([-1], np.int32), np.array([0, 3]))
    >>> whole.instructions.first.tolist(), whole.instructions.wait.tolist()
    ([0, 6], [1, 2, 1, 4])
    """
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
