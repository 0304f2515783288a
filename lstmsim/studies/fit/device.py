"""What an FPGA has: multiplier blocks with their packings, memories, logic. None stands for a number without a source.

The tables themselves are files; `lstmsim.studies.fit.devices_file` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SHARES", "Device", "Logic", "Memory", "Packing", "SmallMemory"]

#: What the products of one packing must have in common.
SHARES = ("none", "weight", "vector", "either")


@dataclass(frozen=True)
class Packing:
    """One way to use a multiplier block.

    name: unique among the packings of a device.
    products: multiplications a cycle.
    widths: of the two operands in bits, either way round.
    shares: what the products of a group have in common, one of `SHARES`: nothing, the weight, the element of the
        vector, or either.
    group: how many products have it in common.
    summed: how many products leave the block as one sum.
    logic: elements of the device's logic that correct each product.
    mixed_signs: whether each operand of a block is signed or not by its own choice, so that the lower parts of a wide
        operand take the whole width.
    least: an operand, or the rest of a wide one, of fewer bits is multiplied by logic.

    >>> pair = Packing("int8 pair", products=2, widths=(8, 8), shares="either", group=2)
    >>> pair.takes(8, 8), pair.takes(16, 8), pair.serves(weight=1, vector=64), pair.serves(weight=1, vector=1)
    (True, False, True, False)
    """

    name: str
    products: int
    widths: tuple[int, int]
    shares: str = "none"
    group: int = 1
    summed: int = 1
    logic: int = 0
    mixed_signs: bool = False
    least: int = 1

    def takes(self, first_bits: int, second_bits: int) -> bool:
        """Say whether operands of those widths go in."""
        low, high = sorted((first_bits, second_bits))
        return low <= min(self.widths) and high <= max(self.widths)

    def serves(self, weight: int, vector: int) -> bool:
        """Say whether an array gives enough products with a common operand.

        weight: how many vectors a weight meets in a cycle.
        vector: how many rows an element of a vector meets in a cycle.
        """
        common = {"none": self.group, "weight": weight, "vector": vector, "either": max(weight, vector)}
        return common[self.shares] >= self.group

    @property
    def independent(self) -> bool:
        """Whether each product has operands and a result of its own, as the tail of a machine needs.

        >>> Packing("sum of two", 2, (18, 19), summed=2).independent
        False
        """
        return self.shares == "none" and self.group == 1 and self.summed == 1

    def pieces(self, first_bits: int, second_bits: int) -> int:
        """Say of how many products of this packing one product of wider signed operands is put together.

        The upper part of an operand is signed and takes the whole width; the lower parts are not signed and take a bit
        less, unless a block multiplies signed and unsigned operands alike.

        >>> two = Packing("two 18x19", 2, (18, 19))
        >>> two.pieces(16, 16), two.pieces(32, 17), two.pieces(35, 37)
        (1, 2, 4)
        >>> mixed = Packing("18x18", 1, (18, 18), mixed_signs=True, least=2)
        >>> mixed.pieces(36, 17), mixed.pieces(37, 17), mixed.pieces(38, 17)
        (2, 2, 3)
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

    name: of the kind.
    blocks: how many there are; None: unknown.
    bits: in each block.
    read_bits: how many bits of a block can be read in a cycle at most.
    ports: accesses with addresses of their own that a block serves in a cycle, reads and writes together.

    >>> Memory("M20K", blocks=10, bits=20480, read_bits=40).bits * 10
    204800
    """

    name: str
    blocks: int | None
    bits: int
    read_bits: int
    ports: int = 2

    def shaped(self, words: int, width: int) -> int:
        """Blocks for a memory of so many words: a block is as wide as it can be, or half of that and twice as deep ...

        words, width: of the memory; the width in bits.

        >>> ram = Memory("EBR", 208, 18432, 36)
        >>> ram.shaped(512, 36), ram.shaped(600, 32), ram.shaped(600, 18), ram.shaped(4096, 4)
        (1, 2, 1, 1)
        """
        shapes, read = [], self.read_bits
        while read:
            shapes.append(-(-width // read) * -(-words // (self.bits // read)))
            read //= 2
        return min(shapes)


@dataclass(frozen=True)
class SmallMemory:
    """A memory of elements of logic, with one port that writes and one that reads in the cycle of its address.

    words, bits: how many words of how many bits it has.
    elements: elements of logic that it takes.
    block: so many of them are as dear as a memory block, to the program that chooses between the two.
    """

    words: int
    bits: int
    elements: int
    block: int


@dataclass(frozen=True)
class Logic:
    """Elements of logic.

    name: of the kind (ALM, LUT).
    elements: how many there are; None: unknown.
    adder_bits, register_bits: bits of adders and of registers that one element holds.
    functions: functions of four inputs that one element holds.
    small: a memory of such elements; None: no source for it, or they are not used so.
    """

    name: str
    elements: int | None
    adder_bits: int
    register_bits: int
    functions: int = 1
    small: SmallMemory | None = None


@dataclass(frozen=True)
class Device:
    """An FPGA.

    name: of the device.
    multiplier: the kind of its multiplier blocks (DSP, tensor block).
    multipliers: how many blocks there are; None: unknown.
    packings: ways to use a block.
    memories: its kinds of memory blocks.
    logic: its logic.
    published: names of other people's designs on it.
    sources: a sentence for every number, also for every missing one.
    chips: chip presets of machines that were built on it.

    >>> logic, memory = Logic("ALM", 100, 2, 4), Memory("M20K", 10, 20480, 40)
    >>> pair, wide = Packing("2 of 18x19", 2, (18, 19)), Packing("27x27", 1, (27, 27))
    >>> device = Device("small", "DSP", 4, (wide, pair), (memory,), logic)
    >>> device.packing(8, 8).name, device.packing(16, 20).name, device.packing(32, 8)
    ('2 of 18x19', '27x27', None)
    """

    name: str
    multiplier: str
    multipliers: int | None
    packings: tuple[Packing, ...]
    memories: tuple[Memory, ...]
    logic: Logic
    published: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    chips: tuple[str, ...] = ()

    def packing(self, first_bits: int, second_bits: int, weight: int = 1, vector: int = 1) -> Packing | None:
        """Pick the packing with most products a block; None if there is none.

        first_bits, second_bits: widths of the operands.
        weight, vector: as in `Packing.serves`.
        """
        able = [each for each in self.packings if each.takes(first_bits, second_bits) and each.serves(weight, vector)]
        return max(able, key=lambda each: each.products, default=None)
