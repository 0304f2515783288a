"""Numbers put straight into a scenario that has been read: the quick way to the scenario of a point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lstmsim.formats.scenario import schema_types as schema
from lstmsim.formats.scenario.job_entries import MAX_STEP_OPERATIONS
from lstmsim.formats.scenario.job_names import unique_names
from lstmsim.formats.scenario.schema_chips import LatencyEntry
from lstmsim.formats.yaml.document import Document
from lstmsim.keys import keys_of
from lstmsim.sweeps.spec import Value
from lstmsim.targets.assembly import MAX_JOB_OPERATIONS, MAX_OPERATIONS
from lstmsim.targets.column.lowering import operations_per_step
from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job, Scenario

__all__ = ["Assignments", "Prepared", "quick_path"]

Assignments = Sequence[tuple[str, Value]]
_Changes = tuple[tuple[str, int], ...]

#: Smallest and largest value of each number; others are left to the checks of scenario files.
_CORE_KEYS = {
    "npe": (1, schema.MAX_PES),
    "ep": (1, schema.MAX_PES),
    "vp": (1, schema.MAX_PES),
    "threads": (1, schema.MAX_THREADS),
    "tail_width": (1, schema.MAX_SIZE),
    "accumulator_banks": (1, schema.MAX_BANKS),
    "tree_inputs": (1, schema.MAX_PES),
    "cat": (1, schema.MAX_PES),
    "switch_cycles": (0, schema.MAX_LATENCY_CYCLES),
}
_LATENCY_KEYS = tuple(keys_of(LatencyEntry))
_JOB_KEYS = {
    "steps": (1, schema.MAX_STEPS),
    "arrival": (0, schema.MAX_CYCLES),
    "count": (1, schema.MAX_JOBS),
    "frame_interval": (0, schema.MAX_INTERVAL_CYCLES),
}
_LAYER_KEYS = ("hidden", "input", "projection")
_INDEX = r"(\d{1,5})"
_QUICK = re.compile(
    rf"chip\.cores\.{_INDEX}\.({'|'.join(_CORE_KEYS)})|chip\.cores\.{_INDEX}\.(latency\.(?:{'|'.join(_LATENCY_KEYS)}))|"
    rf"jobs\.{_INDEX}\.({'|'.join(_JOB_KEYS)})|jobs\.{_INDEX}\.(model\.layers\.{_INDEX}\.(?:{'|'.join(_LAYER_KEYS)}))",
    re.ASCII,
)
_MOST_KEPT = 4096


@lru_cache(_MOST_KEPT)
def quick_path(path: str) -> bool:
    """Whether a number at that path can be put in without reading anything.

    >>> quick_path("chip.cores.0.ep"), quick_path("jobs.1.model.layers.0.hidden"), quick_path("chip")
    (True, True, False)
    """
    return _QUICK.fullmatch(path) is not None


@lru_cache(_MOST_KEPT)
def _target(path: str) -> tuple[bool, int, str, int, int]:
    """Of a quick path: whether it leads to a core (else a job), its index, the key below, and the key's range."""
    _, kind, index, key = path.split(".", 3) if path.startswith("chip") else ("", "", *path.split(".", 2)[1:])
    if not kind:
        low, high = _JOB_KEYS.get(key, (1, schema.MAX_SIZE))
    elif key.startswith("latency."):
        low, high = 1, schema.MAX_LATENCY_CYCLES
    else:
        low, high = _CORE_KEYS[key]
    return bool(kind), int(index), key, low, high


class Prepared:
    """A scenario that has been read, with the entries of its file that say how cores and jobs came about."""

    def __init__(self, scenario: Scenario, document: Document) -> None:
        self.base = scenario
        self.chip = scenario.chip
        self.core_entries: list[dict[str, Any]] = document.data["chip"]["cores"]
        self.job_entries: list[dict[str, Any]] = document.data["jobs"]
        # jobs over several cores, and weights that must find room, are checked all together; what is drawn, or comes
        # from a file, is not one number
        self.shared = (
            any(job.split for job in scenario.jobs)
            or any(core.get("weight_kib") is not None for core in self.core_entries)
            or document.data.get("arrivals") is not None
            or any(isinstance(entry.get("steps"), dict | list) for entry in self.job_entries)
        )
        self.first_job = _starts(self.job_entries)
        self.first_core = _starts(self.core_entries)
        self.chips: dict[tuple[_Changes, ...], ColumnNpu | None] = {}
        self.jobs: dict[tuple[_Changes, ...], tuple[Job, ...] | None] = {}

    def scenario(self, assignments: Assignments) -> Scenario | None:
        """The scenario with those numbers, `InputError` if they do not fit together, None if it must be read anew."""
        if not isinstance(self.chip, ColumnNpu) or self.shared:
            return None
        cores: list[dict[str, int]] = [{} for _ in self.core_entries]
        jobs: list[dict[str, int]] = [{} for _ in self.job_entries]
        for path, value in assignments:
            of_core, index, key, low, high = _target(path)
            holders = cores if of_core else jobs
            if index >= len(holders) or type(value) is not int or not low <= value <= high:
                return None
            holders[index][key] = value
        chip = self._kept(self.chips, cores, self._chip)
        made = self._kept(self.jobs, jobs, self._jobs)
        if chip is None or made is None or not self._fits(chip, made, jobs):
            return None
        return replace(self.base, chip=chip, jobs=made)

    @staticmethod
    def _kept(kept: dict[tuple[_Changes, ...], Any], changes: list[dict[str, int]], make: Any) -> Any:
        key = tuple(tuple(each.items()) for each in changes)
        if key not in kept:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = make(changes)
        return kept[key]

    def _chip(self, changes: list[dict[str, int]]) -> ColumnNpu | None:
        chip = self.chip
        assert isinstance(chip, ColumnNpu)
        cores: list[ColumnCore] = []
        for entry, first, change in zip(self.core_entries, self.first_core, changes, strict=True):
            core = chip.cores[first]
            latency = {key[8:]: value for key, value in change.items() if key.startswith("latency.")}
            direct: dict[str, Any] = {key: value for key, value in change.items() if not key.startswith("latency.")}
            if latency:
                direct["latency"] = replace(core.latency, **latency)
            if entry.get("vp") is None and "vp" not in direct:
                npe, ep = direct.get("npe", core.npe), direct.get("ep", core.ep)
                if ep > npe:
                    return None
                direct["vp"] = npe // ep
            cores += [replace(core, **direct) if direct else core] * entry.get("count", 1)
        if sum(core.threads for core in cores) > schema.MAX_CONTEXTS:
            return None
        return replace(chip, cores=tuple(cores))

    def _jobs(self, changes: list[dict[str, int]]) -> tuple[Job, ...] | None:
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
            if len(arrivals) != count or len(jobs) + count > schema.MAX_JOBS:
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

    def _fits(self, chip: ColumnNpu, jobs: tuple[Job, ...], changes: list[dict[str, int]]) -> bool:
        """Whether the size is one that can be simulated; `InputError` if a job can run nowhere."""
        total = position = 0
        for entry, change in zip(self.job_entries, changes, strict=True):
            job, count = jobs[position], change.get("count", entry.get("count", 1))
            position += count
            chip.check(job)
            able = [core for core in _allowed(chip, job) if core.refusal(job.model) is None]
            step = max(_operations(job.model, core) for core in able)
            own = step * job.steps
            total += own * count
            if step > MAX_STEP_OPERATIONS or own > MAX_JOB_OPERATIONS or total > MAX_OPERATIONS:
                return False
        return True


def _starts(entries: list[dict[str, Any]]) -> list[int]:
    """Where what an entry stands for begins, in the list of all."""
    starts, start = [], 0
    for entry in entries:
        starts.append(start)
        start += entry.get("count", 1)
    return starts


def _allowed(chip: ColumnNpu, job: Job) -> tuple[ColumnCore, ...]:
    if len(chip.cores) == 1:
        return chip.cores
    return tuple(dict.fromkeys(chip.cores[index] for index in job.allowed(len(chip.cores))))


@lru_cache(_MOST_KEPT)
def _operations(model: Model, core: ColumnCore) -> int:
    return operations_per_step(model, core)


def _model(model: Model, entry: dict[str, Any], change: dict[str, int]) -> Model | None:
    """The model with the changed layers; called anew if its name was made of its size."""
    layers = list(model.layers)
    for key, value in change.items():
        if not key.startswith("model.layers."):
            continue
        index, name = key.split(".")[2:]
        if int(index) >= len(layers):
            return None
        layers[int(index)] = replace(layers[int(index)], **{name: value})  # type: ignore[arg-type]
    if tuple(layers) == model.layers:
        return model
    name = entry.get("name") or f"model-{layers[0].cell.name}-{layers[0].hidden}"
    return replace(model, name=name, layers=tuple(layers))
