"""Descriptions that check the types of what they are made of, by the keys and annotations of their fields.

A value of a wrong type is told in the sentence that a file gets. Numbers of NumPy and whole lists become the types of
the fields, and mappings become descriptions. Bounds are judged when a whole chip is made (`mistakes_of`).

A sweep makes descriptions by the ten thousand: the names and types of arguments that were right once are kept, and the
same ones are not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from math import inf
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Described, Key, unwrapped

T = TypeVar("T")
#: Completes the arguments, by name, with what follows from others.
Follows = Callable[[dict[str, Any]], None]

#: Most lists of types that are kept for a class.
_MOST_KEPT = 1000
_PLAIN = Key()


class _Field(NamedTuple):
    """A field of a description.

    name: its name.
    types: the types that its value may have; of a tuple, the types of its entries.
    each: the field as its key describes it.
    part: the class of the description that it holds, alone or in a tuple; None if it holds none.
    required: whether it has no default.
    mapping: whether it is a mapping of texts to texts.
    size: how many entries its tuple has; None for any number.
    """

    name: str
    types: frozenset[type]
    each: Described
    part: type | None
    required: bool
    mapping: bool
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
    inner = each.kind
    if each.may_be_none and not each.several:
        (inner,) = (member for member in get_args(kind) if member is not type(None))
    part = inner if is_dataclass(inner) else None
    types = {float, int} if inner is float else {inner}
    row = next((one for one in (kind, *get_args(kind)) if get_origin(one) is tuple), None)
    size = None if row is None or get_args(row)[-1] is Ellipsis else len(get_args(row))
    mapping = get_origin(inner) is Mapping
    return _Field(name, frozenset(types), each, part, required, mapping, size)  # type: ignore[arg-type]


def checked(word: str, follows: Follows | None = None) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass check the names and types of what it is made of.

    word: what a sentence calls such a description; behind it stands its name, if it has one.
    follows: adds the arguments that were left out and follow from others.

    What the class raises is an `InputError` with every mistake.

    >>> from dataclasses import dataclass
    >>> @checked("core")
    ... @dataclass(frozen=True)
    ... class Core:
    ...     ep: int
    >>> Core(ep=4)
    Core(ep=4)
    >>> Core(ep="4")
    Traceback (most recent call last):
    lstmsim.InputError: core: ep: must be a whole number, got '4'; leave the quotes out
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
                if _all_right(known, named):
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


def _all_right(known: Mapping[str, _Field], named: Mapping[str, Any]) -> bool:
    """Whether nothing is wrong, left out or to be turned into another type."""
    if not all(name in named for name, each in known.items() if each.required):
        return False
    return all(name in known and known[name].fits(value) for name, value in named.items())


def _mended(
    word: str, known: Mapping[str, _Field], named: Mapping[str, Any], follows: Follows | None
) -> dict[str, Any]:
    """The arguments as the types of the fields; `InputError` with every mistake."""
    # imported here, because hardly a description is wrong
    from lstmsim.base.checkers import Note
    from lstmsim.base.wording import dotted

    name = named.get("name")
    place = f"{word} {name}" if isinstance(name, str) and name else word
    wrong: list[Mistake] = []
    made: dict[str, Any] = {}
    for key, value in named.items():
        if key not in known:
            wrong.append(
                Mistake(f"{place}: {dotted([key])}", Note((key,), "unknown key", holder=list(known)).told(None))
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
    if wrong:
        raise InputError(wrong)
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
        mistakes.append(_told(field.name, "must be a mapping of keys to values" if key else "must be a list", value))
        return None
    if field.empty(value):
        mistakes.append((field.name, "must be a list of at least 1 entry, got 0"))
    return tuple(_part(field.part, each, f"{field.name}.{place}", mistakes) for place, each in enumerate(value))


def _told(path: str, sentence: str, value: Any) -> tuple[str, str]:
    from lstmsim.base.checkers import Note

    return path, Note((), sentence).told(value)


def _part(description: type, value: Any, path: str, mistakes: list[tuple[str, str]]) -> Any:
    """A description inside another one: an object of its class, or a mapping that it is made of."""
    if isinstance(value, description):
        return value
    if not isinstance(value, Mapping):
        other = f"must be a {description.__name__}" if is_dataclass(value) else "must be a mapping of keys to values"
        mistakes.append(_told(path, other, value))
        return None
    try:
        return description(**{str(key): each for key, each in value.items()})
    except InputError as error:
        # the place begins with the word for the description
        mistakes += [(f"{path}.{each.place.partition(': ')[2]}", each.sentence) for each in error.mistakes]
        return None


def _leaf(field: _Field, value: Any, mistakes: list[tuple[str, str]]) -> Any:
    """A number, a text, or a list or mapping of such."""
    from lstmsim.base.checkers import Notes, type_checker
    from lstmsim.base.wording import dotted

    data = [_plain(each) for each in value] if isinstance(value, list | tuple) else value
    data = dict(data) if isinstance(data, Mapping) else data
    notes: Notes = []
    made = type_checker(field.each.type, field.each.key)(data, (), notes)
    for note in notes:
        at: Any = data
        for step in note.path:
            at = at[step]
        mistakes.append((dotted((field.name, *note.path)), note.told(at)))
    # a whole number stays one where a fraction may stand: 260 MHz are not 260.0
    return value if type(made) is float and type(value) is int else made


def of_kind(name: str, kind: Any, value: Any) -> Any:
    """An argument as the type that it must have: numbers of NumPy become plain ones.

    name: the argument's name, the place in a sentence.
    kind: its type, as an annotation.

    `InputError` if it is of another type.

    >>> of_kind("npe", int, 4096)
    4096
    >>> of_kind("npe", int, "4096")
    Traceback (most recent call last):
    lstmsim.InputError: npe: must be a whole number, got '4096'; leave the quotes out
    """
    mistakes: list[tuple[str, str]] = []
    made = _value(_field(name, kind, _PLAIN, required=True), value, mistakes)
    if mistakes:
        raise InputError([Mistake(path, sentence) for path, sentence in mistakes])
    return made
