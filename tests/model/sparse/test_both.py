"""Products of two sparse matrices."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.sparse.csr import csr_of_coo, csr_of_dense
from tests.model.sparse.both import sparse_product
from tools.drawn_matrices import drawn_matrix


@pytest.mark.parametrize(("rows", "inner", "columns"), [(9, 7, 11), (1, 1, 1), (0, 3, 2), (4, 0, 3), (3, 5, 0)])
@pytest.mark.parametrize("permille", [0, 200, 1000])
def test_products_are_those_of_the_dense_matrices(rows: int, inner: int, columns: int, permille: int) -> None:
    left, right = drawn_matrix(rows, inner, permille, 1), drawn_matrix(inner, columns, permille, 2)
    assert np.array_equal(sparse_product(left, right).dense(), left.dense() @ right.dense())


def test_a_sum_that_is_zero_is_an_entry() -> None:
    made = sparse_product(csr_of_dense([[1, -1]]), csr_of_dense([[2, 0], [2, 0]]))
    assert (made.entries, made.values.tolist(), made.cols.tolist()) == (1, [0], [0])


def test_floats_are_added_in_order_of_the_inner_index() -> None:
    chance = np.random.default_rng(1)
    left, right = (
        chance.standard_normal((1, 300)).astype(np.float32),
        chance.standard_normal((300, 1)).astype(np.float32),
    )
    made = sparse_product(csr_of_dense(left), csr_of_dense(right))
    total = np.float32(0)
    for product in left[0] * right[:, 0]:
        total = total + product
    assert (made.values.dtype, made.values[0]) == (np.float32, total)


def test_whole_numbers_do_not_wrap_and_sizes_must_fit() -> None:
    many = csr_of_dense(np.full((1, 1), 100, np.int8))
    assert sparse_product(many, many).values.tolist() == [10_000]
    with pytest.raises(InputError, match="right matrix: must have 1 rows, got 2"):
        sparse_product(many, csr_of_coo(2, 2, [], [], []))
