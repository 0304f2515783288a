"""Fixed-point arithmetic of a pass and of whole networks, whose formats hold the ranges that calibration has measured.

Vectors (x, h, every `quantize` node) are symmetric integers with one scale each. Their scales are folded into the
weights, so that all vectors of a sum meet in one integer accumulator. A multiplier for each row then brings the sum
into a Q-format. This dequantisation follows the adapter, as in the column-wise LSTM patent. Every multiplication
that `FixedArithmetic` does after the array for one unit is one entry of `per_unit` or `once`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import Mistake, refuse
from lstmsim.model.cell import REDUCTIONS, Cell, Node, kinds
from lstmsim.model.model import Layer, Precision
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.numerics.calibration import Format, Range, calibrate, formats_of, largest_of, q_format
from lstmsim.model.numerics.fixed_point import (
    TABULATED,
    ActivationTable,
    Operand,
    QFormat,
    VectorFormat,
    combine,
    saturate,
    shifted,
    wrap,
)
from lstmsim.model.numerics.weights import Floats, Network, PassWeights, Stimulus

#: Bits of a bias in its sum's units: a large bias may meet an equally large product.
_BIAS_BITS = 32


def multipliers(scale: ArrayLike, fraction: int, bits: int, largest: float | None = None) -> tuple[Array, Array]:
    """Choose integers m below 2**bits and shifts, so that m * 2**-shift is about scale * 2**fraction; 0 gives 0.

    largest: all get the shift of this scale, which is none of them below; None: each its own.
    """
    scales = np.asarray(scale, np.float64)
    mantissa, exponent = np.frexp(scales)
    factor = np.rint(np.ldexp(mantissa, bits)).astype(np.int64)
    carry = factor >> bits
    if largest is None:
        return factor >> carry, bits - exponent.astype(np.int64) - carry - fraction
    _, shift = multipliers(largest, fraction, bits)
    return np.rint(np.ldexp(scales, fraction + int(shift))).astype(np.int64), np.full_like(factor, shift)


@dataclass(frozen=True, eq=False)
class Adapter:
    """What the adapter does to the rows of a sum: `(total * factor) >> shift`, rounded, plus `bias`; each [units]."""

    factor: Array
    shift: Array
    bias: Array

    @classmethod
    def of(
        cls, unit: Floats, bias: Floats, result: QFormat, precision: Precision, largest: float | None = None
    ) -> Adapter:
        """Make the adapter of a sum."""
        raw, _ = QFormat(_BIAS_BITS, result.fraction).held(bias)
        common = None
        if precision.shift == "common":
            common = float(unit.max(initial=0)) if largest is None else largest
        return cls(*multipliers(unit, result.fraction, precision.multiplier_bits, common), raw)


def quantized(folded: Mapping[str, Floats], idle: set[str], precision: Precision) -> tuple[Mapping[str, Array], Floats]:
    """Give the weights of a sum as whole numbers in float64, and the real number that one unit of each row stands for.

    folded: vector to weights times the scales of the vector's columns, [units, width].
    idle: vectors that are always 0. They have no scale of their own and must not set that of the other vectors.
    """
    top = (1 << (precision.weight_bits - 1)) - 1
    counted = [part for name, part in folded.items() if name not in idle]
    largest = np.max([np.abs(part).max(axis=1) for part in counted or folded.values()], axis=0)
    if precision.weight_scale == "tensor":
        largest = np.full_like(largest, largest.max())
    unit: Floats = largest / top
    divisor = np.where(unit > 0, unit, 1)[:, None]
    return {name: np.clip(np.rint(part / divisor), -top, top) for name, part in folded.items()}, unit


#: A scale as a factor and a shift: value * factor >> shift, rounded.
Rescaling = tuple[np.int64, int]


@dataclass(frozen=True, eq=False)
class FixedArithmetic:
    """Integers throughout: all held arrays are int64, but the weights are whole numbers in float64.

    layer, weights: the layer and its weights in this direction.
    precision: widths of all numbers.
    ranges: what every sum, node, parameter and x reached in floating point.
    x: format of the input; it has a scale for each column if a layer below gives the input.
    saturated: by name, how many results did not fit their format, over all calls.
    overflowed: by name, how many finished sums did not fit the accumulator, over all calls.
    largest_units: by sum, the unit whose shift all rows take; empty: that of the sum's own largest (`shift: common`).

    Neither count depends on how the units are cut into row blocks, nor on the order of additions.
    """

    layer: Layer
    weights: PassWeights
    precision: Precision
    ranges: Mapping[str, Range]
    x: VectorFormat
    saturated: Counter[str] = field(default_factory=Counter)
    overflowed: Counter[str] = field(default_factory=Counter)
    largest_units: Mapping[str, float] = field(default_factory=dict)

    def counting_anew(self) -> FixedArithmetic:
        """Give the same arithmetic with new counters that begin at 0; weights and tables are shared, not copied."""
        # computed before the copy, so that all copies share the results
        for name, each in vars(type(self)).items():
            if isinstance(each, cached_property):
                getattr(self, name)
        other = copy(self)
        other.__dict__.update(saturated=Counter(), overflowed=Counter())
        return other

    @cached_property
    def formats(self) -> Mapping[str, Format]:
        """Format of x and of every sum, node, state and parameter; a state has the format of the node that feeds it."""
        return formats_of(self.layer.cell, self.ranges, self.x, self.precision)

    def encode(self, x: Floats) -> Array:
        """Turn the input into integers; saturations count under x."""
        return self._held("x", x)

    def start(self, state: str, values: Floats | None) -> Array:
        """Give a state in its own format, or zeros for None."""
        return np.zeros(self.layer.width(state), np.int64) if values is None else self._held(state, values)

    def _held(self, name: str, values: Floats) -> Array:
        raw, lost = self.formats[name].held(values)
        return self._noted(name, raw, lost)

    def _noted(self, name: str, raw: Array, lost: int) -> Array:
        if lost:
            self.saturated[name] += lost
        return raw

    def _scale(self, vector: str) -> NDArray[np.float64]:
        own = self.formats[vector]
        assert isinstance(own, VectorFormat)
        return own.scale

    @property
    def scale_of_h(self) -> NDArray[np.float64]:
        """The real number that one unit of an element of h stands for."""
        return self._scale("h")

    @cached_property
    def _quantized(self) -> Mapping[str, tuple[Mapping[str, Array], Floats]]:
        """For each sum its weights by vector, as integers, and the real number per row that one unit stands for."""
        weights, states = {}, self.layer.cell.states
        for each in self.layer.cell.sums:
            folded = {name: self.weights.matrices[each.name, name] * self._scale(name) for name in each.vectors}
            idle = {name for name in folded if largest_of(self.ranges[states.get(name, name)]) == 0}
            weights[each.name] = quantized(folded, idle, self.precision)
        return weights

    def matrix(self, sum_: str, vector: str) -> Array:
        """Give the weights as whole numbers in float64, because numpy multiplies matrices of integers slowly.

        Products are below 2**30, so a sum of less than 2**23 products is exact in any order.
        """
        return self._quantized[sum_][0][vector]

    def add(self, total: Array, part: Array) -> Array:
        """Add exactly; the accumulator holds the lower `accumulator_bits` of the result.

        Wrapping commutes with addition, so `adapt` wraps once. The bits are the same as if the accumulator wrapped at
        every addition, and whether a sum has overflowed does not depend on the order of its parts.
        """
        return total.astype(np.int64) + part.astype(np.int64)

    @cached_property
    def adapters(self) -> Mapping[str, Adapter]:
        """For each sum what the adapter does to its rows."""
        return {
            name: Adapter.of(
                unit,
                self.weights.biases.get(name, np.zeros_like(unit)),
                self._q_format(name),
                self.precision,
                self.largest_units.get(name),
            )
            for name, (_, unit) in self._quantized.items()
        }

    def _q_format(self, name: str) -> QFormat:
        return q_format(self.formats[name])

    @property
    def units(self) -> Mapping[str, Floats]:
        """For each sum the real number that one unit of each row's accumulator stands for, [units]."""
        return {name: unit for name, (_, unit) in self._quantized.items()}

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """Multiply by the row's factor, shift and round into the sum's format, add the bias, saturate.

        The accumulator is two's complement: a sum outside its range wraps and is counted.
        """
        held = wrap(total, self.precision.accumulator_bits)
        if lost := int(np.count_nonzero(held != total)):
            self.overflowed[sum_] += lost
        own = self.adapters[sum_]
        return self._fit(sum_, shifted(held * own.factor[units], own.shift[units]) + own.bias[units])

    def _fit(self, name: str, exact: Array) -> Array:
        return self._noted(name, *saturate(exact, self.formats[name]))

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """Compute on aligned integers, round once to the format of the node, saturate; activations are in tables."""
        operands = [self._operand(each, values, units) for each in node.inputs]
        if node.operation in TABULATED:
            return self._noted(node.name, *self.tables[node.name](operands[0][0]))
        if node.operation == "quantize":
            factor, shift = self.quantizers[node.name]
            return self._fit(node.name, shifted(operands[0][0] * factor, shift))
        return self._fit(node.name, combine(node.operation, operands, self._q_format(node.name).fraction))

    def _operand(self, name: str | float, values: Mapping[str, Array], units: slice) -> Operand:
        """An input's integers and fraction; elements of a vector are brought into its element format first."""
        if not isinstance(name, str):
            return self.constants[name]
        own = self.formats[name]
        if name in self.parameters:
            return self.parameters[name][units], self._q_format(name).fraction
        if isinstance(own, QFormat):
            return values[name], own.fraction
        factor, shift = self.readers[name]
        # Not counted: the element format holds the vector's range, up to the rounding of the multiplier.
        return saturate(shifted(values[name] * factor, shift), own.element)[0], own.element.fraction

    @cached_property
    def quantizers(self) -> Mapping[str, Rescaling]:
        """For each `quantize` node the factor and the shift that bring its input into the integers of the vector."""
        inputs = {each.name: each.inputs[0] for each in self.layer.cell.nodes if each.operation == "quantize"}
        fractions = {
            name: self._q_format(own).fraction if isinstance(own, str) else self.constants[own][1]
            for name, own in inputs.items()
        }
        return {name: self._rescaling(1 / self._scale(name), -fraction) for name, fraction in fractions.items()}

    @cached_property
    def readers(self) -> Mapping[str, Rescaling]:
        """For each vector that nodes read the factor and the shift that bring its integers into its element format."""
        read = dict.fromkeys(name for each in self.layer.cell.nodes for name in each.sources)
        vectors = {name: own for name in read if isinstance(own := self.formats[name], VectorFormat)}
        return {name: self._rescaling(own.scale, own.element.fraction) for name, own in vectors.items()}

    def _rescaling(self, scale: ArrayLike, fraction: int) -> Rescaling:
        factor, shift = multipliers(scale, fraction, self.precision.multiplier_bits)
        return np.int64(factor), int(shift)

    @cached_property
    def parameters(self) -> Mapping[str, Array]:
        """Each parameter in its format, [units]."""
        return {name: self.formats[name].held(self.weights.parameters[name])[0] for name in self.layer.cell.parameters}

    @cached_property
    def constants(self) -> Mapping[float, Operand]:
        """Plain numbers of nodes, each in the finest format that holds it: [1] and the fraction."""
        numbers = {each for node in self.layer.cell.nodes for each in node.inputs if not isinstance(each, str)}
        formats = {each: QFormat.of(abs(each), self.precision.tail_bits) for each in numbers}
        return {each: (own.held([each])[0], own.fraction) for each, own in formats.items()}

    @cached_property
    def tables(self) -> Mapping[str, ActivationTable]:
        """The table of each node that has one; an exp table lies below 0 if calibration saw no argument above 0.

        So the exponential gates of a stabilised cell use their whole table: their arguments are never positive.
        """
        states, tables = self.layer.cell.states, {}
        for node in self.layer.cell.nodes:
            if node.operation in TABULATED:
                (source,) = node.sources
                negative = node.operation == "exp" and self.ranges[states.get(source, source)][1] <= 0
                formats = self._q_format(source), self._q_format(node.name)
                tables[node.name] = ActivationTable(node.operation, self.precision, *formats, negative)
        return tables

    def decode(self, name: str, values: Array) -> NDArray[np.float64]:
        """Give the real numbers that a name's integers stand for."""
        return self.formats[name].real(values)


#: Where a multiplier stands: behind a sum, within a piece of an activation, in a product of the cell, before a vector
#: is written, after an element of a vector is read, in a mean of squares.
KINDS = ("adapter", "interpolation", "product", "quantize", "vector read", "square")


@dataclass(frozen=True)
class Multiplier:
    """A multiplier of signed operands: one of `KINDS`, and the bits of both operands (factors and positions second)."""

    kind: str
    widths: tuple[int, int]


def per_unit(cell: Cell, precision: Precision) -> Counter[Multiplier]:
    """Count the multipliers that a tail needs for each unit that it takes in a cycle; every operation has its own.

    Additions, shifts, tables, divisions and square roots need none. Operations with one value for all units: `once`.
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
    """Count the multipliers of operations with one value for all units (after a mean): needed once for each core."""
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


#: Ranges of a network, `[layer][direction]`.
NetworkRanges = Sequence[Sequence[Mapping[str, Range]]]


def shared_ranges(networks: Sequence[tuple[Sequence[Cell], NetworkRanges]]) -> list[list[list[dict[str, Range]]]]:
    """Give every pass of a kind of cell the widest ranges that any of them reached.

    x keeps its own: its scale is folded into the weights of each pass, so a machine need not know it.
    """
    widest: dict[Cell, dict[str, Range]] = {}
    for cells, ranges in networks:
        for cell, both in zip(cells, ranges, strict=True):
            own = widest.setdefault(cell, {})
            for name, (low, high) in (pair for reached in both for pair in reached.items()):
                least, most = own.get(name, (0.0, 0.0))
                own[name] = min(least, low), max(most, high)
    return [
        [[{**widest[cell], "x": reached["x"]} for reached in both] for cell, both in zip(cells, ranges, strict=True)]
        for cells, ranges in networks
    ]


def largest_units(passes: Iterable[tuple[Cell, Mapping[str, float]]]) -> dict[Cell, dict[str, float]]:
    """For each kind of cell and each of its sums the largest unit of the accumulator of a row."""
    largest: dict[Cell, dict[str, float]] = {}
    for cell, units in passes:
        own = largest.setdefault(cell, {})
        own.update({name: max(unit, own.get(name, 0.0)) for name, unit in units.items()})
    return largest


#: Of a network, `[layer][direction]`.
Passes = tuple[tuple[FixedArithmetic, ...], ...]
Ranges = Sequence[Sequence[Mapping[str, Range]]]


def fixed_arithmetic(network: Network, stimulus: Stimulus | Sequence[Stimulus], precision: Precision) -> Passes:
    """Make the arithmetic `[layer][direction]` of a network, with formats that hold all that the stimuli reach."""
    ranges = calibrate(network, [stimulus] if isinstance(stimulus, Stimulus) else stimulus)
    return fixed_chip([(network, ranges)], precision)[0]


def fixed_chip(networks: Sequence[tuple[Network, Ranges]], precision: Precision) -> list[Passes]:
    """Make the arithmetic `[layer][direction]` of each network of a chip; `precision` says what they share.

    networks: weights, and ranges as `calibrate` gives them. With shared formats, all passes of a kind of cell have the
        formats that hold the ranges of all of them, and common shifts are common to all of them.
    `InputError` if a width is not possible.
    """
    refuse(Mistake(f"precision.{key}", text) for key, text in precision.mistakes())
    ranges: Sequence[Ranges] = [own for _, own in networks]
    if precision.formats == "shared":
        ranges = shared_ranges([([layer.cell for layer in own.model.layers], reached) for own, reached in networks])
    every = [_passes(network, own, precision) for (network, _), own in zip(networks, ranges, strict=True)]
    if (precision.formats, precision.shift) != ("shared", "common"):
        return every
    units = largest_units(
        (own.layer.cell, {name: float(unit.max(initial=0)) for name, unit in own.units.items()})
        for passes in every
        for both in passes
        for own in both
    )
    return [
        tuple(tuple(_shifted_as(own, units[own.layer.cell]) for own in both) for both in passes) for passes in every
    ]


def _passes(network: Network, ranges: Ranges, precision: Precision) -> Passes:
    x = VectorFormat.of(largest_of(ranges[0][0]["x"]), precision.vector_bits, precision.tail_bits)
    layers = []
    for layer, weights, reached in zip(network.model.layers, network.passes, ranges, strict=True):
        both = tuple(
            FixedArithmetic(layer, own, precision, each, x) for own, each in zip(weights, reached, strict=True)
        )
        layers.append(both)
        scales = [np.broadcast_to(each.scale_of_h, layer.width("h")) for each in both]
        x = VectorFormat(precision.vector_bits, np.concatenate(scales), x.element)
    return tuple(layers)


def _shifted_as(own: FixedArithmetic, units: Mapping[str, float]) -> FixedArithmetic:
    """The same pass, whose adapters shift as for these units; its weights are not quantized again."""
    other = copy(own)
    other.__dict__.update(largest_units=units)
    return other
