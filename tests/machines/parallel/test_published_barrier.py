"""A grid barrier of 20 and of 160 blocks takes what AStitch (ASPLOS'22) measured on a V100, by a run."""

from __future__ import annotations

import numpy as np
import pytest

import lstmsim
from lstmsim import engines
from lstmsim.base.units import cycles_to_us
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Run
from lstmsim.machines.parallel.lowering.program import program_of_kernels
from lstmsim.machines.parallel.traffic import priced
from lstmsim.machines.parallel.writing.streams import Grid
from lstmsim.program.unflatten import tabled

CHIP = lstmsim.load_chip("v100")


def kernel(blocks: int, barriers: int) -> Kernel:
    """Blocks of one warp that do nothing but meet."""
    grid = Grid(32, {})
    warps = grid.warps(np.arange(blocks))
    for _ in range(barriers):
        warps.gridbar()
    return grid.kernel(KernelShape("meet", 1, persistent=True), np.full(blocks, -1, np.int32))


def cycles(blocks: int, barriers: int, engine: str) -> int:
    lowered = program_of_kernels(CHIP, priced(Run((), (kernel(blocks, barriers),)), CHIP))
    return engines.totals(tabled(lowered.flat, lowered.names), engine, check=False).makespan_cycles


@pytest.mark.parametrize(
    ("blocks", "published_us", "engine"),
    [
        (20, 2.53, "fast"),
        (160, 2.72, "fast"),
        # a device of 80 SMs takes the reference engine longest before anything runs
        *(pytest.param(*each, "reference", marks=pytest.mark.long) for each in ((20, 2.53), (160, 2.72))),
    ],
)
def test_a_grid_barrier_takes_what_was_measured(blocks: int, published_us: float, engine: str) -> None:
    one_more = cycles(blocks, 3, engine) - cycles(blocks, 2, engine)
    # one cycle of issue and one until the sync unit begins, 2 for each block, 3830 until all go on
    assert one_more == pytest.approx(2 * blocks + 3830, abs=2)
    assert cycles_to_us(one_more, CHIP.frequency_mhz) == pytest.approx(published_us, abs=0.01)
