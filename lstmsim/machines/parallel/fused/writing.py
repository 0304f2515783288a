"""From planned kernels to kernels of the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.fused.homes import arrays_of, homes_of
from lstmsim.machines.parallel.fused.stages import Text, stage_turns
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Run
from lstmsim.machines.parallel.kernels.csr.rows import addressable
from lstmsim.machines.parallel.writing.streams import Grid, joined
from lstmsim.model.fusion.device import up
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import PlannedKernel

__all__ = ["fused_kernel", "fused_run"]

#: Warps that are written together: their tables stay in a cache.
_WARPS = 4096


def fused_run(graph: Graph, kernels: Sequence[PlannedKernel], device: Device) -> Run:
    """The kernels of a device for planned kernels of a graph, in the same order.

    Arrays: all nodes of the graph by number, then partials as they come. Compute-intensive nodes are no kernels here.
    """
    memories, partials = arrays_of(graph, kernels)
    memories = addressable(memories, device.element_bytes)
    places = {memory.name: place for place, memory in enumerate(memories)}
    return Run(memories, tuple(fused_kernel(graph, each, partials, places, device) for each in kernels))


def fused_kernel(
    graph: Graph, kernel: PlannedKernel, partials: Mapping[int, str], places: Mapping[str, int], device: Device
) -> Kernel:
    """The kernel of the device for one planned kernel.

    graph, kernel: the planned kernel and its graph.
    partials: names of the arrays of partials, as from `lstmsim.machines.parallel.fused.homes.arrays_of`.
    places: places of the run's arrays by name.
    device: the device that it is written for.
    """
    warps = up(kernel.threads, device.warp)
    homes = homes_of(graph, kernel, partials)
    stages = [stage_turns(homes, stage, device.warp, warps) for stage in kernel.stages]
    shape = KernelShape(kernel.name, warps, kernel.registers, kernel.shared_bytes, kernel.grid_barriers > 0)

    def pieces() -> Iterator[Kernel]:
        step = max(1, _WARPS // warps)
        for begin in range(0, kernel.blocks, step):
            end = min(begin + step, kernel.blocks)
            grid = Grid(device.warp, places, device.banks, device.element_bytes)
            Text(homes, grid, begin, end, warps).write(stages)
            yield grid.kernel(shape, np.full(end - begin, -1, np.int32))

    return joined(pieces())
