"""The product of two sparse matrices: its numbers only, for no kernel of it is timed."""

from __future__ import annotations

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.sparse.csr import Csr, spans
from lstmsim.model.sparse.made import number_type

__all__ = ["sparse_product"]


def sparse_product(left: Csr, right: Csr) -> Csr:
    """A B with both sparse: an entry wherever some product of entries falls, also if these add up to 0.

    left, right: A and B. All products are in memory at once.

    Products are added by increasing column of A, each product and sum rounded on its own; whole numbers have 64 bits.

    `InputError` if the sizes do not fit.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> sparse_product(csr_of_dense([[0, 2], [3, 0]]), csr_of_dense([[1, 0], [0, 5]])).dense()
    array([[ 0, 10],
           [ 3,  0]])
    """
    if left.columns != right.rows:
        raise InputError(Mistake("right matrix", f"must have {left.columns} rows, got {right.rows}"))
    kind = number_type(left.values, right.values)
    # each entry of A meets a whole row of B
    met = right.lengths[left.cols]
    of_right = spans(right.row_ptr[left.cols], met)
    products = np.repeat(left.values.astype(kind), met) * right.values.astype(kind)[of_right]
    # in row r of A the products come by increasing column of A
    places = np.repeat(left.entry_rows, met) * right.columns + right.cols[of_right]
    distinct, which = np.unique(places, return_inverse=True)
    values = np.zeros(len(distinct), kind)
    np.add.at(values, which, products)  # one after the other, in this order
    row = distinct // max(1, right.columns)
    row_ptr = np.searchsorted(row, np.arange(left.rows + 1))
    return Csr(left.rows, right.columns, row_ptr, distinct - row * right.columns, values)
