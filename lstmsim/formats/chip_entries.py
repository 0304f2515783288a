"""From a checked chip entry to `ColumnNpu`: what the numbers must satisfy together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lstmsim.formats.document import DataPath, Document
from lstmsim.formats.overrides import LABEL
from lstmsim.formats.schema import MAX_CONTEXTS, MAX_CORES, ChipFile, CoreEntry
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu, Latency

__all__ = ["Cores", "build_chip", "read_cores", "usable", "wrong_keys"]

_Entry = TypeVar("_Entry", bound=BaseModel)
#: Keys that are judged together: with one of them wrong, nothing can be said about the others.
_TOGETHER = frozenset({"npe", "ep", "vp", "tree_inputs", "cat"})
#: Keys that a mistake may be due to, the one that names it first.
_JUDGED_WITH = {
    "vp": ("vp", "ep", "npe"),
    "ep": ("ep", "tree_inputs", "cat"),
    "tree_inputs": ("tree_inputs", "npe"),
}


@dataclass(frozen=True)
class Cores:
    """The cores of a chip, `count` expanded; None where the entry is wrong. `known`: whether their number is right."""

    cores: tuple[ColumnCore | None, ...]
    known: bool


def wrong_keys(path: DataPath, wrong: Iterable[DataPath]) -> set[str | int]:
    """Keys of the mapping at `path` that hold one of the mistakes at the paths `wrong`.

    >>> wrong_keys(("jobs", 0), [("jobs", 0, "steps"), ("jobs", 1, "core")])
    {'steps'}
    """
    depth = len(path)
    return {each[depth] for each in wrong if len(each) > depth and each[:depth] == path}


def usable(
    entry: type[_Entry], data: Any, wrong: set[str | int], instead: Mapping[str, Any] | None = None
) -> _Entry | None:
    """`data` as an `entry` without its wrong keys (with `instead` in their place), or None if it needs them.

    So one mistake does not hide another that has nothing to do with it.
    """
    if not isinstance(data, dict):
        return None
    if wrong:
        data = {key: value for key, value in data.items() if key not in wrong}
    try:
        return entry.model_validate({**data, **(instead or {})})
    except ValidationError:
        return None


def read_cores(document: Document, path: DataPath, wrong: list[DataPath]) -> Cores:
    """The cores of the chip at `path`; what is wrong with their numbers taken together is noted in the document."""
    chip = document.at(path)
    entries = chip.get("cores") if isinstance(chip, dict) else None
    if not isinstance(entries, list):
        return Cores((), known=False)
    found: list[ColumnCore | None] = []
    known = True
    for index, data in enumerate(entries):
        place = (*path, "cores", index)
        keys = wrong_keys(place, wrong)
        entry = usable(CoreEntry, data, keys)
        known = known and entry is not None and "count" not in keys
        if entry is None or keys & _TOGETHER:
            found.append(None)
        else:
            found.extend([_core(document, place, entry)] * min(entry.count, MAX_CORES + 1))
        if len(found) > MAX_CORES:
            document.blame((*path, "cores"), f"must be at most {MAX_CORES} cores, counts included")
            return Cores((), known=False)
    threads = sum(core.threads for core in found if core is not None)
    if threads > MAX_CONTEXTS:
        document.blame((*path, "cores"), f"must have at most {MAX_CONTEXTS} threads in all, got {threads}")
    return Cores(tuple(found), known)


def _core(document: Document, place: DataPath, entry: CoreEntry) -> ColumnCore | None:
    if entry.vp is None and entry.ep > entry.npe:
        text = f"must not exceed npe: {entry.ep} > {entry.npe}"
        document.blame((*place, _changed(document, place, ("ep", "npe"))), text)
        return None
    values = entry.model_dump(exclude={"count", "latency", "vp"})
    vp = entry.npe // entry.ep if entry.vp is None else entry.vp
    core = ColumnCore(**values, vp=vp, latency=Latency(**entry.latency.model_dump()))
    mistakes = core.mistakes()
    for key, text in mistakes:
        others = _JUDGED_WITH.get(key, (key,))
        document.blame((*place, _changed(document, place, others)), text)
    return None if mistakes else core


def _changed(document: Document, place: DataPath, keys: tuple[str, ...]) -> str:
    """The key among `keys` that the user changed from the command line, else the first."""
    overridden = [key for key in keys if document.place((*place, key)).startswith(LABEL)]
    return overridden[0] if overridden else keys[0]


def build_chip(entry: ChipFile, cores: Cores) -> ColumnNpu:
    """The chip, from a file without mistakes."""
    frequency = entry.frequency_mhz
    return ColumnNpu(
        name=entry.name,
        # 260 in a file is 260 in a report, not 260.0.
        frequency_mhz=int(frequency) if frequency.is_integer() else frequency,
        cores=tuple(core for core in cores.cores if core is not None),
        sources=dict(entry.sources),
    )
