"""Tables of devices: one YAML file a device, each number with its source; the published designs on a device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lstmsim.devices.device import Device, Logic, Memory, Packing
from lstmsim.errors import InputError
from lstmsim.formats.scenario.schema_types import Entry, Name, Text
from lstmsim.formats.tables.published import Hardware, hardware
from lstmsim.formats.wording import nearest, show
from lstmsim.formats.yaml.checks import check
from lstmsim.formats.yaml.document import Document
from lstmsim.formats.yaml.source import read_document

__all__ = ["device", "device_files", "device_of", "published_on", "read_device"]

_PACKAGE = Path(__file__).resolve().parents[2]
_NUMBERS = ("multipliers", "packings", "memories", "logic")

Amount = Annotated[int, Field(ge=1, le=1_000_000_000)]
Bits = Annotated[int, Field(ge=1, le=1_000_000)]


class PackingEntry(Entry):
    """One use of a multiplier block; `lstmsim.devices.device.Packing` says what the keys mean."""

    name: Annotated[Name, Field(description="how the block is used")]
    products: Annotated[Bits, Field(description="multiplications a cycle")]
    widths: Annotated[list[Bits], Field(min_length=2, max_length=2, description="widths of both operands in bits")]
    shares: Literal["none", "weight", "vector", "either"] = "none"
    group: Bits = 1
    summed: Bits = 1
    logic: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class MemoryEntry(Entry):
    """One kind of memory block; `blocks: null` if there is no source for their number."""

    name: Annotated[Name, Field(description="name of the block")]
    blocks: Annotated[Amount | None, Field(description="how many, or null: no source")]
    bits: Annotated[Bits, Field(description="bits in a block")]
    read_bits: Annotated[Bits, Field(description="bits read of a block in a cycle")]
    ports: Bits = 2


class LogicEntry(Entry):
    """Elements of logic; `elements: null` if there is no source for their number."""

    name: Annotated[Name, Field(description="ALM or LUT")]
    elements: Annotated[Amount | None, Field(description="how many, or null: no source")]
    adder_bits: Annotated[Bits, Field(description="bits of an adder in one element")]
    register_bits: Annotated[Bits, Field(description="registers in one element")]


class DeviceFile(Entry):
    """A device and the source of each of its numbers."""

    name: Annotated[Name, Field(description="the device's name")]
    multiplier: Annotated[Name, Field(description="kind of its multiplier blocks, for example DSP")]
    multipliers: Annotated[Amount | None, Field(description="how many, or null: no source")]
    packings: Annotated[list[PackingEntry], Field(min_length=1, max_length=100, description="ways to use a block")]
    memories: Annotated[list[MemoryEntry], Field(min_length=1, max_length=100, description="kinds of memory blocks")]
    logic: Annotated[LogicEntry, Field(description="its elements of logic")]
    published: Annotated[list[Text], Field(max_length=100)] = Field(default_factory=list)
    chips: Annotated[list[Text], Field(max_length=100)] = Field(default_factory=list)
    sources: Annotated[dict[str, Text], Field(max_length=100, description="where each number comes from")]


def device_files(package: Path = _PACKAGE) -> Mapping[str, Path]:
    """The device tables that come with lstmsim, by name.

    >>> "stratix-10-gx-2800" in device_files()
    True
    """
    return {each.stem: each for each in sorted((package / "devices" / "data").glob("*.yaml"))}


def device(name: str) -> Device:
    """The device of that name, or of a file if the name is a path; `InputError` with the nearest name if there is none.

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
    """A device from a file; `InputError` with every mistake in it, also for a number without a source."""
    document = read_document(path)
    entry, _ = check(DeviceFile, document)
    if entry is not None:
        _check_sources(document, entry)
    if document.mistakes or entry is None:
        raise InputError(document.mistakes)
    packings = tuple(
        Packing(**each.model_dump(exclude={"widths"}), widths=(each.widths[0], each.widths[1]))
        for each in entry.packings
    )
    return Device(
        name=entry.name,
        multiplier=entry.multiplier,
        multipliers=entry.multipliers,
        packings=packings,
        memories=tuple(Memory(**each.model_dump()) for each in entry.memories),
        logic=Logic(**entry.logic.model_dump()),
        published=tuple(entry.published),
        sources=dict(entry.sources),
        chips=tuple(entry.chips),
    )


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
        if key not in DeviceFile.model_fields:
            document.blame(("sources", key), f"unknown key{nearest(key, DeviceFile.model_fields)}", key=True)


@cache
def _homes() -> Mapping[str, str]:
    """The devices of the published designs and of the chip presets that were built, by their names."""
    every = [read_device(path) for path in device_files().values()]
    return {name: each.name for each in every for name in (*each.published, *each.chips)}


def device_of(machine: str) -> str | None:
    """The device on which a machine was built: a design of `published/hardware.csv` or a chip preset; None if the
    tables know none.

    >>> device_of("Brainwave BW_S10"), device_of("brainwave-s10"), device_of("Tesla V100")
    ('stratix-10-gx-2800', 'stratix-10-gx-2800', None)
    """
    return _homes().get(machine)


def published_on(found: Device) -> tuple[Hardware, ...]:
    """Published designs on that device, as its table names them; `InputError` if `published/hardware.csv` is damaged.

    >>> [row.design for row in published_on(device("stratix-10-nx-2100"))]
    ['Intel NPU']
    """
    rows = {row.design: row for row in hardware()}
    return tuple(rows[name] for name in found.published if name in rows)
