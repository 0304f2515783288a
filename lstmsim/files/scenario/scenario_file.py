"""Scenario, chip and model files: read, checked as a whole, and turned into the plain descriptions that targets take.

First `PATH=VALUE` changes are made and names of chips and models are replaced by their contents. Then everything is
checked. All mistakes of all files come in one `InputError`, in the order of their lines.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.catalog import find_chip, find_model, is_path
from lstmsim.files.scenario.job_arrivals import JobArrivals
from lstmsim.files.scenario.jobs import JobSteps, build_jobs, check_jobs, job_templates, tenant_offers
from lstmsim.files.scenario.models import (
    Cores,
    Numbers,
    build_chip,
    check_width,
    left_out,
    read_cells,
    read_cores,
    read_model,
    read_precision,
    without_effect,
)
from lstmsim.files.scenario.schema import ArrivalEntry, ModelFile, ScenarioFile, StepsEntry, chip_entry, scenario_entry
from lstmsim.files.yaml.document import Document, check, document_of
from lstmsim.files.yaml.source import apply_overrides, read_document
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Offer, Scenario


class Opened(Mapping[str, Any]):
    """The keys of a document that has been read; whoever changes the document takes a copy."""

    def __init__(self, document: Document, overrides: tuple[str, ...], name: str) -> None:
        self.document, self.overrides, self.name = document, overrides, name

    def __getitem__(self, key: str) -> Any:
        return self.document.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document.data)

    def __len__(self) -> int:
        return len(self.document.data)


def draws(document: Document, overrides: tuple[str, ...]) -> bool:
    """Whether jobs of a document may be drawn: at random, from a file, or as a process that goes on."""
    data = document.data if isinstance(document.data, dict) else {}
    jobs = data.get("jobs")
    entries = [each for each in jobs if isinstance(each, dict)] if isinstance(jobs, list) else []
    drawn = any(isinstance(each.get(key), dict) for each in entries for key in ("arrival", "steps"))
    return drawn or "arrivals" in data or any(str(each).startswith(("jobs", "arrivals")) for each in overrides)


def load_scenario(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario.

    source: a file, or data in the layout of a file. Paths in a file start at its folder, paths in data at the working
    directory.
    overrides: changes `PATH=VALUE`.
    `InputError` with every mistake.

    >>> data = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5, "count": 2}]}
    >>> [job.name for job in load_scenario(data, ["jobs.0.steps=7"]).jobs]
    ['lstm-512 #1', 'lstm-512 #2']
    """
    document, name = open_scenario(source)
    given = tuple(overrides)
    kept = Opened(copy.deepcopy(document), given, name) if draws(document, given) else None
    scenario = scenario_from_document(document, overrides, name)
    object.__setattr__(scenario, "origin", kept)
    return scenario


def open_scenario(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Document, str]:
    """Read a file, or data in the layout of a file, as a document. Also give the name for a scenario without a name."""
    if isinstance(source, Opened):
        document = copy.deepcopy(source.document)
        apply_overrides(document, source.overrides, References(document).expand, left_out)
        return document, source.name
    if isinstance(source, Mapping):
        return document_of(source), "scenario"
    return read_document(source), Path(source).stem


def load_chip(name_or_path: str | os.PathLike[str]) -> Chip:
    """Load the chip preset of a name, or the chip in a file; `InputError` with every mistake."""
    document = _named_document(os.fspath(name_or_path), find_chip)
    entry, wrong = check(chip_entry(document.data), document)
    cores = read_cores(document, (), wrong)
    if entry is None or document.mistakes:
        raise _error(document)
    return build_chip(entry, document.data, cores)


def load_model(name_or_path: str | os.PathLike[str]) -> Model:
    """Load the model of a name that comes with lstmsim, or the model in a file; `InputError` with every mistake."""
    return _model(_named_document(os.fspath(name_or_path), find_model))


def model_and_steps(source: Any) -> tuple[Model, int | None]:
    """Load a model, and give the steps that it states (None: it states none).

    source: name of the model, its file, or data in the layout of a model file.
    `InputError` with every mistake.
    """
    if isinstance(source, str | os.PathLike):
        document = _named_document(os.fspath(source), find_model)
    else:
        document = document_of(source)
    model = _model(document)
    return model, document.data.get("steps")


def _model(document: Document) -> Model:
    _, wrong = check(ModelFile, document)
    model = read_model(document, (), wrong)
    if model is None or document.mistakes:
        raise _error(document)
    return model


def _named_document(name: str, find: Callable[[str], Path]) -> Document:
    """Read the file of a chip or model. If the file gives no `name`, `name` becomes its name."""
    document = read_document(name if is_path(name) else find(name))
    document.data.setdefault("name", Path(name).stem if is_path(name) else name)
    return document


class Checked(NamedTuple):
    """A scenario document without mistakes."""

    order: ScenarioFile
    chip: Chip
    models: list[Model]
    arrivals: JobArrivals
    steps: JobSteps
    numbers: Numbers

    def scenario(self, jobs: tuple[Job, ...], name: str, offers: Mapping[str, Offer]) -> Scenario:
        """Build the scenario with these jobs; `name` is its name if the file gives none."""
        own = self.numbers
        called = self.order.name or name
        parts = [
            (f"jobs.{index}.{key}", part)
            for index, entry in enumerate(self.order.jobs)
            for key, part in (("arrival", entry.arrival), ("steps", entry.steps))
        ]
        seeds = {
            place: part.seed for place, part in parts if isinstance(part, ArrivalEntry | StepsEntry) and part.random
        }
        return Scenario(self.chip, jobs, called, own.precision, offers, own.given, own.calibration, seeds)


def scenario_from_document(document: Document, overrides: Sequence[str] = (), name: str = "scenario") -> Scenario:
    """Load a scenario from a document, which changes: names are replaced and overrides are made."""
    checked = checked_scenario(document, overrides)
    jobs = build_jobs(document, checked.order, checked.models, checked.arrivals, checked.steps)
    entries = job_templates(document, checked.order, checked.models)
    counts = [checked.arrivals.check(index, entry) for index, entry in enumerate(checked.order.jobs)]
    offers = tenant_offers(checked.order, entries, checked.arrivals, checked.steps, counts)
    return checked.scenario(jobs, name, offers)


def checked_scenario(document: Document, overrides: Sequence[str], *, single: bool = False) -> Checked:
    """Check a scenario document, and give everything of the scenario but its jobs."""
    references = References(document)
    apply_overrides(document, overrides, references.expand, left_out)
    references.expand_all()
    entry, wrong = check(scenario_entry(document.data), document, references.failed)
    cores = read_cores(document, ("chip",), wrong) if "chip" in document.data else Cores((), known=False)
    cells = read_cells(document, (), wrong)
    clock, whole = (None, None) if entry is None else (entry.chip.frequency_mhz, entry.arrivals)
    arrivals = JobArrivals(document, clock, whole)
    steps = JobSteps(document, arrivals)
    models = check_jobs(document, wrong, cores, cells, arrivals, steps, single=single)
    # note keys without effect in the choice of jobs and in the chip
    data = document.data
    if data.get("preemption") is True and data.get("dispatch", "fcfs") == "fcfs":
        text = "has no effect with dispatch fcfs, where no job goes before another: choose priority, edf or sjf"
        document.blame(("preemption",), text)
    without_effect(document)
    given = "precision" in document.data
    # set the one width of weights: that of `precision` or, if `precision` states none, that of the cores
    precision = document.data.get("precision", {})
    bits = check_width(document, precision.get("weight_bits") if isinstance(precision, dict) else None)
    if isinstance(precision, dict) and bits is not None:
        document.data["precision"] = {**precision, "weight_bits": bits}
    numbers = read_precision(document, wrong, models, given=given)
    if entry is None or document.mistakes:
        raise _error(document)
    all_models = [model for model in models if model is not None]
    chip = build_chip(entry.chip, document.data["chip"], cores)
    chip = target_of(chip.kind).with_weight_bits(chip, numbers.precision.weight_bits)
    return Checked(entry, chip, all_models, arrivals, steps, numbers)


class References:
    """The replacement of names and paths of chips and models in a document by the chips and models themselves."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.failed: set[DataPath] = set()
        self.read: dict[tuple[str, str], Document | InputError] = {}

    def expand_all(self) -> None:
        """Replace the names of the chip and of the models of all jobs."""
        self.expand(("chip",))
        jobs = self.document.data.get("jobs")
        for index, job in enumerate(jobs if isinstance(jobs, list) else []):
            if isinstance(job, dict):
                self.expand(("jobs", index, "model"))

    def expand(self, path: DataPath) -> bool:
        """Replace the text at `path` by the chip or model of that name; False if there is no such chip or model."""
        kind = "chip" if path == ("chip",) else "model"
        if kind == "model" and not (len(path) == 3 and path[0] == "jobs" and path[2] == "model"):
            return True
        holder = self.document.at(path[:-1])
        name = holder.get(path[-1])
        if not isinstance(name, str):
            return path not in self.failed
        document = self._find(kind, name)
        if isinstance(document, InputError):
            for mistake in document.mistakes:
                # A mistake of a whole file is reported at the place that names the file: the user can mend it there.
                inside = mistake.location not in ("", self._file(name))
                self.document.note(mistake if inside else Mistake(self.document.place(path), str(mistake)))
            holder[path[-1]] = None
            self.failed.add(path)
            return False
        holder[path[-1]] = copy.deepcopy(document.data)
        for below, value_place in document.values.items():
            self.document.values[path + below] = value_place
        for below, key_place in document.keys.items():
            self.document.keys[path + below] = key_place
        return True

    def _file(self, name: str) -> str:
        return str(self.document.folder / name)

    def _find(self, kind: str, name: str) -> Document | InputError:
        if (kind, name) not in self.read:
            find = find_chip if kind == "chip" else find_model
            try:
                document = _named_document(self._file(name) if is_path(name) else name, find)
                self.document.mistakes.extend(document.mistakes)
                self.read[kind, name] = document
            except InputError as error:
                self.read[kind, name] = error
        return self.read[kind, name]


def _error(document: Document) -> InputError:
    """Make the error with every mistake once. Mistakes of one file stand in the order of its lines."""
    files: dict[str, int] = {}

    def order(mistake: Mistake) -> tuple[int, int, int]:
        match = re.match(r"(.*?):(\d+):(\d+)", mistake.location)
        file, line, column = match.groups() if match else ("", "0", "0")
        return files.setdefault(file, len(files)), int(line), int(column)

    return InputError(sorted(dict.fromkeys(document.reported()), key=order))
