"""Fixed-point arithmetic of whole networks, and of all networks of a chip at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.numerics.calibration import Range, calibrate
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import VectorFormat
from lstmsim.model.numerics.formats import largest_of
from lstmsim.model.numerics.shared_formats import largest_units, shared_ranges
from lstmsim.model.numerics.weights import Network, Stimulus
from lstmsim.model.precision import Precision

__all__ = ["fixed_arithmetic", "fixed_chip", "fixed_passes"]

#: Of a network, `[layer][direction]`.
Passes = tuple[tuple[FixedArithmetic, ...], ...]
Ranges = Sequence[Sequence[Mapping[str, Range]]]


def fixed_arithmetic(network: Network, stimulus: Stimulus | Sequence[Stimulus], precision: Precision) -> Passes:
    """Make the arithmetic `[layer][direction]` of a network, with formats that hold all that the stimuli reach.

    network: the weights; no other network is on the chip.
    stimulus: one stimulus or several, which the network is calibrated on.
    precision: widths of all numbers.

    `InputError` if a width is not possible or a value of the floating-point run is not finite.
    """
    return fixed_passes(
        network, calibrate(network, [stimulus] if isinstance(stimulus, Stimulus) else stimulus), precision
    )


def fixed_passes(network: Network, ranges: Ranges, precision: Precision) -> Passes:
    """Make the arithmetic `[layer][direction]` of a network whose ranges are known.

    network: the weights; no other network is on the chip.
    ranges: name to range, `[layer][direction]`, as `calibrate` gives them.
    precision: widths of all numbers.

    `InputError` if a width is not possible.
    """
    return fixed_chip([(network, ranges)], precision)[0]


def fixed_chip(networks: Sequence[tuple[Network, Ranges]], precision: Precision) -> list[Passes]:
    """Make the arithmetic `[layer][direction]` of each network of a chip; `precision` says what they share.

    networks: weights, and ranges as `calibrate` gives them.
    precision: widths of all numbers. With shared formats, all passes of a kind of cell have the formats that hold the
        ranges of all of them, and common shifts are common to all of them.

    `InputError` if a width is not possible.

    >>> from dataclasses import replace
    >>> from lstmsim.model.numerics.weights import random_network, random_stimulus
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> model = Model("m", (Layer(cell("rnn"), hidden=3, input=2),))
    >>> stimulus = random_stimulus(model, 5, seed=1)
    >>> chip = [(own, calibrate(own, [stimulus])) for own in (random_network(model, 1), random_network(model, 2))]
    >>> own, shared = (fixed_chip(chip, replace(Precision(), formats=each)) for each in ("own", "shared"))
    >>> [len({float(passes[0][0].scale_of_h) for passes in each}) for each in (own, shared)]
    [2, 1]
    """
    if mistakes := precision.mistakes():
        raise InputError([Mistake(f"precision.{key}", text) for key, text in mistakes])
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
