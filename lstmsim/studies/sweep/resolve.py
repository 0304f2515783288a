"""From the values of a point to its scenario, as by `--set`, shorter paths first.

Points that differ only in numbers of cores, jobs and layers share one reading of the document. These numbers are put
into the frozen descriptions, which check themselves; all unusual values go through reading and checking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from lstmsim.base.bounds import MAX_CORES, MAX_JOBS
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Described, Key, keys_of, unwrapped
from lstmsim.files.scenario.entries import job_names
from lstmsim.files.scenario.jobs import ReadScenario, build_scenario
from lstmsim.files.scenario.models import own_keys
from lstmsim.files.scenario.request_schema import ArrivalEntry, Cycles, Steps, StepsEntry
from lstmsim.files.scenario.scenario_file import checked_scenario
from lstmsim.files.scenario.schema import JobEntry, LayerEntry
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.source import copied
from lstmsim.machines.assembly import PerStep, Tally
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import Fault
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.studies.sweep.columns import ChipColumns
from lstmsim.studies.sweep.spec import Objective, Sweep, Value

_LAYER_KEYS = ("hidden", "input", "projection")
_INDEX = re.compile(r"\d{1,5}", re.ASCII)
#: Paths that are kept; a sweep has some tens.
_MOST_KEPT = 4096


class QuickRange(NamedTuple):
    """Smallest and largest value of a (whole) number, and what `rule` says is wrong with some between.

    All others are left to the checks of scenario files.
    """

    low: int | float
    high: int | float
    whole: bool = True
    rule: Callable[[Any], str] | None = None

    def has(self, value: Value) -> bool:
        """Whether the value is such a number; a truth value is none."""
        right = type(value) is int or (type(value) is float and not self.whole)
        return right and self.low <= value <= self.high and not (self.rule and self.rule(value))  # type: ignore[operator]


def _range(key: Key | None) -> QuickRange:
    """The range of a whole number of a job or a layer, all of which have both bounds."""
    assert key is not None and key.low is not None and key.high is not None  # noqa: PT018 - for the type checker
    return QuickRange(key.low, key.high)


@cache
def _job_keys() -> dict[str, QuickRange]:
    """Numbers of a job's entry that may change without reading anything."""
    entry = keys_of(JobEntry)
    plain = {key: _range(entry[key].key) for key in ("count", "frame_interval")}
    # steps and arrivals may be more than numbers, which are then read anew
    return plain | {"steps": _range(unwrapped(Steps)[1]), "arrival": _range(unwrapped(Cycles)[1])}


@cache
def core_keys(machine: str) -> dict[str, QuickRange]:
    """Numbers of a machine's cores that may change without reading anything, with a dot before a key of a part."""
    numbers: dict[str, QuickRange] = {}
    for name, each in keys_of(target_of(machine).core).items():
        kind: Any = each.type
        below: Mapping[str, Described] = keys_of(each.type) if is_dataclass(kind) else {}
        for path, own in ({name: each} | {f"{name}.{key}": part for key, part in below.items()}).items():
            key = own.key
            bounded = (key.above, key.below) == (None, None) and not own.several
            if key.vary and bounded and own.kind in (int, float) and key.low is not None and key.high is not None:
                numbers[path] = QuickRange(key.low, key.high, own.kind is int, key.rule)
    return numbers


@cache
def every_core_key() -> frozenset[str]:
    """Every key of a core, of any machine, whose number may change without reading anything."""
    return frozenset(key for kind in KINDS for key in core_keys(kind))


@lru_cache(_MOST_KEPT)
def quick_path(path: str) -> bool:
    """Say whether a number at that path can be put in without reading anything, on some machine."""
    where = key_path_of(path)
    if where is None:
        return False
    return where.key in every_core_key() if where.of_core else job_range(where.key) is not None


class KeyPath(NamedTuple):
    """Where a number stands in a scenario: the number of a core (or job), and the path below it."""

    of_core: bool
    number: int
    key: str


@lru_cache(_MOST_KEPT)
def key_path_of(path: str) -> KeyPath | None:
    """The core or job that a path leads to; None if it leads to no core and no job."""
    for start, of_core in (("chip.cores.", True), ("jobs.", False)):
        index, dot, key = path.removeprefix(start).partition(".")
        if path.startswith(start) and dot and _INDEX.fullmatch(index):
            return KeyPath(of_core, int(index), key)
    return None


def job_range(key: str) -> QuickRange | None:
    """The smallest and the largest number at a key of a job; None for a key that is not quick."""
    if key in _job_keys():
        return _job_keys()[key]
    model, layers, index, name, *more = [*key.split("."), *[""] * 4][:5]
    quick = (model, layers) == ("model", "layers") and _INDEX.fullmatch(index) and name in _LAYER_KEYS
    return _range(keys_of(LayerEntry)[name].key) if quick and not any(more) else None


Assignments = Sequence[tuple[str, Value]]
#: Numbers to put in, each as (number of the core or job entry, key, value).
_Changes = tuple[tuple[int, str, Any], ...]

T = TypeVar("T")
#: Jobs, and how many of them belong to each entry.
_Jobs = tuple[tuple[Job, ...], tuple[int, ...]]


class Prepared:
    """A scenario that has been read, with the entries of its chip and the records of its job entries."""

    def __init__(self, read: ReadScenario, document: Document) -> None:
        self.base, self.records = build_scenario(read), read.records
        self.target = target_of(read.chip.kind)
        self.core_keys = core_keys(read.chip.kind)
        self.chip_entry: dict[str, Any] = {**document.data["chip"], "name": read.chip.name}
        self.core_entries: list[dict[str, Any]] = document.data["chip"]["cores"]
        # Jobs over several cores, and weights that must fit, are checked all together. Values that are drawn or
        # come from a file are not one number.
        self.shared = (
            not self.target.varies(read.chip)
            or read.order.arrivals is not None
            or any(each.entry.split or each.rows is not None for each in self.records)
            or any(isinstance(each.entry.steps, StepsEntry | list) for each in self.records)
        )
        #: For each entry, the number of its first job.
        self.first_job = [0, *accumulate(each.count for each in self.records)]
        own = (each.name for each in fields(Scenario) if each.init and each.name not in ("chip", "jobs"))
        self.others = {name: getattr(self.base, name) for name in own}
        self.places: dict[str, tuple[KeyPath, QuickRange | None]] = {}
        self.chips: dict[_Changes, Chip | None] = {}
        self.jobs: dict[_Changes, _Jobs | None] = {}

    def scenario(self, assignments: Assignments) -> Scenario | None:
        """Give the scenario with other numbers; None if it must be read anew."""
        chip, made = self.chip(assignments), self.jobs_of(assignments)
        if chip is None or made is None or not self._fits(chip, made):
            return None
        return Scenario(chip=chip, jobs=made[0], **self.others)

    def chip(self, assignments: Assignments) -> Chip | None:
        """The chip with other numbers; None if it must be read anew."""
        changes = self._changes(assignments, of_core=True)
        return None if changes is None else _kept(self.chips, changes, self._chip)

    def jobs_of(self, assignments: Assignments) -> _Jobs | None:
        """The jobs with other numbers; None if they must be read anew."""
        changes = self._changes(assignments, of_core=False)
        return None if changes is None else _kept(self.jobs, changes, self._jobs)

    def _changes(self, assignments: Assignments, of_core: bool) -> _Changes | None:
        """The numbers of cores or of jobs among these; None if one of them must be read anew."""
        changes: list[tuple[int, str, Value]] = []
        for path, value in assignments:
            where, bounds = self.places.get(path) or self._key_path(path)
            if where.of_core != of_core:
                continue
            if self.shared or bounds is None or not bounds.has(value):
                return None
            changes.append((where.number, where.key, value))
        return None if self.shared else tuple(changes)

    def _key_path(self, path: str) -> tuple[KeyPath, QuickRange | None]:
        """The core or job of a quick path, and the range of the number there; None if it must be read anew."""
        where = key_path_of(path)
        assert where is not None, "it is a quick path"
        bounds = self.core_keys.get(where.key) if where.of_core else job_range(where.key)
        if where.number >= len(self.core_entries if where.of_core else self.records):
            bounds = None
        self.places[path] = where, bounds
        return where, bounds

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
        if self.target.chip_faults(self.chip_entry, cores):
            return None
        chip: Chip = self.target.chip_of(self.chip_entry, cores)
        return chip

    def _jobs(self, changes: _Changes) -> _Jobs | None:
        """The jobs with the changed numbers; None if they must be read anew."""
        names: list[str] = []
        jobs: list[Job] = []
        counts: list[int] = []
        moved = False
        by_entry = _by_entry(changes, len(self.records))
        for each, first, change in zip(self.records, self.first_job, by_entry, strict=False):
            known, count = self.base.jobs[first : first + each.count], change.get("count", each.count)
            layers = tuple([(key, value) for key, value in change.items() if key.startswith("model.layers.")])
            model = _model(known[0].model, each.entry.model.name, layers)
            if model is None or len(jobs) + count > MAX_JOBS:
                return None
            names.append(each.entry.name or model.name)
            counts.append(count)
            own: dict[str, Any] = {key: change[key] for key in ("steps", "frame_interval") if key in change}
            own["model"] = model
            again = "count" in change or "arrival" in change
            moved = moved or again or names[-1] != each.key[0]
            if moved and (isinstance(each.entry.arrival, ArrivalEntry) or each.follows is not None):
                # A process gives its jobs arrivals, deadlines and jobs to wait for by their number, place and name.
                return None
            if again:
                arrivals = change.get("arrival", each.entry.arrival)
                arrivals = arrivals if isinstance(arrivals, list) else [arrivals] * count
                if len(arrivals) != count:
                    return None
                known = tuple(replace(known[0], arrival=cycle) for cycle in arrivals)
            jobs += known if own == {"model": known[0].model} else [replace(job, **own) for job in known]
        named = zip(jobs, _job_names(tuple(names), tuple(counts)), strict=True)
        return tuple(job if job.name == name else replace(job, name=name) for job, name in named), tuple(counts)

    def _fits(self, chip: Chip, made: _Jobs) -> bool:
        """Whether the size is one that can be simulated; `InputError` if a job can run nowhere."""
        position, tally = 0, Tally()
        for count in made[1]:
            job = made[0][position]
            position += count
            self.target.check(chip, job)
            cores = tuple(dict.fromkeys(chip.cores[index] for index in job.allowed(len(chip.cores))))
            each = _per_step(chip.kind, cores, job.model, job.batch, job.members(len(chip.cores)))
            if tally.add(each, job.steps, count) is not None:
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


@lru_cache(_MOST_KEPT)
def _per_step(kind: str, cores: tuple[Any, ...], model: Model, batch: int, members: int) -> PerStep:
    able = [core for core in cores if core.refusal(model) is None]
    return target_of(kind).per_step(able, model, batch, members=members)


@lru_cache(_MOST_KEPT)
def _job_names(names: tuple[str, ...], counts: tuple[int, ...]) -> list[str]:
    return job_names(list(names), list(counts))


@lru_cache(_MOST_KEPT)
def _model(model: Model, name: str | None, change: tuple[tuple[str, Any], ...]) -> Model | None:
    """The model with the changed layers, renamed if its name was made of its size; None for a missing layer."""
    layers = list(model.layers)
    for path, value in change:
        index, key = path.split(".")[2:]
        if int(index) >= len(layers):
            return None
        layers[int(index)] = replace(layers[int(index)], **{key: value})
    if tuple(layers) == model.layers:
        return model
    name = name or f"model-{layers[0].cell.name}-{layers[0].hidden}"
    return replace(model, name=name, layers=tuple(layers))


_MOST_PREPARED = 200


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that all points share.

    document, scenario_name: the scenario's document, and its name unless the document has one.
    overrides: changes of the scenario that come before those of the axes.
    identity: names the setup: equal setups have equal names.
    chip, objectives: the columns about the chip of each point, and what points are judged by.
    """

    sweep: Sweep
    document: Document
    scenario_name: str
    overrides: tuple[str, ...]
    identity: str
    chip: ChipColumns
    objectives: tuple[Objective, ...]


class Resolver:
    """Makes the scenarios of points, and keeps what it has read for further points."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.prepared: dict[tuple[str, ...], Prepared | None] = {}
        places = [(path, name) for name, paths in setup.sweep.paths.items() for path in paths]
        #: (path, name of its value) in the order in which values are set.
        self.places = sorted(places, key=lambda where: where[0].count("."))
        self.quick = [each for each in self.places if quick_path(each[0])]
        self.slow = [each for each in self.places if not quick_path(each[0])]

    def scenario(self, values: Mapping[str, Value]) -> Scenario:
        """Make the scenario of a point; `InputError` if there is none."""
        prepared = self.prepared_for(values)
        if prepared is not None:
            scenario = prepared.scenario([(path, values[name]) for path, name in self.quick])
            if scenario is not None:
                return scenario
        return self.checked(values)

    def prepared_for(self, values: Mapping[str, Value]) -> Prepared | None:
        """The scenario of a point without the quick numbers; None if it is incomplete without them."""
        return self._prepare(tuple([override(path, values[name]) for path, name in self.slow]))

    def checked(self, values: Mapping[str, Value]) -> Scenario:
        """Make the scenario of a point the long way: every value goes through the checks of scenario files."""
        texts = [override(path, values[name]) for path, name in self.places]
        return build_scenario(self._read(texts)[0])

    def own(self) -> Scenario:
        """Make the scenario as it is, without the values of axes; `InputError` if it is none without them."""
        return build_scenario(self._read([])[0])

    def _read(self, overrides: list[str]) -> tuple[ReadScenario, Document]:
        setup, document = self.setup, copied(self.setup.document)
        return checked_scenario(document, [*setup.overrides, *overrides], setup.scenario_name), document

    def _prepare(self, overrides: tuple[str, ...]) -> Prepared | None:
        """The scenario without the quick numbers; None if it is incomplete without them."""
        if overrides not in self.prepared:
            if len(self.prepared) >= _MOST_PREPARED:
                self.prepared.clear()
            try:
                self.prepared[overrides] = Prepared(*self._read(list(overrides)))
            except InputError:
                self.prepared[overrides] = None
        return self.prepared[overrides]


def override(path: str, value: Value) -> str:
    """Write the value at a path as `--set` takes it."""
    return f"{path}={json.dumps(value, ensure_ascii=False)}"
