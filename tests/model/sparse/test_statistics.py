"""Statistics, the choice of a path, and test data."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.sparse.csr import Statistics, csr_of_coo, csr_of_dense, lockstep_waste, statistics, takes_sparse_path
from lstmsim.model.sparse.made import drawn_dense
from tools.drawn_matrices import checksum, drawn_matrix


def test_statistics_of_rows_with_two_four_and_no_entries() -> None:
    matrix = csr_of_dense([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    # lengths 2, 4, 0: mean 2, deviation of the population sqrt(8 / 3)
    expected = Statistics(3, 4, 6, 0.5, 2.0, pytest.approx((8 / 3) ** 0.5 / 2), 1)  # type: ignore[arg-type]
    assert statistics(matrix) == expected


@pytest.mark.parametrize("size", [(0, 0), (0, 5), (5, 0), (2, 2)])
def test_a_matrix_without_entries_has_statistics(size: tuple[int, int]) -> None:
    made = statistics(csr_of_coo(*size, [], [], []))
    assert (made.entries, made.mean_length, made.variation, made.empty_rows) == (0, 0.0, 0.0, size[0])
    assert made.sparsity == (1.0 if all(size) else 0.0)


def test_the_threshold_itself_is_dense() -> None:
    quarter = csr_of_dense([[0, 0, 0, 1]])
    assert takes_sparse_path(quarter)
    assert not takes_sparse_path(quarter, 0.75)
    assert takes_sparse_path(quarter, 0.74)
    with pytest.raises(InputError, match="threshold: must be from 0 to 1, got 50"):
        takes_sparse_path(quarter, 50)


def test_waste_of_bundles() -> None:
    lengths = np.array([4, 2, 3, 1, 5])
    assert lockstep_waste(lengths, 1) == 1.0
    assert lockstep_waste(lengths, 2) == (8 + 6 + 5) / 15
    assert lockstep_waste(lengths, 8) == 25 / 15
    assert lockstep_waste(np.zeros(4, np.int64), 2) == 1.0
    assert lockstep_waste(np.zeros(0, np.int64), 2) == 1.0


def drawn(seed: int):  # type: ignore[no-untyped-def]
    """The generator as its text says it."""
    while True:
        seed = (1103515245 * seed + 12345) % 2**31
        yield seed >> 8


@pytest.mark.parametrize("skew", [False, True])
def test_test_data_is_drawn_as_the_text_says(skew: bool) -> None:
    rows, columns, permille, seed = 7, 11, 300, 4711
    draws = drawn(seed)
    expected = np.zeros((rows, columns), np.int64)
    for row in range(rows):
        share = permille * (1, 1, 2, 4)[next(draws) % 4] // 2 if skew else permille
        for column in range(columns):
            if next(draws) % 1000 < share:
                expected[row, column] = next(draws) % 9 - 4 or 5
    assert np.array_equal(drawn_matrix(rows, columns, permille, seed, skew).dense(), expected)
    draws = drawn(seed)
    assert drawn_dense(3, 5, seed).reshape(-1).tolist() == [next(draws) % 9 - 4 for _ in range(15)]


def test_nothing_is_drawn_for_no_rows_and_no_columns() -> None:
    assert drawn_matrix(0, 4, 500, 1).entries == 0
    assert drawn_matrix(3, 0, 1000, 1, skew=True).row_ptr.tolist() == [0, 0, 0, 0]
    assert drawn_dense(0, 3, 1).shape == (0, 3)
    assert drawn_matrix(4, 4, 1000, 1).entries == 16


def test_checksum_by_hand() -> None:
    assert checksum(np.array([[3, -4], [0, 9]])) == 3 - 8 + 36
    assert checksum(np.array([-1.0])) == 1000002
    assert checksum(np.zeros(0)) == 0
    many = 2_000_000
    assert checksum(np.full(many, -7)) == -7 * many * (many + 1) // 2 % 1000003
