"""Calibration: the ranges that values reach in floating point, and the fixed-point formats that hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.model.cell import Cell
from lstmsim.model.model import Precision
from lstmsim.model.numerics.arithmetic import Array, FloatArithmetic
from lstmsim.model.numerics.fixed_point import QFormat, VectorFormat
from lstmsim.model.numerics.golden import initial_states, run_pass
from lstmsim.model.numerics.weights import Network, Stimulus

#: Smallest and largest value seen, 0 included.
Range = tuple[float, float]

#: Larger values cannot be calibrated; the product of two values of this size is still a floating-point number.
_LARGEST = 1e100


def _widen(ranges: dict[str, Range], name: str, values: Array) -> None:
    """Widen the range of a name so that it holds further values."""
    low, high = ranges.get(name, (0.0, 0.0))
    least, most = float(values.min(initial=0)), float(values.max(initial=0))
    low, high = min(low, least), max(high, most)
    # both are NaN if any value is
    if math.isnan(least) or not max(-low, high) <= _LARGEST:
        raise InputError(f"{name} has no finite range in floating point: no fixed-point format holds it")
    ranges[name] = low, high


def calibrate(network: Network, stimuli: Sequence[Stimulus]) -> tuple[tuple[Mapping[str, Range], ...], ...]:
    """Measure the ranges of x and of every sum, node and parameter in float64, name to range, `[layer][direction]`.

    An initial state counts for the node that feeds it. `InputError` if a value is not finite, or without a stimulus.
    """
    if not stimuli:
        raise InputError("calibration needs at least one stimulus")
    reached: list[list[dict[str, Range]]] = [[{} for _ in both] for both in network.passes]
    with np.errstate(all="ignore"):
        for both, passes in zip(network.passes, reached, strict=True):
            for weights, ranges in zip(both, passes, strict=True):
                for name, values in weights.parameters.items():
                    _widen(ranges, name, values)
        for stimulus in stimuli:
            x = stimulus.x.astype(np.float64)
            for number, layer in enumerate(network.model.layers):
                outputs = []
                for direction, ranges in enumerate(reached[number]):
                    note = partial(_widen, ranges)
                    note("x", x)
                    own = FloatArithmetic(layer, network.passes[number][direction])
                    states = initial_states(own, stimulus, number, direction)
                    for name, values in states.items():
                        note(layer.cell.states[name], values)
                    outputs.append(run_pass(own, x, states, layer.backward(direction), note).h)
                x = np.concatenate(outputs, axis=1)
    return tuple(tuple(both) for both in reached)


Format = QFormat | VectorFormat


def largest_of(range_: Range) -> float:
    """Give the largest magnitude within a range."""
    low, high = range_
    return max(-low, high)


def formats_of(cell: Cell, ranges: Mapping[str, Range], x: VectorFormat, precision: Precision) -> dict[str, Format]:
    """Give the format of x and of every sum, node, state and parameter; a state has that of the node that feeds it."""
    formats: dict[str, Format] = {"x": x}
    for name in (*(each.name for each in cell.sums), *cell.parameters):
        formats[name] = QFormat.of(largest_of(ranges[name]), precision.tail_bits)
    for node in cell.nodes:
        largest = largest_of(ranges[node.name])
        if node.operation == "quantize":
            formats[node.name] = VectorFormat.of(largest, precision.vector_bits, precision.tail_bits)
        else:
            kept = node.name in cell.states.values()
            formats[node.name] = QFormat.of(largest, precision.state_bits if kept else precision.tail_bits)
    return formats | {state: formats[target] for state, target in cell.states.items()}


def q_format(own: Format) -> QFormat:
    """Give the Q-format in which nodes read numbers of a format; a vector gives the format of its single elements."""
    return own.element if isinstance(own, VectorFormat) else own
