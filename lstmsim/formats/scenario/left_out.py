"""Mappings of a scenario that a file may leave out and an override may still reach into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_origin

from lstmsim.formats.yaml.document import DataPath
from lstmsim.keys import Described, keys_of
from lstmsim.targets.registry import KINDS, target_of

__all__ = ["left_out"]

_OF_SCENARIO = ("precision", "arrivals")
#: What every chip may have, beside the keys of its machine.
_OF_CHIP = ("sources",)


def left_out(data: Any, path: DataPath) -> tuple[str, ...]:
    """Name the mappings right below a path that may be left out. Those of a chip are the parts that its machine has.

    data: of the scenario's file.
    path: of a mapping in it.

    >>> left_out({"chip": {"kind": "row-npu", "cores": [{}]}}, ("chip", "cores", 0))
    ('latency', 'by_cell')
    """
    if not path:
        return _OF_SCENARIO
    chip = data["chip"] if path[0] == "chip" else None
    kind = chip.get("kind") if isinstance(chip, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        return ()
    target = target_of(kind)
    if path[1:2] != ("cores",):
        return (*(_OF_CHIP if len(path) == 1 else ()), *_below(target.chip, path[1:]))
    return _below(target.core, path[3:]) if len(path) > 2 else ()


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
