"""Matrix Market files: entries with their places, or all numbers column by column; as text or packed with gzip.

Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats (NISTIR 5935).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import MAX_BYTES
from lstmsim.base.bounds import MAX_MATRIX_SIDE, MAX_NONZEROS
from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import must_be, show
from lstmsim.files.matrices.coordinates import Coordinates, mirrored
from lstmsim.files.matrices.tokens import Position, header_line, misread, numbers, pieces, whole_numbers, words_of_lines

__all__ = ["Header", "read_matrix_market", "same_place"]

_BANNER = "%%MatrixMarket"
_KINDS = {
    "format": ("coordinate", "array"),
    "field": ("real", "integer", "pattern"),
    "symmetry": ("general", "symmetric", "skew-symmetric"),
}
#: Words of the format that are not read, and why.
_REFUSED = {
    "complex": "complex numbers are not read: the kernels compute with real ones",
    "hermitian": "Hermitian matrices are complex, and complex numbers are not read",
}
#: Whole numbers up to here are exact in 64-bit floating point.
_EXACT = 2**53


@record
class Header:
    """The first lines of a file.

    coordinate: whether entries stand with their places; else all numbers stand column by column.
    field: `real`, `integer` or `pattern`.
    symmetry: `general`, `symmetric` or `skew-symmetric`.
    rows, columns: the size.
    entries: how many lines of numbers follow.
    line: the line of the sizes.
    """

    coordinate: bool
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    line: int


def read_matrix_market(file: IO[bytes], name: str) -> tuple[Coordinates, Header]:
    """Read a file of this format; `InputError` with line and column of the first mistake.

    file: its content, unpacked.
    name: what mistakes call it.

    >>> import io
    >>> text = b"%%MatrixMarket matrix coordinate pattern general\\n2 3 1\\n2 3\\n"
    >>> read_matrix_market(io.BytesIO(text), "a.mtx")[0].column.tolist()
    [2]
    """
    header = _header(file, name)
    entries = _entries(file, header, name) if header.coordinate else _all_numbers(file, header, name)
    if header.symmetry != "general":
        entries = mirrored(entries, -1 if header.symmetry == "skew-symmetric" else 1)
    return entries, header


def _header(file: IO[bytes], name: str) -> Header:
    first = Position(name, 1)
    words = header_line(file, first, f"the line {_BANNER} matrix ...").split()
    if len(words) != 5 or words[0].lower() != _BANNER.lower():
        example = f"{_BANNER} matrix coordinate real general"
        raise first.wrong(f"expected a line like {example!r}, got {show(' '.join(words))}")
    if words[1].lower() != "matrix":
        raise first.wrong(f"expected a matrix, got {show(words[1])}")
    kinds = {key: _kind(word, key, first) for key, word in zip(_KINDS, words[2:], strict=True)}
    if kinds["format"] == "array" and kinds["field"] == "pattern":
        raise first.wrong("a pattern has no numbers, so it cannot be an array")
    if kinds["field"] == "pattern" and kinds["symmetry"] == "skew-symmetric":
        raise first.wrong("a pattern has no signs, so it cannot be skew-symmetric")
    line, text = 2, header_line(file, Position(name, 2), "sizes")
    while text and (not text.strip() or text.startswith("%")):
        line, text = line + 1, header_line(file, Position(name, line + 1), "sizes")
    return _sizes(text.split(), kinds, Position(name, line))


def _kind(word: str, key: str, at: Position) -> str:
    known = _KINDS[key]
    if word.lower() in known:
        return word.lower()
    if word.lower() in _REFUSED:
        raise at.wrong(_REFUSED[word.lower()])
    raise at.wrong(f"{key} {must_be(word, known)}")


def _sizes(words: list[str], kinds: dict[str, str], at: Position) -> Header:
    coordinate = kinds["format"] == "coordinate"
    what = "rows, columns and entries" if coordinate else "rows and columns"
    if len(words) != (3 if coordinate else 2):
        raise at.wrong(f"expected {what}, got {show(' '.join(words)) if words else 'the end of the file'}")
    for word in words:
        if not (word.isascii() and word.isdigit()):
            raise at.wrong(f"expected {what} as whole numbers, got {show(word)}")
    rows, columns, *stated = (int(word) if len(word) < 20 else 10**19 for word in words)
    for side, word in ((rows, words[0]), (columns, words[1])):
        if side > MAX_MATRIX_SIDE:
            raise at.wrong(f"a matrix can have at most {MAX_MATRIX_SIDE} rows or columns here, got {show(word)}")
    symmetry = kinds["symmetry"]
    if symmetry != "general" and rows != columns:
        raise at.wrong(f"a {symmetry} matrix has as many rows as columns, got {rows} x {columns}")
    size = {
        "general": rows * columns,
        "symmetric": rows * (rows + 1) // 2,
        "skew-symmetric": rows * (rows - 1) // 2 if rows else 0,
    }[symmetry]
    entries = stated[0] if stated else size
    if entries > MAX_NONZEROS:
        shown = words[2] if stated else f"{rows} x {columns}"
        raise at.wrong(f"a matrix can have at most {MAX_NONZEROS} entries here, got {show(shown)}")
    if entries > size:
        raise at.wrong(f"{rows} x {columns} has room for {size} entries, got {entries}")
    return Header(coordinate, kinds["field"], symmetry, rows, columns, entries, at.line)


def _entries(file: IO[bytes], header: Header, name: str) -> Coordinates:
    """The lines of entries with their places."""
    width = 2 if header.field == "pattern" else 3
    what = "row and column" if width == 2 else "row, column and value"
    parts = []
    for text, at in _body(file, header, name):
        starts = words_of_lines(text, width, at, what)
        whole_numbers(text, starts[:, :2], at, "a whole number from 1")
        table = numbers(text, starts.size, at).reshape(-1, width)
        _check_places(text, table, starts, header, at)
        if header.field == "integer":
            _check_whole(text, table[:, 2], starts[:, 2], at)
        row, column = (table[:, each].astype(np.int32) - 1 for each in (0, 1))
        parts.append((row, column, table[:, 2].copy() if width == 3 else np.empty(0)))
        _check_count(sum(len(each) for each, _, _ in parts), header, name, final=False)
    _check_count(sum(len(each) for each, _, _ in parts), header, name, final=True)
    rows, columns, values = (_joined([part[each] for part in parts]) for each in range(3))
    return Coordinates(
        header.rows,
        header.columns,
        rows.astype(np.int32),
        columns.astype(np.int32),
        values.astype(np.float64) if width == 3 else None,
    )


def _joined(parts: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    return np.concatenate(parts) if parts else np.empty(0)


def _body(file: IO[bytes], header: Header, name: str) -> Iterator[tuple[bytes, Position]]:
    """Pieces of the lines behind the sizes, each with the place of its first line."""
    line, read = header.line + 1, 0
    for text in pieces(file):
        read += len(text)
        if read > MAX_BYTES:
            raise Position(name, line).wrong("the file unpacks to more than the 2 GB that a matrix can have here")
        yield text, Position(name, line)
        line += text.count(b"\n")


def _check_places(
    text: bytes, table: NDArray[np.float64], starts: NDArray[np.int64], header: Header, at: Position
) -> None:
    """`InputError` for the first place outside the matrix, or above the diagonal of a symmetric one."""
    for column, (what, size) in enumerate((("row", header.rows), ("column", header.columns))):
        outside = np.flatnonzero((table[:, column] < 1) | (table[:, column] > size))
        if len(outside):
            raise misread(text, int(starts[outside[0], column]), at, f"expected a {what} from 1 to {size}")
    if header.symmetry != "general":
        least = 1 if header.symmetry == "skew-symmetric" else 0
        above = np.flatnonzero(table[:, 0] < table[:, 1] + least)
        if len(above):
            where = "below the diagonal" if least else "on or below the diagonal"
            expected = f"a {header.symmetry} matrix gives the entries {where}: expected no column above the row"
            raise misread(text, int(starts[above[0], 1]), at, expected)


def _check_whole(text: bytes, values: NDArray[np.float64], starts: NDArray[np.int64], at: Position) -> None:
    broken = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > _EXACT))
    if len(broken):
        raise misread(text, int(starts[broken[0]]), at, "expected a whole number of at most 2^53 in size")


def _check_count(count: int, header: Header, name: str, *, final: bool) -> None:
    what = "entries" if header.coordinate else "numbers"
    if count > header.entries or (final and count < header.entries):
        more = "more follow" if count > header.entries else f"only {count} follow{'s' * (count == 1)}"
        text = f"the size says {header.entries} {what}, but {more}"
        raise Position(name, header.line).wrong(text)


def _all_numbers(file: IO[bytes], header: Header, name: str) -> Coordinates:
    """Every number of the matrix, column by column; zeros are no entries."""
    parts: list[NDArray[np.float64]] = []
    for text, at in _body(file, header, name):
        starts = words_of_lines(text, 1, at, "one number")
        values = numbers(text, starts.size, at)
        if header.field == "integer":
            _check_whole(text, values, starts[:, 0], at)
        parts.append(values)
        _check_count(sum(map(len, parts)), header, name, final=False)
    _check_count(sum(map(len, parts)), header, name, final=True)
    given = _joined(list(parts)).astype(np.float64)
    kept = np.flatnonzero(given)
    row, column = _places(header, kept)
    return Coordinates(header.rows, header.columns, row.astype(np.int32), column.astype(np.int32), given[kept])


def _places(header: Header, kept: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of numbers that stand column by column; of symmetric matrices only the lower half stands."""
    size = header.rows
    if header.symmetry == "general":
        return kept % max(size, 1), kept // max(size, 1)
    least = 1 if header.symmetry == "skew-symmetric" else 0
    lengths = np.maximum(size - least - np.arange(size), 0)
    ends = np.cumsum(lengths)
    column = np.searchsorted(ends, kept, side="right")
    row = kept - (ends - lengths)[column] + column + least
    return row, column


def same_place(file: IO[bytes], header: Header, name: str, first: int, second: int) -> InputError:
    """The error about two entries of a file that stand in the same row and column.

    file: the file, from its beginning.
    first, second: which of its entries, from 0.
    """
    numbered = ((at, line.split()) for at, line in enumerate(islice(file, header.line, None), header.line + 1))
    words = list(islice((each for each in numbered if each[1]), second + 1))
    line, place = words[second]
    shown = " ".join(each.decode("ascii") for each in place[:2])
    return Position(name, line).wrong(f"row and column {shown} are given already in line {words[first][0]}")
