"""Keys of chips by machine, with meaning, unit, bounds, default and source, read off the machines' descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, is_dataclass
from typing import Any

from lstmsim.base.keys import Described, Entry, Key, keys_of
from lstmsim.machines.registry import KINDS, target_of

__all__ = ["chip_keys", "key_line"]


def chip_keys() -> list[tuple[str, str]]:
    """Give each key of each machine as `MACHINE PATH`, and a line about it.

    >>> dict(chip_keys())["column-npu cores.ep"]
    'elements in parallel; 1 to 10,000,000; required'
    """
    return [
        (f"{kind} {path}", key_line(each))
        for kind in KINDS
        for what, at in ((target_of(kind).chip, ""), (target_of(kind).core, "cores."))
        for path, each in _below(what, at)
    ]


def _below(description: Any, at: str) -> Iterator[tuple[str, Described]]:
    """Give the keys of a description, and those of its parts behind a dot; a part with a name has the name between."""
    for name, each in keys_of(description).items():
        yield f"{at}{name}", each
        kind: Any = each.kind
        if is_dataclass(kind):
            named = each.key.named_by
            below = _below(kind, f"{at}{name}.{named.upper()}." if named else f"{at}{name}.")
            yield from ((path, part) for path, part in below if not named or part.name != named)


def key_line(each: Described) -> str:
    """Give meaning, bounds, default and source of a key in a line.

    >>> key_line(Described("ep", int, 4, Key("elements", unit="elements", low=1, high=9)))
    'elements; 1 to 9 elements; default: 4'
    """
    parts = [each.key.meaning, _bounds(each.key), _default(each), each.key.source]
    return "; ".join(part for part in parts if part)


def _bounds(key: Key) -> str:
    unit = f" {key.unit}" if key.unit else ""
    if key.choices or (key.low is None and key.above is None) or (key.high is None and key.below is None):
        return " or ".join(key.choices) or key.unit
    low = _number(key.low) if key.low is not None else f"above {_number(key.above)}"
    high = _number(key.high) if key.high is not None else f"below {_number(key.below)}"
    return f"{low} to {high}{unit}"


def _number(bound: float | None) -> str:
    return "" if bound is None else f"{int(bound):,}" if float(bound).is_integer() else f"{bound:,}"


def _default(each: Described) -> str:
    if each.key.follows:
        return f"default: {each.key.follows}"
    if each.default is MISSING:
        return "required"
    if each.default is None or (not isinstance(each.default, int | float) and not each.default):
        return "default: none"
    if is_dataclass(each.default) or isinstance(each.default, tuple | Entry):
        return ""
    return f"default: {str(each.default).lower() if isinstance(each.default, bool) else each.default}"
