"""A checked chip entry becomes a chip, by the rules of its kind of machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_origin

from lstmsim.base.bounds import MAX_CORES
from lstmsim.base.checkers import DataPath
from lstmsim.base.keys import Described, keys_of
from lstmsim.base.records import record
from lstmsim.base.wording import nearest
from lstmsim.files.scenario.schema import core_entry
from lstmsim.files.yaml.document import Document, usable, wrong_keys
from lstmsim.files.yaml.source import LABEL
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import Fault, Target
from lstmsim.model.scenario import Chip


@record
class Cores:
    """The cores of a chip, as they are read.

    cores: each core, with `count` expanded; None in place of a wrong core.
    known: whether the number of cores is right.
    target: the kind of machine; None: the kind is unknown.
    """

    cores: tuple[Any, ...]
    known: bool
    target: Target | None = None


def read_cores(document: Document, path: DataPath, wrong: list[DataPath]) -> Cores:
    """Read the cores of a chip. Mistakes between the keys of a core, or between cores, are noted in the document."""
    chip = document.at(path)
    entries = chip.get("cores") if isinstance(chip, dict) else None
    target = _machine(chip)
    if not isinstance(entries, list) or target is None:
        return Cores((), known=False)
    cores: list[Any] = []
    known = True
    # equal entries share one core; a core with mistakes is made again for each entry, so that each entry is blamed
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
    if known and None not in cores:
        _check_whole(document, path, wrong, Cores(tuple(cores), known, target))
    return Cores(tuple(cores), known, target)


def _check_whole(document: Document, path: DataPath, wrong: list[DataPath], cores: Cores) -> None:
    """Note what is wrong with the numbers of a chip taken together, if each of them is right by itself."""
    chip, mistaken = document.at(path), wrong_keys(path, wrong)
    if cores.target is not None and not mistaken & set(keys_of(cores.target.chip)):
        blame_all(document, path, cores.target.chip_faults(chip, cores.cores))


def _machine(chip: Any) -> Target | None:
    """Give the machine of a chip's kind; None if the kind is unknown."""
    kind = chip.get("kind") if isinstance(chip, dict) else None
    return target_of(kind) if isinstance(kind, str) and kind in KINDS else None


def own_keys(entry: dict[str, Any], wrong: set[str | int]) -> dict[str, Any]:
    """Give the keys of a core: the keys of its entry without `count` and without wrong keys.

    wrong: the wrong keys.

    >>> own_keys({"count": 2, "ep": 4, "cat": "x"}, {"cat"})
    {'ep': 4}
    """
    return {key: value for key, value in entry.items() if key != "count" and key not in wrong}


def blame_all(document: Document, place: DataPath, faults: Sequence[Fault]) -> None:
    """Note the faults of the entry at `place`. Of several keys, a key that the command line changed is blamed."""
    for fault in faults:
        overridden = [key for key in fault.keys if document.place((*place, *key)).startswith(LABEL)]
        key = (overridden or fault.keys)[0]
        hint = nearest(str(key[-1]), fault.known) if fault.known else ""
        document.blame((*place, *key), f"{fault.sentence}{hint}", key=bool(fault.known))


def without_effect(document: Document) -> None:
    """Note the keys of the scenario's chip that change nothing."""
    chip = document.data.get("chip")
    target = _machine(chip)
    if target is not None:
        blame_all(document, ("chip",), target.without_effect(chip))


def check_width(document: Document, bits: int | None) -> int | None:
    """Give the width of weights; None if neither `precision` nor a core states it. Other widths of cores are noted."""
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
    """Build the chip of an entry without mistakes."""
    assert cores.target is not None, "its kind has been checked"
    chip: Chip = cores.target.chip_of({**data, "name": entry.name}, cores.cores)
    return chip


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
