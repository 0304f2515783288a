"""Random numbers that a text can define and every language can draw: splitmix64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
