"""Numbers put straight into a scenario that has been read: the quick way to the scenario of a point."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

from lstmsim.bounds import MAX_CORES, MAX_JOBS
from lstmsim.formats.scenario.chip_entries import own_keys
from lstmsim.formats.scenario.job_names import unique_names
from lstmsim.formats.scenario.schema import JobEntry, LayerEntry
from lstmsim.formats.scenario.schema_types import Cycles, Steps
from lstmsim.formats.yaml.document import Document
from lstmsim.keys import Described, Key, keys_of, unwrapped
from lstmsim.sweeps.spec import Value
from lstmsim.targets.entries import Fault
from lstmsim.targets.registry import KINDS, target_of
from lstmsim.targets.sizes import PerStep, Tally
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Chip, Job, Scenario

__all__ = ["Assignments", "Prepared", "quick_path"]

Assignments = Sequence[tuple[str, Value]]
_Changes = tuple[tuple[str, int | float], ...]

_LAYER_KEYS = ("hidden", "input", "projection")
_INDEX = re.compile(r"\d{1,5}", re.ASCII)
_MOST_KEPT = 4096


class _Range(NamedTuple):
    """Smallest and largest value of a number; all others are left to the checks of scenario files.

    whole: whether only whole numbers will do.
    """

    low: int | float
    high: int | float
    whole: bool = True

    def has(self, value: Value) -> bool:
        """Whether the value is such a number; a truth value is none."""
        right = type(value) is int or (type(value) is float and not self.whole)
        return right and self.low <= value <= self.high  # type: ignore[operator]


def _range(key: Key | None) -> _Range:
    """The range of a whole number of a job or a layer, all of which have both bounds."""
    assert key is not None
    assert key.low is not None
    assert key.high is not None
    return _Range(key.low, key.high)


def _range_of(each: Described) -> _Range | None:
    """The range of a key that varies; None if only the checks of scenario files can tell what may stand there."""
    key, kind = each.key, each.kind
    plain = kind in (int, float) and not each.several and key.above is None and key.below is None and key.rule is None
    if not key.vary or not plain or key.low is None or key.high is None:
        return None
    return _Range(key.low, key.high, whole=kind is int)


@cache
def _job_keys() -> dict[str, _Range]:
    """Numbers of a job's entry that may change without reading anything."""
    entry = keys_of(JobEntry)
    plain = {key: _range(entry[key].key) for key in ("count", "frame_interval")}
    # steps and arrivals may be more than numbers, which then go the long way
    return plain | {"steps": _range(unwrapped(Steps)[1]), "arrival": _range(unwrapped(Cycles)[1])}


@cache
def _core_keys(machine: str) -> dict[str, _Range]:
    """Numbers of a machine's cores that may change without reading anything, with a dot before a key of a part."""
    numbers: dict[str, _Range] = {}
    for name, each in keys_of(target_of(machine).core).items():
        kind: Any = each.type
        below: Mapping[str, Described] = keys_of(each.type) if is_dataclass(kind) else {}
        keys = {name: each} | {f"{name}.{key}": part for key, part in below.items()}
        ranges = {path: _range_of(own) for path, own in keys.items()}
        numbers |= {path: each for path, each in ranges.items() if each is not None}
    return numbers


@cache
def _every_core_key() -> frozenset[str]:
    return frozenset(key for kind in KINDS for key in _core_keys(kind))


@lru_cache(_MOST_KEPT)
def quick_path(path: str) -> bool:
    """Say whether a number at that path can be put in without reading anything, on some machine.

    >>> quick_path("chip.cores.0.ep"), quick_path("jobs.1.model.layers.0.hidden"), quick_path("chip")
    (True, True, False)
    """
    place = _split(path)
    if place is None:
        return False
    return place.key in _every_core_key() if place.of_core else _job_range(place.key) is not None


class _Place(NamedTuple):
    """A number's place in a scenario.

    of_core: whether it belongs to a core; otherwise it belongs to a job.
    number: of the core or job.
    key: the path below it.
    """

    of_core: bool
    number: int
    key: str


@lru_cache(_MOST_KEPT)
def _split(path: str) -> _Place | None:
    """The place that a path leads to; None if it leads to no core and no job."""
    for start, of_core in (("chip.cores.", True), ("jobs.", False)):
        index, dot, key = path.removeprefix(start).partition(".")
        if path.startswith(start) and dot and _INDEX.fullmatch(index):
            return _Place(of_core, int(index), key)
    return None


def _job_range(key: str) -> _Range | None:
    """The smallest and the largest number at a key of a job; None for a key that is not quick."""
    if key in _job_keys():
        return _job_keys()[key]
    model, layers, index, name, *more = [*key.split("."), *[""] * 4][:5]
    quick = (model, layers) == ("model", "layers") and _INDEX.fullmatch(index) and name in _LAYER_KEYS
    return _range(keys_of(LayerEntry)[name].key) if quick and not any(more) else None


class Prepared:
    """A scenario that has been read, with the entries of its file from which cores and jobs were made."""

    def __init__(self, scenario: Scenario, document: Document) -> None:
        self.base = scenario
        self.chip = scenario.chip
        self.target = target_of(scenario.chip.kind)
        self.core_keys = _core_keys(scenario.chip.kind)
        self.chip_entry: dict[str, Any] = {**document.data["chip"], "name": scenario.chip.name}
        self.core_entries: list[dict[str, Any]] = document.data["chip"]["cores"]
        self.job_entries: list[dict[str, Any]] = document.data["jobs"]
        # Jobs over several cores, and weights that must find room, are checked all together. Values that are drawn or
        # come from a file are not one number.
        self.shared = (
            any(job.split for job in scenario.jobs)
            or not self.target.varies(scenario.chip)
            or document.data.get("arrivals") is not None
            or any(isinstance(entry.get("steps"), dict | list) for entry in self.job_entries)
        )
        self.first_job = _starts(self.job_entries)
        self.chips: dict[tuple[_Changes, ...], Chip | None] = {}
        self.jobs: dict[tuple[_Changes, ...], tuple[Job, ...] | None] = {}

    def scenario(self, assignments: Assignments) -> Scenario | None:
        """Give the scenario with other numbers.

        assignments: (path, number) pairs of quick paths.
        `InputError` if the numbers do not fit together; None if the scenario must be read anew.
        """
        if self.shared:
            return None
        cores: list[dict[str, Any]] = [{} for _ in self.core_entries]
        jobs: list[dict[str, Any]] = [{} for _ in self.job_entries]
        for path, value in assignments:
            place = _split(path)
            assert place is not None, "it is a quick path"
            holders = cores if place.of_core else jobs
            bounds = self.core_keys.get(place.key) if place.of_core else _job_range(place.key)
            if bounds is None or place.number >= len(holders) or not bounds.has(value):
                return None
            holders[place.number][place.key] = value
        chip = self._kept(self.chips, cores, self._chip)
        made = self._kept(self.jobs, jobs, self._jobs)
        if chip is None or made is None or not self._fits(chip, made, jobs):
            return None
        return replace(self.base, chip=chip, jobs=made)

    @staticmethod
    def _kept(kept: dict[tuple[_Changes, ...], Any], changes: list[dict[str, Any]], make: Any) -> Any:
        """What `make` gives for these changes, made once."""
        key = tuple(tuple(each.items()) for each in changes)
        if key not in kept:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = make(changes)
        return kept[key]

    def _chip(self, changes: list[dict[str, Any]]) -> Chip | None:
        """The chip with the changed cores; None if it must be read anew."""
        cores: list[Any] = []
        for entry, change in zip(self.core_entries, changes, strict=True):
            core = self.target.core_of(_changed(own_keys(entry, set()), change))
            if isinstance(core, Fault):
                return None
            cores += [core] * entry.get("count", 1)
        if len(cores) > MAX_CORES or self.target.faults_of_all(cores):
            return None
        chip: Chip = self.target.chip_of(self.chip_entry, cores)
        return chip

    def _jobs(self, changes: list[dict[str, Any]]) -> tuple[Job, ...] | None:
        """The jobs with the changed numbers; None if they must be read anew."""
        names: list[str] = []
        jobs: list[Job] = []
        for entry, first, change in zip(self.job_entries, self.first_job, changes, strict=True):
            if isinstance(entry.get("arrival"), dict):
                # A process may also give its jobs number, deadlines and jobs to wait for.
                return None
            job = self.base.jobs[first]
            model = _model(job.model, entry["model"], change)
            if model is None:
                return None
            count = change.get("count", entry.get("count", 1))
            arrivals = change.get("arrival", entry.get("arrival", 0))
            arrivals = arrivals if isinstance(arrivals, list) else [arrivals] * count
            if len(arrivals) != count or len(jobs) + count > MAX_JOBS:
                return None
            steps = change.get("steps", job.steps)
            interval = change.get("frame_interval", job.frame_interval)
            one = replace(job, model=model, steps=steps, frame_interval=interval)
            jobs += [one if one.arrival == each else replace(one, arrival=each) for each in arrivals]
            names += [entry.get("name") or model.name] * count
        unique = unique_names(names)
        return tuple(
            job if job.name == name else replace(job, name=name) for job, name in zip(jobs, unique, strict=True)
        )

    def _fits(self, chip: Chip, jobs: tuple[Job, ...], changes: list[dict[str, Any]]) -> bool:
        """Whether the size is one that can be simulated; `InputError` if a job can run nowhere."""
        position, tally = 0, Tally()
        for entry, change in zip(self.job_entries, changes, strict=True):
            job, count = jobs[position], change.get("count", entry.get("count", 1))
            position += count
            self.target.check(chip, job)
            each = _per_step(chip.kind, _allowed(chip, job), job.model, job.batch)
            if tally.add("", each, job.steps, count) is not None:
                return False
        return True


def _changed(entry: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The entry of a core with other numbers; a key of a part has a dot between both names."""
    for path, value in change.items():
        name, _, key = path.partition(".")
        entry[name] = {**entry.get(name, {}), key: value} if key else value
    return entry


def _starts(entries: list[dict[str, Any]]) -> list[int]:
    """For each entry, the place of its first job in the list of all jobs."""
    starts, start = [], 0
    for entry in entries:
        starts.append(start)
        start += entry.get("count", 1)
    return starts


def _allowed(chip: Chip, job: Job) -> tuple[Any, ...]:
    """The different cores that a job may run on."""
    if len(chip.cores) == 1:
        return chip.cores
    return tuple(dict.fromkeys(chip.cores[index] for index in job.allowed(len(chip.cores))))


@lru_cache(_MOST_KEPT)
def _per_step(kind: str, cores: tuple[Any, ...], model: Model, batch: int) -> PerStep:
    able = [core for core in cores if core.refusal(model) is None]
    return target_of(kind).per_step(able, model, batch)


def _model(model: Model, entry: dict[str, Any], change: dict[str, Any]) -> Model | None:
    """The model with the changed layers, renamed if its name was made of its size; None for a missing layer."""
    layers = list(model.layers)
    for key, value in change.items():
        if not key.startswith("model.layers."):
            continue
        index, name = key.split(".")[2:]
        if int(index) >= len(layers):
            return None
        layers[int(index)] = replace(layers[int(index)], **{name: value})
    if tuple(layers) == model.layers:
        return model
    name = entry.get("name") or f"model-{layers[0].cell.name}-{layers[0].hidden}"
    return replace(model, name=name, layers=tuple(layers))
