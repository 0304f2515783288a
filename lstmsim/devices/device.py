"""What an FPGA has: multiplier blocks with their packings, memories, logic. None stands for a number without a source.

The tables themselves are files; `lstmsim.formats.tables.devices_file` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SHARES", "Device", "Logic", "Memory", "Packing"]

#: What the products of one packing must have in common.
SHARES = ("none", "weight", "vector", "either")


@dataclass(frozen=True)
class Packing:
    """One way to use a multiplier block: `products` multiplications a cycle, of `widths` bits (either way round).

    Groups of `group` products have one operand in common: the weight, the element of the vector, or `either`.
    `summed` products leave the block as one sum. `logic` elements of the device's logic correct each product.

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

    def takes(self, first_bits: int, second_bits: int) -> bool:
        """Whether operands of those widths go in."""
        low, high = sorted((first_bits, second_bits))
        return low <= min(self.widths) and high <= max(self.widths)

    def serves(self, weight: int, vector: int) -> bool:
        """Whether an array gives enough products with a common operand: a weight meets `weight` vectors in a cycle,
        an element of a vector meets `vector` rows."""
        common = {"none": self.group, "weight": weight, "vector": vector, "either": max(weight, vector)}
        return common[self.shares] >= self.group

    @property
    def independent(self) -> bool:
        """Whether each product has operands and a result of its own, as the tail of a machine needs them.

        >>> Packing("sum of two", 2, (18, 19), summed=2).independent
        False
        """
        return self.shares == "none" and self.group == 1 and self.summed == 1

    def pieces(self, first_bits: int, second_bits: int) -> int:
        """How many products of this packing one product of wider signed operands is put together of.

        The upper part of an operand is signed and takes the whole width, the lower ones are not and take a bit less.

        >>> two = Packing("two 18x19", 2, (18, 19))
        >>> two.pieces(16, 16), two.pieces(32, 17), two.pieces(35, 37)
        (1, 2, 4)
        """
        low, high = self.widths

        def parts(bits: int, width: int) -> int:
            return 1 if bits <= width else 1 + -(-(bits - width) // (width - 1))

        ways = ((first_bits, second_bits), (second_bits, first_bits))
        return min(parts(one, low) * parts(other, high) for one, other in ways)


@dataclass(frozen=True)
class Memory:
    """Blocks of one kind: `bits` in each, of which at most `read_bits` can be read in a cycle; it serves `ports`
    accesses with addresses of their own in a cycle, reads and writes together.

    >>> Memory("M20K", blocks=10, bits=20480, read_bits=40).bits * 10
    204800
    """

    name: str
    blocks: int | None
    bits: int
    read_bits: int
    ports: int = 2


@dataclass(frozen=True)
class Logic:
    """Elements of logic (ALM, LUT), and how many bits of adders and of registers one of them holds."""

    name: str
    elements: int | None
    adder_bits: int
    register_bits: int


@dataclass(frozen=True)
class Device:
    """An FPGA. `multipliers` blocks of kind `multiplier` (DSP, tensor block); `published`: designs of others on it;
    `chips`: chip presets of machines that were built on it.

    `sources` has a sentence for every number, and for every number that is missing.

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
        """The packing with most products a block for operands of those widths, and with as many common operands;
        None if there is none."""
        able = [each for each in self.packings if each.takes(first_bits, second_bits) and each.serves(weight, vector)]
        return max(able, key=lambda each: each.products, default=None)
