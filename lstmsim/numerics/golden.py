"""The golden model: a network run step by step on whole vectors, in whatever arithmetic, without any schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.numerics.arithmetic import Arithmetic, Array, FloatArithmetic
from lstmsim.numerics.weights import Network, Stimulus
from lstmsim.workload.segments import segments

__all__ = ["NetworkRun", "PassRun", "float_arithmetic", "run_network", "run_pass", "step"]

#: Called with the name and the held values of everything computed; for calibration.
Observer = Callable[[str, Array], None]


@dataclass(frozen=True, eq=False)
class PassRun:
    """One pass: `h` per time step [steps, width] as held, in the order of time also for a backward pass; `states`
    after its last step."""

    h: Array
    states: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class NetworkRun:
    """A run of all layers: `passes[layer][direction]`, and the arithmetic that each was made with."""

    arithmetic: tuple[tuple[Arithmetic, ...], ...]
    passes: tuple[tuple[PassRun, ...], ...]

    def h(self, layer: int = -1, direction: int = 0) -> NDArray[np.float64]:
        """Output of a layer as real numbers, [steps, width]."""
        return self.arithmetic[layer][direction].decode("h", self.passes[layer][direction].h)

    def output(self) -> NDArray[np.float64]:
        """What the last layer hands on: both directions side by side, [steps, output]."""
        return np.concatenate([self.h(-1, direction) for direction in range(len(self.passes[-1]))], axis=1)


def step(
    arithmetic: Arithmetic, x: Array, states: Mapping[str, Array], observe: Observer | None = None
) -> dict[str, Array]:
    """All states after one step from input `x` [input] and the states before it."""
    layer = arithmetic.layer
    cell = layer.cell
    values: dict[str, Array] = {**states}
    vectors = {"x": x, "h": states["h"]}
    for number, stage in enumerate(cell.stages):
        every = slice(0, layer.units(stage.rows))
        for each in stage.sums:
            total = arithmetic.matrix(each.name, each.vectors[0]) @ vectors[each.vectors[0]]
            for vector in each.vectors[1:]:
                total = total + arithmetic.matrix(each.name, vector) @ vectors[vector]
            values[each.name] = arithmetic.adapt(each.name, arithmetic.add(np.zeros_like(total), total), every)
            if observe:
                observe(each.name, values[each.name])
        for segment in segments(cell):
            if segment.stage == number:
                for node in (*segment.nodes, *segment.reductions, *segment.scalars):
                    values[node.name] = arithmetic.compute(node, values, every)
                    if observe:
                        observe(node.name, values[node.name])
        vectors |= values
    return {name: values[target] for name, target in cell.states.items()}


def run_pass(
    arithmetic: Arithmetic,
    x: Array,
    states: Mapping[str, Array],
    backward: bool = False,
    observe: Observer | None = None,
) -> PassRun:
    """All steps of one pass over `x` [steps, input], as held."""
    order = range(len(x))
    h = None
    for time in reversed(order) if backward else order:
        states = step(arithmetic, x[time], states, observe)
        if h is None:
            h = np.zeros((len(x), *states["h"].shape), states["h"].dtype)
        h[time] = states["h"]
    assert h is not None
    return PassRun(h, dict(states))


def initial_states(arithmetic: Arithmetic, stimulus: Stimulus, layer: int, direction: int) -> dict[str, Array]:
    """The states before the first step as held; a state that h is quantized from starts where h does."""
    given = dict(stimulus.initial.get((layer, direction), {}))
    cell = arithmetic.layer.cell
    for name, target in cell.states.items():
        if "h" in given and name not in given and target == cell.node(cell.output).inputs[0]:
            given[name] = given["h"]
    return {name: arithmetic.start(name, given.get(name)) for name in cell.states}


def run_network(
    arithmetic: Sequence[Sequence[Arithmetic]], stimulus: Stimulus, observe: Observer | None = None
) -> NetworkRun:
    """All layers, each over the whole sequence; `arithmetic[layer][direction]`.

    >>> from lstmsim.numerics.weights import random_network, random_stimulus
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer, Model
    >>> network = random_network(Model("m", (Layer(cell("lstm"), 4, 3, bidirectional=True),)), seed=1)
    >>> run = run_network(float_arithmetic(network), random_stimulus(network.model, steps=5, seed=1))
    >>> run.output().shape
    (5, 8)
    """
    x = arithmetic[0][0].encode(stimulus.x)
    passes = []
    for number, both in enumerate(arithmetic):
        runs = tuple(
            run_pass(
                each, x, initial_states(each, stimulus, number, direction), each.layer.backward(direction), observe
            )
            for direction, each in enumerate(both)
        )
        passes.append(runs)
        x = np.concatenate([each.h for each in runs], axis=1)
    return NetworkRun(tuple(tuple(each) for each in arithmetic), tuple(passes))


def float_arithmetic(network: Network, dtype: DTypeLike = np.float64) -> tuple[tuple[FloatArithmetic, ...], ...]:
    """Floating point for every pass of a network."""
    return tuple(
        tuple(FloatArithmetic(layer, weights, dtype) for weights in both)
        for layer, both in zip(network.model.layers, network.passes, strict=True)
    )
