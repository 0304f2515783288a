"""How the numbers of one pass (a layer in one direction) are held and combined: the rules, and floating point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.numerics.weights import Floats, PassWeights
from lstmsim.workload.cell import Node
from lstmsim.workload.model import Layer

__all__ = ["Arithmetic", "Array", "FloatArithmetic"]

Array = NDArray[Any]


class Arithmetic(Protocol):
    """Numbers of one pass. Arrays hold what the hardware holds (floats or integers); `units` says which rows of the
    pass they are, so that a row block gives the same as the whole."""

    @property
    def layer(self) -> Layer:
        """The layer that the pass belongs to."""

    def encode(self, x: Floats) -> Array:
        """Input frames as the vector memory holds them; shape kept."""

    def start(self, state: str, values: Floats | None) -> Array:
        """A state before the first step, all units; None: zero."""

    def matrix(self, sum_: str, vector: str) -> Array:
        """Weights as the multipliers hold them, [units, width]."""

    def add(self, total: Array, part: Array) -> Array:
        """One addition in the accumulator."""

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """What the adapter makes of finished sums for the tail: scale and bias."""

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """A node for those units, from the values of its sources for the same units (scalars have shape [1]).

        Reductions get all units.
        """

    def decode(self, name: str, values: Array) -> NDArray[np.float64]:
        """The real numbers that held values stand for."""


def _sigmoid(v: Floats) -> Floats:
    e = np.exp(-np.abs(v))
    result: Floats = np.where(v >= 0, 1, e) / (1 + e)
    return result


def _divide(a: Floats, b: Floats) -> Floats:
    """a / b; 0 / 0 is 0, as at the first step of a normalised state."""
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

    >>> from lstmsim.numerics.weights import random_network
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Model
    >>> layer = Layer(cell("rnn"), hidden=3, input=2)
    >>> weights = random_network(Model("m", (layer,)), seed=1).passes[0][0]
    >>> FloatArithmetic(layer, weights, np.float32).matrix("a", "x").dtype
    dtype('float32')
    """

    layer: Layer
    weights: PassWeights
    dtype: DTypeLike = np.float64

    @cached_property
    def _matrices(self) -> Mapping[tuple[str, str], Array]:
        return {key: each.astype(self.dtype) for key, each in self.weights.matrices.items()}

    def encode(self, x: Floats) -> Array:
        """The same numbers in the own type."""
        return x.astype(self.dtype)

    def start(self, state: str, values: Floats | None) -> Array:
        """The same numbers in the own type, or zeros."""
        return np.zeros(self.layer.width(state), self.dtype) if values is None else values.astype(self.dtype)

    def matrix(self, sum_: str, vector: str) -> Array:
        """The weights in the own type."""
        return self._matrices[sum_, vector]

    def add(self, total: Array, part: Array) -> Array:
        """Plain addition."""
        return total + part

    def adapt(self, sum_: str, total: Array, units: slice) -> Array:
        """Adds the bias."""
        bias = self.weights.biases.get(sum_)
        return total if bias is None else total + bias[units].astype(self.dtype)

    def compute(self, node: Node, values: Mapping[str, Array], units: slice) -> Array:
        """The operation's function of numpy."""
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
        """As float64."""
        return values.astype(np.float64)
