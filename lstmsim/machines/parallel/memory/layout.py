"""Where the arrays of a run lie in device memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import Kernel, Memory
from lstmsim.machines.parallel.memory.addresses import SECTOR_BYTES

__all__ = ["Layout", "addresses", "laid", "sectors_of"]

#: Arrays begin at multiples of so many bytes.
_ALIGNED = 256
#: Most elements of an array: lanes keep their numbers in 32 bits.
_ELEMENTS = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Layout:
    """Sectors of 32 bytes of all arrays of a run, numbered from address 0 on.

    begin: shape (arrays,); the sector with which each array begins.
    sectors: shape (arrays,); how many sectors each array has.
    total: sectors up to the end of the last array.
    """

    begin: NDArray[np.int64]
    sectors: NDArray[np.int64]
    total: int


def addresses(arrays: tuple[Memory, ...]) -> list[int]:
    """The byte address of each array: one behind the other, each from the next multiple of 256 on.

    >>> addresses((Memory("row_ptr", 65), Memory("cols", 4), Memory("x", 1)))
    [0, 512, 768]
    >>> addresses((Memory("W", 65, bytes=2), Memory("x", 1, bytes=2)))
    [0, 256]
    """
    result, end = [], 0
    for array in arrays:
        result.append(-(-end // _ALIGNED) * _ALIGNED)
        end = result[-1] + array.bytes * array.elements
    return result


def laid(arrays: tuple[Memory, ...]) -> Layout:
    """The sectors of these arrays.

    Raises `InputError` for an array with more elements than addresses of lanes can tell apart.
    """
    for array in arrays:
        if array.elements > _ELEMENTS:
            sentence = f"array '{array.name}' has {array.elements} elements, at most {_ELEMENTS} can be simulated"
            raise InputError(sentence)
    begin = np.array(addresses(arrays), np.int64) // SECTOR_BYTES
    sectors = np.array([-(-array.bytes * array.elements // SECTOR_BYTES) for array in arrays], np.int64)
    return Layout(begin, sectors, int((begin + sectors).max(initial=0)))


def sectors_of(kernel: Kernel, layout: Layout, rows: slice) -> NDArray[np.int64]:
    """The run's numbers of the sectors that some rows of a kernel touch.

    Raises `ValueError` if one lies behind the end of its array: the kernel was written wrongly.
    """
    bounds = kernel.first_sector[rows.start : rows.stop + 1]
    array = np.repeat(kernel.array[rows], np.diff(bounds))
    sector = kernel.sector[bounds[0] : bounds[-1]]
    outside = np.flatnonzero(sector >= layout.sectors[array])
    if len(outside):
        raise ValueError(f"kernel '{kernel.shape.name}' touches what lies behind the end of array {array[outside[0]]}")
    return layout.begin[array] + sector
