"""Matrix Market files: entries with their indices, or all numbers column by column; as text or packed with gzip.

The numbers of such text are read in bulk: which words are numbers, and which word is wrong.
Source: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats (NISTIR 5935).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import MAX_BYTES
from lstmsim.base.bounds import MAX_MATRIX_SIDE, MAX_NONZEROS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.memory import refuse_memory
from lstmsim.base.records import record
from lstmsim.base.wording import must_be, show

#: Bytes that are read at once. A line of entries that is longer is no line of entries.
_PIECE = 1 << 23
LONGEST_LINE = 1 << 16
_DIGITS, _OTHER = 2, 3
#: Comments and blank lines of a file, and bytes of a line of entries, beyond which nobody writes a matrix.
_MOST_OTHER, _MOST_OF_LINE = 100_000, 128
#: Measured bytes of memory for each entry of a file while it is read and sorted.
_OF_ENTRY = 60
#: Kind of each byte: 0 a space, 1 the end of a line, 2 a digit, 3 anything else.
_KIND_OF = np.full(256, _OTHER, np.uint8)
_KIND_OF[[9, 11, 12, 13, 32]] = 0
_KIND_OF[10] = 1
_KIND_OF[48:58] = _DIGITS


@record
class Position:
    """A position in a text file; line and column count from 1, 0 means the file or the line as a whole."""

    name: str
    line: int = 0
    column: int = 0

    def wrong(self, sentence: str) -> InputError:
        """The error with a sentence at this place."""
        numbers = [str(each) for each in (self.line, self.column) if each]
        return InputError(Mistake(":".join([self.name, *numbers]), sentence))


def header_line(file: IO[bytes], at: Position, what: str) -> str:
    """Read one line of a header; empty at the end of the file."""
    line = file.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise at.wrong(f"has more than {LONGEST_LINE} bytes, expected {what}")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise at.wrong(f"is no text, expected {what}") from None
    return text


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Read the rest of a file in pieces of whole lines, each of some MB."""
    rest = b""
    while block := file.read(_PIECE):
        text = rest + block
        end = text.rfind(b"\n") + 1
        if end:
            yield text[:end]
        rest = text[end:]
        if len(rest) > _PIECE:
            break
    if rest:
        yield rest


def kinds_of(text: bytes) -> NDArray[np.uint8]:
    """The kind of each byte: 0 a space, 1 the end of a line, 2 a digit, 3 anything else."""
    return _KIND_OF[np.frombuffer(text, np.uint8)]


def word_starts(kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The offsets at which words begin."""
    word = kinds >= _DIGITS
    first = word.copy()
    first[1:] &= ~word[:-1]
    return np.flatnonzero(first)


def words_of_lines(text: bytes, width: int, at: Position, what: str) -> NDArray[np.int64]:
    """Find where the words of a text begin, if every line has `width` of them. Lines without words are passed over."""
    kinds = kinds_of(text)
    starts = word_starts(kinds)
    ends = np.flatnonzero(kinds == 1)
    # the usual case needs no search: as many lines as groups of words, and each line ends after its group of words
    if len(starts) == width * len(ends):
        table = starts.reshape(-1, width)
        if np.all(table[:, -1] < ends) and np.all(table[1:, 0] > ends[:-1]):
            return table
    counts = np.bincount(np.searchsorted(ends, starts), minlength=1)
    wrong = np.flatnonzero((counts != width) & (counts != 0))
    if len(wrong):
        line = int(wrong[0])
        begin = int(ends[line - 1]) + 1 if line else 0
        shown = text[begin : begin + 80].split(b"\n")[0].decode("utf-8", "replace").strip()
        raise Position(at.name, at.line + line).wrong(f"has {counts[line]} words, expected {what}: {show(shown)}")
    return starts.reshape(-1, width)


def whole_numbers(text: bytes, starts: NDArray[np.int64], at: Position, what: str) -> None:
    """`InputError` at the first of some words that is not made of digits alone."""
    kinds = kinds_of(text)
    odd = np.flatnonzero(kinds > _DIGITS)
    flat = starts.ravel()
    if not len(odd) or not len(flat):
        return
    # the ends of the words: the first space or end of a line after each
    gap = kinds < _DIGITS
    ends = np.flatnonzero(gap[1:] & ~gap[:-1]) + 1
    ends = np.append(ends, len(text))[np.searchsorted(ends, flat)]
    refuse(np.searchsorted(odd, flat) != np.searchsorted(odd, ends), text, flat, at, f"expected {what}")


def numbers(text: bytes, count: int, at: Position) -> NDArray[np.float64]:
    """Read every word of a text as a number."""
    if not count:
        # numpy finds a number in a text of spaces
        return np.empty(0)
    try:
        with warnings.catch_warnings():
            # older versions of numpy warn where newer ones raise
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(text, np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        values = np.empty(0)
    if len(values) == count and np.isfinite(values).all():
        return values
    offset = 0
    for word in text.split():
        offset = text.index(word, offset)
        if not _finite(word):
            raise misread(text, offset, at, "expected a finite number")
        offset += len(word)
    raise at.wrong(f"cannot be read as {count} numbers")


def _finite(word: bytes) -> bool:
    """Whether a word is a finite number as C writes it."""
    try:
        return b"_" not in word and bool(np.isfinite(float(word)))
    except ValueError:
        return False


def misread(text: bytes, offset: int, at: Position, expected: str) -> InputError:
    """The error about one word of a text."""
    line = text.count(b"\n", 0, offset)
    column = offset - (text.rfind(b"\n", 0, offset) + 1) + 1
    word = text[offset : offset + 80].split()[0].decode("utf-8", "replace")
    return Position(at.name, at.line + line, column).wrong(f"{expected}, got {show(word)}")


def refuse(wrong: NDArray[np.bool_], text: bytes, starts: NDArray[np.int64], at: Position, expected: str) -> None:
    """`InputError` about the first word that is wrong; one truth and one offset for each word."""
    if wrong.any():
        raise misread(text, int(starts[np.argmax(wrong)]), at, expected)


def checked_side(side: int, word: str, at: Position) -> None:
    """`InputError` for more rows or columns than a matrix can have; word: the number as the file has it."""
    if side > MAX_MATRIX_SIDE:
        raise at.wrong(f"a matrix can have at most {MAX_MATRIX_SIDE} rows or columns here, got {show(word)}")


def checked_entries(rows: int, columns: int, entries: int, size: int, shown: str, at: Position) -> None:
    """`InputError` for more entries than a matrix can have; size: how many this one has room for."""
    if entries > MAX_NONZEROS:
        raise at.wrong(f"a matrix can have at most {MAX_NONZEROS} entries here, got {show(shown)}")
    if entries > size:
        raise at.wrong(f"{rows} x {columns} has room for {size} entries, got {entries}")
    refuse_memory(at.name, f"{entries:,} entries", _OF_ENTRY * entries, "take a smaller matrix")


def most_bytes(numbers: int) -> int:
    """Give the most bytes that a file of so many entries or numbers may unpack to.

    >>> most_bytes(0), most_bytes(10**9)
    (12800000, 2147483647)
    """
    return min(MAX_BYTES, (numbers + _MOST_OTHER) * _MOST_OF_LINE)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A matrix as a list of its entries: indices from 0, shape (entries,); values are None if the file has none."""

    rows: int
    columns: int
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    values: NDArray[np.float64] | None


def mirrored(entries: Coordinates, sign: int) -> Coordinates:
    """The whole matrix of the entries on and below the diagonal; the others have the sign 1 or -1."""
    off = entries.row != entries.column
    values = None if entries.values is None else np.concatenate([entries.values, sign * entries.values[off]])
    row, column = entries.row, entries.column
    places = np.concatenate([row, column[off]]), np.concatenate([column, row[off]])
    return Coordinates(entries.rows, entries.columns, *places, values)


def sorted_entries(entries: Coordinates) -> tuple[NDArray[np.int64], tuple[int, int] | None]:
    """Sort entries by row and column; the indices in this order, and those of two entries in one row and column."""
    key = entries.row.astype(np.int64) * entries.columns + entries.column
    if len(key) < 2 or bool(np.all(key[1:] > key[:-1])):
        return np.arange(len(key)), None
    order = np.argsort(key, kind="stable")
    arranged = key[order]
    twice = np.flatnonzero(arranged[1:] == arranged[:-1])
    if len(twice):
        return order, (int(order[twice[0]]), int(order[twice[0] + 1]))
    return order, None


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
    """The first lines of a file; `line` is that of the sizes, `entries` lines of numbers follow."""

    coordinate: bool
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    line: int


def read_matrix_market(file: IO[bytes], name: str) -> tuple[Coordinates, Header]:
    """Read a file of this format; `InputError` with line and column of the first mistake."""
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
        if line > _MOST_OTHER:
            raise Position(name, line).wrong(f"expected the sizes within the first {_MOST_OTHER:,} lines")
    header = _sizes(text.split(), kinds, Position(name, line))
    entries = _entries(file, header, name)
    if header.symmetry != "general":
        entries = mirrored(entries, -1 if header.symmetry == "skew-symmetric" else 1)
    return entries, header


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
    checked_side(rows, words[0], at)
    checked_side(columns, words[1], at)
    symmetry = kinds["symmetry"]
    if symmetry != "general" and rows != columns:
        raise at.wrong(f"a {symmetry} matrix has as many rows as columns, got {rows} x {columns}")
    size = {
        "general": rows * columns,
        "symmetric": rows * (rows + 1) // 2,
        "skew-symmetric": rows * (rows - 1) // 2 if rows else 0,
    }[symmetry]
    entries = stated[0] if stated else size
    checked_entries(rows, columns, entries, size, words[2] if stated else f"{rows} x {columns}", at)
    return Header(coordinate, kinds["field"], symmetry, rows, columns, entries, at.line)


def _entries(file: IO[bytes], header: Header, name: str) -> Coordinates:
    """The matrix of the lines after the sizes; zeros of a matrix whose numbers all stand there are no entries."""
    width = 1 if not header.coordinate else 2 if header.field == "pattern" else 3
    what = {1: "one number", 2: "row and column", 3: "row, column and value"}[width]
    line, read, count = header.line + 1, 0, 0
    places, values = [np.empty((0, 2), np.int32)], [np.empty(0)]
    most = most_bytes(header.entries)
    for text in pieces(file):
        at = Position(name, line)
        read += len(text)
        if read > most:
            raise at.wrong(f"the file has more than {most:,} bytes, too many for {header.entries:,} entries")
        starts = words_of_lines(text, width, at, what)
        if header.coordinate:
            whole_numbers(text, starts[:, :2], at, "a whole number from 1")
        table = numbers(text, starts.size, at).reshape(-1, width)
        if header.coordinate:
            _check_places(text, table, starts, header, at)
            places.append(table[:, :2].astype(np.int32) - 1)
        if header.field == "integer":
            broken = (table[:, -1] != np.floor(table[:, -1])) | (np.abs(table[:, -1]) > _EXACT)
            refuse(broken, text, starts[:, -1], at, "expected a whole number of at most 2^53 in size")
        values.append(table[:, -1].copy() if width != 2 else np.empty(0))
        count += len(table)
        if count > header.entries:
            break
        line += text.count(b"\n")
    if count != header.entries:
        more = "more follow" if count > header.entries else f"only {count} follow{'s' * (count == 1)}"
        kind = "entries" if header.coordinate else "numbers"
        raise Position(name, header.line).wrong(f"the size says {header.entries} {kind}, but {more}")
    given, place = np.concatenate(values), np.concatenate(places)
    if header.coordinate:
        return Coordinates(header.rows, header.columns, place[:, 0], place[:, 1], None if width == 2 else given)
    kept = np.flatnonzero(given)
    row, column = _places(header, kept)
    return Coordinates(header.rows, header.columns, row.astype(np.int32), column.astype(np.int32), given[kept])


def _check_places(
    text: bytes, table: NDArray[np.float64], starts: NDArray[np.int64], header: Header, at: Position
) -> None:
    """`InputError` for the first entry outside the matrix, or above the diagonal of a symmetric one."""
    for column, (what, size) in enumerate((("row", header.rows), ("column", header.columns))):
        outside = (table[:, column] < 1) | (table[:, column] > size)
        refuse(outside, text, starts[:, column], at, f"expected a {what} from 1 to {size}")
    if header.symmetry != "general":
        least = 1 if header.symmetry == "skew-symmetric" else 0
        where = "below the diagonal" if least else "on or below the diagonal"
        expected = f"a {header.symmetry} matrix gives the entries {where}: expected no column above the row"
        refuse(table[:, 0] < table[:, 1] + least, text, starts[:, 1], at, expected)


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
    """The error about two entries of a file that stand in the same row and column."""
    numbered = ((at, line.split()) for at, line in enumerate(islice(file, header.line, None), header.line + 1))
    words = list(islice((each for each in numbered if each[1]), second + 1))
    line, place = words[second]
    shown = " ".join(each.decode("ascii") for each in place[:2])
    return Position(name, line).wrong(f"row and column {shown} are given already in line {words[first][0]}")
