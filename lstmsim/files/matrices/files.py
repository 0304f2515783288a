"""Sparse matrices in files: `.mtx` (Matrix Market) and `.smtx` (Deep Learning Matrix Collection), also with `.gz`."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import bounded_file
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.records import record
from lstmsim.base.wording import listed, show
from lstmsim.files.matrices.coordinates import Coordinates, sorted_entries
from lstmsim.files.matrices.matrix_market import Header, read_matrix_market, same_place
from lstmsim.files.matrices.smtx import read_smtx, same_column
from lstmsim.model.sparse.csr import Csr, firsts

__all__ = ["SUFFIXES", "MatrixFile", "is_matrix_file", "read_matrix", "write_array", "write_matrix"]

#: Endings of the files that are read.
SUFFIXES = (".mtx", ".smtx", ".mtx.gz", ".smtx.gz")
_WHAT = "a sparse matrix"


@record
class MatrixFile:
    """A matrix and what its file says of it.

    matrix: its entries. Zeros that the file stores with their places are entries; of files that list all numbers,
        zeros are none.
    note: one sentence on what the file is, and where its values are from.
    """

    matrix: Csr
    note: str


def is_matrix_file(name: str) -> bool:
    """Whether a text ends as the files of matrices do.

    >>> is_matrix_file("a.mtx.gz"), is_matrix_file("resemblyzer:l1")
    (True, False)
    """
    return name.lower().endswith(SUFFIXES)


def read_matrix(path: str | os.PathLike[str], seed: int | None = None) -> MatrixFile:
    """Read a matrix; `InputError` with file, line, column and value of the first mistake.

    path: the file; its ending says the format.
    seed: of the values of a file that has none: drawn from the normal distribution; None: each is 1.

    >>> read_matrix("layer.csv")
    Traceback (most recent call last):
    lstmsim.InputError: layer.csv: expected a file name that ends in .mtx, .smtx, .mtx.gz or .smtx.gz
    """
    name = os.fspath(path)
    if not is_matrix_file(name):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    if name.lower().removesuffix(".gz").endswith(".smtx"):
        with _unpacked(name) as file:
            entries = read_smtx(file, name)
        order, twice = sorted_entries(entries)
        if twice:
            raise same_column(name, *twice)
        return _finished(entries, order, seed, "a pattern from the Deep Learning Matrix Collection's format")
    with _unpacked(name) as file:
        entries, header = read_matrix_market(file, name)
    order, twice = sorted_entries(entries)
    if twice:
        with _unpacked(name) as file:
            raise same_place(file, header, name, *twice)
    return _finished(entries, order, seed, _about(header))


@contextmanager
def _unpacked(name: str) -> Iterator[IO[bytes]]:
    """Open a file for reading its text; a damaged archive is an `InputError`."""
    with bounded_file(name, _WHAT) as (file, _):
        if not name.lower().endswith(".gz"):
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file, mode="rb") as text:
                yield cast("IO[bytes]", text)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(Mistake(name, f"is no gzip archive, or is damaged: {show(str(error))}")) from None


def _about(header: Header) -> str:
    kind = "coordinate" if header.coordinate else "array"
    mirrored = "" if header.symmetry == "general" else ", of which the file has one half"
    return f"Matrix Market, {kind} {header.field} {header.symmetry}{mirrored}"


def _finished(entries: Coordinates, order: NDArray[np.int64], seed: int | None, about: str) -> MatrixFile:
    """The matrix of entries in the order of rows and columns."""
    if entries.values is not None:
        values = entries.values[order]
    elif seed is None:
        values, about = np.ones(len(order)), f"{about}; it has no values: each is 1"
    else:
        values = np.random.default_rng(seed).standard_normal(len(order))
        about = f"{about}; it has no values: drawn from the normal distribution with seed {seed}"
    row_ptr = firsts(np.bincount(entries.row, minlength=entries.rows))
    matrix = Csr(entries.rows, entries.columns, row_ptr, entries.column[order].astype(np.int64), values)
    return MatrixFile(matrix, about)


def write_matrix(path: str | os.PathLike[str], matrix: Csr) -> None:
    """Write a matrix, whole or not at all.

    path: the file; its ending says the format. `.smtx` keeps places alone, no values.

    `InputError` for another ending, or a path that cannot be written.

    >>> import tempfile, pathlib
    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.mtx")
    ...     write_matrix(path, csr_of_dense([[0.0, 0.1], [2.0, 0.0]]))
    ...     read_matrix(path).matrix.values.tolist()
    [0.1, 2.0]
    """
    name = os.fspath(path)
    if not is_matrix_file(name):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    with whole_file(name, "wz" if name.lower().endswith(".gz") else "w") as file:
        if name.lower().removesuffix(".gz").endswith(".smtx"):
            file.write(f"{matrix.rows}, {matrix.columns}, {matrix.entries}\n")
            for each in (matrix.row_ptr, matrix.cols):
                file.write(" ".join(map(str, each.tolist())) + "\n")
            return
        file.write("%%MatrixMarket matrix coordinate real general\n")
        file.write(f"{matrix.rows} {matrix.columns} {matrix.entries}\n")
        rows, columns, values = matrix.entry_rows.tolist(), matrix.cols.tolist(), matrix.values.tolist()
        file.writelines(f"{r + 1} {c + 1} {v!r}\n" for r, c, v in zip(rows, columns, values, strict=True))


def write_array(path: str | os.PathLike[str], array: NDArray[Any]) -> None:
    """Write numbers as a NumPy file, whole or not at all.

    path: the file; its name ends in `.npy`.
    """
    name = os.fspath(path)
    if not name.lower().endswith(".npy"):
        raise InputError(Mistake(name, "expected a file name that ends in .npy"))
    with whole_file(name, "wb") as file:
        np.save(file, array, allow_pickle=False)
