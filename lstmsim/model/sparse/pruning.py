"""Pruning: which weights of a dense matrix stay. What stays is a stored entry, whatever its value."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import must_be, show
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.ranges import firsts

__all__ = ["PRUNINGS", "pruned"]

#: The ways to prune, with what each one means.
PRUNINGS = {
    "magnitude": "the smallest of the whole matrix go",
    "row": "the smallest of each row go, the same number in each",
    "bank": "the smallest of each bank go, the same number in each; banks are equal parts of a row",
    "block": "the blocks with the smallest sums of squares go",
}


def pruned(matrix: NDArray[Any], sparsity: float, by: str = "magnitude", *, banks: int = 4, block: int = 4) -> Csr:
    """Take the smallest weights of a matrix away: floor(sparsity * n) of n.

    Of equal ones those that come first (row by row) go first.

    matrix: shape (rows, columns).
    sparsity: from 0 to 1, as its decimal digits say: 0.29 of 100 is 29.
    by: a key of `PRUNINGS`. n is the number of weights in the matrix, a row or a bank, or the number of blocks.
    banks: equal parts of a row.
    block: rows and columns of a block.

    `InputError` if banks or blocks do not divide the matrix, or a weight is not finite.

    >>> weights = np.array([[1.0, -5.0], [3.0, -1.0]])
    >>> pruned(weights, 0.5).dense()
    array([[ 0., -5.],
           [ 3.,  0.]])
    >>> pruned(weights, 0.25).dense()
    array([[ 0., -5.],
           [ 3., -1.]])
    """
    _check(matrix, sparsity, by, banks, block)
    rows, columns = matrix.shape
    if by == "block":
        tiles = matrix.astype(np.float64).reshape(rows // block, block, columns // block, block)
        kept = _kept((tiles**2).sum(axis=(1, 3)).reshape(1, -1), sparsity)
        mask = kept.reshape(rows // block, columns // block).repeat(block, axis=0).repeat(block, axis=1)
    else:
        groups = {"magnitude": 1, "row": rows, "bank": rows * banks}[by]
        mask = _kept(np.abs(matrix).reshape(groups, -1 if matrix.size else 0), sparsity).reshape(rows, columns)
    row_ptr = firsts(mask.sum(axis=1))
    return Csr(rows, columns, row_ptr, np.nonzero(mask)[1], matrix[mask])


def _kept(sizes: NDArray[Any], sparsity: float) -> NDArray[np.bool_]:
    """Which of each row of sizes stay."""
    go = int(Fraction(repr(float(sparsity))) * sizes.shape[1])
    order = np.argsort(sizes, axis=1, kind="stable")
    kept = np.ones(sizes.shape, bool)
    np.put_along_axis(kept, order[:, :go], False, axis=1)
    return kept


def _check(matrix: NDArray[Any], sparsity: float, by: str, banks: int, block: int) -> None:
    if not 0 <= sparsity <= 1:
        raise InputError(Mistake("prune", f"must be from 0 to 1, got {show(sparsity)}"))
    if by not in PRUNINGS:
        raise InputError(Mistake("prune-by", must_be(by, PRUNINGS)))
    if matrix.ndim != 2:
        raise InputError(Mistake("matrix", f"must have 2 dimensions, got {matrix.ndim}"))
    if not np.isfinite(matrix).all():
        raise InputError(Mistake("matrix", "holds a number that is not finite"))
    rows, columns = matrix.shape
    if by == "bank" and (banks < 1 or columns % banks):
        raise InputError(Mistake("banks", f"must divide the {columns} columns into equal parts, got {show(banks)}"))
    if by == "block" and (block < 1 or rows % block or columns % block):
        raise InputError(Mistake("block", f"must divide the {rows} rows and {columns} columns, got {show(block)}"))
