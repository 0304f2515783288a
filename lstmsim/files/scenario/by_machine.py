"""Keys of a job entry that differ from machine to machine: a section `on`, or a mapping in place of a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.wording import nearest, show
from lstmsim.files.catalog import chip_files
from lstmsim.files.scenario.models import STAND_IN
from lstmsim.files.scenario.schema import JobEntry, check
from lstmsim.files.yaml.document import Document, Place, document_of
from lstmsim.machines.registry import KINDS
from lstmsim.model.scenario import OnMachines

#: Keys that say how a machine runs a job, and not what is asked of it.
KEYS = ("threads", "weights", "split", "cores")


#: Of a machine the values of keys, each with the place where it is.
_Stated = dict[str, dict[str, tuple[Any, DataPath]]]


def settle(document: Document) -> tuple[OnMachines, ...]:
    """Give each job entry the values that are meant for the document's chip, and take `on` out; mistakes are noted.

    The chip of the document is no name any more.
    Returns for each job entry its values by machine, as `lstmsim.model.scenario.Job.on` has them.
    """
    jobs, chip = document.data.get("jobs"), document.data.get("chip")
    own = chip if isinstance(chip, dict) else {}
    name, kind = str(own.get("name", "")), str(own.get("kind", next(iter(KINDS))))
    known = (*KINDS, *chip_files(), *([name] if name else []))
    return tuple(
        _settled(document, ("jobs", index), job, (kind, name), known) if isinstance(job, dict) else ()
        for index, job in enumerate(jobs if isinstance(jobs, list) else [])
    )


def _settled(
    document: Document, path: DataPath, job: dict[str, Any], own: tuple[str, str], known: tuple[str, ...]
) -> OnMachines:
    stated: _Stated = {}
    for machine, key, value, place in _stated(document, path, job, known):
        keys = stated.setdefault(machine, {})
        if _possible(document, key, value, place):
            keys[key] = value, place
    if not stated:
        return ()
    changed = {key for keys in stated.values() for key in keys}
    by_machine = {"": {key: job.get(key) for key in changed}}
    by_machine |= {machine: {key: value for key, (value, _) in keys.items()} for machine, keys in stated.items()}
    for machine in dict.fromkeys(own):
        for key, (value, place) in stated.get(machine, {}).items():
            document.put((*path, key), value)
            document.keys[*path, key] = document.values[*path, key] = Place(document.place(place))
    return tuple(
        (machine, tuple((key, _plain(value)) for key, value in keys.items())) for machine, keys in by_machine.items()
    )


def _stated(
    document: Document, path: DataPath, job: dict[str, Any], known: tuple[str, ...]
) -> Iterator[tuple[str, str, Any, DataPath]]:
    """Take what an entry says of machines out of it: machine, key, value and place, as far as the names are right."""
    for key in KEYS:
        if isinstance(job.get(key), Mapping):
            for machine, value in job.pop(key).items():
                place = (*path, key, machine)
                if _right(document, machine, known, "kind of machine or chip", place):
                    yield machine, key, value, place
    if "on" in job:
        yield from _section(document, (*path, "on"), job.pop("on"), known)


def _section(
    document: Document, path: DataPath, section: Any, known: tuple[str, ...]
) -> Iterator[tuple[str, str, Any, DataPath]]:
    """The values of a section `on`."""
    if not isinstance(section, Mapping):
        document.blame(path, f"must be a mapping of machines to keys, got {show(section)}")
        return
    for machine, keys in section.items():
        there = (*path, machine)
        if not _right(document, machine, known, "kind of machine or chip", there):
            continue
        if not isinstance(keys, Mapping):
            document.blame(there, f"must be a mapping of keys to values, got {show(keys)}")
            continue
        for key, value in keys.items():
            if _right(document, key, KEYS, "key of a job for one machine", (*there, key)):
                yield machine, key, value, (*there, key)


def _right(document: Document, word: Any, names: tuple[str, ...], what: str, place: DataPath) -> bool:
    """Whether a word is one of these names; if not, that is noted."""
    if word in names:
        return True
    hint = nearest(str(word), names) or f"; known are {', '.join(names)}"
    document.blame(place, f"there is no {what} called {show(word)}{hint}", key=True)
    return False


def _possible(document: Document, key: str, value: Any, place: DataPath) -> bool:
    """Whether some machine could have a value; if not, that is noted."""
    alone = document_of({"model": STAND_IN, key: value})
    check(JobEntry, alone)
    for mistake in alone.mistakes:
        document.blame(place, mistake.sentence)
    return not alone.mistakes


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
