"""Fixed-point arithmetic of whole networks, and what all networks of a chip share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.cell import Cell
from lstmsim.model.model import Precision
from lstmsim.model.numerics.calibration import Range, calibrate, largest_of
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import VectorFormat
from lstmsim.model.numerics.weights import Network, Stimulus

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
    return fixed_passes(
        network, calibrate(network, [stimulus] if isinstance(stimulus, Stimulus) else stimulus), precision
    )


def fixed_passes(network: Network, ranges: Ranges, precision: Precision) -> Passes:
    """Make the arithmetic `[layer][direction]` of a network whose ranges are known."""
    return fixed_chip([(network, ranges)], precision)[0]


def fixed_chip(networks: Sequence[tuple[Network, Ranges]], precision: Precision) -> list[Passes]:
    """Make the arithmetic `[layer][direction]` of each network of a chip; `precision` says what they share.

    networks: weights, and ranges as `calibrate` gives them. With shared formats, all passes of a kind of cell have the
        formats that hold the ranges of all of them, and common shifts are common to all of them.
    `InputError` if a width is not possible.
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
