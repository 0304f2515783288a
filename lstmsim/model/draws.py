"""Random numbers that a text can define and every language can draw: splitmix64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.model import Model
from lstmsim.model.scenario import Density

_STEP, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def splitmix64(seed: int, count: int, first: int = 0) -> NDArray[np.uint64]:
    """Some numbers of splitmix64 (Steele, Lea and Flood, OOPSLA 2014, doi 10.1145/2714064.2660195), 64 bits each.

    seed: any whole number, modulo 2^64; count: how many numbers; first: how many are left out before them.

    >>> hex(splitmix64(0, 1)[0])
    '0xe220a8397b1dcdaf'
    """
    places = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    mixed = np.uint64(seed % 2**64) + places * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def drawn(seed: int, count: int, below: int, first: int = 0) -> NDArray[np.int64]:
    """Whole numbers from 0 to `below` - 1, each made of the upper 32 bits of a number of `splitmix64`."""
    return ((splitmix64(seed, count, first) >> np.uint64(32)) % np.uint64(below)).astype(np.int64)


class Changed(NamedTuple):
    """Which elements of a layer change by enough to be sent; x [steps, input], h [steps, hidden] of the step before."""

    x: NDArray[np.bool_]
    h: NDArray[np.bool_]


def changed(model: Model, steps: int, density: Density) -> list[Changed]:
    """What changes in each layer, each element by itself (docs/delta_columns.md, rule 9).

    For each layer, each step, each element of x, then of h. There is no h before step 0: its draws are thrown away.
    """
    layers, first = [], 0
    for layer in model.layers:
        width = layer.input + layer.hidden
        chance = np.repeat([1000 * density.x, 1000 * density.h], [layer.input, layer.hidden])
        flags = drawn(density.drawn_from, steps * width, 1000, first).reshape(steps, width) < chance
        flags[0, layer.input :] = False
        first += flags.size
        layers.append(Changed(*np.split(flags, [layer.input], axis=1)))
    return layers
