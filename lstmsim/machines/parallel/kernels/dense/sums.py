"""Small kernels with one element a lane: set to zero, and add up partial results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Kernel, KernelShape
from lstmsim.machines.parallel.kernels.dense.phases import phase_kernel
from lstmsim.machines.parallel.writing.streams import Result, Warps

__all__ = ["Elements", "Sum", "Zero", "summing_kernel", "zeroing_kernel"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Elements(ABC):
    """A phase with one element a lane: consecutive elements in a warp, consecutive warps in a block.

    shape: what it asks of a multiprocessor.
    lanes: of a warp.
    elements: how many. Warps behind the last element do nothing.
    """

    shape: KernelShape
    lanes: int
    elements: int

    @property
    def streams(self) -> int:
        """Warps that have an element."""
        return -(-self.elements // self.lanes)

    def write(self, warps: Warps, stream: Ints) -> list[Result]:
        """Write the part of some warps; arguments as of `Phase.write`."""
        element = stream[:, None] * self.lanes + np.arange(self.lanes)
        return self.text(warps, element, element < self.elements)

    @abstractmethod
    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; returns their stores.

        element: shape (n, lanes); the element of each lane.
        on: shape (n, lanes); whether there is one.
        """


@dataclass(frozen=True)
class Zero(Elements):
    """Sets the elements of an array to 0.

    array: its name.
    """

    array: str

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        return [warps.stg(self.array, element, on, [warps.alu(4)])]


@dataclass(frozen=True)
class Sum(Elements):
    """Adds up parts that lie one behind the other, in order.

    source: array of the parts.
    parts: how many they are; each has `elements`.
    target: array of the result.
    """

    source: str
    parts: int
    target: str

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        z, last = warps.alu(4), None
        for part in range(self.parts):
            last = warps.fma(1, [warps.ldg(self.source, part * self.elements + element, on, [z]), last])
        return [warps.stg(self.target, element, on, [last])]


def zeroing_kernel(device: Device, arrays: Mapping[str, int], array: str, elements: int, warps: int) -> Kernel:
    """The kernel that sets an array to 0.

    device: the device that it is written for.
    arrays: places of the run's arrays by name.
    array, elements: its name and size.
    warps: of a block.
    """
    return phase_kernel(Zero(KernelShape("zero", warps, 16), device.warp, elements, array), device, arrays)


def summing_kernel(
    shape: KernelShape, device: Device, arrays: Mapping[str, int], parts: tuple[str, int], result: tuple[str, int]
) -> Kernel:
    """The kernel that adds up parts.

    shape: what it asks of a multiprocessor.
    device: the device that it is written for.
    arrays: places of the run's arrays by name.
    parts: array of the parts and how many they are.
    result: array of the result and its elements, which are those of each part.
    """
    return phase_kernel(Sum(shape, device.warp, result[1], *parts, result[0]), device, arrays)
