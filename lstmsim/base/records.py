"""Frozen dataclasses that are quick to make: a command makes some ninety of them before it does anything.

A dataclass writes and compiles the source of its methods, 0.4 ms for each class. Of a record only `__init__` and the
methods that refuse changes are written so; comparing, hashing and showing are the same for all records and read fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

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
    made = dataclass(frozen=True, eq=False, repr=False)(cls)
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

    for method in (__eq__, __hash__, __repr__):
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    return made


def _getter(names: list[str]) -> Callable[[Any], Any]:
    """What reads these fields of an object."""
    return attrgetter(*names) if names else lambda _: ()


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
