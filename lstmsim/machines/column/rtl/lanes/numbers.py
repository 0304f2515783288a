"""What the arithmetic of a pass says, as plain numbers, and which passes say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstmsim.base.records import record
from lstmsim.model.cell import REDUCTIONS
from lstmsim.model.numerics.activation_tables import ActivationTable
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.formats import q_format

__all__ = ["Numbers", "Table", "classes"]


@record
class Table:
    """A table of an activation function.

    shift: bits of an argument behind the point of its cell; negative: a unit of the argument is several cells.
    below: cells below 0.
    entries: as `ActivationTable` holds them.
    """

    shift: int
    below: int
    entries: tuple[int, ...]

    @classmethod
    def of(cls, own: ActivationTable) -> Table:
        """Read a table of the fixed-point arithmetic."""
        entries = tuple(int(each) for each in own.entries)
        return cls(own.source.fraction - own.cells_per_one, own.cells_below_zero, entries)

    def words(self, bits: int) -> list[int]:
        """Give the word of each cell: its first entry, and above it the rise to the next one where there is one.

        bits: of an entry.

        >>> [hex(each) for each in Table(0, 1, (1, 3, -1)).words(4)], Table(0, 1, (1, -1)).words(4)
        (['0x21', '0x1c3'], [1, 15])
        """
        low, wide = (1 << bits) - 1, (1 << (bits + 1)) - 1
        if len(self.entries) % 2 == 0:
            return [each & low for each in self.entries]
        pairs = zip(self.entries, self.entries[1:], strict=False)
        return [(first & low) | (((second - first) & wide) << bits) for first, second in pairs]


@record
class Numbers:
    """The numbers of a pass that its lanes are built with.

    fractions: of every name, as nodes read it.
    quantizers: for each `quantize` node its factor and shift.
    readers: for each vector that nodes read the factor and shift into its element format.
    constants: for each plain number its integer and fraction.
    tables: for each node with a table.
    counts: for each reduction over how many numbers it is.
    """

    fractions: Mapping[str, int]
    quantizers: Mapping[str, tuple[int, int]]
    readers: Mapping[str, tuple[int, int]]
    constants: Mapping[float, tuple[int, int]]
    tables: Mapping[str, Table]
    counts: Mapping[str, int]

    @classmethod
    def of(cls, own: FixedArithmetic) -> Numbers:
        """Read the arithmetic of a pass."""
        layer = own.layer
        return cls(
            {name: q_format(each).fraction for name, each in own.formats.items() if name != "x"},
            {name: (int(factor), shift) for name, (factor, shift) in own.quantizers.items()},
            {name: (int(factor), shift) for name, (factor, shift) in own.readers.items()},
            {number: (int(raw[0]), fraction) for number, (raw, fraction) in own.constants.items()},
            {name: Table.of(each) for name, each in own.tables.items()},
            {
                each.name: sum(layer.width(name) for name in each.sources)
                for each in layer.cell.nodes
                if each.operation in REDUCTIONS
            },
        )


def classes(passes: Sequence[Numbers]) -> tuple[tuple[Numbers, ...], tuple[int, ...]]:
    """Give the different numbers among passes, and for each pass which of them are its own."""
    different: list[Numbers] = []
    for each in passes:
        if each not in different:
            different.append(each)
    return tuple(different), tuple(different.index(each) for each in passes)
