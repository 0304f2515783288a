"""Kernels of phases: what each warp does, by the number of its stream. A persistent kernel has several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, Kernel, KernelShape, Mask
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined

#: Warps that are written at once.
_CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class Phase:
    """What the warps of a kernel do, or of a persistent kernel between two grid barriers."""

    shape: KernelShape  # what it asks of a multiprocessor
    streams: int  # how many streams have something to do: the first ones
    # writes the part of some warps by the numbers of their streams; returns their stores
    write: Callable[[Warps, Ints], list[Result]]


def phase_kernel(phase: Phase, device: ParallelDevice, arrays: Mapping[str, int]) -> Kernel:
    """The kernel of one phase."""
    return _kernel(phase.shape, [phase], device, arrays)


def persistent_kernel(name: str, phases: Sequence[Phase], device: ParallelDevice, arrays: Mapping[str, int]) -> Kernel:
    """One kernel for several phases, with a grid barrier after each; its blocks have the warps of the first phase."""
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


def elements(shape: KernelShape, lanes: int, count: int, text: Callable[[Warps, Ints, Mask], list[Result]]) -> Phase:
    """A phase with one element a lane: consecutive elements in a warp, consecutive warps in a block.

    count: elements; warps without any do nothing. text: writes warps by their elements, and which lanes have one.
    """

    def write(warps: Warps, stream: Ints) -> list[Result]:
        element = stream[:, None] * lanes + np.arange(lanes)
        return text(warps, element, element < count)

    return Phase(shape, -(-count // lanes), write)


def zeroing(lanes: int, warps: int, array: str, count: int) -> Phase:
    """Sets the elements of an array to 0."""
    return elements(
        *(KernelShape("zero", warps, 16), lanes, count),
        lambda warps, element, on: [warps.stg(array, element, on, [warps.alu(4)])],
    )


def summing(shape: KernelShape, lanes: int, source: tuple[str, int], target: tuple[str, int]) -> Phase:
    """Adds up parts that lie one after the other, in order."""

    def text(warps: Warps, element: Ints, on: Mask) -> list[Result]:
        z, last = warps.alu(4), None
        for part in range(source[1]):
            last = warps.fma(1, [warps.ldg(source[0], part * target[1] + element, on, [z]), last])
        return [warps.stg(target[0], element, on, [last])]

    return elements(shape, lanes, target[1], text)
