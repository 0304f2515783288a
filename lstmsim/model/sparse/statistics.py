"""What says how sparse a matrix is and how unlike its rows are, and which path a layer takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.model.sparse.csr import Csr

__all__ = ["THRESHOLD", "Statistics", "lockstep_waste", "statistics", "takes_sparse_path"]

#: Zero fraction above which a layer takes the sparse path, unless told otherwise: our choice.
THRESHOLD = 0.5


@record
class Statistics:
    """What a table says of a matrix.

    rows, columns, entries: its size, and how many entries are stored.
    sparsity: fraction of its places without an entry; 0 for a matrix without places.
    mean_length: entries of a row on average; 0 for a matrix without rows.
    variation: standard deviation of the row lengths (of all rows, not of a sample) over their mean; 0 if there are no
        entries.
    empty_rows: rows without an entry.
    """

    rows: int
    columns: int
    entries: int
    sparsity: float
    mean_length: float
    variation: float
    empty_rows: int


def statistics(matrix: Csr) -> Statistics:
    """Give the statistics of a matrix.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> of = statistics(csr_of_dense([[1, 1, 1, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
    >>> of.sparsity, of.mean_length, round(of.variation, 4), of.empty_rows
    (0.75, 1.0, 1.2247, 2)
    """
    places, entries = matrix.rows * matrix.columns, matrix.entries
    mean = entries / matrix.rows if matrix.rows else 0.0
    return Statistics(
        rows=matrix.rows,
        columns=matrix.columns,
        entries=entries,
        sparsity=1 - entries / places if places else 0.0,
        mean_length=mean,
        variation=float(np.std(matrix.lengths)) / mean if entries else 0.0,
        empty_rows=int(np.count_nonzero(matrix.lengths == 0)),
    )


def takes_sparse_path(matrix: Csr, threshold: float = THRESHOLD) -> bool:
    """Whether a layer with this matrix runs on a sparse kernel: its zero fraction is above the threshold.

    threshold: from 0 to 1.

    `InputError` if the threshold lies outside.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> half = csr_of_dense([[1, 0], [0, 1]])
    >>> takes_sparse_path(half), takes_sparse_path(half, 0.25)
    (False, True)
    """
    if not 0 <= threshold <= 1:
        raise InputError(Mistake("threshold", f"must be from 0 to 1, got {threshold}"))
    return statistics(matrix).sparsity > threshold


def lockstep_waste(lengths: NDArray[np.int64], bundle: int) -> float:
    """How often a place in lockstep is taken for each entry, if rows go side by side until the longest of them ends.

    lengths: shape (rows,); in the order in which rows are bundled.
    bundle: how many rows go side by side. The last bundle has those that are left: places of rows that do not exist
        are not counted.

    Gives sum over bundles of (longest row * rows) / entries; 1 if there are no entries.

    >>> lockstep_waste(np.array([4, 2, 3]), 2)
    1.2222222222222223
    """
    entries = int(lengths.sum())
    if not entries:
        return 1.0
    starts = np.arange(0, len(lengths), bundle)
    longest = np.maximum.reduceat(lengths, starts)
    rows = np.diff(np.append(starts, len(lengths)))
    return int((longest * rows).sum()) / entries
