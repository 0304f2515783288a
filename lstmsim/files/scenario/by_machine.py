"""Keys of a job entry that differ from machine to machine: a section `on`, or a mapping in place of a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.wording import nearest, show
from lstmsim.files.catalog import chip_files
from lstmsim.files.scenario.schema import JobEntry, check
from lstmsim.files.yaml.document import Document, Place, document_of
from lstmsim.machines.registry import KINDS
from lstmsim.model.scenario import OnMachines

#: Keys that say how a machine runs a job, and not what is asked of it.
KEYS = ("threads", "weights", "split", "cores")


def settle(document: Document, stand_in: Any) -> tuple[OnMachines, ...]:
    """Give each job entry the values that are meant for the document's chip, and take `on` out; mistakes are noted.

    The chip of the document is no name any more. stand_in: a model for entries of keys alone.
    Returns for each job entry its values by machine, as `lstmsim.model.scenario.Job.on` has them.
    """
    jobs, chip = document.data.get("jobs"), document.data.get("chip")
    own = chip if isinstance(chip, dict) else {}
    name, kind = str(own.get("name", "")), str(own.get("kind", next(iter(KINDS))))
    known = (*KINDS, *chip_files(), *([name] if name else []))
    return tuple(
        _settled(document, ("jobs", index), job, (kind, name), known, stand_in) if isinstance(job, dict) else ()
        for index, job in enumerate(jobs if isinstance(jobs, list) else [])
    )


def _settled(
    document: Document, path: DataPath, job: dict[str, Any], own: tuple[str, str], known: tuple[str, ...], stand_in: Any
) -> OnMachines:
    stated = _stated(document, path, job, known)
    if not stated:
        return ()
    for machine, keys in stated.items():
        _check(document, machine, keys, stand_in)
    changed = {key for keys in stated.values() for key in keys}
    base = {key: job[key] for key in changed if key in job}
    for machine in dict.fromkeys(own):
        for key, (value, place) in stated.get(machine, {}).items():
            document.put((*path, key), value)
            document.keys[*path, key] = document.values[*path, key] = Place(document.place(place))
    by_machine = {"": {key: base.get(key) for key in changed}}
    by_machine |= {machine: {key: value for key, (value, _) in keys.items()} for machine, keys in stated.items()}
    return tuple(
        (machine, tuple((key, _plain(value)) for key, value in keys.items())) for machine, keys in by_machine.items()
    )


#: Of a machine the values of keys, each with the place where it is.
_Stated = dict[str, dict[str, tuple[Any, DataPath]]]


def _stated(document: Document, path: DataPath, job: dict[str, Any], known: tuple[str, ...]) -> _Stated:
    """Take what an entry says of machines out of it, as far as names and keys are right."""
    stated: _Stated = {}

    def note(machine: Any, key: Any, value: Any, place: DataPath) -> None:
        stated.setdefault(str(machine), {})[str(key)] = value, place

    def right(word: Any, names: tuple[str, ...], what: str, place: DataPath) -> bool:
        if word in names:
            return True
        hint = nearest(str(word), names) or f"; known are {', '.join(names)}"
        document.blame(place, f"there is no {what} called {show(word)}{hint}", key=True)
        return False

    for key in KEYS:
        if isinstance(job.get(key), Mapping):
            for machine, value in job.pop(key).items():
                place = (*path, key, machine)
                if right(machine, known, "kind of machine or chip", place):
                    note(machine, key, value, place)
    if "on" in job:
        _section(document, (*path, "on"), job.pop("on"), lambda *word: right(*word), note, known)
    return stated


def _section(
    document: Document,
    path: DataPath,
    section: Any,
    right: Callable[[Any, tuple[str, ...], str, DataPath], bool],
    note: Callable[[Any, Any, Any, DataPath], None],
    known: tuple[str, ...],
) -> None:
    """Take the keys of a section `on`."""
    if not isinstance(section, Mapping):
        document.blame(path, f"must be a mapping of machines to keys, got {show(section)}")
        return
    for machine, keys in section.items():
        if not right(machine, known, "kind of machine or chip", (*path, machine)):
            continue
        if not isinstance(keys, Mapping):
            document.blame((*path, machine), f"must be a mapping of keys to values, got {show(keys)}")
            continue
        for key, value in keys.items():
            if right(key, KEYS, "key of a job for one machine", (*path, machine, key)):
                note(machine, key, value, (*path, machine, key))


def _check(document: Document, machine: str, keys: dict[str, tuple[Any, DataPath]], stand_in: Any) -> None:
    """Note values that no machine could have; those that are wrong are taken out."""
    for key, (value, place) in list(keys.items()):
        alone = document_of({"model": stand_in, key: value})
        check(JobEntry, alone)
        for mistake in alone.mistakes:
            document.blame(place, mistake.sentence)
        if alone.mistakes:
            del keys[key]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
