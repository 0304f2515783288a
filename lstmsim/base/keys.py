"""Keys: what a frozen description says of each of its numbers, once for files, checks, help and sweeps.

A field of a description carries its key in its type: `ep: Annotated[int, Key("elements in parallel", low=1)]`. Its
name, type and default are the field's own. Code that reads files, makes help texts or varies numbers asks `keys_of`.
An `Entry` is such a description of one mapping of a file: the keys and values that have passed a check.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView, Mapping
from dataclasses import MISSING, dataclass, is_dataclass, replace
from functools import wraps
from math import isfinite
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NoReturn,
    Optional,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")

NOT_FINITE = "must be a finite number"


@dataclass(frozen=True, slots=True)
class Key:
    """What one key means, and which values it may have.

    meaning: for people, a few words that can stand in brackets behind the key.
    unit: of a number, as in `cycles`; empty for a count or a word.
    low, high: smallest and largest number (None: no bound). For a `tuple[int, int]` they bound each of the two numbers,
    for a text the number of its letters, for a list or a mapping the number of its entries.
    choices: the words that may stand there; empty if anything of the type may.
    source: where the default comes from, or "assumption, because ...".
    vary: whether a sweep may put numbers there without reading the file anew.
    follows: in words, how a number that a file leaves out follows from others; empty if it does not.
    named_by: for a tuple of descriptions, the key that names each of them; a file has a mapping of these names instead.
    above, below: a bound of a number that the number itself must not have.
    rule: says what is wrong with a value within the bounds, as "must be ..."; gives "" if nothing is wrong.
    flag: the option of a command, where it is not the field's name.
    metavar: the word that stands for the value in the help of a command.
    repeatable: whether a command takes the option several times.
    read: turns the text of an option (the texts, if it is repeatable) into the value, or raises `ValueError`.

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
    follows: str = ""
    named_by: str = ""
    above: int | float | None = None
    below: int | float | None = None
    rule: Callable[[Any], str] | None = None
    flag: str = ""
    metavar: str = ""
    repeatable: bool = False
    read: Callable[[Any], Any] | None = None

    @property
    def range(self) -> str:
        """The bounds of a number in words, to stand after it; "" without bounds.

        >>> Key(low=1, high=64).range, Key(above=0).range
        (' from 1 to 64', ' above 0')
        """
        if self.low is not None and self.high is not None:
            return f" from {self.low} to {self.high}"
        bounds = {"above": self.above, "of at least": self.low, "below": self.below, "of at most": self.high}
        said = " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None)
        return f" {said}" if said else ""

    def wrong(self, value: Any) -> str:
        """Say what is wrong with a number or a word of the right type, as "must be ..."; "" if nothing is.

        >>> Key("elements in parallel", low=1).wrong(0), Key(low=1).wrong(1)
        ('must be at least 1', '')
        """
        if type(value) is float and not isfinite(value):
            return NOT_FINITE
        if self.choices:
            return "" if value in self.choices else f"must be {' or '.join(self.choices)}"
        if self.above is not None and not value > self.above:
            return f"must be greater than {self.above}"
        if self.low is not None and value < self.low:
            return f"must be at least {self.low}"
        if self.below is not None and not value < self.below:
            return f"must be less than {self.below}"
        if self.high is not None and value > self.high:
            return f"must be at most {self.high}"
        return self.rule(value) if self.rule else ""


_PLAIN = Key()


def once(make: Callable[[type], T]) -> Callable[[type], T]:
    """Keep what is made of a class: making it takes longer than reading a file."""
    known: dict[type, T] = {}

    @wraps(make)
    def kept(description: type) -> T:
        if description not in known:
            known[description] = make(description)
        return known[description]

    return kept


@dataclass(frozen=True, slots=True)
class Described:
    """A field of a description with its key.

    name: as in a file.
    type: the field's type without the key.
    default: the field's default; `MISSING` where the key is required.
    key: what the field means and which values it may have.
    """

    name: str
    type: Any
    default: Any
    key: Key

    @property
    def kinds(self) -> frozenset[Any]:
        """The classes of the values that a field may have.

        >>> sorted(each.__name__ for each in Described("room", int | tuple[int, int] | None, None, Key()).kinds)
        ['NoneType', 'int', 'tuple']
        """
        members = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        return frozenset(get_origin(each) or each for each in members)

    @property
    def kind(self) -> Any:
        """The type of the value, or of its entries where it is a tuple: `int` for `tuple[int, int] | None`.

        >>> Described("room", int | None, None, Key()).kind
        <class 'int'>
        """
        kinds = [each for each in get_args(self.type) if each is not type(None)] if self.may_be_none else [self.type]
        return get_args(kinds[0])[0] if get_origin(kinds[0]) is tuple else kinds[0]

    @property
    def may_be_none(self) -> bool:
        """Whether None stands for "nothing of the kind".

        >>> Described("room", int | None, None, Key()).may_be_none
        True
        """
        return type(None) in get_args(self.type)

    @property
    def several(self) -> bool:
        """Whether the field's value is a tuple.

        >>> Described("sizes", tuple[int, int], (1, 2), Key()).several
        True
        """
        return any(get_origin(each) is tuple for each in (self.type, *get_args(self.type)))


@once
def keys_of(description: type) -> Mapping[str, Described]:
    """Give the keys that a description may have in a file, by name, in the order of the class.

    Of a dataclass these are the fields that carry a `Key`. A class of any other kind has keys for all its fields, with
    defaults that are attributes of the class. Where keys are nested, the outer one adds to the inner one.

    description: the class.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel", low=1)]
    ...     name: str = ""
    >>> list(keys_of(Core)), keys_of(Core)["ep"].key.low
    (['ep'], 1)
    """
    fields = getattr(description, "__dataclass_fields__", None)
    keys: dict[str, Described] = {}
    for name, hint in get_type_hints(description, include_extras=True).items():
        kind, key = unwrapped(hint)
        if get_origin(kind) is ClassVar:
            continue
        if fields is None:
            # a key that Python has as a word of its own (`from`) has a line behind it
            key_name = name.removesuffix("_")
            keys[key_name] = Described(key_name, kind, getattr(description, name, MISSING), key or _PLAIN)
        elif key is not None and name in fields:
            each = fields[name]
            default = each.default if each.default_factory is MISSING else each.default_factory()
            keys[name] = Described(name, kind, default, key)
    return MappingProxyType(keys)


def unwrapped(hint: Any) -> tuple[Any, Key | None]:
    """Split a type into the type without its keys, and its keys as one (None if it has none).

    A type that may be None has the key that it has otherwise.

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
    """Join two keys: what the outer one leaves open, the inner one says."""
    names = Key.__slots__
    return replace(inner, **{name: said for name in names if (said := getattr(outer, name)) != getattr(_PLAIN, name)})


@once
def _judged(description: type) -> list[tuple[str, Key, bool, bool]]:
    """The fields that can be wrong: name, key, whether they are made of descriptions, whether they are tuples."""
    every = [(name, each.key, is_dataclass(each.kind), each.several) for name, each in keys_of(description).items()]
    return [
        (name, key, part, several)
        for name, key, part, several in every
        if part or key.choices or (key.low, key.high, key.above, key.below) != (None,) * 4
    ]


def mistakes_of(thing: Any) -> list[tuple[str, str]]:
    """Say what is wrong with each number and word of a description, as (key, sentence) pairs.

    Keys of descriptions inside it have dots.

    thing: the description.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel", low=1)]
    >>> mistakes_of(Core(0))
    [('ep', 'must be at least 1, got 0')]
    """
    mistakes: list[tuple[str, str]] = []
    for name, key, part, several in _judged(type(thing)):
        value = getattr(thing, name)
        if value is None:
            continue
        if not part:
            alone = {f"{name}.{index}": each for index, each in enumerate(value)} if several else {name: value}
            shown = repr if key.choices else str
            mistakes += [
                (path, f"{text}, got {shown(each)}") for path, each in alone.items() if (text := key.wrong(each))
            ]
            continue
        parts = {f"{name}.{getattr(each, key.named_by)}": each for each in value} if several else {name: value}
        mistakes += [(f"{path}.{below}", text) for path, each in parts.items() for below, text in mistakes_of(each)]
    return mistakes


def described(description: type[T], data: Mapping[str, Any]) -> T:
    """Make a description of plain data, as `as_data` gives it; a key that is left out has its default."""
    return description(**values_of(description, data))


def values_of(description: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of a description that plain data names, with descriptions in place of mappings.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     mhz: Annotated[float, Key("the clock", low=1)] = 1
    >>> values_of(Core, {"mhz": 2})
    {'mhz': 2.0}
    """
    makers = _makers(description)
    return {name: value if value is None else makers[name](value) for name, value in data.items()}


@once
def _makers(description: type) -> dict[str, Callable[[Any], Any]]:
    """What turns plain data into the value of each field."""
    return {name: _maker(each) for name, each in keys_of(description).items()}


def _maker(each: Described) -> Callable[[Any], Any]:
    kind, by, part = each.kind, each.key.named_by, is_dataclass(each.kind)
    if not part:
        return tuple if each.several else float if kind is float else lambda value: value
    if each.several:
        return lambda parts: tuple(described(kind, {by: name, **part}) for name, part in parts.items())
    return lambda part: described(kind, part)


def as_data(thing: Any) -> dict[str, Any]:
    """Give a description as plain data, the way it stands in a file: every key with its value.

    thing: the description.

    >>> @dataclass(frozen=True)
    ... class Core:
    ...     ep: Annotated[int, Key("elements in parallel", low=1)]
    >>> as_data(Core(4))
    {'ep': 4}
    """
    data: dict[str, Any] = {}
    for each in keys_of(type(thing)).values():
        value = getattr(thing, each.name)
        if value is not None and is_dataclass(each.kind):
            if each.several:
                value = {getattr(part, each.key.named_by): as_data(part) for part in value}
                for part in value.values():
                    part.pop(each.key.named_by, None)
            else:
                value = as_data(value)
        elif value is not None and each.several:
            value = list(value)
        data[each.name] = value
    return data


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Entry:
    """Keys and values of one mapping: the annotations of a class are its keys, its attributes their defaults.

    Such a class takes a tenth of the time that a frozen dataclass takes to make, and an entry knows which keys were
    given.

    any_keys: whether the mapping may hold other keys, which are not checked.

    >>> class Core(Entry):
    ...     ep: int
    ...     threads: int = 1
    >>> core = Core(ep=4)
    >>> core.ep, core.threads, sorted(core.given)
    (4, 1, ['ep'])
    """

    any_keys: ClassVar[bool] = False

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    @property
    def given(self) -> KeysView[str]:
        """The keys that the file gives; the others have their defaults."""
        return self.__dict__.keys()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an entry cannot be changed: {name}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.__dict__.items())})"


def entry_values(entry: Entry) -> dict[str, Any]:
    """Give every key of an entry and its value, in the order of the class; keys that were left out have defaults."""
    return {key: getattr(entry, key) for key in keys_of(type(entry))}


def entry_class(name: str, keys: Mapping[str, Described]) -> type[Entry]:
    """Make a class of entries, for instance with the keys of a machine's description.

    name: name of the class.
    keys: key -> its description. A number that follows from others may be left out or be null; it is None then. A list
    of descriptions that have names becomes a mapping from name to entry.

    >>> from lstmsim.base.keys import Key
    >>> made = entry_class("CoreEntry", {"ep": Described("ep", int, MISSING, Key(low=1))})
    >>> list(keys_of(made)), made(ep=4).ep
    (['ep'], 4)
    """
    body: dict[str, Any] = {"__annotations__": {}}
    for key, each in keys.items():
        kind, default = each.type, each.default
        if each.key.follows:
            kind, default = Optional[kind], None  # noqa: UP045 - a value, no hint
        elif each.key.named_by:
            below = dict(keys_of(each.kind))
            named = below.pop(each.key.named_by)
            kind = Mapping[Annotated[str, named.key], entry_class(each.kind.__name__, below)]  # type: ignore[misc]
            default = {} if default == () else default
        body["__annotations__"][key] = Annotated[kind, each.key]
        if default is not MISSING:
            body[key] = default
    return type(name, (Entry,), body)
