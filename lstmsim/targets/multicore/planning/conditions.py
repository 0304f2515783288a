"""What speaks for and against a cut (sections 2.4 to 2.6 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import sqrt

from lstmsim.targets.gemm import Cut, Product
from lstmsim.targets.multicore.machine import Machine
from lstmsim.targets.multicore.planning.blocks import blocks_of

__all__ = ["FITS", "MEANINGS", "conditions_of", "fitness_of", "normalised"]

#: Conditions of which more is better; of all others less is.
FITS = ("k_fit", "mn_fit", "count")

#: What each condition says.
MEANINGS: Mapping[str, str] = {
    "k_fit": "how much of kc, the best length of sums for the first cache, a part of K fills",
    "mn_fit": "how much of mc or nc, the best rows and columns for the other caches, a block fills",
    "padding": "work of whole micro-tiles for each useful one, against that of the uncut product",
    "balance": "work of the busiest thread, against the mean",
    "contention": "threads that add into the same block of C",
    "traffic": "elements of A and B that all threads read, and of C that they read and write",
}


def conditions_of(machine: Machine, product: Product, cut: Cut) -> Mapping[str, float]:
    """The conditions of a cut by name, as they are.

    machine: its blocks and its micro-tile.

    >>> from lstmsim.targets.multicore.toy import TOY
    >>> print(conditions_of(TOY, Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32)))
    {'k_fit': 1.0, 'mn_fit': 0.125, 'padding': 1.0, 'balance': 1.0, 'contention': 2.0, 'traffic': 896.0}
    """
    m, n, k = product.m, product.n, product.k
    traffic = m * k * _up(n, cut.nb) + k * n * _up(m, cut.mb) + 2 * m * n * cut.p_k
    kc = blocks_of(machine).kc
    return {
        "k_fit": min(cut.kb, kc) / kc,
        "mn_fit": _mn_fit(machine, cut),
        "padding": _padded(machine, cut.mb, cut.nb) / _padded(machine, m, n),
        "balance": _balance(machine, product, cut),
        "contention": float(cut.p_k),
        "traffic": float(traffic),
    }


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


def _mn_fit(machine: Machine, cut: Cut) -> float:
    blocks = blocks_of(machine)
    rows = min(cut.mb, blocks.mc) / blocks.mc
    columns = min(cut.nb, blocks.nc) / blocks.nc
    return {"MK": rows, "NK": columns}.get(cut.kind, sqrt(rows * columns))


def _padded(machine: Machine, rows: int, columns: int) -> float:
    """Work of the micro-tiles of a block, for each of its elements."""
    return machine.rows(rows) * _up(columns, machine.nr) * machine.nr / (rows * columns)


def _balance(machine: Machine, product: Product, cut: Cut) -> float:
    """The work of a thread is a product of three factors, and the first thread has the most of each."""
    rows = [machine.rows(each) for each in _parts(product.m, cut.p_m, cut.mb)]
    columns = [_up(each, machine.nr) * machine.nr for each in _parts(product.n, cut.p_n, cut.nb)]
    ks = _parts(product.k, cut.p_k, cut.kb)
    return rows[0] * columns[0] * ks[0] * cut.threads / (sum(rows) * sum(columns) * sum(ks))


def _parts(whole: int, parts: int, size: int) -> list[int]:
    return [min(size, max(0, whole - part * size)) for part in range(parts)]


def _up(number: int, by: int) -> int:
    return -(-number // by)
