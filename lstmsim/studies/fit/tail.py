"""The multipliers behind the array: how many a tail lane needs, and how many multiplier blocks they take.

A lane works on one unit or one element in a cycle; the machine says what it has
(`lstmsim.machines.hardware.Hardware.tail`). A multiplier that is too wide for a block is put together of several
products of a block; the logic of their shifted sum is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.model.model import Model
from lstmsim.model.numerics.products import KINDS, Multiplier
from lstmsim.model.precision import Precision
from lstmsim.model.scenario import Chip
from lstmsim.studies.fit.device import Device, Packing
from lstmsim.studies.fit.parts import hardware_of

__all__ = ["TailNeed", "tail_needs"]


@dataclass(frozen=True)
class TailNeed:
    """Multipliers of one kind and width, of all cores together.

    multiplier: kind and widths.
    lane: how many each lane has (the most of all cores; 0: one for a core, not for a lane).
    count: all of them.
    packing: how a block is used, of unlike cores the one with the most of them; None where no use of a block gives
        independent products.
    blocks: multiplier blocks; None without a packing.

    >>> TailNeed(Multiplier("adapter", (32, 17)), 4, 256, Packing("two 18x19", 2, (18, 19)), 256).sentence
    '4 adapters of 32 x 17 bits'
    """

    multiplier: Multiplier
    lane: int
    count: int
    packing: Packing | None
    blocks: int | None

    @property
    def sentence(self) -> str:
        """What a lane has, in words."""
        number = self.lane or self.count
        plural = "s" if number != 1 and self.multiplier.kind != "quantize" else ""
        first, second = self.multiplier.widths
        text = f"{number} {self.multiplier.kind}{plural} of {first} x {second} bits"
        return text if self.lane else f"{text} for a whole core"


def tail_needs(chip: Chip, models: Sequence[Model], precision: Precision, device: Device) -> tuple[TailNeed, ...]:
    """Count the multipliers behind the arrays of all cores, one entry for each kind and width.

    chip, models: what runs where; every core can run every model.
    precision: the widths of all numbers.
    device: the FPGA, for its packings.

    >>> from lstmsim.studies.fit.device import Logic, Memory
    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> pair, ram = Packing("two 18x19", 2, (18, 19)), Memory("M20K", 100, 20480, 40)
    >>> device = Device("small", "DSP", 1000, (pair,), (ram,), Logic("ALM", 50_000, 2, 4))
    >>> chip = ColumnNpu("c", 250, (ColumnCore(npe=1024, ep=16, vp=64, tail_width=2),))
    >>> needs = tail_needs(chip, [Model("m", (Layer(cell("lstm"), 64, 64),))], Precision(), device)
    >>> [(each.multiplier.kind, each.lane, each.count, each.blocks) for each in needs]
    [('adapter', 4, 8, 8), ('interpolation', 5, 10, 5), ('product', 3, 6, 3), ('quantize', 1, 2, 1)]
    """
    cells = list(dict.fromkeys(layer.cell for model in models for layer in model.layers))
    hardware = hardware_of(chip)
    lanes: Counter[Multiplier] = Counter()
    counts: Counter[Multiplier] = Counter()
    blocks: Counter[Multiplier] = Counter()
    most: dict[Multiplier, int] = {}
    for core in chip.cores:
        tail = hardware.tail(core, cells, precision)
        lanes |= tail.each
        for each in tail.each | tail.once:
            own = tail.lanes * tail.each[each] + tail.once[each]
            counts[each] += own
            blocks[each] += _blocks(each, own, device)[1] or 0
            most[each] = max(own, most.get(each, 0))
    ordered = sorted(counts, key=lambda each: (KINDS.index(each.kind), each.widths))
    packings = {each: _blocks(each, most[each], device)[0] for each in ordered}
    return tuple(
        TailNeed(
            multiplier=each,
            lane=lanes[each],
            count=counts[each],
            packing=packings[each],
            blocks=blocks[each] if packings[each] else None,
        )
        for each in ordered
    )


def _blocks(multiplier: Multiplier, count: int, device: Device) -> tuple[Packing | None, int | None]:
    """The packing that takes the fewest blocks for so many independent multipliers, and how many it takes."""
    able = [each for each in device.packings if each.independent]
    needs = {each: -(-count * each.pieces(*multiplier.widths) // each.products) for each in able}
    best = min(needs, key=lambda each: needs[each], default=None)
    return (None, None) if best is None else (best, needs[best])
