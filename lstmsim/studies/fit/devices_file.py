"""Tables of devices: one YAML file for each device, and the published designs on a device. Each number has a source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from lstmsim.base.errors import InputError
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.schema_types import Entry, Name, Text
from lstmsim.files.tables.published import Hardware, hardware
from lstmsim.files.yaml.checks import check
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.entry import values_of
from lstmsim.files.yaml.source import read_document
from lstmsim.studies.fit.device import Device, Logic, Memory, Packing, SmallMemory

__all__ = ["device", "device_files", "device_of", "published_on", "read_device"]

_NUMBERS = ("multipliers", "packings", "memories", "logic")

Amount = Annotated[int, Key(low=1, high=1_000_000_000)]
Bits = Annotated[int, Key(low=1, high=1_000_000)]


class PackingEntry(Entry):
    """One use of a multiplier block; `lstmsim.studies.fit.device.Packing` says what the keys mean."""

    name: Annotated[Name, Key("how the block is used")]
    products: Annotated[Bits, Key("multiplications a cycle")]
    widths: Annotated[tuple[Bits, Bits], Key("widths of both operands in bits")]
    shares: Literal["none", "weight", "vector", "either"] = "none"
    group: Bits = 1
    summed: Bits = 1
    logic: Annotated[int, Key(low=0, high=1_000_000)] = 0
    mixed_signs: bool = False
    least: Bits = 1


class MemoryEntry(Entry):
    """One kind of memory block; `blocks: null` if there is no source for their number."""

    name: Annotated[Name, Key("name of the block")]
    blocks: Annotated[Amount | None, Key("how many, or null: no source")]
    bits: Annotated[Bits, Key("bits in a block")]
    read_bits: Annotated[Bits, Key("bits read of a block in a cycle")]
    ports: Bits = 2


class SmallMemoryEntry(Entry):
    """A memory of elements of logic; `lstmsim.studies.fit.device.SmallMemory` says what the keys mean."""

    words: Annotated[Bits, Key("words of such a memory")]
    bits: Annotated[Bits, Key("bits of a word")]
    elements: Annotated[Bits, Key("elements of logic that it takes")]
    block: Annotated[Bits, Key("so many are as dear as a memory block")]


class LogicEntry(Entry):
    """Elements of logic; `elements: null` if there is no source for their number."""

    name: Annotated[Name, Key("ALM or LUT")]
    elements: Annotated[Amount | None, Key("how many, or null: no source")]
    adder_bits: Annotated[Bits, Key("bits of an adder in one element")]
    register_bits: Annotated[Bits, Key("registers in one element")]
    functions: Bits = 1
    small: Annotated[SmallMemoryEntry | None, Key("a memory of such elements")] = None


class DeviceFile(Entry):
    """A device and the source of each of its numbers."""

    name: Annotated[Name, Key("the device's name")]
    multiplier: Annotated[Name, Key("kind of its multiplier blocks, for example DSP")]
    multipliers: Annotated[Amount | None, Key("how many, or null: no source")]
    packings: Annotated[list[PackingEntry], Key("ways to use a block", low=1, high=100)]
    memories: Annotated[list[MemoryEntry], Key("kinds of memory blocks", low=1, high=100)]
    logic: Annotated[LogicEntry, Key("its elements of logic")]
    published: Annotated[tuple[Text, ...], Key(high=100)] = ()
    chips: Annotated[tuple[Text, ...], Key(high=100)] = ()
    sources: Annotated[dict[str, Text], Key("where each number comes from", high=100)]


def device_files() -> Mapping[str, Path]:
    """The device tables that come with lstmsim, by name.

    >>> "stratix-10-gx-2800" in device_files()
    True
    """
    return {each.stem: each for each in sorted(Path(__file__).with_name("data").glob("*.yaml"))}


def device(name: str) -> Device:
    """The device of that name.

    name: name of a device of lstmsim, or path of a file.
    `InputError` with the nearest name if there is none.

    >>> device("arria-10-gx-1150").multipliers
    1518
    """
    known = device_files()
    if name in known:
        return read_device(known[name])
    if "/" in name or "\\" in name or name.endswith((".yaml", ".yml", ".json")):
        return read_device(name)
    raise InputError(f"no device called {show(name)}{nearest(name, known)}; there are: {', '.join(known)}")


def read_device(path: str | os.PathLike[str]) -> Device:
    """Read a device from a file; `InputError` with every mistake. A number without a source is a mistake."""
    document = read_document(path)
    entry, _ = check(DeviceFile, document)
    if entry is not None:
        _check_sources(document, entry)
    if document.mistakes or entry is None:
        raise InputError(document.mistakes)
    return Device(
        name=entry.name,
        multiplier=entry.multiplier,
        multipliers=entry.multipliers,
        packings=tuple(Packing(**values_of(each)) for each in entry.packings),
        memories=tuple(Memory(**values_of(each)) for each in entry.memories),
        logic=_logic(entry.logic),
        published=entry.published,
        sources=dict(entry.sources),
        chips=entry.chips,
    )


def _logic(entry: LogicEntry) -> Logic:
    small = None if entry.small is None else SmallMemory(**values_of(entry.small))
    return Logic(**{**values_of(entry), "small": small})


def _check_sources(document: Document, entry: DeviceFile) -> None:
    for key in _NUMBERS:
        if not entry.sources.get(key, "").strip():
            document.blame(("sources", key), "required key is missing (where the number comes from, or 'no source')")
    missing = {
        "multipliers": entry.multipliers is None,
        "memories": any(each.blocks is None for each in entry.memories),
        "logic": entry.logic.elements is None,
    }
    for key, unknown in missing.items():
        if unknown and "no source" not in entry.sources.get(key, ""):
            document.blame(("sources", key), f"must say 'no source', because a number of {key} is null")
    for key in entry.sources:
        if key not in keys_of(DeviceFile):
            document.blame(("sources", key), f"unknown key{nearest(key, keys_of(DeviceFile))}", key=True)


@cache
def _homes() -> Mapping[str, str]:
    """Name of a published design, or of a chip preset that was built -> name of its device."""
    every = [read_device(path) for path in device_files().values()]
    return {name: each.name for each in every for name in (*each.published, *each.chips)}


def device_of(machine: str) -> str | None:
    """The name of the device on which a machine was built; None if the tables know none.

    machine: name of a design of `published/hardware.csv`, or of a chip preset.

    >>> device_of("Brainwave BW_S10"), device_of("brainwave-s10"), device_of("Tesla V100")
    ('stratix-10-gx-2800', 'stratix-10-gx-2800', None)
    """
    return _homes().get(machine)


def published_on(device: Device) -> tuple[Hardware, ...]:
    """The published designs on a device, as the device's table names them.

    `InputError` if `published/hardware.csv` is damaged.

    >>> [row.design for row in published_on(device("stratix-10-nx-2100"))]
    ['Intel NPU']
    """
    rows = {row.design: row for row in hardware()}
    return tuple(rows[name] for name in device.published if name in rows)
