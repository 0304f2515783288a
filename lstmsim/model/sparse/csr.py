"""The formats CSR and DCSR, their rows and statistics. CSC and DCSC are these of the transpose, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record

Narrow = NDArray[np.int32]


def firsts(counts: NDArray[np.signedinteger]) -> Ints:
    """Where the entries of each row begin, and where the last ones end: shape (rows + 1,), of their counts."""
    first = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return first


def spans(starts: Ints, lengths: NDArray[np.signedinteger]) -> Ints:
    """The numbers from each start on, one span after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    numbers = np.repeat(starts - (ends - lengths), lengths)
    numbers += np.arange(total)
    return numbers


def regrouped(
    rows: Sequence[Ints], counts: Sequence[Narrow], columns: Sequence[Sequence[Narrow]], n: int
) -> tuple[Ints, list[Narrow]]:
    """Entries of rows that come in several parts and in any order, laid out row after row.

    rows, counts: for each part the rows that it has, and how many entries each has, shape (r,).
    columns: for each column of the entries, for each part, shape (sum of counts,).
    n: rows in all; those that no part has are empty.

    Returns where each row begins (as `firsts`), and the columns.
    """
    every = np.zeros(n, np.int32)
    for row, count in zip(rows, counts, strict=True):
        every[row] = count
    first = firsts(every)
    laid = [np.empty(int(first[-1]), np.int32) for _ in columns]
    for part, (row, count) in enumerate(zip(rows, counts, strict=True)):
        where = spans(first[row], count)
        for column, out in zip(columns, laid, strict=True):
            out[where] = column[part]
    return first, laid


Ints = NDArray[np.int64]
Values = NDArray[Any]

_PLACE = "matrix"


@dataclass(frozen=True, eq=False)
class Csr:
    """A matrix by rows: of each row the columns of its entries, ascending, and their values.

    rows, columns: the size of the matrix; either may be 0.
    row_ptr: shape (rows + 1,); row r has the entries from `row_ptr[r]` to `row_ptr[r + 1]`.
    cols: shape (entries,); columns, ascending in a row, no entry twice.
    values: shape (entries,); numbers of any type. A stored 0 is an entry.

    The arrays are kept as they are if they have the right types, and can no longer be written to.
    `InputError` if they break one of these rules.
    """

    rows: int
    columns: int
    row_ptr: Ints
    cols: Ints
    values: Values

    def __post_init__(self) -> None:
        _lock(self, "row_ptr", "cols")
        _check(self.rows, self.columns, self.row_ptr, self.cols, self.values)

    @property
    def entries(self) -> int:
        """How many entries are stored."""
        return len(self.cols)

    @cached_property
    def lengths(self) -> Ints:
        """Entries of each row, shape (rows,)."""
        return np.diff(self.row_ptr)

    @cached_property
    def entry_rows(self) -> Ints:
        """The row of each entry, shape (entries,)."""
        return np.repeat(np.arange(self.rows, dtype=np.int64), self.lengths)

    def dense(self) -> Values:
        """The matrix with all its zeros, shape (rows, columns)."""
        made = np.zeros((self.rows, self.columns), self.values.dtype)
        made[self.entry_rows, self.cols] = self.values
        return made


@dataclass(frozen=True, eq=False)
class Dcsr:
    """A matrix by its rows that have entries: the same as `Csr` without the empty ones, with its rules.

    row_numbers: shape (n,); the rows that have entries, ascending.
    row_ptr: shape (n + 1,); the k-th of these rows has the entries from `row_ptr[k]` to `row_ptr[k + 1]`.
    """

    rows: int
    columns: int
    row_numbers: Ints
    row_ptr: Ints
    cols: Ints
    values: Values

    def __post_init__(self) -> None:
        _lock(self, "row_numbers", "row_ptr", "cols")
        _check(len(self.row_numbers), self.columns, self.row_ptr, self.cols, self.values)
        numbers = self.row_numbers
        if np.any(numbers < 0) or np.any(numbers >= self.rows) or np.any(np.diff(numbers) <= 0):
            raise _wrong("row_numbers", f"must ascend from 0 to at most {self.rows - 1}, each row once")
        if np.any(np.diff(self.row_ptr) == 0):
            raise _wrong("row_numbers", "must be the rows that have entries, got one that has none")

    @property
    def entries(self) -> int:
        """How many entries are stored."""
        return len(self.cols)

    @cached_property
    def empty_rows(self) -> Ints:
        """The rows without an entry, ascending."""
        has = np.zeros(self.rows, bool)
        has[self.row_numbers] = True
        return np.flatnonzero(~has)

    def csr(self) -> Csr:
        """The same matrix with its empty rows."""
        lengths = np.zeros(self.rows + 1, np.int64)
        lengths[self.row_numbers + 1] = np.diff(self.row_ptr)
        return Csr(self.rows, self.columns, np.cumsum(lengths), self.cols, self.values)


def csr_of_coo(rows: int, columns: int, row: ArrayLike, column: ArrayLike, values: ArrayLike) -> Csr:
    """The matrix of entries in any order."""
    _check_sizes(rows, columns)
    down, across = _integers("rows of the entries", row), _integers("columns of the entries", column)
    numbers = _numbers(values)
    if not len(down) == len(across) == len(numbers):
        sizes = f"{len(down)}, {len(across)} and {len(numbers)}"
        raise _wrong("entries", f"must have as many rows as columns and values, got {sizes}")
    _check_range("rows of the entries", down, rows)
    _check_range("columns of the entries", across, columns)
    order = np.lexsort((across, down))
    row_ptr = firsts(np.bincount(down, minlength=rows))
    return Csr(rows, columns, row_ptr, across[order], numbers[order])


def csr_of_dense(matrix: ArrayLike) -> Csr:
    """The matrix without its zeros.

    `InputError` if it has not two dimensions.
    """
    full = np.asarray(matrix)
    if full.ndim != 2:
        raise _wrong(_PLACE, f"must have 2 dimensions, got {full.ndim}")
    down, across = np.nonzero(full)
    return csr_of_coo(full.shape[0], full.shape[1], down, across, full[down, across])


def transposed(matrix: Csr) -> Csr:
    """The CSR of the transpose, which is the CSC of the matrix."""
    order = np.argsort(matrix.cols, kind="stable")
    row_ptr = firsts(np.bincount(matrix.cols, minlength=matrix.columns))
    return Csr(matrix.columns, matrix.rows, row_ptr, matrix.entry_rows[order], matrix.values[order])


def dcsr_of(matrix: Csr) -> Dcsr:
    """The matrix without its empty rows; of the transpose it is the DCSC."""
    numbers = np.flatnonzero(matrix.lengths)
    row_ptr = np.concatenate([matrix.row_ptr[numbers], matrix.row_ptr[-1:]])
    return Dcsr(matrix.rows, matrix.columns, numbers, row_ptr, matrix.cols, matrix.values)


def _wrong(place: str, sentence: str) -> InputError:
    return InputError(Mistake(place if place == _PLACE else f"{_PLACE}: {place}", sentence))


def _lock(matrix: Csr | Dcsr, *integers: str) -> None:
    """Check sizes, and keep the arrays of a matrix so that nobody writes to them."""
    for name in integers:
        object.__setattr__(matrix, name, _integers(name, getattr(matrix, name)))
    object.__setattr__(matrix, "values", _numbers(matrix.values))
    _check_sizes(matrix.rows, matrix.columns)


def _locked(array: NDArray[Any]) -> NDArray[Any]:
    # a view, so that the caller's own array stays writable
    view = array.view()
    view.setflags(write=False)
    return view


def _integers(name: str, given: ArrayLike) -> Ints:
    array = np.asarray(given)
    if array.ndim != 1:
        raise _wrong(name, f"must have 1 dimension, got {array.ndim}")
    if array.dtype.kind not in "iu":
        if len(array):
            raise _wrong(name, f"must be whole numbers, got {array.dtype}")
        array = array.astype(np.int64)
    if array.dtype.kind == "u" and len(array) and int(array.max()) > np.iinfo(np.int64).max:
        raise _wrong(name, f"must be at most {np.iinfo(np.int64).max}, got {array.max()}")
    return _locked(array.astype(np.int64, copy=False))


def _numbers(given: ArrayLike) -> Values:
    array = np.asarray(given)
    if array.ndim != 1:
        raise _wrong("values", f"must have 1 dimension, got {array.ndim}")
    if array.dtype.kind not in "iuf":
        raise _wrong("values", f"must be real numbers, got {array.dtype}")
    return _locked(array)


def _check_sizes(rows: int, columns: int) -> None:
    for name, size in (("rows", rows), ("columns", columns)):
        if size < 0:
            raise _wrong(name, f"must be at least 0, got {size}")


def _check(rows: int, columns: int, row_ptr: Ints, cols: Ints, values: Values) -> None:
    """`InputError` if these are not sorted rows without an entry twice."""
    if len(row_ptr) != rows + 1:
        raise _wrong("row_ptr", f"must have {rows + 1} numbers, one more than rows, got {len(row_ptr)}")
    if row_ptr[0] != 0 or row_ptr[-1] != len(cols):
        raise _wrong("row_ptr", f"must go from 0 to {len(cols)}, got {row_ptr[0]} to {row_ptr[-1]}")
    lengths = np.diff(row_ptr)
    if np.any(lengths < 0):
        raise _wrong("row_ptr", f"must not fall, but does behind row {int(np.argmax(lengths < 0))}")
    if len(values) != len(cols):
        raise _wrong("values", f"must be as many as cols ({len(cols)}), got {len(values)}")
    if not len(cols):
        return
    _check_range("cols", cols, columns)
    falls = np.diff(cols) <= 0
    # between the last entry of a row and the first of the next one columns may fall
    falls[row_ptr[1:-1][(row_ptr[1:-1] > 0) & (row_ptr[1:-1] < len(cols))] - 1] = False
    if np.any(falls):
        at = int(np.argmax(falls))
        row = int(np.searchsorted(row_ptr, at, "right")) - 1
        what = "stands twice" if cols[at] == cols[at + 1] else f"stands behind {cols[at]}"
        raise _wrong("cols", f"must ascend in each row, but in row {row} column {cols[at + 1]} {what}")


def _check_range(name: str, numbers: Ints, end: int) -> None:
    outside = (numbers < 0) | (numbers >= end)
    if outside.any():
        raise _wrong(name, f"must be 0 to {end - 1}, got {numbers[np.argmax(outside)]}")


#: Zero fraction above which a layer takes the sparse path, unless a user says otherwise: our choice.
THRESHOLD = 0.5


@record
class Statistics:
    """What a table says of a matrix.

    sparsity: fraction of its places without an entry; 0 for a matrix without places.
    mean_length: entries of a row on average; 0 for a matrix without rows.
    variation: standard deviation of all row lengths over their mean; 0 if there are no entries.
    """

    rows: int
    columns: int
    entries: int
    sparsity: float
    mean_length: float
    variation: float
    empty_rows: int


def statistics(matrix: Csr) -> Statistics:
    """Give the statistics of a matrix."""
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

    `InputError` if the threshold is not from 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise InputError(Mistake("threshold", f"must be from 0 to 1, got {threshold}"))
    return statistics(matrix).sparsity > threshold


def lockstep_waste(lengths: NDArray[np.int64], bundle: int) -> float:
    """How often a place in lockstep is taken for each entry, if rows go side by side until the longest of them ends.

    lengths, bundle: of the rows in the order in which they are bundled, and how many go side by side; the last bundle
        has those that are left. Gives sum over bundles of (longest row * rows) / entries; 1 if there are no entries.
    """
    entries = int(lengths.sum())
    if not entries:
        return 1.0
    starts = np.arange(0, len(lengths), bundle)
    longest = np.maximum.reduceat(lengths, starts)
    rows = np.diff(np.append(starts, len(lengths)))
    return int((longest * rows).sum()) / entries
