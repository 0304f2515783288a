"""Sparse matrices in files: what is read, what is refused at which place, and that no file is an internal error."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.bounds import MAX_MATRIX_SIDE, MAX_NONZEROS
from lstmsim.base.errors import InputError
from lstmsim.files.matrices import MatrixFile, read_matrix
from lstmsim.model.sparse.csr import Csr, csr_of_dense
from tests.files.matrix_files import write_matrix
from tools.drawn_matrices import drawn_matrix

#: Damaged files: 150 in the usual run, 1,000 and more in the long one.
EXAMPLES = max(1000, int(os.environ["LSTMSIM_EXAMPLES"])) if "LSTMSIM_EXAMPLES" in os.environ else 100
REAL = "%%MatrixMarket matrix coordinate real general\n"
DENSE = np.array([[1.5, 0, 0, -2], [0, 0, 0, 0], [0, 3, 4e-3, 0]])
GOOD = {
    "general.mtx": REAL + "% a comment\n\n3 4 4\n1 1 1.5\n3 2 3\n\n1 4 -2\n3 3 4e-3\n",
    "array.mtx": "%%MatrixMarket matrix array real general\n3 4\n"
    + "".join(f"{each}\n" for each in DENSE.T.ravel().tolist()),
    "case.mtx": "%%matrixmarket MATRIX Coordinate REAL General\n3 4 4\n1 1 1.5\n3 2 3\n1 4 -2\n3 3 4e-3",
    # any blank of ASCII stands between words
    "blanks.mtx": REAL + "3 4 4\n1\t1\v1.5\n3\f2 3\n 1 4 -2 \r\n3  3 4e-3",
    "windows.mtx": REAL.replace("\n", "\r\n") + "3 4 4\r\n1 1 1.5\r\n3 2 3\r\n1 4 -2\r\n3 3 4e-3\r\n",
}
SMTX = "3, 4, 4\n0 2 2 4\n0 3 1 2\n"


def read(folder: Path, text: str | bytes, name: str = "a.mtx", seed: int | None = None) -> MatrixFile:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_matrix(path, seed)


def refusal(folder: Path, text: str | bytes, name: str = "a.mtx") -> str:
    """The one sentence about a wrong file, without the folder."""
    with pytest.raises(InputError) as caught:
        read(folder, text, name)
    assert len(caught.value.mistakes) == 1
    said = str(caught.value)
    assert said.startswith(str(folder / name))
    assert "\n" not in said
    return said.removeprefix(str(folder) + "/")


@pytest.mark.parametrize("name", GOOD)
def test_a_matrix_is_what_its_file_says(name: str, tmp_path: Path) -> None:
    assert np.array_equal(read(tmp_path, GOOD[name], name).matrix.dense(), DENSE)


def test_integers_and_patterns(tmp_path: Path) -> None:
    text = "%%MatrixMarket matrix coordinate integer general\n2 2 2\n2 1 -7\n1 2 12345678901\n"
    assert read(tmp_path, text).matrix.dense().tolist() == [[0, 12345678901], [-7, 0]]
    pattern = read(tmp_path, "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 3\n1 1\n")
    assert pattern.matrix.dense().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert pattern.note.endswith("it has no values: each is 1")


def test_symmetric_halves_become_whole_matrices(tmp_path: Path) -> None:
    body = "3 3 3\n2 1 5\n3 2 6\n3 3 7\n"
    whole = read(tmp_path, "%%MatrixMarket matrix coordinate real symmetric\n" + body).matrix.dense()
    assert whole.tolist() == [[0, 5, 0], [5, 0, 6], [0, 6, 7]]
    skew = read(tmp_path, "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 2 6\n").matrix.dense()
    assert skew.tolist() == [[0, -5, 0], [5, 0, -6], [0, 6, 0]]
    lower = "%%MatrixMarket matrix array real symmetric\n3 3\n1\n5\n0\n2\n6\n7\n"
    assert read(tmp_path, lower).matrix.dense().tolist() == [[1, 5, 0], [5, 2, 6], [0, 6, 7]]
    strict = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n5\n0\n6\n"
    assert read(tmp_path, strict).matrix.dense().tolist() == [[0, -5, 0], [5, 0, -6], [0, 6, 0]]


def test_a_stored_zero_is_an_entry_and_a_zero_of_an_array_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, REAL + "1 2 1\n1 2 0\n").matrix.entries == 1
    assert read(tmp_path, "%%MatrixMarket matrix array real general\n1 2\n0\n3\n").matrix.entries == 1


def test_smtx_has_places_and_values_of_a_seed(tmp_path: Path) -> None:
    ones = read(tmp_path, SMTX, "a.smtx").matrix
    assert np.array_equal(ones.dense(), DENSE != 0)
    drawn, again, other = (read(tmp_path, SMTX, "a.smtx", seed) for seed in (1, 1, 2))
    assert np.array_equal(drawn.matrix.values, again.matrix.values)
    assert not np.array_equal(drawn.matrix.values, other.matrix.values)
    assert "seed 1" in drawn.note
    assert read(tmp_path, "1, 4, 2\n0 2\n3 1\n", "a.smtx").matrix.cols.tolist() == [1, 3]


def test_what_has_no_entries(tmp_path: Path) -> None:
    assert read(tmp_path, REAL + "2 3 0\n").matrix.entries == 0
    assert read(tmp_path, REAL + "0 0 0\n").matrix.rows == 0
    assert read(tmp_path, "%%MatrixMarket matrix array real general\n0 5\n").matrix.columns == 5
    assert read(tmp_path, "2, 3, 0\n0 0 0\n", "a.smtx").matrix.entries == 0
    assert read(tmp_path, "0, 3, 0\n0\n\n", "a.smtx").matrix.rows == 0


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.smtx", "a.smtx.gz"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    drawn = drawn_matrix(40, 30, 200, 5, skew=True)
    matrix = Csr(drawn.rows, drawn.columns, drawn.row_ptr, drawn.cols, drawn.values / 7)
    write_matrix(tmp_path / name, matrix)
    again = read_matrix(tmp_path / name).matrix
    assert np.array_equal(again.row_ptr, matrix.row_ptr)
    assert np.array_equal(again.cols, matrix.cols)
    if ".mtx" in name:
        assert np.array_equal(again.values, matrix.values)


WRONG = {
    "": "a.mtx: is empty, expected a sparse matrix",
    "hello\n": "a.mtx:1: expected a line like '%%MatrixMarket matrix coordinate real general', got 'hello'",
    REAL.replace("real", "complex"): "a.mtx:1: complex numbers are not read: the kernels compute with real ones",
    REAL.replace("general", "hermitian"): "a.mtx:1: Hermitian matrices are complex, and complex numbers are not read",
    REAL.replace("general", "symetric"): "a.mtx:1: symmetry must be general, symmetric or skew-symmetric, "
    "got 'symetric'; did you mean 'symmetric'?",
    REAL.replace("matrix c", "vector c"): "a.mtx:1: expected a matrix, got 'vector'",
    "%%MatrixMarket matrix array pattern general\n": "a.mtx:1: a pattern has no numbers, so it cannot be an array",
    REAL: "a.mtx:2: expected rows, columns and entries, got the end of the file",
    REAL + "3 4\n": "a.mtx:2: expected rows, columns and entries, got '3 4'",
    REAL + "3 -4 1\n": "a.mtx:2: expected rows, columns and entries as whole numbers, got '-4'",
    REAL + "99999999999999999999999 1 1\n": f"a.mtx:2: a matrix can have at most {MAX_MATRIX_SIDE} rows or columns "
    "here, got '99999999999999999999999'",
    REAL + f"10000000 10000000 {MAX_NONZEROS + 1}\n": f"a.mtx:2: a matrix can have at most {MAX_NONZEROS} entries "
    f"here, got '{MAX_NONZEROS + 1}'",
    REAL + "2 2 5\n": "a.mtx:2: 2 x 2 has room for 4 entries, got 5",
    REAL.replace("general", "symmetric") + "2 3 1\n": "a.mtx:2: a symmetric matrix has as many rows as columns, "
    "got 2 x 3",
    REAL + "2 2 2\n1 1 1\n": "a.mtx:2: the size says 2 entries, but only 1 follows",
    REAL + "2 2 1\n1 1 1\n2 2 1\n": "a.mtx:2: the size says 1 entries, but more follow",
    REAL + "2 2 2\n1 1 1\n\n3 1 5\n": "a.mtx:5:1: expected a row from 1 to 2, got '3'",
    REAL + "2 2 1\n  1 0 5\n": "a.mtx:3:5: expected a column from 1 to 2, got '0'",
    REAL + "2 2 1\n1 1.0 5\n": "a.mtx:3:3: expected a whole number from 1, got '1.0'",
    REAL + "2 2 2\n1 1 5\n1 2 5x\n": "a.mtx:4:5: expected a finite number, got '5x'",
    REAL + "2 2 1\n1 1 nan\n": "a.mtx:3:5: expected a finite number, got 'nan'",
    REAL + "2 2 1\n1 1 1e999\n": "a.mtx:3:5: expected a finite number, got '1e999'",
    REAL + "2 2 2\n1 1 5\n1 2\n": "a.mtx:4: has 2 words, expected row, column and value: '1 2'",
    REAL + "2 2 3\n1 1 5\n2 2 1\n1 1 6\n": "a.mtx:5: row and column 1 1 are given already in line 3",
    REAL.replace("general", "symmetric") + "2 2 1\n1 2 5\n": "a.mtx:3:3: a symmetric matrix gives the entries on or "
    "below the diagonal: expected no column above the row, got '2'",
    REAL.replace("real", "integer") + "2 2 1\n1 1 1.5\n": "a.mtx:3:5: expected a whole number of at most 2^53 in size, "
    "got '1.5'",
}
WRONG_SMTX = {
    "3 4 4\n": "a.smtx:1: expected three whole numbers 'rows, columns, entries', got '3 4 4'",
    "3, 4, 13\n": "a.smtx:1: 3 x 4 has room for 12 entries, got 13",
    "3, 4, 4\n0 2 4\n0 3 1 2\n": "a.smtx:2: expected 4 row pointers, got 3",
    "3, 4, 4\n1 2 2 4\n0 3 1 2\n": "a.smtx:2:1: expected the first row pointer to be 0, got '1'",
    "3, 4, 4\n0 2 1 4\n0 3 1 2\n": "a.smtx:2:5: expected a row pointer of at least 2, got '1'",
    "3, 4, 4\n0 2 2 3\n0 3 1 2\n": "a.smtx:2:7: expected the last row pointer to be 4, as line 1 says, got '3'",
    "3, 4, 4\n0 2 2 4\n0 3 1 4\n": "a.smtx:3:7: expected a column from 0 to 3, got '4'",
    "3, 4, 4\n0 2 2 4\n0 3 -1 2\n": "a.smtx:3:5: expected a whole number from 0, got '-1'",
    "3, 4, 4\n0 2 2 4\n0 0 1 2\n": "a.smtx:3: columns number 1 and 2 are the same column of the same row",
    "3, 4, 4\n0 2 2 4\n0 3 1\n": "a.smtx:3: expected 4 columns, got 3",
    SMTX + "5\n": "a.smtx:4: expected the end of the file after the columns",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text) == WRONG[text]


@pytest.mark.parametrize("text", WRONG_SMTX)
def test_a_wrong_smtx_file_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text, "a.smtx") == WRONG_SMTX[text]


def test_damaged_archives(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD["general.mtx"].encode())
    assert np.array_equal(read(tmp_path, packed, "a.mtx.gz").matrix.dense(), DENSE)
    for text in (packed[:-9], b"no archive", packed[:20] + b"\xff" * 9 + packed[29:]):
        assert "gzip" in refusal(tmp_path, text, "a.mtx.gz")


def test_a_size_takes_no_memory_before_its_entries_are_there(tmp_path: Path) -> None:
    import tracemalloc

    tracemalloc.start()
    refusal(tmp_path, REAL + f"{MAX_MATRIX_SIDE} {MAX_MATRIX_SIDE} {MAX_NONZEROS}\n1 1 1\n")
    refusal(tmp_path, f"{MAX_MATRIX_SIDE}, {MAX_MATRIX_SIDE}, {MAX_NONZEROS}\n0 1\n0\n", "a.smtx")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25, peak


def test_long_lines_are_refused_and_not_kept(tmp_path: Path) -> None:
    assert "more than 65536 bytes" in refusal(tmp_path, "%" * 100_000)
    assert "has 300000 words" in refusal(tmp_path, REAL + "3 3 1\n" + "1 " * 300_000)


def test_damaged_files_are_told_or_read_and_never_an_internal_error(tmp_path: Path) -> None:
    """Bytes are changed, taken away, doubled; each file is read, or refused in one sentence that names the file."""
    draw = np.random.default_rng(14)
    sources = [(name, text.encode()) for name, text in GOOD.items()] + [("a.smtx", SMTX.encode())]
    sources += [(f"{name}.gz", gzip.compress(text)) for name, text in sources[-2:]]
    pieces = [
        b" ",
        b"\n",
        b"-",
        b"9",
        b"e",
        b"\0",
        b"\xff",
        b"%",
        b".",
        b"1e308",
        b"99999999999999999999",
        b"nan",
        b",",
    ]
    refusals = []
    for _ in range(EXAMPLES):
        name, text = sources[draw.integers(len(sources))]
        for _ in range(draw.integers(1, 4)):
            at, length = int(draw.integers(len(text) + 1)), int(draw.integers(0, 4))
            piece = pieces[draw.integers(len(pieces))] if draw.integers(3) else text[at : at + 9]
            text = text[:at] + piece + text[at + length :]
        try:
            read(tmp_path, text, name)
        except InputError as error:
            refusals.append((name, str(error)))
    refused = len(refusals)
    assert EXAMPLES // 3 < refused < EXAMPLES
    for name, said in refusals:
        assert all(line.startswith(str(tmp_path / name)) for line in said.split("\n")), said
        assert len(said) < 400


def test_very_many_entries_in_any_order_are_sorted(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    places = draw.permutation(np.unique(draw.integers(0, 10**8, 100_000)))
    lines = (f"{each // 10**4 + 1} {each % 10**4 + 1} {each / 7:.6g}\n" for each in places.tolist())
    text = REAL + f"10000 10000 {len(places)}\n" + "".join(lines)
    matrix = read(tmp_path, text).matrix
    assert matrix.entries == len(places)
    assert np.array_equal(matrix.entry_rows * 10**4 + matrix.cols, np.sort(places))


def test_a_matrix_without_entries_is_written(tmp_path: Path) -> None:
    write_matrix(tmp_path / "a.smtx", csr_of_dense(np.zeros((2, 3))))
    assert read_matrix(tmp_path / "a.smtx").matrix.columns == 3
