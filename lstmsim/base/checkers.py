"""Checkers: a type and its `Key` become a function that walks data and notes every mistake.

No value changes its type on the way, except for a whole number where a number may have a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from lstmsim.base.keys import Key, keys_of, unwrapped
from lstmsim.base.wording import listed, nearest, show

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


_NO_KEY = Key()
MAPPING = "must be a mapping of keys to values"
#: Checkers by their description, each made when it is first needed, because a file needs only a few checkers.
_MADE: dict[type, Checker] = {}


def checker_of(description: type) -> Checker:
    """Give the checker of a mapping with the keys of a description. It makes a `description` of a right mapping.

    description: a class whose fields carry keys (`lstmsim.base.keys`).
    `TypeError` if a field has a type that no checker knows.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel")]
    >>> notes = []
    >>> checker_of(Core)({"ep": 4}, (), notes).ep, checker_of(Core)({"ep": True}, (), notes), notes[0].sentence
    (4, None, 'must be a whole number')
    """
    if description not in _MADE:
        _MADE[description] = _description(description)
    return _MADE[description]


def type_checker(kind: Any, key: Key) -> Checker:
    """What checks that a value is of a type, and one of the words of its key; numbers may be of any size.

    >>> notes = []
    >>> type_checker(int, Key(low=1))(0, (), notes), type_checker(int, Key(low=1))("x", (), notes), len(notes)
    (0, None, 1)
    """
    return _checker(kind, Key(choices=key.choices))


def _description(description: type) -> Checker:
    keys = keys_of(description)
    fields = [(name, _checker(each.type, each.key), each.default is MISSING) for name, each in keys.items()]
    meanings = {name: f" ({each.key.meaning})" if each.key.meaning else "" for name, each in keys.items()}
    names, closed = list(keys), not getattr(description, "any_keys", False)

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not dict:
            return notes.append(Note(path, MAPPING))
        given, before = {}, len(notes)
        for name, checker, required in fields:
            if name in value:
                given[name] = checker(value[name], (*path, name), notes)
            elif required:
                sentence = f"required key is missing{meanings[name]}"
                notes.append(Note((*path, name), sentence, shows=False))
        if closed and len(given) < len(value):
            unknown = [key for key in value if key not in keys]
            if not all(is_unicode(key) for key in unknown):
                del notes[before:]
                return notes.append(Note(path, SURROGATES))
            notes.extend(Note((*path, key), "unknown key", holder=names) for key in unknown)
        return description(**given) if len(notes) == before else None

    return check


def _checker(kind: Any, key: Key) -> Checker:
    """Make the checker of values of a type; `key` bounds the values. `TypeError` for a type without a checker."""
    origin = get_origin(kind)
    if kind is int:
        return whole(key)
    if kind is float:
        return number(key)
    if kind is str and not key.choices:
        return text(key)
    if kind is bool:
        return of_type(bool, "must be true or false")
    if origin is Literal or kind is str:
        return word(key.choices or get_args(kind))
    if kind is Any:
        return lambda value, path, notes: value
    if origin is tuple and get_args(kind)[1] is not Ellipsis:
        size = len(get_args(kind))
        return _list(tuple, *_inner(Annotated[get_args(kind)[0], key]), Key(low=size, high=size))
    if origin in (list, tuple, Sequence):
        return _list(list if origin is list else tuple, *_inner(get_args(kind)[0]), key)
    if origin in (dict, Mapping):
        return _mapping(get_args(kind)[0], get_args(kind)[1], key)
    if origin in (Union, UnionType):
        return _union([each for each in get_args(kind) if each is not NoneType], NoneType in get_args(kind), key)
    if isinstance(kind, type):
        return _lazy(kind)
    raise TypeError(f"no check for values of type {kind}")


def _lazy(kind: type) -> Checker:
    """Give a checker of a description that is made when the first value comes."""
    return lambda value, path, notes: checker_of(kind)(value, path, notes)


def _inner(hint: Any) -> tuple[Any, Key]:
    kind, key = unwrapped(hint)
    return kind, key or _NO_KEY


def _union(members: list[Any], optional: bool, key: Key) -> Checker:
    """Make the checker of a union: lists go to its list, mappings to its mapping, other values to its first member."""
    if len(members) == 1:
        checkers = dict.fromkeys((list, dict, None), _checker(members[0], key))
    else:
        pairs = [(_inner(each), each) for each in members]
        first = pairs[0][0]
        checkers = {None: _checker(*first)}
        for (kind, own), _ in pairs:
            origin = get_origin(kind) or kind
            if origin in (list, tuple, Sequence):
                checkers[list] = _checker(kind, own)
            elif origin in (dict, Mapping) or origin not in (int, float, str, bool, Literal):
                checkers[dict] = _checker(kind, own)
    other = checkers[None]

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if value is None and optional:
            return None
        return checkers.get(type(value), other)(value, path, notes)

    return check


def _wrong_size(key: Key, noun: str, value: Any) -> str:
    """Say what is wrong with the number of entries; empty if it is right."""
    if key.low is not None and len(value) < key.low:
        return f"must be a {noun} of at least {key.low} {_plural(key.low)}, got {len(value)}"
    if key.high is not None and len(value) > key.high:
        return f"must be a {noun} of at most {key.high} {_plural(key.high)}, got {len(value)}"
    return ""


def _plural(number: int | float) -> str:
    return "entry" if number == 1 else "entries"


def _list(kind: type[list[Any]] | type[tuple[Any, ...]], item: Any, own: Key, key: Key) -> Checker:
    checker, fast = _checker(item, own), _plain_numbers(item, own)

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not list:
            return notes.append(Note(path, "must be a list"))
        size, before = _wrong_size(key, "list", value), len(notes)
        checked: list[Any] | None = value
        # the entries of a list that is too long are not checked
        if not size or len(value) < (key.low or 0):
            checked = fast(value)
            if checked is None:
                checked = [checker(each, (*path, index), notes) for index, each in enumerate(value)]
            if len(notes) > before:
                return None
        return (
            notes.append(Note(path, size, shows=False)) if size else checked if kind is list else tuple(checked or ())
        )

    return check


def _plain_numbers(item: Any, key: Key) -> Callable[[list[Any]], list[Any] | None]:
    """Make a check of a whole list of numbers, as there may be a million. It gives None for a list with mistakes."""
    if item not in (int, float) or key.rule is not None:
        return lambda value: None
    rule, types = bounds_of(key, item), {int} if item is int else {int, float}

    def fast(value: list[Any]) -> list[Any] | None:
        if not value or not set(map(type, value)) <= types:
            return None
        if item is int:
            return None if rule(min(value)) or rule(max(value)) else value
        try:
            numbers = list(map(float, value))
        except OverflowError:
            return None
        # a nan or an infinite number makes the sum nan or infinite
        return None if not math.isfinite(sum(numbers)) or rule(min(numbers)) or rule(max(numbers)) else numbers

    return fast


def _mapping(key_hint: Any, value_hint: Any, key: Key) -> Checker:
    of_key, of_value = _checker(*_inner(key_hint)), _checker(*_inner(value_hint))

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not dict:
            return notes.append(Note(path, MAPPING))
        before, checked = len(notes), {}
        for name, each in value.items():
            place = (*path, name)
            of_key(name, place, notes)
            checked[name] = of_value(each, place, notes)
        if len(notes) > before:
            return None
        wrong = _wrong_size(key, "mapping", value)
        return notes.append(Note(path, wrong, shows=False)) if wrong else checked

    return check
