"""The numbers of a network: weights, biases and parameters of each layer and direction, in the cell's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import Mistake, refuse
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model

Floats = NDArray[np.floating]
#: (layer, direction) to the states before the first step, name to [units].
States = Mapping[tuple[int, int], Mapping[str, Floats]]

#: No network that works has weights above this; products of such numbers would overflow.
LARGEST = 1e12
_DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True, eq=False)
class PassWeights:
    """Weights of one layer in one direction.

    matrices: (sum, vector) to [units, width]; biases, parameters: name to [units]; a bias that is left out is 0.
    """

    matrices: Mapping[tuple[str, str], Floats]
    biases: Mapping[str, Floats] = field(default_factory=dict)
    parameters: Mapping[str, Floats] = field(default_factory=dict)


def expected_shapes(layer: Layer) -> Mapping[tuple[str, ...], tuple[int, ...]]:
    """Give the shape of every tensor of a layer in one direction.

    Keys are ("matrix", sum, vector), ("bias", sum) and ("parameter", name).
    """
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {}
    for stage in layer.cell.stages:
        for each in stage.sums:
            units = layer.units(stage.rows)
            for vector in each.vectors:
                shapes["matrix", each.name, vector] = (units, layer.width(vector))
            shapes["bias", each.name] = (units,)
    for name in layer.cell.parameters:
        shapes["parameter", name] = (layer.width(name),)
    return shapes


@dataclass(frozen=True, eq=False)
class Network:
    """A model and its numbers; `InputError` if a shape or a value is wrong.

    model: the layers.
    passes: weights of each pass, `passes[layer][direction]`.
    initial: (layer, direction) to the states before the first step, name to [units], if the network itself fixes
        them; states that are left out begin at 0.
    """

    model: Model
    passes: tuple[tuple[PassWeights, ...], ...]
    initial: States = field(default_factory=dict)

    def __post_init__(self) -> None:
        mistakes = []
        for number, (layer, both) in enumerate(zip(self.model.layers, self.passes, strict=True)):
            for direction, each in zip(_DIRECTIONS, both, strict=False):
                place = f"model {self.model.name}: layer {number} {direction}"
                mistakes += [Mistake(place, text) for text in _mistakes(layer, each)]
            if len(both) != layer.directions:
                text = f"needs weights for {layer.directions} directions, got {len(both)}"
                mistakes.append(Mistake(f"model {self.model.name}: layer {number}", text))
        mistakes += [Mistake(f"model {self.model.name}: {place}", text) for place, text in self._wrong_states()]
        refuse(mistakes)

    def _wrong_states(self) -> list[tuple[str, str]]:
        """What is wrong with the initial states, as (place, sentence) pairs."""
        mistakes = []
        for (number, direction), states in self.initial.items():
            place = f"layer {number} {_DIRECTIONS[direction] if direction in (0, 1) else direction}"
            if not (0 <= number < len(self.model.layers) and 0 <= direction < self.model.layers[number].directions):
                mistakes.append((place, "has initial states, but there is no such pass"))
                continue
            layer = self.model.layers[number]
            for name, values in states.items():
                known = ", ".join(layer.cell.states)
                text: str | None = f"initial {name} is no state of cell {layer.cell.name!r}, which has {known}"
                if name in layer.cell.states:
                    text = _wrong_numbers(f"initial {name}", values, (layer.width(name),))
                mistakes += [(place, text)] if text else []
        return mistakes

    def stimulus(self, x: Floats) -> Stimulus:
        """Join frames, [steps, input], and the initial states that the network fixes."""
        return Stimulus(x, self.initial)


def _wrong_numbers(name: str, values: Floats, shape: tuple[int, ...]) -> str | None:
    """What is wrong with an array that should have a shape and hold numbers of usual size."""
    if values.shape != shape:
        return f"{name} has shape {list(values.shape)}, expected {list(shape)}"
    if not np.all(np.isfinite(values)):
        return f"{name} holds a number that is not finite"
    if np.abs(values).max(initial=0) > LARGEST:
        return f"{name} holds numbers above {LARGEST:g}"
    return None


def _mistakes(layer: Layer, weights: PassWeights) -> list[str]:
    given: dict[tuple[str, ...], Floats] = {("matrix", *key): each for key, each in weights.matrices.items()}
    given |= {("bias", key): each for key, each in weights.biases.items()}
    given |= {("parameter", key): each for key, each in weights.parameters.items()}
    expected = expected_shapes(layer)
    sentences = []
    for key, shape in expected.items():
        name = f"{key[0]} {' of '.join(reversed(key[1:]))}"
        if key in given:
            sentences += [text] if (text := _wrong_numbers(name, given[key], shape)) else []
        elif key[0] != "bias":
            sentences.append(f"{name} is missing, expected shape {list(shape)}")
    sentences += [
        f"{key[0]} {key[1]} belongs to nothing in cell {layer.cell.name!r}" for key in given.keys() - expected.keys()
    ]
    return sentences


@dataclass(frozen=True, eq=False)
class Stimulus:
    """What a job is run on: frames, [steps, input], and states before the first step as of `Network`."""

    x: Floats
    initial: States = field(default_factory=dict)


def _random(seed: int, *key: object) -> np.random.Generator:
    """A generator of its own for each key, so that no number depends on what was drawn before."""
    return np.random.default_rng([seed, *(crc32(str(each).encode()) for each in key)])


def random_network(model: Model, seed: int) -> Network:
    """Draw weights uniformly from +-1/sqrt(hidden), as PyTorch starts its recurrent layers; scales are near 1."""
    passes = []
    for number, layer in enumerate(model.layers):
        both = []
        for direction in range(layer.directions):
            drawn: dict[str, dict[Any, Floats]] = {"matrix": {}, "bias": {}, "parameter": {}}
            for (kind, *key), shape in expected_shapes(layer).items():
                each = _random(seed, number, direction, kind, *key).uniform(-1, 1, shape) / np.sqrt(layer.hidden)
                drawn[kind][tuple(key) if kind == "matrix" else key[0]] = each
            scaled = {name: _scales(layer.cell, name) + each for name, each in drawn["parameter"].items()}
            both.append(PassWeights(drawn["matrix"], drawn["bias"], scaled))
        passes.append(tuple(both))
    return Network(model, tuple(passes))


def _scales(cell: Cell, name: str) -> float:
    """1 for a parameter that only multiplies normalised values (a factor near 0 would wipe them out), else 0."""
    readers = [node for node in cell.nodes if name in node.sources]
    states = set(cell.states) | set(cell.states.values())
    return float(all(node.operation == "multiply" and not states & set(node.sources) for node in readers))


def random_stimulus(model: Model, steps: int, seed: int) -> Stimulus:
    """Draw frames from the standard normal distribution, as wide as the first layer asks."""
    return Stimulus(_random(seed, "x").standard_normal((steps, model.layers[0].input)))
