"""What the parts of a chip take of a device: memories, logic, and the multipliers that follow the array.

What a machine says of its parts becomes elements of logic of a device: an estimate of adders, other functions,
registers, and memories made of logic. The formulas of the column-wise NPU are held against Yosys (docs/rtl.md,
section 8); other programs, and how well elements are filled, are why the band is wide.

A lane of the tail works on one unit or one element in a cycle. A multiplier that is too wide for a block is put
together of several products of a block; the logic of their shifted sum is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from lstmsim.base.errors import InputError, refuse
from lstmsim.machines.hardware import Demand, Hardware, Part, Stored, chosen
from lstmsim.machines.registry import generated_of, target_of
from lstmsim.model.model import Model, Precision
from lstmsim.model.numerics.fixed import KINDS, Multiplier
from lstmsim.model.scenario import Chip, Scenario
from lstmsim.studies.fit.device import Device, Packing

#: The error for machines that do not say what they are built of.
NO_PARTS = "a chip of kind '{kind}' has no parts that could be counted"


def hardware_of(chip: Chip) -> Hardware:
    """Give what the chip's machine says of its cores; `InputError` if it has no parts that could be counted."""
    hardware = target_of(chip.kind).hardware()
    if hardware is None:
        raise InputError(NO_PARTS.format(kind=chip.kind))
    return hardware


@dataclass(frozen=True)
class Placed:
    """A memory on a device."""

    in_blocks: bool  # whether it takes memory blocks
    gates: int = 0  # functions of four inputs that choose among its pieces
    elements: int = 0  # elements of logic that hold it
    registers: int = 0  # bits of registers that hold it


def placed(demand: Demand, device: Device) -> Placed:
    """Choose where a memory goes, all its equal pieces alike.

    Block memory cannot give a word in the cycle of its address. Where nothing is known of small memories, such a memory
    is of registers, and every other one of blocks.
    """
    words, width, count = demand.words, demand.width, demand.memories
    small = device.logic.small
    # A choice of two is part of what is done with the word.
    gates = count * demand.reads * chosen(width, words) if words > _FREE_CHOICE else 0
    in_registers = Placed(False, gates, 0, count * words * width)
    if small is None:
        return in_registers if demand.instant else Placed(True)
    dear, copies, banks = min(_pieces(demand, *shape) for shape in small.shapes)
    if small.too_small(words, width, demand.reads, copies):
        return in_registers
    kind = min(device.memories, key=lambda each: each.shaped(words, width, demand.written))
    piece = kind.piece(width, demand.written)
    blocks = kind.shaped(words, piece)
    if not demand.instant and small.gives_way(words * piece, dear * piece / width, blocks, kind.bits):
        return Placed(True)
    # The register in which a block holds what it has read is an additional one at a small memory.
    held = 0 if demand.instant else count * demand.reads * width
    return Placed(False, count * demand.reads * chosen(width, banks), count * copies * small.elements, held)


def _pieces(demand: Demand, deep: int, bits: int) -> tuple[float, int, int]:
    """How dear a memory is in small ones of so many words and bits, how many they are, and how many by depth alone."""
    banks = -(-demand.words // deep)
    copies = demand.reads * banks * -(-demand.width // bits)
    return copies + demand.reads * demand.width * (banks - 1) / _CHOICES_OF_A_SMALL_MEMORY, copies, banks


#: So many words are chosen from by the function that takes the word.
_FREE_CHOICE = 2
#: So many choices of a bit are as dear as a small memory.
_CHOICES_OF_A_SMALL_MEMORY = 8


#: The estimate is meant as `1 - BAND` to `1 + BAND` times its number: an assumption, because only two published designs
#: can be compared with it (tests/studies/fit/test_published.py).
BAND = 0.5


@dataclass(frozen=True)
class PartNeed:
    """What a part takes of a device."""

    name: str  # of the part
    memories: int  # memory blocks of the kind of which it takes the fewest
    logic: int  # elements of logic that adders, functions and small memories fill
    registers: int  # bits of registers


def table_stored(scenario: Scenario, table: tuple[int, int]) -> Stored:
    """What the chip needs beside its models if jobs are a table that the host writes.

    table: the most jobs and steps of a job. `InputError` for a scenario that generated hardware has no such table for.
    """
    written, precision = generated_of(scenario.chip), scenario.precision
    refuse(written.refusals(scenario, precision))
    design = written.design(scenario, precision, None, table)
    refuse(written.table_mistakes(design))
    stored: Stored = written.table_needs(design)
    return stored


def part_needs(
    every: Sequence[Sequence[Part]],
    packings: Sequence[Packing | None],
    hardware: Hardware,
    chip: Chip,
    device: Device,
    beside: Sequence[Part] = (),
) -> tuple[PartNeed, ...]:
    """Add up the parts of all cores, by name; behind them the parts that the chip has once beside its cores."""
    needs: dict[str, PartNeed] = {}
    for core, parts, packing in zip(chip.cores, every, packings, strict=True):
        for number, part in enumerate(parts):
            parting = packing.logic * hardware.multipliers(core) if packing and not number else 0
            own = _need(part, device, parting, packing is not None and packing.registers)
            sofar = needs.get(part.name, PartNeed(part.name, 0, 0, 0))
            needs[part.name] = PartNeed(
                part.name, *(getattr(sofar, key) + getattr(own, key) for key in ("memories", "logic", "registers"))
            )
    return (*needs.values(), *(_need(each, device, 0, False) for each in beside))


def _need(part: Part, device: Device, parting: int, held: bool) -> PartNeed:
    """One part of one core.

    parting: elements of logic that correct products.
    held: whether multiplier blocks hold the registers beside them.
    """
    places = [(each, placed(each, device)) for each in part.memories]
    logic = device.logic
    registers = part.registers + sum(place.registers for _, place in places) - held * part.beside
    lines = 0
    for cycles, bits in chain(part.delays, *(_behind(each, place) for each, place in places)):
        elements = logic.delay.elements(cycles, bits) if logic.delay else None
        if elements is not None:
            registers, lines = registers - cycles * bits, lines + elements
    gates = part.gates + sum(place.gates for _, place in places)
    filled = -(-part.adders // logic.adder_bits) + -(-gates // logic.functions) + parting + lines
    filled += sum(place.elements for _, place in places) + -(-part.choices // (logic.choices or logic.functions))
    blocks = sum(
        each.memories * min(kind.shaped(each.words, each.width, each.written) for kind in device.memories)
        for each, place in places
        if place.in_blocks
    )
    return PartNeed(part.name, blocks, filled, registers)


def _behind(demand: Demand, place: Placed) -> list[tuple[int, int]]:
    """The delay lines behind a memory; a register of logic that holds what was read is the first of the line."""
    first = int(not place.in_blocks and not demand.instant)
    return [(cycles + first, bits) for cycles, bits in demand.behind]


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
    """Count the multipliers of the tails of all cores, one entry for each kind and width."""
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
