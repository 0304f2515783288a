"""Matrices and operands drawn by a seed, pruning, and how far a result is from a plain product."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import must_be, show
from lstmsim.model.sparse.csr import Csr, firsts

_FACTOR, _STEP, _MASK = 1103515245, 12345, 2**31 - 1


def drawn_lengths(rows: int, columns: int, mean: int, deviation: float, seed: int) -> NDArray[np.int64]:
    """Lengths of rows, normally distributed around a mean, whose sum is rows * mean; deviation: of the mean."""
    draw = np.random.default_rng(seed)
    lengths = np.clip(np.rint(draw.normal(mean, deviation * mean, rows)), 0, columns).astype(np.int64)
    while (left := rows * mean - int(lengths.sum())) != 0:
        row, step = int(draw.integers(rows)), 1 if left > 0 else -1
        if 0 <= lengths[row] + step <= columns:
            lengths[row] += step
    return lengths


def drawn_rows(lengths: NDArray[np.int64], columns: int, seed: int) -> Csr:
    """A matrix of ones whose rows have these lengths; columns uniformly random."""
    draw = np.random.default_rng(seed)
    chosen = [np.sort(draw.choice(columns, each, replace=False)) for each in lengths.tolist()]
    cols = np.concatenate([np.zeros(0, np.int64), *chosen])
    return Csr(len(lengths), columns, np.append(0, np.cumsum(lengths)), cols, np.ones(len(cols), np.int64))


def drawn_dense(rows: int, columns: int, seed: int) -> NDArray[np.int64]:
    """A random matrix of whole numbers from -4 to 4, shape (rows, columns)."""
    return (generator_states(seed, rows * columns) % 9 - 4).reshape(rows, columns)


def generator_states(seed: int, count: int) -> NDArray[np.int64]:
    """What the generator gives in its first steps, before a draw takes a remainder of it."""
    states = np.empty(max(1, count), np.uint64)
    states[0] = (_FACTOR * seed + _STEP) & _MASK
    factor, step, known = _FACTOR, _STEP, 1
    while known < count:
        # `factor` and `step` go `known` steps at once
        more = min(known, count - known)
        states[known : known + more] = (states[:more] * np.uint64(factor) + np.uint64(step)) & np.uint64(_MASK)
        factor, step, known = factor * factor & _MASK, (factor * step + step) & _MASK, known + more
    return (states[:count] >> np.uint64(8)).astype(np.int64)


#: The ways to prune, with what each one means.
PRUNINGS = {
    "magnitude": "the smallest of the whole matrix go",
    "row": "the smallest of each row go, the same number in each",
    "bank": "the smallest of each bank go, the same number in each; banks are equal parts of a row",
    "block": "the blocks with the smallest sums of squares go",
}


def pruned(matrix: NDArray[Any], sparsity: float, by: str = "magnitude", *, banks: int = 4, block: int = 4) -> Csr:
    """Take the smallest weights of a matrix away: floor(sparsity * n) of n; of equal ones those that come first.

    sparsity: from 0 to 1, as its decimal digits say: 0.29 of 100 is 29.
    by: a key of `PRUNINGS`. n is the number of weights in the matrix, a row or a bank, or the number of blocks.
    banks: equal parts of a row; block: rows and columns of a block.

    `InputError` if banks or blocks do not divide the matrix, or a weight is not finite.
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


Values = NDArray[Any]

#: Products that are held at once.
_AT_ONCE = 1 << 23


def number_type(*operands: Values) -> np.dtype[Any]:
    """The type in which products are computed: 64 bits for whole numbers, else the smallest with all operands."""
    kind = np.result_type(*operands)
    return np.dtype(np.int64) if kind.kind in "iu" else kind


def drawn_operands(kernel: str, matrix: Csr, columns: int, seed: int) -> tuple[NDArray[Any], ...]:
    """Draw the dense operands of a product from the normal distribution, in the type of the matrix's values.

    kernel: `spmv` (x), `spmm` (B) or `sddmm` (A, and B transposed).
    columns: of B; of `sddmm` the length of the inner products.
    """
    draw = np.random.default_rng([seed, 20])
    kind = matrix.values.dtype if matrix.values.dtype.kind == "f" else np.dtype(np.float64)
    shapes = {
        "spmv": ((matrix.columns,),),
        "spmm": ((matrix.columns, columns),),
        "sddmm": ((matrix.rows, columns), (matrix.columns, columns)),
    }[kernel]
    return tuple(draw.standard_normal(shape).astype(kind) for shape in shapes)


def largest_error(kernel: str, matrix: Csr, operands: tuple[NDArray[Any], ...], result: NDArray[Any]) -> float:
    """The largest difference from the product in 64-bit floating point, relative to the sum of the sizes."""
    if not result.size or not matrix.entries:
        return float(np.abs(result).max(initial=0))
    if kernel == "sddmm":
        left, right = (each.astype(np.float64) for each in operands)
        worst, high = 0.0, max(1, _AT_ONCE // max(1, left.shape[1]))
        for start in range(0, matrix.entries, high):
            some = slice(start, start + high)
            products = left[matrix.entry_rows[some]] * right[matrix.cols[some]] * matrix.values[some, None]
            worst = max(worst, _worst(result[some] - products.sum(axis=1), np.abs(products).sum(axis=1)))
        return worst
    dense, given = operands[0].reshape(matrix.columns, -1), result.reshape(matrix.rows, -1)
    full = np.flatnonzero(matrix.lengths)
    worst = float(np.abs(np.delete(given, full, axis=0)).max(initial=0))
    values, wide = matrix.values.astype(np.float64)[:, None], max(1, _AT_ONCE // matrix.entries)
    for start in range(0, dense.shape[1], wide):
        products = values * dense[matrix.cols, start : start + wide]
        sums, sizes = (np.add.reduceat(each, matrix.row_ptr[full], axis=0) for each in (products, np.abs(products)))
        worst = max(worst, _worst(given[full, start : start + wide] - sums, sizes))
    return worst


def _worst(difference: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """The largest difference relative to sizes; where everything is 0, any difference counts in full."""
    return float((np.abs(difference) / np.where(sizes > 0, sizes, 1.0)).max(initial=0))
