"""Sparse matrices in files (`.mtx`, `.smtx`, also with `.gz`), and the weight matrices of models by name.

`.smtx` is the form of the Deep Learning Matrix Collection: sizes, row pointers, columns, and no values. Line 1 has
`rows, columns, entries`, line 2 a pointer for each row and one more, line 3 the columns, counted from 0. Source:
google-research, state_of_sparsity and sgk, whose collection has this form.
"""

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
from lstmsim.base.bounds import MAX_NONZEROS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files import matrix_market
from lstmsim.files.catalog import model_files
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.importers.files import read_weights
from lstmsim.model.numerics.weights import Network
from lstmsim.model.sparse.csr import Csr, firsts

#: Bytes that are read at once.
_BLOCK = 1 << 23


def read_smtx(file: IO[bytes], name: str) -> matrix_market.Coordinates:
    """Read a file of this format; `InputError` with line and column of the first mistake."""
    rows, columns, entries = _sizes(file, matrix_market.Position(name, 1))
    # what is left of a file; of an archive nobody knows how much that is before it is unpacked
    at = matrix_market.Position(name)
    blocks, read, most = [], 0, matrix_market.most_bytes(rows + 1 + entries)
    while block := file.read(_BLOCK):
        blocks.append(block)
        read += len(block)
        if read > most:
            raise at.wrong(f"has more than {most:,} bytes, too many for {rows:,} rows and {entries:,} entries")
    text = b"".join(blocks)
    second, _, rest = text.partition(b"\n")
    third, _, behind = rest.partition(b"\n")
    if behind.strip():
        raise matrix_market.Position(name, 4).wrong("expected the end of the file after the columns")
    pointers = _line(second, matrix_market.Position(name, 2), rows + 1, "row pointers")
    _check_pointers(second, pointers, entries, matrix_market.Position(name, 2))
    column = _line(third, matrix_market.Position(name, 3), entries, "columns")
    expected = f"expected a column from 0 to {columns - 1}"
    matrix_market.refuse(column >= columns, third, _starts(third), matrix_market.Position(name, 3), expected)
    row = np.repeat(np.arange(rows, dtype=np.int32), np.diff(pointers))
    return matrix_market.Coordinates(rows, columns, row, column.astype(np.int32), None)


def _sizes(file: IO[bytes], at: matrix_market.Position) -> tuple[int, int, int]:
    text = matrix_market.header_line(file, at, "rows, columns, entries")
    words = [each.strip() for each in text.split(",")]
    if len(words) != 3 or not all(each.isascii() and each.isdigit() for each in words):
        raise at.wrong(f"expected three whole numbers 'rows, columns, entries', got {show(text.strip())}")
    rows, columns, entries = (int(each) if len(each) < 20 else 10**19 for each in words)
    matrix_market.checked_side(rows, words[0], at)
    matrix_market.checked_side(columns, words[1], at)
    matrix_market.checked_entries(rows, columns, entries, rows * columns, words[2], at)
    return rows, columns, entries


def _line(text: bytes, at: matrix_market.Position, count: int, what: str) -> NDArray[np.int64]:
    """The whole numbers of a line that must have `count` of them."""
    starts = _starts(text)
    if len(starts) != count:
        raise at.wrong(f"expected {count} {what}, got {len(starts)}")
    if not count:
        return np.empty(0, np.int64)
    matrix_market.whole_numbers(text, starts, at, "a whole number from 0")
    # numbers that are too large stay so as floating point, where whole numbers would overflow
    return np.minimum(matrix_market.numbers(text, count, at), float(MAX_NONZEROS + 1)).astype(np.int64)


def _check_pointers(text: bytes, pointers: NDArray[np.int64], entries: int, at: matrix_market.Position) -> None:
    starts, falling = _starts(text), pointers[1:] < pointers[:-1]
    matrix_market.refuse(pointers[:1] != 0, text, starts, at, "expected the first row pointer to be 0")
    least = pointers[np.argmax(falling)] if falling.any() else 0
    matrix_market.refuse(falling, text, starts[1:], at, f"expected a row pointer of at least {least}")
    matrix_market.refuse(
        pointers[-1:] != entries,
        text,
        starts[-1:],
        at,
        f"expected the last row pointer to be {entries}, as line 1 says",
    )


def _starts(text: bytes) -> NDArray[np.int64]:
    """The offsets of the words of a line."""
    return matrix_market.word_starts(matrix_market.kinds_of(text))


def same_column(name: str, first: int, second: int) -> InputError:
    """The error about two entries that stand in the same row and column; which of the entries, from 0."""
    text = f"columns number {first + 1} and {second + 1} are the same column of the same row"
    return matrix_market.Position(name, 3).wrong(text)


#: Endings of the files that are read.
SUFFIXES = (".mtx", ".smtx", ".mtx.gz", ".smtx.gz")
_WHAT = "a sparse matrix"


@record
class MatrixFile:
    """A matrix, and a sentence on its file and the origin of its values.

    Zeros that the file stores with their indices are entries; of files that list all numbers, zeros are none.
    """

    matrix: Csr
    note: str


def is_matrix_file(name: str) -> bool:
    """Whether a text ends as the files of matrices do."""
    return name.lower().endswith(SUFFIXES)


def read_matrix(path: str | os.PathLike[str], seed: int | None = None) -> MatrixFile:
    """Read a matrix; `InputError` with file, line, column and value of the first mistake.

    path: the file; its ending says the format.
    seed: of the values of a file that has none: drawn from the normal distribution; None: each is 1.
    """
    name = os.fspath(path)
    if not is_matrix_file(name):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    if name.lower().removesuffix(".gz").endswith(".smtx"):
        with _unpacked(name) as file:
            entries = read_smtx(file, name)
        order, twice = matrix_market.sorted_entries(entries)
        if twice:
            raise same_column(name, *twice)
        return _finished(entries, order, seed, "a pattern from the Deep Learning Matrix Collection's format")
    with _unpacked(name) as file:
        entries, header = matrix_market.read_matrix_market(file, name)
    order, twice = matrix_market.sorted_entries(entries)
    if twice:
        with _unpacked(name) as file:
            raise matrix_market.same_place(file, header, name, *twice)
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


def _about(header: matrix_market.Header) -> str:
    kind = "coordinate" if header.coordinate else "array"
    mirrored = "" if header.symmetry == "general" else ", of which the file has one half"
    return f"Matrix Market, {kind} {header.field} {header.symmetry}{mirrored}"


def _finished(entries: matrix_market.Coordinates, order: NDArray[np.int64], seed: int | None, about: str) -> MatrixFile:
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


def write_array(path: str | os.PathLike[str], array: NDArray[Any]) -> None:
    """Write numbers as a NumPy file, whole or not at all."""
    name = os.fspath(path)
    if not name.lower().endswith(".npy"):
        raise InputError(Mistake(name, "expected a file name that ends in .npy"))
    with whole_file(name, "wb") as file:
        np.save(file, array, allow_pickle=False)


_DIRECTIONS = ("", ".backward")


def weight_matrix(name: str) -> tuple[NDArray[Any], str]:
    """Read the matrix of a layer, and a sentence on it: a row for each unit of each gate, columns of x, then of h.

    name: the model's name or file, a colon, the layer's number after an `l`: `resemblyzer:l1`. `.backward` follows for
        the backward direction, `.s1` for the second matrix of a cell that has several. Candidate gates of a GRU whose
        parts are apart have both in one row. `InputError` with the nearest name if there is none.
    """
    model_name, colon, part = name.rpartition(":")
    if not colon:
        model_name, part = name, ""
    model = load_model(model_name)
    if not model.weights:
        known = listed([each for each in model_files() if load_model(each).weights], "and")
        text = f"has no weights; of those that come with lstmsim, {known} have"
        raise InputError(Mistake(f"model {model_name}", text))
    matrices = dict(_matrices(read_weights(model.weights, model)))
    if part not in matrices:
        place = f"model {model_name}"
        if not part:
            text = (
                f"has {len(matrices)} matrices, expected one of {listed(f'{model_name}:{each}' for each in matrices)}"
            )
        else:
            text = f"has no matrix {show(part)}{nearest(part, matrices)}; it has {listed(matrices, 'and')}"
        raise InputError(Mistake(place, text))
    return matrices[part], f"weights of {model.name}, {part}: a row for each unit of each gate, columns of x, then of h"


def _matrices(network: Network) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each matrix of a network under the last part of its name."""
    for number, (layer, both) in enumerate(zip(network.model.layers, network.passes, strict=True)):
        for direction, weights in enumerate(both):
            for place, stage in enumerate(layer.cell.stages):
                rows = []
                for gate in stage.gates:
                    given = {
                        vector: weights.matrices[each.name, vector] for each in gate.sums for vector in each.vectors
                    }
                    units = layer.units(stage.rows)
                    none = {vector: np.zeros((units, layer.width(vector)), np.float32) for vector in stage.vectors}
                    rows.append(np.concatenate([(none | given)[vector] for vector in stage.vectors], axis=1))
                yield (f"l{number}{_DIRECTIONS[direction]}" + (f".s{place}" if place else "")), np.concatenate(rows)
