"""How a machine has spread the products of jobs over threads, as reports tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.base.records import record

__all__ = ["PlannedProduct", "PlannedProducts", "merged"]


@record
class PlannedProduct:
    """A product of a time step, as it is spread over the threads of a job.

    model: name of the model.
    layers: numbers of the layers that have it, from 0.
    label: gates, and vectors that they read.
    m, n, k: its sizes.
    threads: on how many cores.
    cut: how it is cut, in short.
    block: rows, columns and elements of K of a thread, in words.
    relief: how threads that add into the same block keep out of each other's way, in words; empty: none do.
    rank: place of the plan among the candidates, from 0.
    candidates: how many there were.
    rejected: of each candidate before it, why it could not be accepted.
    """

    model: str
    layers: tuple[int, ...]
    label: str
    m: int
    n: int
    k: int
    threads: int
    cut: str
    block: str
    relief: str
    rank: int
    candidates: int
    rejected: tuple[tuple[str, ...], ...]


@record
class PlannedProducts:
    """The products of all jobs, equal ones once.

    rows: one for each.
    note: by which parameters they were planned, and why.
    """

    rows: tuple[PlannedProduct, ...]
    note: str


def merged(rows: Sequence[PlannedProduct]) -> tuple[PlannedProduct, ...]:
    """Rows that differ in their layers only become one, at the place of the first.

    >>> row = PlannedProduct("m", (0,), "i x [x]", 1, 8, 8, 2, "MN 1x2x1", "1 x 4 x 8", "", 0, 3, ())
    >>> [each.layers for each in merged([row, replace(row, layers=(1,)), replace(row, n=16), row])]
    [(0, 1), (0,)]
    """
    layers: dict[PlannedProduct, dict[int, None]] = {}
    for each in rows:
        layers.setdefault(replace(each, layers=()), {}).update(dict.fromkeys(each.layers))
    return tuple(replace(each, layers=tuple(sorted(numbers))) for each, numbers in layers.items())
