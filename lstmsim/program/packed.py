"""Packed bodies of a flat program: a word of 64 bits for each operation and for each of its needs.

A target that writes millions of operations in bulk writes such bodies. Rows of `operations` and `needs` are then
prototypes, which many words share. A Program has no packed bodies: what is read of one is written out.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat import FLAT_TABLES, FlatProgram
from lstmsim.program.rows import Rows

__all__ = ["MOST_NEEDS", "check_packed", "need_word", "operation_word", "unpacked"]

#: Most needs of an operation of a packed body.
MOST_NEEDS = 255
_SHIFT, _HALF = 32, 2**31
_OPERATION, _NEED = FLAT_TABLES["operations"], FLAT_TABLES["needs"]
Ints = NDArray[np.int64]
#: One number, or many.
Whole = TypeVar("Whole", int, NDArray[np.int64])


def operation_word(row: Whole, needs: Whole | int) -> Whole:
    """The word of an operation, or those of many.

    row: its prototype, a row of `operations`.
    needs: how many words of needs follow it, at most `MOST_NEEDS`.

    >>> operation_word(3, 2)
    770
    """
    return row * (MOST_NEEDS + 1) + needs


def need_word(row: Whole, operation: Whole | int) -> Whole:
    """The word of a need, or those of many.

    row: its prototype, a row of `needs`.
    operation: place of the other operation in the body, or number of a gate of the body.

    >>> need_word(1, -2) == 2**32 + 2**31 - 2
    True
    """
    return (row << _SHIFT) + _HALF + operation


def unpacked(flat: FlatProgram, body: int) -> tuple[Rows, Ints]:
    """The rows of a packed body, written out, and the prototype of each operation (a row of `operations`).

    flat: a program that `check_packed` takes.
    body: number of the body.
    """
    words, places = _words(flat, body)
    prototypes, counts = words[places] >> 8, words[places] & MOST_NEEDS
    operations = flat.table("operations")[prototypes]
    operations[:, _OPERATION.place("first_need")] = np.cumsum(counts) - counts
    operations[:, _OPERATION.place("needs")] = counts
    others = np.delete(words, places)
    needs = flat.table("needs")[others >> _SHIFT]
    needs[:, _NEED.place("operation")] = _others(others)
    return Rows(operations.ravel(), needs.ravel()), prototypes


def check_packed(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first packed body whose words name what is not there, or what it cannot have.

    A packed body has no buffers and no extra cycles. It waits for its own operations, each of which comes earlier in
    the same iteration, and for gates.

    flat: a program whose bodies name rows of `words` that exist.
    """
    for body in np.flatnonzero(flat.column("bodies", "first_word") >= 0).tolist():
        first, own = flat.column("bodies", "first_operation")[body], flat.column("bodies", "operations")[body]
        if first != -1:
            raise ProgramError(f"table bodies, row {body}: first_operation is {first}, not -1, but the body is packed")
        words, places = _words(flat, body)
        if len(places) != own:
            raise ProgramError(f"table bodies, row {body}: operations is {own}, but its words have {len(places)}")
        _check_words(flat, int(flat.column("bodies", "first_word")[body]), words, places)


def _words(flat: FlatProgram, body: int) -> tuple[Ints, Ints]:
    """The words of a packed body, and which of them are operations."""
    first, count = (int(flat.column("bodies", name)[body]) for name in ("first_word", "words"))
    words = flat.column("words", "word")[first : first + count]
    places, at, needs = [], 0, (words & MOST_NEEDS).tolist()
    while at < count:
        places.append(at)
        at += 1 + needs[at]
    if at > count:
        word = words[places[-1]]
        raise ProgramError(f"table words, row {first + places[-1]}: word is {word}, and its needs go beyond the body")
    return words, np.array(places, dtype=np.int64)


def _check_words(flat: FlatProgram, first: int, words: Ints, places: Ints) -> None:
    def refuse(wrong: NDArray[np.bool_], at: Ints, text: str) -> None:
        if wrong.any():
            place = int(at[np.argmax(wrong)])
            raise ProgramError(f"table words, row {first + place}: word is {words[place]}, {text}")

    rows = words[places] >> 8
    refuse((rows < 0) | (rows >= len(flat.table("operations"))), places, "of an operation that does not exist")
    for column in ("takes", "frees", "extra"):
        refuse(flat.column("operations", column)[rows] != -1, places, f"of an operation with {column}")
    own = np.repeat(np.arange(len(places)), words[places] & MOST_NEEDS)
    at = np.delete(np.arange(len(words)), places)
    rows = words[at] >> _SHIFT
    refuse((rows < 0) | (rows >= len(flat.table("needs"))), at, "of a need that does not exist")
    refuse(flat.column("needs", "phase")[rows] != -1, at, "of a need with a phase")
    refuse(flat.column("needs", "lag")[rows] != 0, at, "of a need with a lag")
    operations = _others(words[at])
    late = (flat.column("needs", "gate")[rows] == 0) & ((operations < 0) | (operations >= own))
    refuse(late, at, "of a need of an operation that comes no earlier")


def _others(words: Ints) -> Ints:
    """What stands in place of the `operation` of needs."""
    numbers: Ints = (words & (2**_SHIFT - 1)) - _HALF
    return numbers
