"""What one access of a warp costs by its addresses: sectors, lines, and wavefronts of banks.

A row of a table is one access; its columns are the lanes of the warp. Elements of device memory have 4 or 2 bytes,
words of shared memory 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Narrow

#: Stands for the address of a lane that is off. No wrong address comes out as this one by chance.
OFF = -(1 << 31)
#: Bytes of a sector. A line has four sectors.
SECTOR_BYTES = 32
_LAST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Touched:
    """What accesses touch, one row for each."""

    lines: Narrow  # shape (n,); distinct lines of 128 bytes
    counts: Narrow  # shape (n,); how many sectors a row names
    sectors: Narrow  # shape (sum of counts,); numbers of sectors from the beginning of the array, ascending in a row


def touched(elements: Narrow, element_bytes: int = 4) -> Touched:
    """The distinct sectors and lines of loads and stores."""
    sectors = _ascending(elements, element_bytes)
    new = np.empty(sectors.shape, bool)
    new[:, 0] = sectors[:, 0] != _LAST
    np.not_equal(sectors[:, 1:], sectors[:, :-1], out=new[:, 1:])
    new[:, 1:] &= sectors[:, 1:] != _LAST
    counts = np.count_nonzero(new, axis=1).astype(np.int32)
    distinct = sectors[new]
    return Touched(lines_per_row(counts, distinct), counts, distinct)


def atomic_touches(elements: Narrow, element_bytes: int = 4) -> Touched:
    """The sectors of atomics: one for each lane that is on, also when lanes share one."""
    sectors = _ascending(elements, element_bytes)
    on = sectors != _LAST
    counts = np.count_nonzero(on, axis=1).astype(np.int32)
    named = sectors[on]
    return Touched(lines_per_row(counts, named), counts, named)


def lines_per_row(counts: Narrow, sectors: Narrow) -> Narrow:
    """How many distinct lines the ascending sectors of each row lie in."""
    lines = sectors >> 2
    new = np.ones(len(lines), bool)
    np.not_equal(lines[1:], lines[:-1], out=new[1:])
    ends = np.cumsum(counts, dtype=np.int64)
    starts = ends - counts
    new[starts[counts > 0]] = True
    total = np.zeros(len(lines) + 1, np.int32)
    np.cumsum(new, dtype=np.int32, out=total[1:])
    distinct: Narrow = total[ends] - total[starts]
    return distinct


def _ascending(elements: Narrow, element_bytes: int) -> Narrow:
    """The sectors of each row in ascending order, those of lanes that are off last."""
    sectors: Narrow = elements >> (SECTOR_BYTES // element_bytes).bit_length() - 1
    np.copyto(sectors, _LAST, where=elements < 0)
    mixed = np.flatnonzero((sectors[:, 1:] < sectors[:, :-1]).any(axis=1))
    if len(mixed):
        sectors[mixed] = np.sort(sectors[mixed], axis=1)
    return sectors


def wavefronts(addresses: Narrow, vector: int, banks: int) -> Narrow:
    """How many wavefronts accesses to shared memory need.

    The lanes are taken in `vector` groups of consecutive lanes; a group needs as many wavefronts as its worst bank has
    distinct words. An access needs at least one.
    """
    words = addresses >> 2
    # A shift by whole words turns the banks round, no more: equal patterns are counted once.
    lowest = np.where(addresses < 0, _LAST, words).min(axis=1, keepdims=True, initial=_LAST)
    patterns = np.where(addresses < 0, OFF, words - lowest)
    firsts, which = _distinct_rows(patterns)
    return _counted(patterns[firsts], vector, banks)[which]


def _distinct_rows(rows: Narrow) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct row stands first, and which of these each row equals."""
    if len(rows) < 2:
        return np.arange(len(rows)), np.arange(len(rows))
    multipliers = np.random.default_rng(1).integers(1, 2**62, rows.shape[1], dtype=np.int64) | 1
    with np.errstate(over="ignore"):
        keys = (rows.astype(np.int64) * multipliers).sum(axis=1)
    _, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
    if (rows[firsts][which] != rows).any():  # Two rows with the same key: rare, then the slow way.
        _, firsts, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return firsts, which.reshape(-1)


def _counted(words: Narrow, vector: int, banks: int) -> Narrow:
    """The wavefronts of each row of words, worked out."""
    n, lanes = words.shape
    total = np.zeros(n, np.int32)
    for group in words.reshape(n, vector, lanes // vector).transpose(1, 0, 2):
        each = (group[:, :, None] + np.arange(vector, dtype=np.int32)).reshape(n, -1)
        each.sort(axis=1)
        new = each >= 0
        new[:, 1:] &= each[:, 1:] != each[:, :-1]
        rows, places = np.nonzero(new)
        banked = np.bincount(rows * banks + each[rows, places] % banks, minlength=n * banks)
        total += banked.reshape(n, banks).max(axis=1).astype(np.int32)
    return np.maximum(total, 1)
