"""Frozen dataclasses that are quick to make: a command makes some ninety of them before it does anything.

A dataclass writes and compiles the source of its methods, 0.4 ms for each class. Of a record only `__init__` is written
so, in 0.1 ms; comparing, hashing, showing and refusing changes are the same for all records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The class as `@dataclass(frozen=True)` makes it.

    >>> @record
    ... class Core:
    ...     ep: int
    ...     sources: dict = field(default_factory=dict, compare=False)
    >>> Core(4), Core(4) == Core(4, {"ep": "patent"}), len({Core(4), Core(4)})
    (Core(ep=4, sources={}), True, 1)
    """
    own = set(vars(cls))
    if "__eq__" in own and vars(cls)["__hash__"] is None:
        # Python has written that beside the method of the class, and nobody asked for it
        own.remove("__hash__")
    made = dataclass(init=False, eq=False, repr=False)(cls)
    known = fields(made)  # type: ignore[arg-type]
    compared = _getter([each.name for each in known if each.compare])
    hashed = _getter([each.name for each in known if (each.compare if each.hash is None else each.hash)])
    shown = [each.name for each in known if each.repr]

    def __eq__(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    for method in (_init(made, known), __eq__, __hash__, __repr__, __setattr__, __delattr__):
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    return made


def __setattr__(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Factory:
    """Stands for a default that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(cls: type, known: Sequence[Field[Any]]) -> Callable[..., None]:
    """The method `__init__` that a frozen dataclass of these fields has."""
    outer: dict[str, Any] = {"_set": object.__setattr__, "_made": _Factory()}
    body: list[str] = []
    for each in known:
        value = each.name
        if each.default_factory is not MISSING:
            outer[f"_new_{each.name}"] = each.default_factory
            value = f"_new_{each.name}()" + (f" if {each.name} is _made else {each.name}" if each.init else "")
        elif each.default is not MISSING:
            outer[f"_default_{each.name}"] = each.default
        if each.init or each.default_factory is not MISSING:
            body.append(f"_set(_self, {each.name!r}, {value})")
    taken = [each for each in known if each.init and not each.kw_only]
    named = [each for each in known if each.init and each.kw_only]
    heads = ["_self", *map(_parameter, taken), *(["*"] if named else []), *map(_parameter, named)]
    body += ["_self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    text = f" def __init__({', '.join(heads)}): {'; '.join(body) or 'pass'}"
    local: dict[str, Any] = {}
    exec(f"def make({', '.join(outer)}):\n{text}\n return __init__", vars(sys.modules[cls.__module__]), local)
    init: Callable[..., None] = local["make"](**outer)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in (*taken, *named)} | {"return": None}
    return init


def _parameter(each: Field[Any]) -> str:
    """A field as a parameter of `__init__`."""
    if each.default_factory is not MISSING:
        return f"{each.name}=_made"
    return each.name if each.default is MISSING else f"{each.name}=_default_{each.name}"


def _getter(names: list[str]) -> Callable[[Any], Any]:
    """What reads these fields of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    # a value alone that is not a number differs from itself, and one in a tuple does not
    return lambda own: tuple([getattr(own, each) for each in names])


def hashed_once(cls: type[T]) -> type[T]:
    """A record that computes its hash once: one that is the key of much that is kept.

    >>> @hashed_once
    ... @record
    ... class Core:
    ...     ep: int
    >>> hash(Core(4)) == hash(Core(4))
    True
    """
    compute = cls.__hash__

    def __hash__(self: Any) -> int:
        own: dict[str, Any] = self.__dict__
        if "_hash" not in own:
            own["_hash"] = compute(self)
        value: int = own["_hash"]
        return value

    def __getstate__(self: Any) -> dict[str, Any]:
        # another process would compute another hash
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    for method in (__hash__, __getstate__):
        setattr(cls, method.__name__, method)
    return cls
