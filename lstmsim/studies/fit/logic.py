"""An estimate of a chip's logic, part for part: adders, other functions, registers, and memories made of logic.

What a machine says of its parts becomes elements of logic of a device. Where a packing parts its products by logic,
this is of the array. The formulas of the column-wise NPU are held against Yosys (docs/rtl.md, section 8); other
programs, and how well elements are filled, are why the band is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.machines.hardware import Hardware, Part
from lstmsim.model.scenario import Chip
from lstmsim.studies.fit.device import Device, Packing
from lstmsim.studies.fit.placing import placed

__all__ = ["BAND", "PartNeed", "part_needs"]

#: The estimate is meant as `1 - BAND` to `1 + BAND` times its number: an assumption, because only two published designs
#: can be compared with it (tests/studies/fit/test_published.py).
BAND = 0.5


@dataclass(frozen=True)
class PartNeed:
    """What a part takes of a device.

    name: of the part.
    memories: memory blocks of the kind of which it takes the fewest.
    logic: elements of logic that adders, functions and small memories fill.
    registers: bits of registers.
    """

    name: str
    memories: int
    logic: int
    registers: int


def part_needs(
    every: Sequence[Sequence[Part]],
    packings: Sequence[Packing | None],
    hardware: Hardware,
    chip: Chip,
    device: Device,
) -> tuple[PartNeed, ...]:
    """Add up the parts of all cores, by name.

    every: the parts of each core.
    packings: how multiplier blocks are used in each core.
    hardware, chip: the machine and its cores.
    device: the FPGA.
    """
    needs: dict[str, PartNeed] = {}
    for core, parts, packing in zip(chip.cores, every, packings, strict=True):
        for number, part in enumerate(parts):
            parting = packing.logic * hardware.multipliers(core) if packing and not number else 0
            own = _need(part, device, parting)
            sofar = needs.get(part.name, PartNeed(part.name, 0, 0, 0))
            needs[part.name] = PartNeed(
                part.name, *(getattr(sofar, key) + getattr(own, key) for key in ("memories", "logic", "registers"))
            )
    return tuple(needs.values())


def _need(part: Part, device: Device, parting: int = 0) -> PartNeed:
    """One part of one core."""
    places = [(each, placed(each, device)) for each in part.memories]
    logic = device.logic
    registers = part.registers + sum(place.registers for _, place in places)
    gates = part.gates + sum(place.gates for _, place in places)
    filled = -(-part.adders // logic.adder_bits) + -(-gates // logic.functions) + parting
    filled += sum(place.elements for _, place in places)
    blocks = sum(
        each.memories * min(kind.shaped(each.words, each.width) for kind in device.memories)
        for each, place in places
        if place.in_blocks
    )
    return PartNeed(part.name, blocks, filled, registers)
