"""Mappings of a scenario that a file may leave out and an override may still reach into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_origin

from lstmsim.base.keys import Described, keys_of
from lstmsim.files.yaml.document import DataPath
from lstmsim.machines.registry import KINDS, target_of

__all__ = ["left_out"]

_OF_SCENARIO = ("precision", "arrivals")
#: What every chip may have, beside the keys of its machine.
_OF_CHIP = ("sources",)


def left_out(path: DataPath) -> tuple[str, ...]:
    """Name the mappings right below a path that may be left out, on any machine.

    Those of a chip are the parts that descriptions of machines have. The schema refuses a part of another machine, and
    then says which keys the chip has.

    path: of a mapping in a scenario's data.

    >>> left_out(()), "latency" in left_out(("chip", "cores", 0))
    (('precision', 'arrivals'), True)
    """
    if not path:
        return _OF_SCENARIO
    if path[0] != "chip" or (len(path) == 2 and path[1] == "cores"):
        return ()
    of_core = path[1:2] == ("cores",)
    targets = [target_of(kind) for kind in KINDS]
    below = [_below(each.core, path[3:]) if of_core else _below(each.chip, path[1:]) for each in targets]
    own = _OF_CHIP if len(path) == 1 else ()
    return tuple(dict.fromkeys([*own, *(name for names in below for name in names)]))


def _below(description: type, path: DataPath) -> tuple[str, ...]:
    """The mappings right below a path into a description."""
    kind: Any = description
    steps = iter(path)
    for name in steps:
        key = keys_of(kind).get(str(name))
        # below several descriptions comes the name of one of them
        if key is None or not is_dataclass(key.kind) or (key.several and next(steps, None) is None):
            return ()
        kind = key.kind
    return tuple(name for name, key in keys_of(kind).items() if _is_mapping(key))


def _is_mapping(key: Described) -> bool:
    """Whether a file has a mapping there: of a description, of several by name, or of values."""
    return (is_dataclass(key.kind) and (not key.several or bool(key.key.named_by))) or get_origin(key.kind) is Mapping
