"""Kernels of phases: what each warp does, by the number of its stream. A persistent kernel has several of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Kernel, KernelShape
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined

Ints = NDArray[np.int64]

#: Warps that are written at once.
_CHUNK = 1 << 12


class Phase(Protocol):
    """What the warps of a kernel do, or of a persistent kernel between two grid barriers."""

    @property
    def shape(self) -> KernelShape:
        """What it asks of a multiprocessor."""
        ...

    @property
    def streams(self) -> int:
        """How many streams have something to do: the first ones."""
        ...

    def write(self, warps: Warps, stream: Ints) -> list[Result]:
        """Write the part of some warps; returns their stores."""
        ...


def phase_kernel(phase: Phase, device: ParallelDevice, arrays: Mapping[str, int]) -> Kernel:
    """The kernel of one phase."""
    return _kernel(phase.shape, [phase], device, arrays)


def persistent_kernel(name: str, phases: Sequence[Phase], device: ParallelDevice, arrays: Mapping[str, int]) -> Kernel:
    """One kernel for several phases, with a grid barrier behind each.

    Its blocks have the warps of the first phase. A phase with more streams than the first has needs more blocks; all
    have to fit on the device at once.
    """
    return _kernel(persistent_shape(name, phases), phases, device, arrays)


def persistent_shape(name: str, phases: Sequence[Phase]) -> KernelShape:
    """What one kernel for several phases asks of a multiprocessor; arguments as of `persistent_kernel`."""
    registers, shared = (max(getattr(each.shape, key) for each in phases) for key in ("registers", "shared"))
    return KernelShape(name, phases[0].shape.warps, registers, shared, persistent=True)


def blocks_of(shape: KernelShape, phases: Sequence[Phase]) -> int:
    """How many thread blocks a kernel of these phases has."""
    return max(-(-each.streams // shape.warps) for each in phases)


def _kernel(shape: KernelShape, phases: Sequence[Phase], device: ParallelDevice, arrays: Mapping[str, int]) -> Kernel:
    blocks = blocks_of(shape, phases)
    step = max(1, _CHUNK // shape.warps)

    def pieces() -> Iterator[Kernel]:
        for start in range(0, max(blocks, 1), step):
            stop = min(blocks, start + step)
            grid = Grid(device.core.warp, arrays, device.core.banks, device.element_bytes)
            number = np.arange(start * shape.warps, stop * shape.warps)
            every = grid.warps(number - start * shape.warps)
            for phase in phases:
                some = every.part(number < phase.streams)
                stores = phase.write(some, number[number < phase.streams]) if len(some) else []
                if shape.persistent:
                    every.gridbar(stores)
            yield grid.kernel(shape, np.full(stop - start, -1))

    return joined(pieces())


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
        """What the warps do; returns their stores."""


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


def zeroing_kernel(device: ParallelDevice, arrays: Mapping[str, int], array: str, elements: int, warps: int) -> Kernel:
    """The kernel that sets an array to 0."""
    return phase_kernel(Zero(KernelShape("zero", warps, 16), device.core.warp, elements, array), device, arrays)


def summing_kernel(
    shape: KernelShape,
    device: ParallelDevice,
    arrays: Mapping[str, int],
    parts: tuple[str, int],
    result: tuple[str, int],
) -> Kernel:
    """The kernel that adds up parts."""
    return phase_kernel(Sum(shape, device.core.warp, result[1], *parts, result[0]), device, arrays)
