"""From a checked chip entry to the chip, as the machine of its kind says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lstmsim.bounds import MAX_CORES
from lstmsim.formats.scenario.chip_keys import core_entry
from lstmsim.formats.wording import nearest
from lstmsim.formats.yaml.checks import usable, wrong_keys
from lstmsim.formats.yaml.document import DataPath, Document
from lstmsim.formats.yaml.overrides import LABEL
from lstmsim.records import record
from lstmsim.targets.entries import Fault
from lstmsim.targets.registry import KINDS, target_of
from lstmsim.targets.target import Target
from lstmsim.workload.scenario import Chip

__all__ = ["Cores", "blame_all", "build_chip", "check_width", "own_keys", "read_cores", "without_effect"]


@record
class Cores:
    """The cores of a chip, `count` expanded; None where the entry is wrong.

    known: whether their number is right. target: the machine; None where there is none of that kind.
    """

    cores: tuple[Any, ...]
    known: bool
    target: Target | None = None


def read_cores(document: Document, path: DataPath, wrong: list[DataPath]) -> Cores:
    """The cores of the chip at `path`; what is wrong with their numbers taken together is noted in the document."""
    chip = document.at(path)
    entries = chip.get("cores") if isinstance(chip, dict) else None
    target = _machine(chip)
    if not isinstance(entries, list) or target is None:
        return Cores((), known=False)
    cores: list[Any] = []
    known = True
    # entries that are the same make the same core; only one without mistakes is made once
    made: dict[str, Any] = {}
    for index, data in enumerate(entries):
        place = (*path, "cores", index)
        keys = wrong_keys(place, wrong)
        entry: Any = usable(core_entry(target.kind), data, keys)
        known = known and entry is not None and "count" not in keys
        if entry is None or keys & target.together:
            cores.append(None)
        else:
            given = own_keys(data, keys)
            core = made.get(repr(given))
            if core is None:
                core = target.core_of(given)
                faults = [core] if isinstance(core, Fault) else target.core_faults(core)
                blame_all(document, place, faults)
                core = None if faults else core
            if core is not None:
                made[repr(given)] = core
            cores.extend([core] * min(entry.count, MAX_CORES + 1))
        if len(cores) > MAX_CORES:
            document.blame((*path, "cores"), f"must be at most {MAX_CORES} cores, counts included")
            return Cores((), known=False)
    for sentence in target.faults_of_all([core for core in cores if core is not None]):
        document.blame((*path, "cores"), sentence)
    return Cores(tuple(cores), known, target)


def _machine(chip: Any) -> Target | None:
    """The machine of a chip's kind; None where there is none."""
    kind = chip.get("kind") if isinstance(chip, dict) else None
    return target_of(kind) if isinstance(kind, str) and kind in KINDS else None


def own_keys(entry: dict[str, Any], wrong: set[str | int]) -> dict[str, Any]:
    """What a core is made of: the keys of its entry without how many there are, and without those that are wrong.

    >>> own_keys({"count": 2, "ep": 4, "cat": "x"}, {"cat"})
    {'ep': 4}
    """
    return {key: value for key, value in entry.items() if key != "count" and key not in wrong}


def blame_all(document: Document, place: DataPath, faults: Sequence[Fault]) -> None:
    """Note faults of the entry at `place`: where the user changed a key from the command line, that one is at fault."""
    for fault in faults:
        overridden = [key for key in fault.keys if document.place((*place, *key)).startswith(LABEL)]
        key = (overridden or fault.keys)[0]
        hint = nearest(str(key[-1]), fault.known) if fault.known else ""
        document.blame((*place, *key), f"{fault.sentence}{hint}", key=bool(fault.known))


def without_effect(document: Document) -> None:
    """Note keys of the scenario's chip that change nothing."""
    chip = document.data.get("chip")
    target = _machine(chip)
    if target is not None:
        blame_all(document, ("chip",), target.without_effect(chip))


def check_width(document: Document, bits: int | None) -> int | None:
    """The width of weights: `bits` or, if that is None, what the first core's memory says; None: nothing says it.

    Cores that say otherwise are noted.
    """
    chip = document.data.get("chip")
    target = _machine(chip)
    entries = chip.get("cores") if target is not None else None
    for index, core in enumerate(entries if isinstance(entries, list) else []):
        width = target.weight_width(core) if target is not None and isinstance(core, dict) else None
        if width is None:
            continue
        key, own = width
        bits = own if bits is None else bits
        if own != bits:
            text = f"must be {bits}, as in `precision` or on the cores before, got {own}: all numbers have one width"
            document.blame(("chip", "cores", index, key), text)
    return bits


def build_chip(entry: Any, data: dict[str, Any], cores: Cores) -> Chip:
    """The chip of an entry without mistakes; `data`: as it stands in the file."""
    assert cores.target is not None, "its kind has been checked"
    chip: Chip = cores.target.chip_of({**data, "name": entry.name}, cores.cores)
    return chip
