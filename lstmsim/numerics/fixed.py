"""Fixed-point arithmetic of one pass, whose formats hold the ranges that calibration has measured.

Vectors (x, h, every `quantize` node) are symmetric integers with one scale each. Their scales are folded into the
weights, so that all vectors of a sum meet in one integer accumulator. A multiplier for each row then brings the sum
into a Q-format. This dequantisation stands behind the adapter, as in the column-wise LSTM patent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import InputError, Mistake
from lstmsim.numerics.activation_tables import TABULATED, ActivationTable
from lstmsim.numerics.arithmetic import Array
from lstmsim.numerics.calibration import Range, calibrate
from lstmsim.numerics.fixed_point import (
    Operand,
    QFormat,
    VectorFormat,
    combine,
    multipliers,
    saturate,
    shifted,
    wrap,
)
from lstmsim.numerics.weights import Floats, Network, PassWeights, Stimulus
from lstmsim.workload.cell import Node
from lstmsim.workload.model import Layer
from lstmsim.workload.precision import Precision

__all__ = ["FixedArithmetic", "fixed_arithmetic", "fixed_passes"]

#: Bits of a bias in its sum's units: a large bias may meet an equally large product.
_BIAS_BITS = 32


@dataclass(frozen=True, eq=False)
class FixedArithmetic:
    """Integers throughout: all held arrays are int64, but the weights are whole numbers in float64.

    layer, weights: the layer and its weights in this direction.
    precision: widths of all numbers.
    ranges: what every sum, node and x reached in floating point.
    x: format of the input; it has a scale for each column if a layer below gives the input.
    saturated: by name, how many results did not fit their format, over all calls.
    overflowed: by name, how many finished sums did not fit the accumulator, over all calls.

    Neither count depends on how the units are cut into row blocks, nor on the order of additions.

    >>> from lstmsim.numerics.weights import random_network, random_stimulus
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Model
    >>> model = Model("m", (Layer(cell("rnn"), hidden=3, input=2),))
    >>> own = fixed_arithmetic(random_network(model, seed=1), random_stimulus(model, 5, seed=1), Precision())[0][0]
    >>> own.formats["a"].bits, own.formats["h"].bits
    (16, 8)
    """

    layer: Layer
    weights: PassWeights
    precision: Precision
    ranges: Mapping[str, Range]
    x: VectorFormat
    saturated: Counter[str] = field(default_factory=Counter)
    overflowed: Counter[str] = field(default_factory=Counter)

    def counting_anew(self) -> FixedArithmetic:
        """Give the same arithmetic with new counters that begin at 0; weights and tables are shared, not copied."""
        # computed before the copy, so that all copies share the results
        for name in ("formats", "_quantized", "_adapters", "_parameters", "_constants", "_tables"):
            getattr(self, name)
        other = copy(self)
        other.__dict__.update(saturated=Counter(), overflowed=Counter())
        return other

    @cached_property
    def formats(self) -> Mapping[str, QFormat | VectorFormat]:
        """Format of x and of every sum, node, state and parameter; a state has the format of the node that feeds it."""
        cell, precision = self.layer.cell, self.precision
        formats: dict[str, QFormat | VectorFormat] = {"x": self.x}
        for each in cell.sums:
            formats[each.name] = QFormat.of(self._largest(each.name), precision.tail_bits)
        for node in cell.nodes:
            largest = self._largest(node.name)
            if node.operation == "quantize":
                formats[node.name] = VectorFormat.of(largest, precision.vector_bits, precision.tail_bits)
            else:
                kept = node.name in cell.states.values()
                formats[node.name] = QFormat.of(largest, precision.state_bits if kept else precision.tail_bits)
        for name in cell.parameters:
            largest = float(np.abs(self.weights.parameters[name]).max(initial=0))
            formats[name] = QFormat.of(largest, precision.tail_bits)
        return formats | {state: formats[target] for state, target in cell.states.items()}

    def _largest(self, name: str) -> float:
        low, high = self.ranges[name]
        return max(-low, high)

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

    def _largest_of_vector(self, name: str) -> float:
        return self._largest(self.layer.cell.states.get(name, name))

    @cached_property
    def _quantized(self) -> Mapping[str, tuple[Mapping[str, Array], Floats]]:
        """For each sum its weights by vector, as integers, and the real number per row that one unit stands for."""
        top = (1 << (self.precision.weight_bits - 1)) - 1
        quantized = {}
        for each in self.layer.cell.sums:
            folded = {name: self.weights.matrices[each.name, name] * self._scale(name) for name in each.vectors}
            # A vector that is always 0 has no scale of its own and must not set the scale of the other vectors.
            counted = [part for name, part in folded.items() if self._largest_of_vector(name) > 0]
            largest = np.max([np.abs(part).max(axis=1) for part in counted or folded.values()], axis=0)
            if self.precision.weight_scale == "tensor":
                largest = np.full_like(largest, largest.max())
            unit = largest / top
            divisor = np.where(unit > 0, unit, 1)[:, None]
            quantized[each.name] = (
                {name: np.clip(np.rint(part / divisor), -top, top) for name, part in folded.items()},
                unit,
            )
        return quantized

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
    def _adapters(self) -> Mapping[str, tuple[Array, Array, Array]]:
        """For each sum its rows' multipliers, shifts and biases."""
        adapters = {}
        for name, (_, unit) in self._quantized.items():
            fraction = self._q_format(name).fraction
            bias = self.weights.biases.get(name, np.zeros_like(unit))
            raw, _ = QFormat(_BIAS_BITS, fraction).held(bias)
            adapters[name] = (*multipliers(unit, fraction, self.precision.multiplier_bits), raw)
        return adapters

    def _q_format(self, name: str) -> QFormat:
        """The Q-format of a name; a vector gives the format of its single elements."""
        own = self.formats[name]
        return own.element if isinstance(own, VectorFormat) else own

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """Multiply by the row's factor, shift and round into the sum's format, add the bias, saturate.

        The accumulator is two's complement: a sum outside its range wraps and is counted.

        sum_: the sum's name.
        total: exact sums, [units].
        units: the rows that `total` covers.
        """
        held = wrap(total, self.precision.accumulator_bits)
        if lost := int(np.count_nonzero(held != total)):
            self.overflowed[sum_] += lost
        factor, shift, bias = (each[units] for each in self._adapters[sum_])
        return self._fit(sum_, shifted(held * factor, shift) + bias)

    def _fit(self, name: str, exact: Array) -> Array:
        return self._noted(name, *saturate(exact, self.formats[name]))

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """Compute on aligned integers, round once to the node's format, saturate; activations are read from tables.

        node: the operation and its inputs.
        values: its sources by name, [units] or [1] for scalars; a reduction gets all units.
        units: the rows that `values` cover.
        """
        operands = [self._operand(each, values, units) for each in node.inputs]
        if node.operation in TABULATED:
            return self._noted(node.name, *self._tables[node.name](operands[0][0]))
        if node.operation == "quantize":
            factor, shift = multipliers(1 / self._scale(node.name), -operands[0][1], self.precision.multiplier_bits)
            return self._fit(node.name, shifted(operands[0][0] * factor, shift))
        return self._fit(node.name, combine(node.operation, operands, self._q_format(node.name).fraction))

    def _operand(self, name: str | float, values: Mapping[str, Array], units: slice) -> Operand:
        """An input's integers and fraction; elements of a vector are brought into its element format first."""
        if not isinstance(name, str):
            return self._constants[name]
        own = self.formats[name]
        if name in self._parameters:
            return self._parameters[name][units], self._q_format(name).fraction
        if isinstance(own, QFormat):
            return values[name], own.fraction
        factor, shift = multipliers(own.scale, own.element.fraction, self.precision.multiplier_bits)
        # Not counted: the element format holds the vector's range, up to the rounding of the multiplier.
        return saturate(shifted(values[name] * factor, shift), own.element)[0], own.element.fraction

    @cached_property
    def _parameters(self) -> Mapping[str, Array]:
        return {name: self.formats[name].held(self.weights.parameters[name])[0] for name in self.layer.cell.parameters}

    @cached_property
    def _constants(self) -> Mapping[float, Operand]:
        """Plain numbers, each in the finest format that holds it."""
        numbers = {each for node in self.layer.cell.nodes for each in node.inputs if not isinstance(each, str)}
        formats = {each: QFormat.of(abs(each), self.precision.tail_bits) for each in numbers}
        return {each: (own.held([each])[0], own.fraction) for each, own in formats.items()}

    @cached_property
    def _tables(self) -> Mapping[str, ActivationTable]:
        """The table of each node that has one; an exp table lies below 0 if calibration saw no argument above 0.

        So the exponential gates of a stabilised cell use their whole table: their arguments are never positive.
        """
        states, tables = self.layer.cell.states, {}
        for node in self.layer.cell.nodes:
            if node.operation in TABULATED:
                source = next(iter(node.sources))
                negative = node.operation == "exp" and self.ranges[states.get(source, source)][1] <= 0
                result = self._q_format(node.name)
                arguments = self._q_format(source)
                tables[node.name] = ActivationTable(node.operation, self.precision, arguments, result, negative)
        return tables

    def decode(self, name: str, values: Array) -> NDArray[np.float64]:
        """Give the real numbers that a name's integers stand for."""
        return self.formats[name].real(values)


def fixed_arithmetic(
    network: Network, stimulus: Stimulus | Sequence[Stimulus], precision: Precision
) -> tuple[tuple[FixedArithmetic, ...], ...]:
    """Make the arithmetic `[layer][direction]` of a network, with formats that hold all that the stimuli reach.

    network: the weights.
    stimulus: one stimulus or several, which the network is calibrated on.
    precision: widths of all numbers.

    `InputError` if a width is not possible or a value of the floating-point run is not finite.
    """
    return fixed_passes(
        network, calibrate(network, [stimulus] if isinstance(stimulus, Stimulus) else stimulus), precision
    )


def fixed_passes(
    network: Network, ranges: Sequence[Sequence[Mapping[str, Range]]], precision: Precision
) -> tuple[tuple[FixedArithmetic, ...], ...]:
    """Make the arithmetic `[layer][direction]` of a network whose ranges are known.

    network: the weights.
    ranges: name to range, `[layer][direction]`, as `calibrate` gives them.
    precision: widths of all numbers.

    `InputError` if a width is not possible.
    """
    if mistakes := precision.mistakes():
        raise InputError([Mistake(f"precision.{key}", text) for key, text in mistakes])
    low, high = ranges[0][0]["x"]
    x = VectorFormat.of(max(-low, high), precision.vector_bits, precision.tail_bits)
    layers = []
    for layer, weights, reached in zip(network.model.layers, network.passes, ranges, strict=True):
        both = tuple(
            FixedArithmetic(layer, own, precision, each, x) for own, each in zip(weights, reached, strict=True)
        )
        layers.append(both)
        scales = [np.broadcast_to(each._scale("h"), layer.width("h")) for each in both]
        x = VectorFormat(precision.vector_bits, np.concatenate(scales), x.element)
    return tuple(layers)
