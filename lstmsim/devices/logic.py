"""An estimate of a chip's logic: the bits of its adders and of the registers that hold its sums.

Adder trees are counted, accumulators with their banks, and the logic with which a packing parts its products. Control,
the tail, interconnect, and pipeline registers beyond one behind each adder are not counted: the estimate has a wide
band.
"""

from __future__ import annotations

from typing import Any

from lstmsim.devices.device import Logic, Packing
from lstmsim.targets.hardware import Hardware
from lstmsim.workload.precision import Precision

__all__ = ["BAND", "logic_elements"]

#: The estimate is meant as `1 - BAND` to `1 + BAND` times its number: an assumption, because only two published designs
#: can be compared with it (tests/devices/test_published.py), and control is not counted.
BAND = 0.5


def logic_elements(hardware: Hardware, core: Any, packing: Packing, precision: Precision, logic: Logic) -> int:
    """Estimate the elements of logic that one core takes; see `BAND`.

    hardware, core: the machine and one of its cores.
    packing: how multiplier blocks are used.
    precision: the widths of all numbers.
    logic: what an element holds.

    >>> from lstmsim.targets.column.hardware import HARDWARE
    >>> from lstmsim.targets.column.npu import ColumnCore
    >>> logic_elements(HARDWARE, ColumnCore(8, 4, 2), Packing("one", 1, (18, 18)), Precision(), Logic("ALM", 9, 2, 4))
    116
    """
    bits = hardware.logic(core, precision, packing.summed)
    held = -(-bits.adders // logic.adder_bits) + -(-bits.registers // logic.register_bits)
    return held + packing.logic * hardware.multipliers(core)
