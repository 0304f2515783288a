"""An estimate of a chip's logic: the bits of its adders and of the registers that hold its sums.

Counted are adder trees, accumulators with their banks, and what a packing needs to part its products. Not counted are
control, the tail, interconnect, and pipeline registers beyond one behind each adder: the estimate has a wide band.
"""

from __future__ import annotations

from lstmsim.devices.demands import Core
from lstmsim.devices.device import Logic, Packing
from lstmsim.targets.column.npu import ColumnCore
from lstmsim.workload.precision import Precision

__all__ = ["BAND", "logic_elements", "tree_bits"]

#: The estimate is meant as `1 - BAND` to `1 + BAND` times its number: an assumption, because only two published designs
#: can be compared with it (tests/devices/test_published.py), and control is not counted.
BAND = 0.5


def tree_bits(inputs: int, width: int, summed: int = 1, most: int = 64) -> int:
    """Bits of all adders of a tree over `inputs` products of `width` bits; a block gives sums of `summed` of them.

    Each level is one bit wider, up to `most`.

    >>> tree_bits(4, 16), tree_bits(4, 16, summed=2), tree_bits(1, 16), tree_bits(3, 16)
    (52, 18, 0, 35)
    """
    leaves = -(-inputs // summed)
    width += (summed - 1).bit_length()
    bits = 0
    while leaves > 1:
        width = min(width + 1, most)
        bits += leaves // 2 * width
        leaves -= leaves // 2
    return bits


def logic_elements(core: Core, packing: Packing, precision: Precision, logic: Logic) -> int:
    """Elements of logic that one core takes, estimated; see `BAND`.

    >>> logic_elements(ColumnCore(8, 4, 2), Packing("one", 1, (18, 18)), Precision(), Logic("ALM", 9, 2, 4))
    116
    """
    product, most = precision.weight_bits + precision.vector_bits, precision.accumulator_bits
    if isinstance(core, ColumnCore):
        adders = core.vp * (tree_bits(core.ep, product, packing.summed, most) + most)
        registers = core.vp * most * core.accumulator_banks * core.threads
    else:
        rows = core.engines * core.batch
        trees = core.tiles * tree_bits(core.lanes, product, packing.summed, most)
        adders, registers = rows * (trees + core.tiles * most), 0
    held = -(-adders // logic.adder_bits) + -(-registers // logic.register_bits)
    return held + packing.logic * core.npe
