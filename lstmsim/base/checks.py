"""Checks: a type and its `Key` become a function that walks data and notes every mistake.

`checked` makes a description check its arguments so, with the sentences that a file gets. No value changes its type on
the way, except for a whole number where a fraction may stand, and NumPy's numbers. Bounds of a description are judged
when a whole chip is made (`mistakes_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from math import inf
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Described, Key, keys_of, once, unwrapped
from lstmsim.base.wording import dotted, listed, nearest, show

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

    def message(self, value: Any, raw: str | None = None) -> str:
        """The whole sentence. value: what stands there. raw: its text in a file, if known.

        >>> Note(("ep",), "must be a whole number").message("x")
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

SURROGATES = "must be valid Unicode text"


def whole(key: Key) -> Checker:
    """Make a checker of whole numbers; true and 1.0 are no whole numbers."""

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        if type(value) is not int:
            return notes.append(Note(path, "must be a whole number", _hint_whole))
        wrong = key.wrong(value)
        return notes.append(Note(path, wrong)) if wrong else value

    return check


def number(key: Key) -> Checker:
    """Make a checker of finite numbers; it turns a whole number into a `float`."""

    def check(value: Any, path: DataPath, notes: Notes) -> Any:
        try:
            real = float(value) if type(value) in (int, float) else None
        except OverflowError:
            real = None
        if real is None:
            return notes.append(Note(path, "must be a number", _hint_number))
        wrong = key.wrong(real)
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


def printable(name: str) -> str:
    """Say what is wrong with a text as a name; empty if nothing is."""
    return "" if name.isprintable() and name == name.strip() else "must be printable text without spaces around it"


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


MAPPING = "must be a mapping of keys to values"


@once
def checker_of(description: type) -> Checker:
    """Give the checker of a mapping with the keys of a description. It makes a `description` of a right mapping.

    `TypeError` if a field has a type that no checker knows.
    """
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


def type_checker(kind: Any, key: Key) -> Checker:
    """What checks that a value is of a type, and one of the words of its key; numbers may be of any size."""
    return _checker(kind, Key(choices=key.choices))


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
        sentence = "must be true or false"
        return lambda value, path, notes: value if type(value) is bool else notes.append(Note(path, sentence))
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
        # made when the first value comes
        return lambda value, path, notes: checker_of(kind)(value, path, notes)
    raise TypeError(f"no check for values of type {kind}")


def _inner(hint: Any) -> tuple[Any, Key]:
    kind, key = unwrapped(hint)
    return kind, key or _PLAIN


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
    wrong = Key(low=key.low, high=key.high).wrong(len(value))
    entries = "entry" if wrong.endswith(" 1") else "entries"
    return f"{wrong.replace('be', f'be a {noun} of', 1)} {entries}, got {len(value)}" if wrong else ""


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
    rule, types = key.wrong, {int} if item is int else {int, float}

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


T = TypeVar("T")
#: Completes the arguments, by name, with what follows from others.
Follows = Callable[[dict[str, Any]], None]

#: Most lists of types that are kept for a class.
_MOST_KEPT = 1000
_PLAIN = Key()


class _Field(NamedTuple):
    """A field of a description: its name, the types of its value or entries, its key, the class of its descriptions."""

    name: str
    types: frozenset[type]
    each: Described
    part: type | None
    required: bool
    mapping: bool
    #: how many entries its tuple has; None for any number
    size: int | None

    def fits(self, value: Any) -> bool:
        """Whether a value is of the field's type as it is."""
        kind = type(value)
        if value is None:
            return self.each.may_be_none
        if self.mapping:
            return kind is dict and all(type(each) is str for pair in value.items() for each in pair)
        if self.each.several:
            right = kind is tuple and all(type(each) in self.types for each in value)
            return right and (len(value) == self.size if self.size is not None else not self.empty(value))
        return kind in self.types and (kind is not float or -inf < value < inf)

    @property
    def deep(self) -> bool:
        """Whether the type of a value does not say all: numbers that may be none, tuples, mappings."""
        return self.mapping or self.each.several or float in self.types

    def empty(self, value: Any) -> bool:
        """Whether a tuple holds nothing although it must: parts without a key are what a description is made of."""
        return not value and self.each.key is _PLAIN


def _fields(description: type) -> dict[str, _Field]:
    made: dict[str, _Field] = {}
    hints = get_type_hints(description, include_extras=True)
    for own in fields(description):
        kind, key = unwrapped(hints[own.name])
        required = own.default is MISSING and own.default_factory is MISSING
        made[own.name] = _field(own.name, kind, key or _PLAIN, required)
    return made


def _field(name: str, kind: Any, key: Key, required: bool) -> _Field:
    each = Described(name, kind, MISSING, key)
    inner, part = each.kind, each.kind if is_dataclass(each.kind) else None
    types = {float, int} if inner is float else {inner}
    row = next((one for one in (kind, *get_args(kind)) if get_origin(one) is tuple), None)
    size = None if row is None or get_args(row)[-1] is Ellipsis else len(get_args(row))
    mapping = get_origin(inner) is Mapping
    return _Field(name, frozenset(types), each, part, required, mapping, size)  # type: ignore[arg-type]


def checked(word: str, follows: Follows | None = None) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass check the names and types of its arguments; `InputError` with every mistake.

    word: what a sentence calls such a description; behind it stands its name, if it has one.
    follows: adds the arguments that were left out and follow from others.
    """

    def decorate(description: type[T]) -> type[T]:
        make: Any = description.__init__
        kept: set[tuple[Any, ...]] = set()
        known: dict[str, _Field] = {}
        #: fields whose values say more than their type does
        deep: list[str] = []

        @wraps(make)
        def __init__(self: Any, *values: Any, **named: Any) -> None:
            if not known:
                known.update(_fields(description))
                deep.extend(name for name, each in known.items() if each.deep)
            if values:
                first = dict(zip(known, values, strict=False))
                if len(first) < len(values) or not first.keys().isdisjoint(named):
                    make(self, *values, **named)  # raises what Python says to such a call
                named = {**first, **named}
            types: tuple[Any, ...] = (*named, *map(type, named.values()))
            if deep:
                types += tuple(map(_shape, map(named.get, deep)))
            if types not in kept:
                there = all(name in named for name, each in known.items() if each.required)
                # nothing is wrong, left out or to be turned into another type
                if there and all(name in known and known[name].fits(value) for name, value in named.items()):
                    if len(kept) >= _MOST_KEPT:
                        kept.clear()
                    kept.add(types)
                else:
                    named = _mended(word, known, named, follows)
            make(self, **named)

        description.__init__ = __init__  # type: ignore[method-assign]
        return description

    return decorate


def _shape(value: Any) -> Any:
    """What a value's type does not say of it."""
    kind = type(value)
    if kind is float:
        return -inf < value < inf
    if kind is tuple:
        return len(value), frozenset(map(type, value))
    return (frozenset(map(type, value)), frozenset(map(type, value.values()))) if kind is dict else None


def _mended(
    word: str, known: Mapping[str, _Field], named: Mapping[str, Any], follows: Follows | None
) -> dict[str, Any]:
    """The arguments as the types of the fields; `InputError` with every mistake."""
    # imported here, because hardly a description is wrong

    name = named.get("name")
    place = f"{word} {name}" if isinstance(name, str) and name else word
    wrong: list[Mistake] = []
    made: dict[str, Any] = {}
    for key, value in named.items():
        if key not in known:
            wrong.append(
                Mistake(f"{place}: {dotted([key])}", Note((key,), "unknown key", holder=list(known)).message(None))
            )
        elif value is not None or not known[key].each.key.follows:
            mistakes: list[tuple[str, str]] = []
            made[key] = _value(known[key], value, mistakes)
            wrong += [Mistake(f"{place}: {path}", sentence) for path, sentence in mistakes]
    if follows is not None and not wrong:
        follows(made)
    for key, each in known.items():
        if each.required and key not in named and not (follows is not None and each.each.key.follows):
            meaning = f" ({each.each.key.meaning})" if each.each.key.meaning else ""
            wrong.append(Mistake(f"{place}: {key}", f"required key is missing{meaning}"))
    refuse(wrong)
    return made


def _plain(value: Any) -> Any:
    """A number or text of NumPy, or of a class derived from a plain one, as the plain one; other values as they are."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    for kind in (str, float, int):
        if isinstance(value, kind) and type(value) not in (kind, bool):
            return kind(value)
    return value


def _value(field: _Field, value: Any, mistakes: list[tuple[str, str]]) -> Any:
    """The value as the field's type; what is wrong is added to the mistakes, as (path, sentence) pairs."""
    value = _plain(value)
    if field.fits(value):
        return value
    if field.part is None:
        return _leaf(field, value, mistakes)
    if not field.each.several:
        return _part(field.part, value, field.name, mistakes)
    key = field.each.key.named_by
    if key and isinstance(value, Mapping):
        named = {name: {key: name, **part} if isinstance(part, Mapping) else part for name, part in value.items()}
        return tuple(_part(field.part, part, f"{field.name}.{name}", mistakes) for name, part in named.items())
    if not isinstance(value, list | tuple):
        mistakes.append((field.name, Note((), MAPPING if key else "must be a list").message(value)))
        return None
    if field.empty(value):
        mistakes.append((field.name, "must be a list of at least 1 entry, got 0"))
    return tuple(_part(field.part, each, f"{field.name}.{place}", mistakes) for place, each in enumerate(value))


def _part(description: type, value: Any, path: str, mistakes: list[tuple[str, str]]) -> Any:
    """A description inside another one: an object of its class, or a mapping that it is made of."""
    if isinstance(value, description):
        return value
    if not isinstance(value, Mapping):
        other = f"must be a {description.__name__}" if is_dataclass(value) else MAPPING
        mistakes.append((path, Note((), other).message(value)))
        return None
    try:
        return description(**{str(key): each for key, each in value.items()})
    except InputError as error:
        # the place begins with the word for the description
        mistakes += [(f"{path}.{each.location.partition(': ')[2]}", each.sentence) for each in error.mistakes]
        return None


def _leaf(field: _Field, value: Any, mistakes: list[tuple[str, str]]) -> Any:
    """A number, a text, or a list or mapping of such."""

    data = [_plain(each) for each in value] if isinstance(value, list | tuple) else value
    data = dict(data) if isinstance(data, Mapping) else data
    notes: Notes = []
    made = type_checker(field.each.type, field.each.key)(data, (), notes)
    for note in notes:
        at: Any = data
        for step in note.path:
            at = at[step]
        mistakes.append((dotted((field.name, *note.path)), note.message(at)))
    # a whole number stays one where a fraction may stand: 260 MHz are not 260.0
    return value if type(made) is float and type(value) is int else made


def of_kind(name: str, kind: Any, value: Any) -> Any:
    """An argument as the type that it must have: numbers of NumPy become plain ones; `InputError` for another type.

    >>> of_kind("npe", int, "4096")
    Traceback (most recent call last):
    lstmsim.InputError: npe: must be a whole number, got '4096'; leave the quotes out
    """
    mistakes: list[tuple[str, str]] = []
    made = _value(_field(name, kind, _PLAIN, required=True), value, mistakes)
    if mistakes:
        raise InputError([Mistake(path, sentence) for path, sentence in mistakes])
    return made
