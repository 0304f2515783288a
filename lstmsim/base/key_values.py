"""Checkers of single values: numbers, text, words, true and false. Each checker is made of a `Key`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lstmsim.base.keys import Key
from lstmsim.base.wording import listed, nearest, show

__all__ = [
    "SURROGATES",
    "Checker",
    "DataPath",
    "Note",
    "Notes",
    "Rule",
    "bounds_of",
    "is_unicode",
    "number",
    "of_type",
    "text",
    "whole",
    "word",
]


#: The keys and places in lists that lead to a value.
DataPath = tuple[str | int, ...]


class Note(NamedTuple):
    """A mistake in a value.

    path: path of the value.
    sentence: what is wrong with the value.
    hint: makes a further hint on the value; None for none.
    holder: for an unknown key, the known keys, which the sentence then names.
    shows: whether the sentence ends with the value as the file has it.
    """

    path: DataPath
    sentence: str
    hint: Callable[[Any], str] | None = None
    holder: Sequence[str] = ()
    shows: bool = True

    def told(self, value: Any, raw: str | None = None) -> str:
        """The whole sentence. value: what stands there. raw: its text in a file, if known.

        >>> Note(("ep",), "must be a whole number").told("x")
        "must be a whole number, got 'x'"
        """
        if self.holder:
            hint = nearest(str(self.path[-1]), self.holder) or f"; known keys: {listed(self.holder, 'and')}"
            return f"{self.sentence}{hint}"
        if not self.shows:
            return self.sentence
        more = self.hint(value) if self.hint else ""
        return f"{self.sentence}, got {show(value, raw)}{more}"


Notes = list[Note]
#: Takes a value, its path, and the notes, to which it adds mistakes; returns the value that an entry holds.
Checker = Callable[[Any, DataPath, Notes], Any]
#: Says what is wrong with a value of the right type; "" if nothing is wrong.
Rule = Callable[[Any], str]

SURROGATES = "must be valid Unicode text"


def bounds_of(key: Key, kind: type[int] | type[float]) -> Rule:
    """Make the rule of a number: its bounds, then the rule of its key.

    kind: type of the number.

    >>> bounds_of(Key(low=1), int)(0), bounds_of(Key(low=1), int)(1)
    ('must be at least 1', '')
    """
    low, high, above, below = (None if each is None else kind(each) for each in _ends(key))

    def rule(value: Any) -> str:
        if above is not None and not value > above:
            return f"must be greater than {above:g}"
        if low is not None and value < low:
            return f"must be at least {low}"
        if below is not None and not value < below:
            return f"must be less than {below}"
        if high is not None and value > high:
            return f"must be at most {high}"
        return key.rule(value) if key.rule else ""

    return rule


def _ends(key: Key) -> tuple[int | float | None, ...]:
    return key.low, key.high, key.above, key.below


def whole(key: Key) -> Checker:
    """Make a checker of whole numbers; true and 1.0 are no whole numbers."""
    rule = bounds_of(key, int)

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not int:
            return notes.append(Note(path, "must be a whole number", _hint_whole))
        wrong = rule(value)
        return notes.append(Note(path, wrong)) if wrong else value

    return check


def number(key: Key) -> Checker:
    """Make a checker of finite numbers; it turns a whole number into a `float`."""
    rule = bounds_of(key, float)

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        try:
            real = float(value) if type(value) in (int, float) else None
        except OverflowError:
            real = None
        if real is None:
            return notes.append(Note(path, "must be a number", _hint_number))
        wrong = rule(real) if math.isfinite(real) else "must be a finite number"
        return notes.append(Note(path, wrong)) if wrong else real

    return check


def _hint_whole(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}" if abs(value) < 1e15 else "; write it without point and exponent"
    return _hint_number(value)


def _hint_number(value: Any) -> str:
    return "; leave the quotes out" if isinstance(value, str) and value.replace(".", "", 1).isdigit() else ""


def text(key: Key) -> Checker:
    """Make a checker of text: the number of its letters, then the rule of its key."""
    low, high, rule = key.low, key.high, key.rule
    free = low is None and high is None and rule is None

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not str:
            return notes.append(Note(path, "must be text"))
        if free:
            return value
        if not is_unicode(value):
            wrong = SURROGATES
        elif low is not None and len(value) < low:
            wrong = f"must hold at least {low} letter"
        elif high is not None and len(value) > high:
            wrong = f"must hold at most {high} letters"
        else:
            wrong = rule(value) if rule else ""
        return notes.append(Note(path, wrong)) if wrong else value

    return check


def is_unicode(letters: str) -> bool:
    """Tell whether text can be written to a file: half a surrogate pair cannot.

    >>> is_unicode("é"), is_unicode("\\ud800")
    (True, False)
    """
    if letters.isascii():
        return True
    try:
        letters.encode()
    except UnicodeEncodeError:
        return False
    return True


def of_type(kind: type, sentence: str) -> Checker:
    """Make a checker that lets through values of one type only; `sentence` is the mistake of all other values."""
    return lambda value, path, notes: value if type(value) is kind else notes.append(Note(path, sentence))


def word(words: Sequence[str]) -> Checker:
    """Make a checker that lets through these words only."""
    quoted = [f"'{each}'" for each in words]
    sentence = f"must be {' or '.join([', '.join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)}"

    def hint(value: Any) -> str:
        return nearest(value, words) if isinstance(value, str) else ""

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not str:
            return notes.append(Note(path, sentence))
        if value in words:
            return value
        return notes.append(Note(path, sentence, hint) if is_unicode(value) else Note(path, SURROGATES))

    return check
