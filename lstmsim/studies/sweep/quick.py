"""Numbers put straight into a scenario that has been read: the quick way to the scenario of a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from lstmsim.base.bounds import MAX_CORES, MAX_JOBS
from lstmsim.files.scenario.chip_entries import own_keys
from lstmsim.files.scenario.job_names import job_names
from lstmsim.files.yaml.document import Document
from lstmsim.machines.assembly import PerStep, Tally
from lstmsim.machines.registry import target_of
from lstmsim.machines.target import Fault
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.studies.sweep.quick_paths import Place, Range, core_keys, job_range, place_of
from lstmsim.studies.sweep.spec import Value

__all__ = ["Assignments", "Prepared"]

Assignments = Sequence[tuple[str, Value]]
#: Numbers to put in, each as (number of the core or job entry, key, value).
_Changes = tuple[tuple[int, str, Any], ...]

T = TypeVar("T")

#: Chips, and sets of jobs, that are kept of a scenario: points share them where other axes vary.
_MOST_KEPT = 4096


class _Jobs(NamedTuple):
    """All jobs of a scenario, and how many of them belong to each entry."""

    jobs: tuple[Job, ...]
    counts: tuple[int, ...]


class Prepared:
    """A scenario that has been read, with the entries of its file from which cores and jobs were made."""

    def __init__(self, scenario: Scenario, document: Document) -> None:
        self.base = scenario
        self.chip = scenario.chip
        self.target = target_of(scenario.chip.kind)
        self.core_keys = core_keys(scenario.chip.kind)
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
        own = (each.name for each in fields(scenario) if each.init and each.name not in ("chip", "jobs"))
        self.others = {name: getattr(scenario, name) for name in own}
        self.places: dict[str, tuple[Place, Range | None]] = {}
        self.chips: dict[_Changes, Chip | None] = {}
        self.jobs: dict[_Changes, _Jobs | None] = {}

    def scenario(self, assignments: Assignments) -> Scenario | None:
        """Give the scenario with other numbers.

        assignments: (path, number) pairs of quick paths.
        `InputError` if the numbers do not fit together; None if the scenario must be read anew.
        """
        if self.shared:
            return None
        cores: list[tuple[int, str, Value]] = []
        jobs: list[tuple[int, str, Value]] = []
        for path, value in assignments:
            place, bounds = self.places.get(path) or self._place(path)
            if bounds is None or not bounds.has(value):
                return None
            (cores if place.of_core else jobs).append((place.number, place.key, value))
        chip = _kept(self.chips, tuple(cores), self._chip)
        made = _kept(self.jobs, tuple(jobs), self._jobs)
        if chip is None or made is None or not self._fits(chip, made):
            return None
        return Scenario(chip=chip, jobs=made.jobs, **self.others)

    def _place(self, path: str) -> tuple[Place, Range | None]:
        """The place of a quick path, and the range of the number there; None if it must be read anew."""
        place = place_of(path)
        assert place is not None, "it is a quick path"
        bounds = self.core_keys.get(place.key) if place.of_core else job_range(place.key)
        if place.number >= len(self.core_entries if place.of_core else self.job_entries):
            bounds = None
        self.places[path] = place, bounds
        return place, bounds

    def _chip(self, changes: _Changes) -> Chip | None:
        """The chip with the changed cores; None if it must be read anew."""
        cores: list[Any] = []
        for entry, change in zip(self.core_entries, _by_entry(changes, len(self.core_entries)), strict=True):
            core = self.target.core_of(_changed(own_keys(entry, set()), change))
            if isinstance(core, Fault):
                return None
            cores += [core] * entry.get("count", 1)
        if len(cores) > MAX_CORES or self.target.faults_of_all(cores):
            return None
        chip: Chip = self.target.chip_of(self.chip_entry, cores)
        return chip

    def _jobs(self, changes: _Changes) -> _Jobs | None:
        """The jobs with the changed numbers; None if they must be read anew."""
        names: list[str] = []
        jobs: list[Job] = []
        counts: list[int] = []
        by_entry = _by_entry(changes, len(self.job_entries))
        for entry, first, change in zip(self.job_entries, self.first_job, by_entry, strict=True):
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
            names.append(entry.get("name") or model.name)
            counts.append(count)
        named = zip(jobs, job_names(names, counts), strict=True)
        return _Jobs(tuple(job if job.name == name else replace(job, name=name) for job, name in named), tuple(counts))

    def _fits(self, chip: Chip, made: _Jobs) -> bool:
        """Whether the size is one that can be simulated; `InputError` if a job can run nowhere."""
        position, tally = 0, Tally()
        for count in made.counts:
            job = made.jobs[position]
            position += count
            self.target.check(chip, job)
            each = _per_step(chip.kind, _allowed(chip, job), job.model, job.batch, job.members(len(chip.cores)))
            if tally.add("", each, job.steps, count) is not None:
                return False
        return True


def _kept(kept: dict[_Changes, T], changes: _Changes, make: Callable[[_Changes], T]) -> T:
    """What `make` gives for these changes, made once."""
    if changes not in kept:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[changes] = make(changes)
    return kept[changes]


def _by_entry(changes: _Changes, entries: int) -> list[dict[str, Any]]:
    """The changes of each entry: key -> value."""
    by_entry: list[dict[str, Any]] = [{} for _ in range(entries)]
    for number, key, value in changes:
        by_entry[number][key] = value
    return by_entry


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
def _per_step(kind: str, cores: tuple[Any, ...], model: Model, batch: int, members: int) -> PerStep:
    able = [core for core in cores if core.refusal(model) is None]
    return target_of(kind).per_step(able, model, batch, members=members)


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
