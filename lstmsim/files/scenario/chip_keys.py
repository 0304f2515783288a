"""The keys of chip files with types, defaults and bounds, all taken from the machines' own descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache
from typing import Annotated, Any

from lstmsim.base.bounds import MAX_CORES
from lstmsim.base.keys import Described, Key, keys_of, unwrapped
from lstmsim.files.scenario.schema_types import NOTHING, Name, Text
from lstmsim.files.yaml.entry import Entry, entry_class
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import COMMON

__all__ = ["chip_entry", "core_entry"]


class UnknownChip(Entry):
    """A chip of an unknown kind: its other keys cannot be checked."""

    any_keys = True
    kind: Annotated[str, Key(" or ".join(KINDS), choices=tuple(KINDS))]


@cache
def core_entry(kind: str) -> type[Entry]:
    """Give the entry of a core: the keys of the machine's core, and `count`, the number of equal cores.

    kind: kind of the chip.

    >>> list(keys_of(core_entry("column-npu")))[:4]
    ['count', 'npe', 'ep', 'vp']
    """
    count = Described("count", int, 1, Key("equal cores", low=1, high=MAX_CORES))
    return entry_class("CoreEntry", {"count": count} | dict(keys_of(target_of(kind).core)))


@cache
def chip_of_kind(kind: str) -> type[Entry]:
    """Give the entry of a chip of a kind: the keys of every chip, and the keys of the machine."""
    own = dict(keys_of(target_of(kind).chip))
    name, text = unwrapped(Name), unwrapped(Text)
    keys = [
        Described("kind", str, MISSING, Key(f"the target, for example {kind}", choices=(kind,))),
        Described("name", name[0], kind, name[1] or Key()),
        Described("source", text[0], "", text[1] or Key()),
        own.pop("frequency_mhz"),
        Described("cores", list[core_entry(kind)], MISSING, Key("a list of cores", low=1, high=MAX_CORES)),  # type: ignore[misc]
        *(each for each in own.values() if each.name not in COMMON),
        Described("sources", Mapping[str, Text], NOTHING, Key("where each number comes from")),
    ]
    return entry_class("ChipEntry", {each.name: each for each in keys})


def chip_entry(chip: Any) -> type[Entry]:
    """Give the entry of a chip; `chip`: its data, which states its kind."""
    kind = chip.get("kind") if isinstance(chip, dict) else next(iter(KINDS))
    return chip_of_kind(kind) if isinstance(kind, str) and kind in KINDS else UnknownChip
