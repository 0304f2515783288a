"""The golden model: a network run step by step on whole vectors, in any arithmetic, without any schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.model.cell import segments
from lstmsim.model.numerics.arithmetic import Arithmetic, Array, FloatArithmetic
from lstmsim.model.numerics.weights import Network, Stimulus

#: Called with the name and the held values of everything computed; for calibration.
Observer = Callable[[str, Array], None]
#: From the vectors of a step, x and h, to those that its products see in their place.
Sender = Callable[[dict[str, Array]], dict[str, Array]]


@dataclass(frozen=True, eq=False)
class PassRun:
    """Output [steps, width] of one pass in the order of time, and states after the last step, as held."""

    h: Array
    states: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class NetworkRun:
    """The arithmetic and the results of each pass, both `[layer][direction]`."""

    arithmetic: tuple[tuple[Arithmetic, ...], ...]
    passes: tuple[tuple[PassRun, ...], ...]

    def h(self, layer: int = -1, direction: int = 0) -> NDArray[np.float64]:
        """Give the output of a layer in one direction as real numbers, [steps, width]."""
        return self.arithmetic[layer][direction].decode("h", self.passes[layer][direction].h)

    def output(self) -> NDArray[np.float64]:
        """Give the output of the last layer, both directions side by side, [steps, output]."""
        return np.concatenate([self.h(-1, direction) for direction in range(len(self.passes[-1]))], axis=1)


def step(
    arithmetic: Arithmetic,
    x: Array,
    states: Mapping[str, Array],
    observe: Observer | None = None,
    send: Sender | None = None,
) -> dict[str, Array]:
    """Compute all states after one step.

    x: input of the step as held, [input]; states: name to values before the step, [units].
    send: what products see in place of x and h; None: x and h.
    """
    layer = arithmetic.layer
    cell = layer.cell
    values: dict[str, Array] = {**states}
    vectors = {"x": x, "h": states["h"]}
    if send:
        vectors |= send({name: vectors[name] for name in cell.stages[0].vectors})
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
    send: Sender | None = None,
) -> PassRun:
    """Run all steps of one pass."""
    order = range(len(x))
    h = None
    for time in reversed(order) if backward else order:
        states = step(arithmetic, x[time], states, observe, send)
        if h is None:
            h = np.zeros((len(x), *states["h"].shape), states["h"].dtype)
        h[time] = states["h"]
    assert h is not None
    return PassRun(h, dict(states))


def initial_states(arithmetic: Arithmetic, stimulus: Stimulus, layer: int, direction: int) -> dict[str, Array]:
    """Give the states of a pass before its first step, as held; one that the stimulus leaves out starts at 0.

    If h is quantized from a state, that state starts as h.
    """
    given = dict(stimulus.initial.get((layer, direction), {}))
    cell = arithmetic.layer.cell
    for name, target in cell.states.items():
        if "h" in given and name not in given and target == cell.node(cell.output).inputs[0]:
            given[name] = given["h"]
    return {name: arithmetic.start(name, given.get(name)) for name in cell.states}


def run_network(
    arithmetic: Sequence[Sequence[Arithmetic]],
    stimulus: Stimulus,
    observe: Observer | None = None,
    senders: Sequence[Sender] = (),
) -> NetworkRun:
    """Run all layers, each over the whole sequence.

    observe: gets the name and the values of every sum and node.
    senders: of each layer what its products see in place of its vectors; empty: the vectors.
    """
    x = arithmetic[0][0].encode(stimulus.x)
    passes = []
    for number, both in enumerate(arithmetic):
        runs = tuple(
            run_pass(
                each,
                x,
                initial_states(each, stimulus, number, direction),
                each.layer.backward(direction),
                observe,
                senders[number] if senders else None,
            )
            for direction, each in enumerate(both)
        )
        passes.append(runs)
        x = np.concatenate([each.h for each in runs], axis=1)
    return NetworkRun(tuple(tuple(each) for each in arithmetic), tuple(passes))


def float_arithmetic(network: Network, dtype: DTypeLike = np.float64) -> tuple[tuple[FloatArithmetic, ...], ...]:
    """Make the floating-point arithmetic `[layer][direction]` of a network; dtype: the type of all numbers."""
    return tuple(
        tuple(FloatArithmetic(layer, weights, dtype) for weights in both)
        for layer, both in zip(network.model.layers, network.passes, strict=True)
    )
