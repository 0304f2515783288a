"""The `.smtx` files of the Deep Learning Matrix Collection: sizes, row pointers, columns, and no values.

Line 1 has `rows, columns, entries`, line 2 a pointer for each row and one more, line 3 the columns, counted from 0.
Source: google-research, state_of_sparsity and sgk, whose collection has this form.
"""

from __future__ import annotations

from typing import IO

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import MAX_BYTES
from lstmsim.base.bounds import MAX_MATRIX_SIDE, MAX_NONZEROS
from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.files.matrices.coordinates import Coordinates
from lstmsim.files.matrices.tokens import Position, header_line, kinds_of, misread, numbers, whole_numbers, word_starts

__all__ = ["read_smtx", "same_column"]

#: Bytes that are read at once.
_BLOCK = 1 << 23


def read_smtx(file: IO[bytes], name: str) -> Coordinates:
    """Read a file of this format; `InputError` with line and column of the first mistake.

    file: its content, unpacked.
    name: what mistakes call it.

    >>> import io
    >>> read_smtx(io.BytesIO(b"2, 3, 2\\n0 1 2\\n2 0\\n"), "a.smtx").column.tolist()
    [2, 0]
    """
    rows, columns, entries = _sizes(file, Position(name, 1))
    text = _rest(file, Position(name))
    second, _, rest = text.partition(b"\n")
    third, _, behind = rest.partition(b"\n")
    if behind.strip():
        raise Position(name, 4).wrong("expected the end of the file behind the columns")
    pointers = _line(second, Position(name, 2), rows + 1, "row pointers")
    _check_pointers(second, pointers, entries, Position(name, 2))
    column = _line(third, Position(name, 3), entries, "columns")
    outside = np.flatnonzero(column >= columns)
    if len(outside):
        raise _wrong(third, int(outside[0]), Position(name, 3), f"expected a column from 0 to {columns - 1}")
    row = np.repeat(np.arange(rows, dtype=np.int32), np.diff(pointers))
    return Coordinates(rows, columns, row, column.astype(np.int32), None)


def _rest(file: IO[bytes], at: Position) -> bytes:
    """What is left of a file; of an archive nobody knows how much that is before it is unpacked."""
    blocks, read = [], 0
    while block := file.read(_BLOCK):
        blocks.append(block)
        read += len(block)
        if read > MAX_BYTES:
            raise at.wrong("unpacks to more than the 2 GB that a matrix can have here")
    return b"".join(blocks)


def _sizes(file: IO[bytes], at: Position) -> tuple[int, int, int]:
    text = header_line(file, at, "rows, columns, entries")
    words = [each.strip() for each in text.split(",")]
    if len(words) != 3 or not all(each.isascii() and each.isdigit() for each in words):
        raise at.wrong(f"expected three whole numbers 'rows, columns, entries', got {show(text.strip())}")
    rows, columns, entries = (int(each) if len(each) < 20 else 10**19 for each in words)
    for side, word in ((rows, words[0]), (columns, words[1])):
        if side > MAX_MATRIX_SIDE:
            raise at.wrong(f"a matrix can have at most {MAX_MATRIX_SIDE} rows or columns here, got {show(word)}")
    if entries > MAX_NONZEROS:
        raise at.wrong(f"a matrix can have at most {MAX_NONZEROS} entries here, got {show(words[2])}")
    if entries > rows * columns:
        raise at.wrong(f"{rows} x {columns} has room for {rows * columns} entries, got {entries}")
    return rows, columns, entries


def _line(text: bytes, at: Position, count: int, what: str) -> NDArray[np.int64]:
    """The whole numbers of a line that must have `count` of them."""
    starts = _starts(text)
    if len(starts) != count:
        raise at.wrong(f"expected {count} {what}, got {len(starts)}")
    if not count:
        return np.empty(0, np.int64)
    whole_numbers(text, starts, at, "a whole number from 0")
    # numbers that are too large stay so as floating point, where whole numbers would overflow
    return np.minimum(numbers(text, count, at), float(MAX_NONZEROS + 1)).astype(np.int64)


def _check_pointers(text: bytes, pointers: NDArray[np.int64], entries: int, at: Position) -> None:
    if pointers[0] != 0:
        raise _wrong(text, 0, at, "expected the first row pointer to be 0")
    falling = np.flatnonzero(pointers[1:] < pointers[:-1])
    if len(falling):
        place = int(falling[0]) + 1
        raise _wrong(text, place, at, f"expected a row pointer of at least {pointers[place - 1]}")
    if pointers[-1] != entries:
        raise _wrong(text, len(pointers) - 1, at, f"expected the last row pointer to be {entries}, as line 1 says")


def _wrong(text: bytes, word: int, at: Position, expected: str) -> InputError:
    return misread(text, int(_starts(text)[word]), at, expected)


def _starts(text: bytes) -> NDArray[np.int64]:
    """The offsets of the words of a line."""
    return word_starts(kinds_of(text))


def same_column(name: str, first: int, second: int) -> InputError:
    """The error about two entries that stand in the same row and column; which of the entries, from 0."""
    text = f"columns number {first + 1} and {second + 1} are the same column of the same row"
    return Position(name, 3).wrong(text)
