"""Arithmetic of one pass (a layer in one direction): the rules that every arithmetic keeps, and floating point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.model.cell import Node
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats, PassWeights

Array = NDArray[Any]


class Arithmetic(Protocol):
    """How the numbers of one pass are held and combined.

    Arrays hold what the hardware holds, floats or integers. An argument `units` says which rows of the pass an array
    covers, so that a row block gives the same numbers as the whole pass.
    """

    @property
    def layer(self) -> Layer:
        """The layer that the pass belongs to."""

    def encode(self, x: Floats) -> Array:
        """Turn input frames into what the vector memory holds; the shape stays."""

    def start(self, state: str, values: Floats | None) -> Array:
        """Give a state before the first step, as held; values: real numbers, [units]; None: zeros."""

    def matrix(self, sum_: str, vector: str) -> Array:
        """Give the weights of a sum for one of its vectors as the multipliers hold them, [units, width]."""

    def add(self, total: Array, part: Array) -> Array:
        """Do one addition in the accumulator."""

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """Scale finished sums and add their bias, as the adapter does for the tail.

        total: what the accumulator holds, [units]; units: the rows that it covers.
        """

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """Compute a node.

        values: its sources by name, [units] or [1] for scalars; a reduction gets all units.
        units: the rows that `values` cover.
        """

    def decode(self, name: str, values: Array) -> NDArray[np.float64]:
        """Give the real numbers that the held values of a name stand for."""


def _sigmoid(v: Floats) -> Floats:
    e = np.exp(-np.abs(v))
    result: Floats = np.where(v >= 0, 1, e) / (1 + e)
    return result


def _divide(a: Floats, b: Floats) -> Floats:
    """Divide a by b; 0 / 0 is 0, as the first step of a normalised state needs it."""
    zero = np.zeros(np.broadcast(a, b).shape, dtype=np.result_type(a, b))
    result: Floats = np.divide(a, b, out=zero, where=(b != 0) | (a != 0))
    return result


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "exp": np.exp,
    "log_sigmoid": lambda v: -np.logaddexp(np.zeros_like(v), -v),
    "rsqrt": lambda v: 1 / np.sqrt(v),
    "relu": lambda v: np.maximum(v, 0),
    "multiply": np.multiply,
    "divide": _divide,
    "add": np.add,
    "subtract": np.subtract,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "quantize": lambda v: v,
    "mean": lambda *vs: np.mean(np.concatenate(vs), keepdims=True),
    "mean_square": lambda *vs: np.mean(np.square(np.concatenate(vs)), keepdims=True),
}


@dataclass(frozen=True, eq=False)
class FloatArithmetic:
    """Floating point of one type throughout; `quantize` does nothing.

    layer: the layer that the pass belongs to.
    weights: its weights in this direction.
    dtype: the type of all numbers.
    """

    layer: Layer
    weights: PassWeights
    dtype: DTypeLike = np.float64

    @cached_property
    def _matrices(self) -> Mapping[tuple[str, str], Array]:
        return {key: each.astype(self.dtype) for key, each in self.weights.matrices.items()}

    def encode(self, x: Floats) -> Array:
        """Give the same numbers in `dtype`."""
        return x.astype(self.dtype)

    def start(self, state: str, values: Floats | None) -> Array:
        """Give the same numbers in `dtype`, or zeros for None."""
        return np.zeros(self.layer.width(state), self.dtype) if values is None else values.astype(self.dtype)

    def matrix(self, sum_: str, vector: str) -> Array:
        """Give the weights in `dtype`."""
        return self._matrices[sum_, vector]

    def add(self, total: Array, part: Array) -> Array:
        """Add without any further rule."""
        return total + part

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """Add the bias."""
        bias = self.weights.biases.get(sum_)
        return total if bias is None else total + bias[units].astype(self.dtype)

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """Apply the operation's function of numpy."""
        parameters = self.weights.parameters
        inputs = [
            np.array([each], self.dtype)
            if not isinstance(each, str)
            else parameters[each][units].astype(self.dtype)
            if each in parameters
            else values[each]
            for each in node.inputs
        ]
        result: Array = FUNCTIONS[node.operation](*inputs)
        return result

    def decode(self, name: str, values: Array) -> NDArray[np.float64]:
        """Give the values as float64."""
        return values.astype(np.float64)
