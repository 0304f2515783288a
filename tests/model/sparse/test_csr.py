"""Formats: what they hold, what they refuse, and that one becomes another without loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.model.sparse.csr import Csr, Dcsr, csr_of_coo, csr_of_dense, dcsr_of, transposed

HOLES = csr_of_coo(6, 5, [1, 1, 3, 5], [4, 0, 2, 1], [-1, 2, 5, 7])


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    rows, columns = draw(st.integers(0, 7)), draw(st.integers(0, 7))
    values = draw(st.lists(st.sampled_from([0, 0, 0, 1, -2, 3]), min_size=rows * columns, max_size=rows * columns))
    return np.array(values, np.int64).reshape(rows, columns)


@given(matrices())
def test_every_format_holds_the_matrix(full: np.ndarray) -> None:
    matrix = csr_of_dense(full)
    assert np.array_equal(matrix.dense(), full)
    assert np.array_equal(transposed(matrix).dense(), full.T)
    short = dcsr_of(matrix)
    assert np.array_equal(short.csr().dense(), full)
    assert np.array_equal(short.row_numbers, np.flatnonzero(full.any(axis=1)))
    assert np.array_equal(short.empty_rows, np.flatnonzero(~full.any(axis=1)))
    assert np.array_equal(transposed(transposed(matrix)).cols, matrix.cols)


def test_entries_come_in_any_order_and_are_kept_sorted() -> None:
    assert HOLES.row_ptr.tolist() == [0, 0, 2, 2, 3, 3, 4]
    assert HOLES.cols.tolist() == [0, 4, 2, 1]
    assert HOLES.values.tolist() == [2, -1, 5, 7]
    assert HOLES.entry_rows.tolist() == [1, 1, 3, 5]
    assert csr_of_coo(1, 1, [0], [0], [0]).entries == 1, "a stored zero is an entry"


def test_arrays_are_not_copied_and_cannot_be_written_to() -> None:
    values = np.arange(4.0, dtype=np.float32)
    matrix = Csr(1, 4, np.array([0, 4]), np.arange(4), values)
    assert np.shares_memory(matrix.values, values)
    assert matrix.values.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        matrix.values[0] = 1
    values[0] = 5  # the caller's own array stays his


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((-1, 2, [0], [], []), "matrix: rows: must be at least 0, got -1"),
        ((2, 2, [0, 1], [0], [1]), "matrix: row_ptr: must have 3 numbers, one more than rows, got 2"),
        ((2, 2, [0, 1, 2], [0], [1]), "matrix: row_ptr: must go from 0 to 1, got 0 to 2"),
        ((3, 2, [0, 2, 1, 2], [0, 1], [1, 1]), "matrix: row_ptr: must not fall, but does behind row 1"),
        ((1, 2, [0, 1], [2], [1]), "matrix: cols: must be 0 to 1, got 2"),
        ((1, 2, [0, 1], [-1], [1]), "matrix: cols: must be 0 to 1, got -1"),
        ((1, 2, [0, 1], [1], [1, 2]), "matrix: values: must be as many as cols (1), got 2"),
        (
            (2, 3, [0, 0, 2], [1, 1], [1, 2]),
            "matrix: cols: must ascend in each row, but in row 1 column 1 stands twice",
        ),
        (
            (2, 3, [0, 1, 3], [0, 2, 1], [1, 2, 3]),
            "matrix: cols: must ascend in each row, but in row 1 column 1 stands behind 2",
        ),
        ((1, 2, [0, 1], [0.5], [1]), "matrix: cols: must be whole numbers, got float64"),
        ((1, 2, [0, 1], [0], ["a"]), "matrix: values: must be real numbers, got <U1"),
        ((1, 2, [0, 1], [0], [1j]), "matrix: values: must be real numbers, got complex128"),
        ((1, 2, [[0, 1]], [0], [1]), "matrix: row_ptr: must have 1 dimension, got 2"),
    ],
)
def test_what_is_no_csr_is_refused(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        Csr(*arguments)
    assert str(refusal.value) == sentence


def test_columns_may_fall_from_row_to_row_across_empty_rows() -> None:
    matrix = Csr(5, 9, [0, 0, 2, 2, 4, 4], [3, 8, 0, 1], [1, 1, 1, 1])
    assert matrix.lengths.tolist() == [0, 2, 0, 2, 0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((2, 2, [0, 2], [0, 1, 2], [0, 0], [1, 1]), "row_numbers: must ascend from 0 to at most 1, each row once"),
        ((2, 2, [1, 0], [0, 1, 2], [0, 0], [1, 1]), "row_numbers: must ascend from 0 to at most 1, each row once"),
        ((2, 2, [0, 1], [0, 1, 1], [0], [1]), "row_numbers: must be the rows that have entries, got one that has none"),
    ],
)
def test_what_is_no_dcsr_is_refused(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        Dcsr(*arguments)
    assert str(refusal.value) == f"matrix: {sentence}"


def test_entries_outside_or_of_unlike_number_are_refused() -> None:
    for row, column, values, word in [
        ([2], [0], [1], "rows of the entries: must be 0 to 1, got 2"),
        ([0], [3], [1], "columns of the entries: must be 0 to 2, got 3"),
        ([0, 1], [0], [1], "entries: must have as many rows as columns and values, got 2, 1 and 1"),
        ([0, 0], [1, 1], [1, 2], "cols: must ascend in each row, but in row 0 column 1 stands twice"),
    ]:
        with pytest.raises(InputError, match=f"matrix: {word}"):
            csr_of_coo(2, 3, row, column, values)
    with pytest.raises(InputError, match="matrix: must have 2 dimensions, got 1"):
        csr_of_dense(np.zeros(3))
