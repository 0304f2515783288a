"""Keys: what a frozen description says of each of its numbers, once for files, checks, help and sweeps.

A field of a description carries its key in its type: `ep: Annotated[int, Key("elements in parallel", low=1)]`. Its
name, type and default are the field's own. Whoever reads files, makes help texts or varies numbers asks `keys_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

__all__ = ["Described", "Key", "keys_of"]


@dataclass(frozen=True, slots=True)
class Key:
    """What one key means and which values it may have.

    meaning: for people, a few words that can stand in brackets behind the key.
    unit: of a number, as in `cycles`; empty for a count or a word.
    low, high: smallest and largest number (None: no bound); of a list or a mapping the number of its entries.
    choices: the words that may stand there; empty for anything of the type.
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


@dataclass(frozen=True, slots=True)
class Described:
    """A field of a description with its key.

    name: as in a file. type: without the key. default: `MISSING` where the key is required. key: what it means.
    """

    name: str
    type: Any
    default: Any
    key: Key


@cache
def keys_of(description: type) -> Mapping[str, Described]:
    """The fields of a frozen dataclass that carry a `Key`, by name, in the order of the class.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel", low=1)]
    ...     name: str = ""
    >>> list(keys_of(Core)), keys_of(Core)["ep"].key.low
    (['ep'], 1)
    """
    hints = get_type_hints(description, include_extras=True)
    keys = {}
    for each in fields(description):
        if get_origin(hints[each.name]) is not Annotated:
            continue
        kind, *said = get_args(hints[each.name])
        for key in said:
            if isinstance(key, Key):
                default = each.default if each.default_factory is MISSING else each.default_factory()
                keys[each.name] = Described(each.name, kind, default, key)
    return MappingProxyType(keys)
