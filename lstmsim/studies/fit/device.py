"""What an FPGA has: multiplier blocks with their packings, memories, logic; and the tables of devices.

There is one YAML file for each device; each number has a source. None stands for a number without one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from lstmsim.base.errors import InputError
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.wording import nearest, show
from lstmsim.files.published import Hardware, hardware
from lstmsim.files.scenario.request_schema import Name
from lstmsim.files.scenario.schema import Text, check
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.source import read_document

Amount = Annotated[int, Key(low=1, high=1_000_000_000)]
Bits = Annotated[int, Key(low=1, high=1_000_000)]


@dataclass(frozen=True)
class Packing:
    """One way to use a multiplier block.

    widths: of the two operands in bits, either way round.
    shares: what the products of a group have in common: nothing, the weight, the element of the vector, or either.
    group: how many products have it in common.
    summed: how many products leave the block as one sum.
    logic: elements of the device's logic that correct each product.
    mixed_signs: whether each operand of a block is signed or not by its own choice, so that the lower parts of a wide
        operand take the whole width.
    least: an operand, or the rest of a wide one, of fewer bits is multiplied by logic.
    registers: whether a block holds the registers at its operands and its product.
    """

    name: Annotated[Name, Key("how the block is used")]
    products: Annotated[Bits, Key("multiplications a cycle")]
    widths: Annotated[tuple[Bits, Bits], Key("widths of both operands in bits")]
    shares: Annotated[Literal["none", "weight", "vector", "either"], Key()] = "none"
    group: Bits = 1
    summed: Bits = 1
    logic: Annotated[int, Key(low=0, high=1_000_000)] = 0
    mixed_signs: Annotated[bool, Key()] = False
    least: Bits = 1
    registers: Annotated[bool, Key()] = False

    def takes(self, first_bits: int, second_bits: int) -> bool:
        """Say whether operands of those widths go in."""
        low, high = sorted((first_bits, second_bits))
        return low <= min(self.widths) and high <= max(self.widths)

    def serves(self, weight: int, vector: int) -> bool:
        """Say whether an array gives enough products with a common operand."""
        common = {"none": self.group, "weight": weight, "vector": vector, "either": max(weight, vector)}
        return common[self.shares] >= self.group

    @property
    def independent(self) -> bool:
        """Whether each product has operands and a result of its own, as the tail of a machine needs."""
        return self.shares == "none" and self.group == 1 and self.summed == 1

    def pieces(self, first_bits: int, second_bits: int) -> int:
        """Say of how many products of this packing one product of wider signed operands is put together.

        The upper part of an operand is signed and takes the whole width; the lower parts are not signed and take a bit
        less, unless a block multiplies signed and unsigned operands alike.
        """
        low, high = self.widths
        sign = 0 if self.mixed_signs else 1

        def parts(bits: int, width: int) -> int:
            if bits <= width:
                return 1
            more, rest = divmod(bits - width, width - sign)
            return 1 + more + (rest >= self.least)

        ways = ((first_bits, second_bits), (second_bits, first_bits))
        return min(parts(one, low) * parts(other, high) for one, other in ways)


@dataclass(frozen=True)
class Memory:
    """Memory blocks of one kind.

    ports: accesses with addresses of their own that a block serves in a cycle, reads and writes together.
    whole_words: whether a word of a block is written whole only, so that what is written apart has blocks of its own.
    """

    name: Annotated[Name, Key("name of the block")]
    blocks: Annotated[Amount | None, Key("how many, or null: no source")]
    bits: Annotated[Bits, Key("bits in a block")]
    read_bits: Annotated[Bits, Key("bits read of a block in a cycle")]
    ports: Bits = 2
    whole_words: Annotated[bool, Key()] = False

    def piece(self, width: int, written: int) -> int:
        """Bits of a word that lie together; written: bits that one write changes, 0 for all."""
        return min(width, written) if self.whole_words and written else width

    def shaped(self, words: int, width: int, written: int = 0) -> int:
        """Blocks for a memory of so many words: a block is as wide as it can be, or half as wide and twice as deep."""
        piece = self.piece(width, written)
        shapes, read = [], self.read_bits
        while read:
            shapes.append(-(-piece // read) * -(-words // (self.bits // read)))
            read //= 2
        return -(-width // piece) * min(shapes)


#: What a block costs in bits of registers, to the program that chooses by `SmallMemory.block`.
_BLOCK_COST = 128


@dataclass(frozen=True)
class SmallMemory:
    """A memory of elements of logic, with one port that writes and one that reads in the cycle of its address."""

    words: Annotated[Bits, Key("words of such a memory")]
    bits: Annotated[Bits, Key("bits of a word")]
    elements: Annotated[Bits, Key("elements of logic that it takes")]
    block: Annotated[Bits | None, Key("so many are as dear as a memory block")] = None
    deepest: Annotated[
        Bits | None, Key("words of such a memory where each word has half, a quarter, ... of the bits")
    ] = None
    filled: Annotated[int | None, Key("part of a memory block from which on the block is taken", "%", 1, 100)] = None

    @property
    def shapes(self) -> Sequence[tuple[int, int]]:
        """Words and bits of such a memory, the widest first."""
        shapes = [(self.words, self.bits)]
        while 2 * shapes[-1][0] <= (self.deepest or self.words) and shapes[-1][1] > 1:
            shapes.append((2 * shapes[-1][0], shapes[-1][1] // 2))
        return shapes

    def too_small(self, words: int, width: int, reads: int, copies: int) -> bool:
        """Whether a memory of so many words is of registers instead: alone, or in so many copies of small memories."""
        if self.filled is not None:
            return 100 * words < self.filled * self.words * reads
        return self.block is not None and words * width * self.block <= copies * _BLOCK_COST

    def gives_way(self, bits: int, dear: float, blocks: int, room: int) -> bool:
        """Whether memory blocks hold so many bits instead, by what the synthesis program compares.

        dear: how many small memories the bits take, and what chooses among them.
        blocks, room: how many blocks they take, and the bits of one.
        """
        if self.filled is not None:
            return 100 * bits >= self.filled * blocks * room
        return self.block is not None and dear >= self.block * blocks


@dataclass(frozen=True)
class DelayLine:
    """An element of logic as a delay line of a bit that nothing reads in between."""

    least: Annotated[Bits, Key("cycles from which on a line is made so; a shorter one is of registers")]
    most: Annotated[Bits, Key("cycles of one element")]

    def elements(self, cycles: int, bits: int) -> int | None:
        """Elements of a line; None where it is of registers.

        >>> DelayLine(3, 32).elements(40, 8), DelayLine(3, 32).elements(2, 8)
        (16, None)
        """
        return bits * -(-cycles // self.most) if cycles >= self.least else None


@dataclass(frozen=True)
class Logic:
    """Elements of logic.

    functions: functions of four inputs that one element holds.
    choices: two-way choices of a bit that one element holds where a word is chosen from many; None: as many as
        functions.
    small: a memory of such elements; None: no source for it, or they are not used so.
    delay: such an element as a delay line; None likewise.
    """

    name: Annotated[Name, Key("ALM or LUT")]
    elements: Annotated[Amount | None, Key("how many, or null: no source")]
    adder_bits: Annotated[Bits, Key("bits of an adder in one element")]
    register_bits: Annotated[Bits, Key("registers in one element")]
    functions: Bits = 1
    small: Annotated[SmallMemory | None, Key("a memory of such elements")] = None
    delay: Annotated[DelayLine | None, Key("such an element as a delay line")] = None
    choices: Annotated[
        Bits | None, Key("two-way choices of a bit in one element, where a word is chosen from many")
    ] = None


# the order of the fields is part of the keys that sweeps keep of infeasible points
@dataclass(frozen=True)
class Device:
    """An FPGA, as a file describes it.

    published: names of other people's designs on it.
    sources: a sentence for every number, also for every missing one.
    chips: chip presets of machines that were built on it.

    >>> logic, memory = Logic("ALM", 100, 2, 4), Memory("M20K", 10, 20480, 40)
    >>> pair, wide = Packing("2 of 18x19", 2, (18, 19)), Packing("27x27", 1, (27, 27))
    >>> device = Device("small", "DSP", 4, (wide, pair), (memory,), logic)
    >>> device.packing(8, 8).name, device.packing(16, 20).name, device.packing(32, 8)
    ('2 of 18x19', '27x27', None)
    """

    name: Annotated[Name, Key("the device's name")]
    multiplier: Annotated[Name, Key("kind of its multiplier blocks, for example DSP")]
    multipliers: Annotated[Amount | None, Key("how many, or null: no source")]
    packings: Annotated[tuple[Packing, ...], Key("ways to use a block", low=1, high=100)]
    memories: Annotated[tuple[Memory, ...], Key("kinds of memory blocks", low=1, high=100)]
    logic: Annotated[Logic, Key("its elements of logic")]
    published: Annotated[tuple[Text, ...], Key(high=100)] = ()
    sources: Annotated[Mapping[str, Text], Key("where each number comes from", high=100)] = field(
        default_factory=dict, hash=False, compare=False
    )
    chips: Annotated[tuple[Text, ...], Key(high=100)] = ()

    def packing(self, first_bits: int, second_bits: int, weight: int = 1, vector: int = 1) -> Packing | None:
        """Pick the packing with most products a block; None if there is none.

        first_bits, second_bits: widths of the operands.
        weight, vector: as in `Packing.serves`.
        """
        able = [each for each in self.packings if each.takes(first_bits, second_bits) and each.serves(weight, vector)]
        return max(able, key=lambda each: each.products, default=None)


_NUMBERS = ("multipliers", "packings", "memories", "logic")


def device_files() -> Mapping[str, Path]:
    """The device tables that come with lstmsim, by name."""
    return {each.stem: each for each in sorted(Path(__file__).with_name("data").glob("*.yaml"))}


def device(name: str) -> Device:
    """The device of that name.

    name: name of a device of lstmsim, or path of a file.
    `InputError` with the nearest name if there is none.
    """
    known = device_files()
    if name in known:
        return read_device(known[name])
    if "/" in name or "\\" in name or name.endswith((".yaml", ".yml", ".json")):
        return read_device(name)
    raise InputError(f"no device called {show(name)}{nearest(name, known)}; there are: {', '.join(known)}")


def read_device(path: str | os.PathLike[str]) -> Device:
    """Read a device from a file; `InputError` with every mistake. A number without a source is a mistake."""
    document = read_document(path)
    made, _ = check(Device, document)
    if made is not None:
        _check_sources(document, made)
        small = made.logic.small
        if small is not None and (small.block is None) == (small.filled is None):
            document.blame(("logic", "small"), "must have `block` or `filled`: what memory blocks are compared by")
    if document.mistakes or made is None:
        raise InputError(document.mistakes)
    return made


def _check_sources(document: Document, entry: Device) -> None:
    if "sources" not in document.data:
        return document.blame(("sources",), "required key is missing (where each number comes from)")
    for key in _NUMBERS:
        if not entry.sources.get(key, "").strip():
            document.blame(("sources", key), "required key is missing (where the number comes from, or 'no source')")
    missing = {
        "multipliers": entry.multipliers is None,
        "memories": any(each.blocks is None for each in entry.memories),
        "logic": entry.logic.elements is None,
    }
    for key, unknown in missing.items():
        if unknown and "no source" not in entry.sources.get(key, ""):
            document.blame(("sources", key), f"must say 'no source', because a number of {key} is null")
    for key in entry.sources:
        if key not in keys_of(Device):
            document.blame(("sources", key), f"unknown key{nearest(key, keys_of(Device))}", key=True)


@cache
def _homes() -> Mapping[str, str]:
    """Name of a published design, or of a chip preset that was built -> name of its device."""
    every = [read_device(path) for path in device_files().values()]
    return {name: each.name for each in every for name in (*each.published, *each.chips)}


def device_of(machine: str) -> str | None:
    """The name of the device on which a machine was built; None if the tables know none.

    machine: name of a design of `published/hardware.csv`, or of a chip preset.

    >>> device_of("Brainwave BW_S10"), device_of("brainwave-s10"), device_of("Tesla V100")
    ('stratix-10-gx-2800', 'stratix-10-gx-2800', None)
    """
    return _homes().get(machine)


def published_on(device: Device) -> tuple[Hardware, ...]:
    """The published designs on a device, as the device's table names them.

    `InputError` if `published/hardware.csv` is damaged.
    """
    rows = {row.design: row for row in hardware()}
    return tuple(rows[name] for name in device.published if name in rows)
