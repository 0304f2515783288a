"""Text of numbers, read in bulk: which words stand where, whether they are numbers, and what is wrong at a place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import show

__all__ = [
    "LONGEST_LINE",
    "Position",
    "header_line",
    "kinds_of",
    "misread",
    "numbers",
    "pieces",
    "whole_numbers",
    "word_starts",
    "words_of_lines",
]

#: Bytes that are read at once. A line of entries that is longer is no line of entries.
_PIECE = 1 << 23
LONGEST_LINE = 1 << 16
_DIGITS, _OTHER = 2, 3
#: Kind of each byte: 0 a space, 1 the end of a line, 2 a digit, 3 anything else.
_KINDS = np.full(256, _OTHER, np.uint8)
_KINDS[[9, 11, 12, 13, 32]] = 0
_KINDS[10] = 1
_KINDS[48:58] = _DIGITS


@record
class Position:
    """A place in a text file.

    name: the file.
    line: from 1; 0: the file as a whole.
    column: from 1; 0: the line as a whole.
    """

    name: str
    line: int = 0
    column: int = 0

    def wrong(self, sentence: str) -> InputError:
        """The error with a sentence at this place.

        >>> print(Position("a.mtx", 3, 7).wrong("is wrong"))
        a.mtx:3:7: is wrong
        """
        numbers = [str(each) for each in (self.line, self.column) if each]
        return InputError(Mistake(":".join([self.name, *numbers]), sentence))


def header_line(file: IO[bytes], at: Position, what: str) -> str:
    """Read one line of a header; empty at the end of the file.

    at: where the line stands.
    what: what is expected there, in words.

    `InputError` for a line that is too long or no text.

    >>> import io
    >>> header_line(io.BytesIO(b"3 4 5\\nrest"), Position("a.mtx", 2), "sizes")
    '3 4 5\\n'
    """
    line = file.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise at.wrong(f"has more than {LONGEST_LINE} bytes, expected {what}")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise at.wrong(f"is no text, expected {what}") from None
    return text


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Read the rest of a file in pieces of whole lines, each of some MB.

    >>> import io
    >>> list(pieces(io.BytesIO(b"1 2\\n3 4")))
    [b'1 2\\n', b'3 4']
    """
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
    """The kind of each byte: 0 a space, 1 the end of a line, 2 a digit, 3 anything else.

    >>> kinds_of(b"12 x").tolist()
    [2, 2, 0, 3]
    """
    return _KINDS[np.frombuffer(text, np.uint8)]


def word_starts(kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The offsets at which words begin.

    >>> word_starts(kinds_of(b"12 x")).tolist()
    [0, 3]
    """
    word = kinds >= _DIGITS
    first = word.copy()
    first[1:] &= ~word[:-1]
    return np.flatnonzero(first)


def words_of_lines(text: bytes, width: int, at: Position, what: str) -> NDArray[np.int64]:
    """Find where the words of a text begin, if every line has `width` of them. Lines without words are passed over.

    at: the place of the text's first line.
    what: what a line holds, in words.

    The answer is the offsets of the words, shape (lines, width). `InputError` with the line that has more or fewer.

    >>> words_of_lines(b"1 2\\n 3 4\\n", 2, Position("a.mtx", 3), "row and column").tolist()
    [[0, 2], [5, 7]]
    """
    kinds = kinds_of(text)
    starts = word_starts(kinds)
    ends = np.flatnonzero(kinds == 1)
    # the usual case needs no search: as many lines as groups of words, and each line ends behind its own group
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
    """`InputError` at the first of some words that is not made of digits alone.

    starts: offsets of the words in the text, ascending in the order of their elements.
    at: the place of the text's first line.
    what: what such a word is, in words.
    """
    kinds = kinds_of(text)
    odd = np.flatnonzero(kinds > _DIGITS)
    flat = starts.ravel()
    if not len(odd) or not len(flat):
        return
    # the ends of the words: the first space or end of a line behind each
    gap = kinds < _DIGITS
    ends = np.flatnonzero(gap[1:] & ~gap[:-1]) + 1
    ends = np.append(ends, len(text))[np.searchsorted(ends, flat)]
    wrong = np.flatnonzero(np.searchsorted(odd, flat) != np.searchsorted(odd, ends))
    if len(wrong):
        raise misread(text, int(flat[wrong[0]]), at, f"expected {what}")


def numbers(text: bytes, count: int, at: Position) -> NDArray[np.float64]:
    """Read every word of a text as a number.

    count: how many words there are.
    at: the place of the text's first line.

    `InputError` at the first word that is no finite number.

    >>> numbers(b"1 2.5\\n", 2, Position("a.mtx", 3)).tolist()
    [1.0, 2.5]
    """
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
    """The error about one word of a text.

    offset: where the word begins.
    at: the place of the text's first line.
    expected: what was expected, as the beginning of a sentence.

    >>> print(misread(b"1 x\\n", 2, Position("a.mtx", 3), "expected a number"))
    a.mtx:3:3: expected a number, got 'x'
    """
    line = text.count(b"\n", 0, offset)
    column = offset - (text.rfind(b"\n", 0, offset) + 1) + 1
    word = text[offset : offset + 80].split()[0].decode("utf-8", "replace")
    return Position(at.name, at.line + line, column).wrong(f"{expected}, got {show(word)}")
