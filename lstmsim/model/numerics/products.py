"""Which multipliers the fixed-point rules of `lstmsim.model.numerics.fixed` ask for: read off a cell's graph and its
widths.

Every multiplication that `FixedArithmetic` does behind the array for one unit is one entry here.
`tests/model/numerics/test_products.py` counts the multiplications and holds both to each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lstmsim.model.cell import REDUCTIONS, Cell, Node, kinds
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed_point import TABULATED

#: Where a multiplier stands: behind a sum, within a piece of an activation, in a product of the cell, before a vector
#: is written, after an element of a vector is read, in a mean of squares.
KINDS = ("adapter", "interpolation", "product", "quantize", "vector read", "square")


@dataclass(frozen=True)
class Multiplier:
    """A multiplier of signed operands.

    kind: one of `KINDS`.
    widths: bits of both operands, in the order of the rules (factors and positions come second).

    >>> Multiplier("adapter", (32, 17)).kind
    'adapter'
    """

    kind: str
    widths: tuple[int, int]


def per_unit(cell: Cell, precision: Precision) -> Counter[Multiplier]:
    """Count the multipliers that a tail needs for each unit that it takes in a cycle; every operation has its own.

    Additions, shifts, tables, divisions and square roots need no multiplier. Operations with one value for all units
    count in `once`.

    cell: any cell.
    precision: gives the widths; `activation: table` needs no interpolation.

    >>> from lstmsim.model.cells import cell
    >>> lstm = per_unit(cell("lstm"), Precision())
    >>> sorted((each.kind, count) for each, count in lstm.items())
    [('adapter', 4), ('interpolation', 5), ('product', 3), ('quantize', 1)]
    >>> lstm.total()
    13
    """
    scalars = {name for name, rows in kinds(cell).items() if rows == "scalar"}
    # A factor of `multiplier_bits` bits is never negative: as a signed operand it has one more.
    factor = precision.multiplier_bits + 1
    multipliers = Counter(Multiplier("adapter", (precision.accumulator_bits, factor)) for _ in cell.sums)
    for node in cell.nodes:
        if node.operation == "mean_square":
            bits = [_bits(cell, each, precision) for each in node.sources]
            multipliers.update(Multiplier("square", (each, each)) for each in bits)
        elif node.name not in scalars:
            multipliers.update(_of(cell, node, precision))
    streamed = _vectors(cell)
    read = {each for node in cell.nodes for each in node.sources if each in streamed}
    multipliers.update(Multiplier("vector read", (precision.vector_bits, factor)) for _ in read)
    return multipliers


def once(cell: Cell, precision: Precision) -> Counter[Multiplier]:
    """Count the multipliers of operations with one value for all units (behind a mean): needed once for each core.

    >>> from lstmsim.model.cells import cell
    >>> once(cell("lstm"), Precision()).total(), once(cell("lstm-layernorm"), Precision()).total()
    (0, 3)
    """
    scalars = {name for name, rows in kinds(cell).items() if rows == "scalar"}
    own = (node for node in cell.nodes if node.name in scalars and node.operation not in REDUCTIONS)
    return Counter(each for node in own for each in _of(cell, node, precision))


def _of(cell: Cell, node: Node, precision: Precision) -> list[Multiplier]:
    """The multiplier of one node, if it has one."""
    bits = [_bits(cell, each, precision) for each in node.inputs]
    if node.operation == "multiply":
        return [Multiplier("product", (bits[0], bits[1]))]
    if node.operation == "quantize":
        return [Multiplier("quantize", (bits[0], precision.multiplier_bits + 1))]
    if node.operation in TABULATED and precision.activation == "linear":
        # The difference of two entries has a bit more than an entry. An argument that reaches beyond one piece has
        # fewer bits within a piece than in all; a position is not negative and takes one more as a signed operand.
        return [Multiplier("interpolation", (_bits(cell, node.name, precision) + 1, bits[0]))]
    return []


def _vectors(cell: Cell) -> set[str]:
    """Names that are held as streamed vectors: x, every quantised node, and the states that such a node feeds."""
    quantised = {node.name for node in cell.nodes if node.operation == "quantize"}
    return {"x"} | quantised | {state for state, target in cell.states.items() if target in quantised}


def _bits(cell: Cell, name: str | float, precision: Precision) -> int:
    """The width of a name's Q-format as in `FixedArithmetic.formats`; a vector gives the width of its elements."""
    if not isinstance(name, str) or name in _vectors(cell):
        return precision.tail_bits
    fed = cell.states.get(name, name)
    return precision.state_bits if fed in cell.states.values() else precision.tail_bits
