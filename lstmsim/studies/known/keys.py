"""Keys of files: of chips read off the machines' descriptions, of all others off their entries."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, is_dataclass, replace
from typing import Annotated, Any, Literal, get_args, get_origin

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.keys import Described, Entry, Key, keys_of
from lstmsim.files import graphs
from lstmsim.files.scenario import request_schema, schema
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.model.model import WIDTHS, Layer, Model, Precision
from lstmsim.model.scenario import Job
from lstmsim.studies.fit import device as devices
from lstmsim.studies.sweep import spec_file as sweeps
from lstmsim.traffic import arrivals, lengths


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
    """Give the keys of a description, and those of its parts after a dot; a part with a name has the name between."""
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
    said = "; default: " in each.key.meaning
    parts = [each.key.meaning, values_of_key(each.key), "" if said else default_of(each), each.key.source]
    return "; ".join(part for part in parts if part)


def values_of_key(key: Key) -> str:
    """Say which values a key may have: its words, or its bounds with the unit.

    >>> values_of_key(Key(low=1, unit="cycles")), values_of_key(Key(choices=("coarse", "fine")))
    ('at least 1 cycles', 'coarse or fine')
    """
    unit = f" {key.unit}" if key.unit else ""
    if key.choices:
        return " or ".join(key.choices)
    low = _number(key.low) if key.low is not None else f"above {_number(key.above)}"
    high = _number(key.high) if key.high is not None else f"below {_number(key.below)}"
    if key.high is None and key.below is None:
        return (
            key.unit if key.low is None and key.above is None else f"{'at least ' * (key.low is not None)}{low}{unit}"
        )
    if key.low is None and key.above is None:
        return f"{'at most ' * (key.high is not None)}{high}{unit}"
    return f"{low} to {high}{unit}"


def _number(bound: float | None) -> str:
    return "" if bound is None else f"{int(bound):,}" if float(bound).is_integer() else f"{bound:,}"


def default_of(each: Described) -> str:
    """Say what stands for a key that is left out, or that it is required; "" where only parts of it have defaults.

    >>> default_of(Described("ep", int, 4, Key())), default_of(Described("vp", int, None, Key(follows="npe // ep")))
    ('default: 4', 'default: npe // ep')
    """
    if each.key.follows:
        return f"default: {each.key.follows}"
    if each.default is MISSING:
        return "required"
    if each.default is None or (not isinstance(each.default, int | float) and not each.default):
        return "default: none"
    if is_dataclass(each.default) or isinstance(each.default, tuple | Entry):
        return ""
    return f"default: {str(each.default).lower() if isinstance(each.default, bool) else each.default}"


#: Where keys stand, the entry that checks them, and the classes whose docstrings say what they mean, first one first.
ENTRIES: tuple[tuple[str, type, tuple[type, ...]], ...] = (
    ("scenario", schema.ScenarioFile, (schema.ScenarioFile,)),
    ("scenario jobs", schema.JobEntry, (schema.JobEntry, Job)),
    ("scenario jobs.initial", schema.InitialEntry, (schema.InitialEntry,)),
    (
        "scenario jobs.arrival",
        request_schema.ArrivalEntry,
        (
            request_schema.ArrivalEntry,
            request_schema.TraceEntry,
            *(arrivals.Fixed, arrivals.Periodic, arrivals.Poisson, arrivals.Bursty, arrivals.Stream),
            arrivals.ClosedLoop,
        ),
    ),
    (
        "scenario jobs.steps",
        request_schema.StepsEntry,
        (request_schema.StepsEntry, lengths.Weighted, lengths.Uniform, lengths.Geometric),
    ),
    ("scenario jobs.density", request_schema.DensityEntry, (request_schema.DensityEntry,)),
    ("scenario jobs.batching", request_schema.BatchingEntry, (request_schema.BatchingEntry,)),
    ("scenario arrivals", request_schema.TraceEntry, (request_schema.TraceEntry,)),
    ("scenario precision", schema.PrecisionEntry, (schema.PrecisionEntry, Precision)),
    ("model", schema.ModelFile, (schema.ModelFile, Model)),
    ("model layers", schema.LayerEntry, (schema.LayerEntry, Layer)),
    ("model cells.NAME", schema.CellEntry, (schema.CellEntry,)),
    ("model cells.NAME.stages", schema.StageEntry, (schema.StageEntry,)),
    ("sweep", sweeps.SweepEntry, ()),
    ("sweep axes", sweeps.GroupEntry, ()),
    ("sweep axes.NAME", sweeps.AxisEntry, ()),
    ("graph", graphs.GraphEntry, ()),
    ("graph nodes", graphs.NodeEntry, ()),
    ("device", devices.Device, (devices.Device,)),
    ("device packings", devices.Packing, (devices.Packing,)),
    ("device memories", devices.Memory, (devices.Memory,)),
    ("device logic", devices.Logic, (devices.Logic,)),
    ("device logic.small", devices.SmallMemory, ()),
)
#: The classes whose docstrings say what the keys of an entry mean.
DOCUMENTS: Mapping[type, tuple[type, ...]] = {entry: documents for _, entry, documents in ENTRIES}
_SAID = re.compile(r"^ {4}([a-z_]+(?:, [a-z_]+)*): (.+(?:\n {8}.+)*)", re.MULTILINE)


def file_keys() -> list[tuple[str, str]]:
    """Give each key of scenario, model, sweep, graph and device files as `FILE PATH`, and a line about it."""
    lines = []
    for place, entry, documents in ENTRIES:
        joint = "." if " " in place else " "
        keys = described_keys(entry, documents).items()
        lines += [(f"{place}{joint}{name}", key_line(each)) for name, each in keys]
    return lines


def described_keys(entry: type, documents: tuple[type, ...]) -> dict[str, Described]:
    """Give the keys of an entry, with what docstrings say of those that do not say it themselves."""
    said: dict[str, str] = {}
    for each in reversed(documents):
        said |= _meanings(each)
    return {name: _with_meaning(key, said.get(name, "")) for name, key in keys_of(entry).items()}


def _with_meaning(each: Described, said: str) -> Described:
    """A key with what docstrings say of it, unless it says more itself, and the words and bounds of its type."""
    kinds = [each.type, *get_args(each.type)]
    words = tuple(str(word) for kind in kinds if get_origin(kind) is Literal for word in get_args(kind))
    inner = [part for kind in kinds if get_origin(kind) is Annotated for part in get_args(kind)[1:]]
    key: Key = next((part for part in [each.key, *inner] if isinstance(part, Key) and part.high is not None), each.key)
    if each.key.high == MAX_SIZE == -(each.key.low or 0) and each.name in Precision.__annotations__:
        # The entry takes any number, and the description says what is wrong with it.
        low, high = WIDTHS.get(each.name, (None, None))
        key = replace(key, low=low, high=high)
    counted = {str: "letters", list: "entries", dict: "entries", tuple: "entries"}
    unit = each.key.unit or (counted.get(get_origin(each.kind) or each.kind, "") if key.high is not None else "")
    meaning = said.rstrip(".") or each.key.meaning
    return replace(each, key=replace(key, meaning=meaning, unit=unit, choices=key.choices or words, source=""))


def _meanings(described: type) -> Mapping[str, str]:
    """What a class's docstring says of its fields, by name."""
    text = inspect.getdoc(described) or ""
    found = _SAID.finditer("\n".join(f"    {line}" for line in text.splitlines()))
    meanings = {name: " ".join(each[2].split()) for each in found for name in each[1].split(", ")}
    # What None means in Python is what leaving the key out means in a file.
    plain = {name: re.sub(r"[;,]? (?:None|empty)(?: for|:) [^;.]*", "", said) for name, said in meanings.items()}
    return {name: said for name, said in plain.items() if not said.startswith("as in ")}
