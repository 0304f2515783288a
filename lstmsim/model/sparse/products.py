"""The type of products, dense operands that are drawn by a seed, and how far a result is from a plain product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.model.sparse.csr import Csr

Values = NDArray[Any]

#: Products that are held at once.
_AT_ONCE = 1 << 23


def number_type(*operands: Values) -> np.dtype[Any]:
    """The type in which products are computed: 64 bits for whole numbers, else the smallest with all operands.

    >>> number_type(np.zeros(1, np.float32), np.zeros(1, np.float32)), number_type(np.zeros(1, np.int8))
    (dtype('float32'), dtype('int64'))
    """
    kind = np.result_type(*operands)
    return np.dtype(np.int64) if kind.kind in "iu" else kind


def drawn_operands(kernel: str, matrix: Csr, columns: int, seed: int) -> tuple[NDArray[Any], ...]:
    """Draw the dense operands of a product from the normal distribution, in the type of the matrix's values.

    kernel: `spmv` (x), `spmm` (B) or `sddmm` (A, and B transposed).
    columns: of B; of `sddmm` the length of the inner products.
    seed: fixes all numbers.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> [each.shape for each in drawn_operands("sddmm", csr_of_dense([[1.0, 0, 2.0]]), 5, 0)]
    [(1, 5), (3, 5)]
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
    """The largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.

    kernel, matrix, operands: what was computed.
    result: of `sddmm` one number for each entry.
    """
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
