"""Conditions of several candidates made comparable and added up (sections 2.5 and 2.6 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

__all__ = ["FITS", "fitness_of", "normalised"]

#: Conditions of which more is better; of all others less is.
FITS = ("k_fit", "mn_fit", "count")


def normalised(rows: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """The conditions of several candidates from 0 to 1, where 1 is the best of them.

    rows: of each candidate, its conditions by name.

    >>> normalised([{"k_fit": 0.5, "traffic": 10.0}, {"k_fit": 0.25, "traffic": 5.0}])
    [{'k_fit': 1.0, 'traffic': 0.5}, {'k_fit': 0.5, 'traffic': 1.0}]
    """
    if not rows:
        return []
    best = {name: (max if name in FITS else min)(row[name] for row in rows) for name in rows[0]}
    return [
        {name: value / best[name] if name in FITS else best[name] / value for name, value in row.items()}
        for row in rows
    ]


def fitness_of(values: Collection[float], weights: Collection[float]) -> float:
    """The weighted mean, rounded so that candidates that are alike tie.

    values: normalised conditions.
    weights: as many.

    >>> fitness_of([1.0, 0.5], [1, 2])
    0.666666667
    """
    total = 0.0
    whole = 0.0
    # not `sum`, which rounds in another way from Python 3.12 on
    for value, weight in zip(values, weights, strict=True):
        total += weight * value
        whole += weight
    return round(total / whole, 9)
