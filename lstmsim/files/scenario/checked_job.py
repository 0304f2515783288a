"""A single job, made of the keys of a job entry and of the keys that a file states once for all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.scenario.chip_entries import Cores
from lstmsim.files.scenario.job_cores import check_cores
from lstmsim.files.scenario.job_initial import ZERO, names_job
from lstmsim.files.scenario.model_entries import STAND_IN, file_path, frames_path
from lstmsim.files.scenario.schema import InitialEntry, JobEntry
from lstmsim.files.yaml.checks import check
from lstmsim.files.yaml.document import Document, document_of
from lstmsim.model.model import Model
from lstmsim.model.scenario import DISPATCH, Job

__all__ = ["checked_job"]

#: Keys of a job that are no keys of an entry. A file states them once, or they follow from the place of the entry.
_BESIDE = {
    "after": (int, "a whole number"),
    "states_of": (int, "a whole number"),
    "dispatch": (str, "text"),
    "preempts": (bool, "true or false"),
    "affinity": (bool, "true or false"),
    "tenant": (str, "text"),
}
_DEFAULTS = {each.name: each.default for each in fields(Job)}


def checked_job(model: Model, stated: int | None, keys: Mapping[str, Any]) -> Job:
    """Make a job of a model.

    model: the model.
    stated: the steps that the model itself states; None: it states none.
    keys: fields of `Job`; a field with None or its default counts as not given.
    `InputError` with every mistake, in the words of a scenario file.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> checked_job(Model("m", (Layer(cell("gru"), 8, 4),)), 7, {"priority": 2}).steps
    7
    """
    given = {key: value for key, value in keys.items() if value is not None and not _is_default(key, value)}
    entry_keys = {key: value for key, value in given.items() if key not in _BESIDE}
    document = document_of({"model": STAND_IN, **entry_keys})
    entry, _ = check(JobEntry, document)
    _check_beside(document, given)
    _check_single(document, given)
    _check_initial(document, entry)
    if entry is not None:
        check_cores(document, (), entry, Cores((), known=False))
    steps = given.get("steps", stated)
    if steps is None:
        document.blame(("steps",), "required key is missing (the model states no steps of its own)")
    if entry is None or document.mistakes or steps is None:
        raise InputError(document.mistakes)
    values = {key: getattr(entry, key) for key in entry_keys if key not in ("steps", "cores", "inputs", "initial")}
    values |= {key: value for key, value in given.items() if key in _BESIDE}
    if entry.cores is not None:
        values["cores"] = tuple(entry.cores)
    if entry.inputs is not None:
        values["inputs"] = frames_path(document, ("inputs",), entry.inputs)
    if "initial" in given:
        values["initial"] = _initial(document, entry)
    return Job(**({"name": model.name} | values), model=model, steps=int(steps))


def _initial(document: Document, entry: JobEntry) -> str:
    """A file of states, `zero`, or the name of another job, which means something once the jobs stand together."""
    given = entry.initial
    word = str((given.job or given.file) if isinstance(given, InitialEntry) else given)
    return word if word == ZERO or names_job(word) else file_path(document, ("initial",), word)


def _check_initial(document: Document, entry: JobEntry | None) -> None:
    given = entry.initial if entry is not None else None
    if isinstance(given, InitialEntry) and bool(given.job) == bool(given.file):
        keys = "`job` (the name of an earlier one) or `file` (a .safetensors file of states)"
        document.blame(("initial",), f"must have one key, {keys}")


def _is_default(key: str, value: Any) -> bool:
    default = _DEFAULTS[key]
    return type(value) is type(default) and value == default


def _check_beside(document: Document, given: Mapping[str, Any]) -> None:
    for key, (kind, words) in _BESIDE.items():
        value = given.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            document.blame((key,), f"must be {words}, got {show(value)}")
        elif key == "dispatch" and value not in DISPATCH:
            known = [repr(each) for each in DISPATCH]
            document.blame((key,), f"must be {listed(known)}, got {show(value)}{nearest(str(value), DISPATCH)}")


def _check_single(document: Document, given: Mapping[str, Any]) -> None:
    """Note keys that make many jobs of an entry, because the keys here describe a single job."""
    more = {"arrival": "a process or a list of arrivals", "steps": "a distribution or a list of steps"}
    for key, what in more.items():
        if isinstance(given.get(key), list | tuple | Mapping):
            text = f"must be a whole number, got {show(given[key])}: {what} belongs to a mapping, which is many jobs"
            document.blame((key,), text)
