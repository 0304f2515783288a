"""Keys: what a frozen description says of each of its numbers, once for files, checks, help and sweeps.

A field of a description carries its key in its type: `ep: Annotated[int, Key("elements in parallel", low=1)]`. Its
name, type and default are the field's own. Whoever reads files, makes help texts or varies numbers asks `keys_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Optional, Union, get_args, get_origin, get_type_hints

__all__ = ["Described", "Key", "keys_of", "unwrapped"]


@dataclass(frozen=True, slots=True)
class Key:
    """What one key means and which values it may have.

    meaning: for people, a few words that can stand in brackets behind the key.
    unit: of a number, as in `cycles`; empty for a count or a word.
    low, high: smallest and largest number (None: no bound); of text the number of its letters, of a list or a mapping
    the number of its entries.
    above, below: a bound of a number that the number itself must not have.
    choices: the words that may stand there; empty for anything of the type.
    rule: says what is wrong with a value within the bounds, "" if nothing is; as "must be ...".
    source: where the default comes from, or "assumption, because ...".
    vary: whether a sweep may put numbers there without reading the file anew.

    >>> Key("elements in parallel", low=1).low
    1
    """

    meaning: str = ""
    unit: str = ""
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[str, ...] = ()
    source: str = ""
    vary: bool = False
    above: int | float | None = None
    below: int | float | None = None
    rule: Callable[[Any], str] | None = None


_NAMES = Key.__slots__
_PLAIN = Key()
#: The keys of descriptions that have been asked for: making them takes longer than reading a file.
_KEYS: dict[type, Mapping[str, Described]] = {}


@dataclass(frozen=True, slots=True)
class Described:
    """A field of a description with its key.

    name: as in a file. type: without the key. default: `MISSING` where the key is required. key: what it means.
    """

    name: str
    type: Any
    default: Any
    key: Key


def keys_of(description: type) -> Mapping[str, Described]:
    """The keys that a description may have in a file, by name, in the order of the class.

    Of a dataclass these are the fields that carry a `Key`; a class of any other kind has them for all its fields, with
    defaults that are attributes of the class. Where keys are nested, the outer one adds to the inner one.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel", low=1)]
    ...     name: str = ""
    >>> list(keys_of(Core)), keys_of(Core)["ep"].key.low
    (['ep'], 1)
    """
    if description not in _KEYS:
        _KEYS[description] = MappingProxyType(_described(description))
    return _KEYS[description]


def _described(description: type) -> dict[str, Described]:
    fields = getattr(description, "__dataclass_fields__", None)
    keys: dict[str, Described] = {}
    for name, hint in get_type_hints(description, include_extras=True).items():
        kind, key = unwrapped(hint)
        if get_origin(kind) is ClassVar:
            continue
        if fields is None:
            keys[name] = Described(name, kind, getattr(description, name, MISSING), key or _PLAIN)
        elif key is not None and name in fields:
            each = fields[name]
            default = each.default if each.default_factory is MISSING else each.default_factory()
            keys[name] = Described(name, kind, default, key)
    return keys


def unwrapped(hint: Any) -> tuple[Any, Key | None]:
    """A type without its keys, and these as one; None if it has none.

    What may be nothing has the key of what it is otherwise.

    >>> Size = Annotated[int, Key(low=1)]
    >>> unwrapped(Annotated[Size, Key("rows")])[1].low, unwrapped(Size | None)[0]
    (1, typing.Optional[int])
    """
    kind, key = hint, None
    if get_origin(hint) is Annotated:
        kind, *said = get_args(hint)
        for each in said:
            if isinstance(each, Key):
                key = each if key is None else _both(key, each)
    if get_origin(kind) in (Union, UnionType):
        members = [each for each in get_args(kind) if each is not NoneType]
        if len(members) == 1:
            inner, own = unwrapped(members[0])
            if own is not None:
                kind, key = Optional[inner], own if key is None else _both(own, key)  # noqa: UP045 - a value, no hint
    return kind, key


def _both(inner: Key, outer: Key) -> Key:
    """A key that says what the outer one says, and of the rest what the inner one says."""
    said = {name: getattr(outer, name) for name in _NAMES if getattr(outer, name) != getattr(_PLAIN, name)}
    return Key(**{**{name: getattr(inner, name) for name in _NAMES}, **said})
