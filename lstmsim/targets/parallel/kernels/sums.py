"""Small kernels with one element a lane: set to zero, and add up partial results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lstmsim.targets.parallel.kernel import Kernel, KernelShape
from lstmsim.targets.parallel.streams import Grid, Warps, joined

__all__ = ["element_kernel", "summing_kernel", "zeroing_kernel"]

Ints = NDArray[np.int64]
#: What some warps do: given them, the elements of their lanes and which of these there are.
Text = Callable[[Warps, Ints, NDArray[np.bool_]], None]
#: Warps that are written at once.
_CHUNK = 1 << 14


def zeroing_kernel(lanes: int, arrays: Mapping[str, int], array: str, elements: int, warps: int) -> Kernel:
    """A kernel that sets the elements of an array to 0, one element a lane.

    lanes: of a warp.
    arrays: places of the run's arrays by name.
    array: the array.
    elements: how many.
    warps: of a block.
    """

    def text(some: Warps, element: Ints, on: NDArray[np.bool_]) -> None:
        some.stg(array, element, on, [some.alu(4)])

    return element_kernel(KernelShape("zero", warps, 16), lanes, arrays, elements, text)


def summing_kernel(
    shape: KernelShape, lanes: int, arrays: Mapping[str, int], parts: tuple[str, int], result: tuple[str, int]
) -> Kernel:
    """A kernel that adds up parts that lie one behind the other, in order, one element a lane.

    shape: what it asks of a multiprocessor.
    lanes: of a warp.
    arrays: places of the run's arrays by name.
    parts: array of the parts and how many they are.
    result: array of the result and its elements, which are those of each part.
    """
    source, count = parts
    target, elements = result

    def text(some: Warps, element: Ints, on: NDArray[np.bool_]) -> None:
        z, last = some.alu(4), None
        for part in range(count):
            last = some.fma(1, [some.ldg(source, part * elements + element, on, [z]), last])
        some.stg(target, element, on, [last])

    return element_kernel(shape, lanes, arrays, elements, text)


def element_kernel(shape: KernelShape, lanes: int, arrays: Mapping[str, int], elements: int, text: Text) -> Kernel:
    """A kernel with one element a lane: consecutive elements in a warp, consecutive warps in a block.

    shape: what it asks of a multiprocessor.
    lanes: of a warp.
    arrays: places of the run's arrays by name.
    elements: how many. Warps behind the last element do nothing.
    text: writes what some warps do, given them, their elements and which of these there are, each of shape (n, lanes).
    """
    streams = -(-elements // lanes)
    blocks = -(-streams // shape.warps)

    def pieces() -> Iterator[Kernel]:
        step = max(1, _CHUNK // shape.warps)
        for start in range(0, max(blocks, 1), step):
            stop = min(blocks, start + step)
            grid = Grid(lanes, arrays)
            number = np.arange(start * shape.warps, min(streams, stop * shape.warps))
            element = number[:, None] * lanes + np.arange(lanes)
            if len(number):
                text(grid.warps(number - start * shape.warps), element, element < elements)
            yield grid.kernel(shape, np.full(stop - start, -1))

    return joined(pieces())
