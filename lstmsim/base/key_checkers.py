"""Checkers made of annotations: a type and its `Key` become a function that walks data and notes every mistake.

No value changes its type on the way, except for a whole number where a number may have a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from lstmsim.base.key_values import (
    SURROGATES,
    Checker,
    DataPath,
    Note,
    Notes,
    bounds_of,
    is_unicode,
    number,
    of_type,
    text,
    whole,
    word,
)
from lstmsim.base.keys import Key, keys_of, unwrapped

__all__ = ["MAPPING", "checker_of", "type_checker"]


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
