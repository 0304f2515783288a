"""What the kernels of a run cost in memory: what the caches hold from kernel to kernel.

The rules look at no clock, only at numbers: the order of an access is its place in its stream, then the block, then
the warp. So nothing need be sorted: a table keeps for each sector the lowest number that touched it; an access is the
first one at a sector if that number is its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Kernel, Priced, Run
from lstmsim.machines.parallel.memory.addresses import SECTOR_BYTES
from lstmsim.machines.parallel.memory.caches import Caches, numbers_of, scene_of
from lstmsim.machines.parallel.memory.layout import Layout, laid, sectors_of

__all__ = ["Caches", "fits", "priced"]

#: Rows that are looked at together.
_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class _Use:
    """What a kernel touches.

    sectors: ascending numbers of the run's sectors.
    bytes: shape (arrays,); of each array.
    """

    sectors: NDArray[np.int64]
    bytes: NDArray[np.int64]


def fits(run: Run, device: Caches) -> bool:
    """Whether all that the kernels of a run touch is at most what L2 holds."""
    layout = laid(run.arrays)
    return _fits(_uses(run, layout), layout, device)


def priced(run: Run, device: Caches) -> tuple[Priced, ...]:
    """The kernels of a run with what their accesses cost.

    run: the kernels and the arrays that they share.
    device: caches, partitions, and room for blocks.

    A kernel object that runs again when all its sectors are in the same state gives the same `Priced` object.
    Raises `InputError` if a block does not fit a multiprocessor.
    """
    layout = laid(run.arrays)
    uses = _uses(run, layout)
    fit = _fits(uses, layout, device)
    free = np.full(layout.total, fit and device.l2_state == "warm")
    made: dict[tuple[int, bool], Priced] = {}
    result = []
    for kernel in run.kernels:
        use = uses[id(kernel)]
        # Either it finds all its sectors touched, as any kernel that ran before, or it runs for the first time.
        key = (id(kernel), fit and ((id(kernel), True) in made or bool(free[use.sectors].all())))
        if key not in made:
            scene = scene_of(kernel, device, run.arrays, layout, use.bytes, free)
            made[key] = Priced(kernel.shape, kernel.sm, kernel.instructions, numbers_of(scene))
        result.append(made[key])
        if fit and not key[1]:
            free[use.sectors] = True
    return tuple(result)


def _fits(uses: dict[int, _Use], layout: Layout, device: Caches) -> bool:
    touched = np.zeros(layout.total, bool)
    for use in uses.values():
        touched[use.sectors] = True
    return SECTOR_BYTES * int(np.count_nonzero(touched)) <= device.l2_bytes


def _uses(run: Run, layout: Layout) -> dict[int, _Use]:
    """What each kernel touches, by its identity."""
    return {id(kernel): _use(kernel, layout) for kernel in {id(each): each for each in run.kernels}.values()}


def _use(kernel: Kernel, layout: Layout) -> _Use:
    touched = np.zeros(layout.total, bool)
    for start in range(0, len(kernel.lsu), _ROWS):
        touched[sectors_of(kernel, layout, slice(start, min(start + _ROWS, len(kernel.lsu))))] = True
    sectors = np.flatnonzero(touched)
    # Arrays begin one behind the other; one without elements begins where the next one does.
    ends = layout.begin + layout.sectors
    counts = np.searchsorted(sectors, ends) - np.searchsorted(sectors, layout.begin)
    return _Use(sectors, 32 * counts)
