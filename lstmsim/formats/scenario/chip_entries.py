"""From a checked chip entry to the chip: what the numbers must satisfy together."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.formats.scenario.schema_chips import ChipFile, CoreEntry, RowChipFile, RowCoreEntry
from lstmsim.formats.scenario.schema_types import MAX_CONTEXTS, MAX_CORES, MAX_PES
from lstmsim.formats.wording import nearest, show
from lstmsim.formats.yaml.checks import usable, wrong_keys
from lstmsim.formats.yaml.document import DataPath, Document
from lstmsim.formats.yaml.entry import values_of
from lstmsim.formats.yaml.overrides import LABEL
from lstmsim.targets.column.memory import Memory
from lstmsim.targets.column.npu import ColumnCore, ColumnNpu, Exchange, Latency
from lstmsim.targets.row.cells import PROGRAMS
from lstmsim.targets.row.npu import Dispatch, RowCore, RowLatency, RowNpu

__all__ = ["AnyCore", "Cores", "build_chip", "read_cores"]

AnyCore = ColumnCore | RowCore

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
    """The cores of a chip of that kind, `count` expanded; None where the entry is wrong. `known`: whether their number
    is right."""

    cores: tuple[AnyCore | None, ...]
    known: bool
    kind: str = "column-npu"


def read_cores(document: Document, path: DataPath, wrong: list[DataPath]) -> Cores:
    """The cores of the chip at `path`; what is wrong with their numbers taken together is noted in the document."""
    chip = document.at(path)
    entries = chip.get("cores") if isinstance(chip, dict) else None
    if not isinstance(entries, list):
        return Cores((), known=False)
    rows = chip.get("kind") == "row-npu"
    if not rows and chip.get("kind") != "column-npu":
        return Cores((), known=False, kind="")
    found: list[AnyCore | None] = []
    known = True
    # entries that are the same make the same core; only one without mistakes is made once
    made: dict[str, AnyCore] = {}
    for index, data in enumerate(entries):
        place = (*path, "cores", index)
        keys = wrong_keys(place, wrong)
        kind: type[RowCoreEntry] | type[CoreEntry] = RowCoreEntry if rows else CoreEntry
        entry = usable(kind, data, keys)
        known = known and entry is not None and "count" not in keys
        if entry is None or keys & _TOGETHER:
            found.append(None)
        else:
            text = repr(entry)
            core = made.get(text) or (
                _core(document, place, entry) if isinstance(entry, CoreEntry) else _row_core(document, place, entry)
            )
            if core is not None:
                made[text] = core
            found.extend([core] * min(entry.count, MAX_CORES + 1))
        if len(found) > MAX_CORES:
            document.blame((*path, "cores"), f"must be at most {MAX_CORES} cores, counts included")
            return Cores((), known=False)
    threads = sum(core.threads for core in found if isinstance(core, ColumnCore))
    if threads > MAX_CONTEXTS:
        document.blame((*path, "cores"), f"must have at most {MAX_CONTEXTS} threads in all, got {threads}")
    return Cores(tuple(found), known, "row-npu" if rows else "column-npu")


def _core(document: Document, place: DataPath, entry: CoreEntry) -> ColumnCore | None:
    if entry.vp is None and entry.ep > entry.npe:
        text = f"must not exceed npe: {entry.ep} > {entry.npe}"
        document.blame((*place, _changed(document, place, ("ep", "npe"))), text)
        return None
    values = values_of(entry)
    del values["count"]
    values["vp"] = entry.npe // entry.ep if entry.vp is None else entry.vp
    core = ColumnCore(**{**values, "latency": Latency(**values_of(entry.latency))})
    mistakes = core.mistakes()
    for key, text in mistakes:
        others = _JUDGED_WITH.get(key, (key,))
        document.blame((*place, _changed(document, place, others)), text)
    return None if mistakes else core


def _row_core(document: Document, place: DataPath, entry: RowCoreEntry) -> RowCore | None:
    values = values_of(entry)
    del values["count"], values["by_cell"]
    by_cell = []
    for cell, each in entry.by_cell.items():
        if cell not in PROGRAMS:
            text = f"a row-npu has no program for cell {show(cell)}{nearest(cell, PROGRAMS)}"
            document.blame((*place, "by_cell", cell), text, key=True)
            return None
        own = {key: value for key, value in values_of(each).items() if value is not None}
        general = {key: values[key] for key in ("dispatch_cycles", "start_cycles")}
        by_cell.append(Dispatch(cell, **{**general, **own}))
    core = RowCore(**{**values, "by_cell": tuple(by_cell), "latency": RowLatency(**values_of(entry.latency))})
    if core.npe > MAX_PES:
        document.blame(
            (*place, "engines"),
            f"tiles, engines, lanes, vectors and replicas make {core.npe:,} PEs, at most {MAX_PES:,} may be",
        )
        return None
    mistakes = core.mistakes()
    for key, text in mistakes:
        document.blame((*place, *key.split(".")), text)
    return None if mistakes else core


def _changed(document: Document, place: DataPath, keys: tuple[str, ...]) -> str:
    """The key among `keys` that the user changed from the command line, else the first."""
    overridden = [key for key in keys if document.place((*place, key)).startswith(LABEL)]
    return overridden[0] if overridden else keys[0]


def build_chip(entry: ChipFile | RowChipFile, cores: Cores) -> ColumnNpu | RowNpu:
    """The chip, from a file without mistakes."""
    # 260 in a file is 260 in a report, not 260.0.
    frequency = int(entry.frequency_mhz) if entry.frequency_mhz.is_integer() else entry.frequency_mhz
    if isinstance(entry, RowChipFile):
        rows = tuple(core for core in cores.cores if isinstance(core, RowCore))
        return RowNpu(entry.name, frequency, rows, dict(entry.sources))
    columns = tuple(core for core in cores.cores if isinstance(core, ColumnCore))
    memory = None if entry.memory is None else Memory(**values_of(entry.memory))
    exchange = Exchange(**values_of(entry.exchange))
    return ColumnNpu(entry.name, frequency, columns, memory, exchange, dict(entry.sources))
