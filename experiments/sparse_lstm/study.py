"""What `run.py` shows: sparse and dense products on parallel devices, each the simulation of a schedule.

Assumptions: those of docs/parallel_device.md and docs/sparse_kernels.md. Masks of the large LSTM are uniformly random;
real matrices are pruned by magnitude over the whole matrix. Matrices for HBP are drawn here (`uniform`, `power_law`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

import lstmsim
from lstmsim.files.matrices import weight_matrix
from lstmsim.model.sparse.csr import Csr, csr_of_coo
from lstmsim.model.sparse.made import pruned
from lstmsim.studies.sparse.result import SparseReport

#: The LSTM of the paper: inputs, units, batch. A sixteenth of its 4 x 2048 rows runs on a sixteenth of a V100.
INPUTS, UNITS, BATCH, ROWS = 8192, 2048, 128, 512
#: Sizes of the inner dimension from which spans of the two products (inputs, units) are drawn out linearly.
SPARSE_INNER, DENSE_INNER = (128, 256), (32, 64)
SPARSITIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
TILES = ((64, 64, 8, 8, 4), (128, 64, 8, 8, 8), (128, 128, 8, 8, 8))
REAL = {
    "Resemblyzer l0": "resemblyzer:l0",
    "Resemblyzer l1": "resemblyzer:l1",
    "g2p encoder": "g2p-en-encoder:l0",
    "Silero": "silero-vad-16k:l0",
}
ORDERS = (("plain", "static"), ("sorted", "round"), ("sorted", "snake"), ("plain", "demand"), ("sorted", "demand"))
HASHES = ("identity", "linear", "linear-warp", "shift", "sampled", "sort")
LANES = (1, 4, 8, 32)


@cache
def sixteenth() -> Any:
    """A sixteenth of a V100, cold."""
    chip: Any = lstmsim.load_chip("v100")
    return replace(chip, name="v100/16", cores=chip.cores[:5], partitions=2)


@cache
def sixteen(slots: int = 32) -> Any:
    """16 SMs of a V100 with 8 partitions, warm.

    slots: blocks that an SM holds.
    """
    chip: Any = lstmsim.load_chip("v100")
    core = replace(chip.cores[0], max_blocks=slots)
    return replace(chip, name="16 SMs", cores=(core,) * 16, partitions=8, l2_state="warm")


@cache
def tiny() -> Any:
    """The edge device without L1 and with 8 KB of L2, so that x does not fit."""
    chip: Any = lstmsim.load_chip("edge")
    core = replace(chip.cores[0], l1_bytes=0)
    return replace(chip, name="edge without caches", cores=(core,) * len(chip.cores), l2_bytes=8192)


@cache
def real(name: str, sparsity: float) -> Csr:
    """A recurrent matrix of `REAL`, pruned."""
    return pruned(weight_matrix(REAL[name])[0], sparsity)


def ran(matrix: Csr, kernel: str, chip: Any, method: str, columns: int = 1, **options: Any) -> SparseReport:
    """One product, simulated without others beside it."""
    return lstmsim.run_sparse(
        *(matrix, kernel), method=method, columns=columns, chip=chip, options=options, baselines=False
    )


def searched(matrix: Csr, chip: Any, method: str) -> SparseReport:
    """The product with a vector in the fastest setting of a method, with all settings that were searched."""
    return lstmsim.run_sparse(matrix, "spmv", method=method, chip=chip, baselines=False, best=True)


def drawn_out(spans: tuple[int, int], sizes: tuple[int, int], size: int) -> float:
    """The span at a size, linear through two measured ones."""
    return spans[0] + (spans[1] - spans[0]) / (sizes[1] - sizes[0]) * (size - sizes[0])


@cache
def mask(inner: int, sparsity: float) -> Csr:
    """`ROWS` rows of a uniformly random mask."""
    return pruned(np.random.default_rng([7, inner]).random((ROWS, inner)).astype(np.float32), sparsity)


def dense_spans(inner: int, chip: Any = None) -> dict[str, float]:
    """Cycles of the dense product, by tile, on a chip (None: `sixteenth()`)."""
    names = ("bm", "bn", "bk", "tm", "tn")
    spans = {}
    for tile in TILES:
        options = dict(zip(names, tile, strict=True)) | {"split": 1}
        pair = tuple(
            ran(mask(each, 0.5), "spmm", chip or sixteenth(), "dense", BATCH, **options).figures.span
            for each in DENSE_INNER
        )
        spans[f"{tile[0]} x {tile[1]}"] = drawn_out((pair[0], pair[1]), DENSE_INNER, inner)
    return spans


def sparse_span(inner: int, sparsity: float, chip: Any = None) -> float:
    """Cycles of the sparse product, rows sorted by length, on a chip (None: `sixteenth()`)."""
    pair = tuple(
        ran(mask(each, sparsity), "spmm", chip or sixteenth(), "csr", BATCH, order="sorted").figures.span
        for each in SPARSE_INNER
    )
    return drawn_out((pair[0], pair[1]), SPARSE_INNER, inner)


def crossover(ratios: dict[float, float]) -> float | None:
    """The sparsity from which sparse is faster, linear between neighbours; None if it never is.

    ratios: cycles of sparse over dense, by sparsity.

    >>> crossover({0.5: 1.5, 0.6: 1.1, 0.7: 0.9})
    0.65
    """
    rows = sorted(ratios.items())
    for (low, above), (high, below) in pairwise(rows):
        if above >= 1 > below:
            return round(low + (high - low) * (above - 1) / (above - below), 4)
    return rows[0][0] if rows[0][1] < 1 else None


def uniform(rows: int = 4096, columns: int = 16384, mean: int = 12, seed: int = 3) -> Csr:
    """A matrix with row lengths from 1 to about twice the mean, columns uniformly random."""
    draw = np.random.default_rng(seed)
    return _drawn(draw, draw.integers(1, 2 * mean, rows), columns)


def power_law(rows: int = 4096, entries: int = 40_000, longest: int = 1822, seed: int = 3) -> Csr:
    """A square matrix whose row lengths fall with a power of their rank, in random order."""
    draw = np.random.default_rng(seed)
    ranks, low, high = np.arange(1, rows + 1), 0.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (longest * ranks**-middle).sum() > entries else (low, middle)
    return _drawn(draw, draw.permutation(np.maximum((longest * ranks**-low).astype(int), 1)), rows)


def _drawn(draw: np.random.Generator, lengths: Any, columns: int) -> Csr:
    picked = [np.sort(draw.choice(columns, length, replace=False)) for length in lengths.tolist()]
    row = np.repeat(np.arange(len(lengths)), lengths)
    return csr_of_coo(len(lengths), columns, row, np.concatenate(picked), draw.standard_normal(len(row)))
