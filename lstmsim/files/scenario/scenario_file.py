"""Scenario, chip and model files: read, checked as a whole, and turned into the plain descriptions that targets take.

A scenario is read in passes; each does one thing to the end and hands on a frozen record. `PATH=VALUE` changes are made
and names of chips and models are replaced by their contents (here); the document is checked against its schema
(`schema`); the chip is read and built, then models and numbers (`models`); each job entry is read (`entries`); the
scenario is built from these records (`jobs`). All mistakes of all files come in one `InputError`, in the order of their
lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import dotted, nearest, show
from lstmsim.files.catalog import file_named, is_path
from lstmsim.files.scenario.batching import check_batching
from lstmsim.files.scenario.by_machine import settle
from lstmsim.files.scenario.entries import JobReader
from lstmsim.files.scenario.jobs import ReadScenario, build_scenario
from lstmsim.files.scenario.models import blame, left_out, read_chip, read_model, read_models, read_numbers
from lstmsim.files.scenario.pinned import order_faults
from lstmsim.files.scenario.schema import ModelFile, check, chip_entry, scenario_entry
from lstmsim.files.yaml.document import LABEL, Document, Place, document_of
from lstmsim.files.yaml.source import copied, copied_data, parse_document, read_document
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Scenario


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
    kept = Opened(copied(document), given, name) if draws(document, given) else None
    scenario = scenario_from_document(document, overrides, name)
    object.__setattr__(scenario, "origin", kept)
    return scenario


def open_scenario(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Document, str]:
    """Read a file, or data in the layout of a file, as a document. Also give the name for a scenario without a name."""
    if isinstance(source, Opened):
        document = copied(source.document)
        apply_overrides(document, source.overrides, References(document).expand, left_out)
        return document, source.name
    if isinstance(source, Mapping):
        return document_of(source), "scenario"
    document, name = read_document(source), os.fspath(source)
    if "layers" in document.data and not {"chip", "jobs"} & set(document.data):
        text = f"is a model, no scenario: simulate it by `lstmsim simulate {name} --chip NAME --steps N`, or name it as"
        raise InputError(Mistake(name, f"{text} the `model` of a job in a scenario"))
    if "cores" in document.data and not {"chip", "jobs"} & set(document.data):
        text = f"is a chip, no scenario: use it in one by `lstmsim simulate SCENARIO --set chip={name}`, or simulate a"
        raise InputError(Mistake(name, f"{text} network or a model with --chip {name}"))
    return document, Path(source).stem


def load_chip(name_or_path: str | os.PathLike[str]) -> Chip:
    """Load the chip preset of a name, or the chip in a file; `InputError` with every mistake."""
    document = _named_document("chip", os.fspath(name_or_path))
    entry, wrong = check(chip_entry(document.data), document)
    read = read_chip(document, document.data, (), wrong, entry)
    if read.chip is None or document.mistakes:
        raise _error(document)
    return read.chip


def load_model(name_or_path: str | os.PathLike[str]) -> Model:
    """Load the model of a name that comes with lstmsim, or the model in a file; `InputError` with every mistake."""
    return _model(_named_document("model", os.fspath(name_or_path)))


def model_and_steps(source: Any) -> tuple[Model, int | None]:
    """Load a model, and give the steps that it states (None: it states none).

    source: name of the model, its file, or data in the layout of a model file.
    `InputError` with every mistake.
    """
    named = isinstance(source, str | os.PathLike)
    document = _named_document("model", os.fspath(source)) if named else document_of(source)
    model = _model(document)
    return model, document.data.get("steps")


def _model(document: Document) -> Model:
    entry, wrong = check(ModelFile, document)
    model = read_model(document, document.data, (), wrong, right=entry)
    if model is None or document.mistakes:
        raise _error(document)
    return model


def scenario_from_document(document: Document, overrides: Sequence[str] = (), name: str = "scenario") -> Scenario:
    """Load a scenario from a document, which changes: names are replaced and overrides are made."""
    return build_scenario(checked_scenario(document, overrides, name))


def checked_scenario(
    document: Document, overrides: Sequence[str], name: str = "scenario", *, single: bool = False
) -> ReadScenario:
    """Read a scenario document: everything of the scenario but its jobs.

    name: of the scenario, if the document gives none.
    single: whether each entry stands for a stream of requests, and not for jobs that are all there.
    """
    references = References(document)
    apply_overrides(document, overrides, references.expand, left_out)
    references.expand_all()
    data, on = document.data, settle(document)
    order, wrong = check(scenario_entry(data), document, references.failed)
    chip = read_chip(document, data.get("chip"), ("chip",), wrong, order and order.chip)
    models = read_models(document, wrong, order)
    records = JobReader(document, wrong, order, chip, models, single).read()
    if order and any(each.batching is not None for each in order.jobs):
        check_batching(document, order, models, chip)
    if order and any(getattr(each.arrival, "session", None) == "moved" for each in order.jobs):
        for key, text in order_faults(order):
            document.blame((key,), text)
    # note keys without effect in the choice of jobs and in the chip
    if data.get("preemption") is True and data.get("dispatch", "fcfs") == "fcfs":
        text = "has no effect with dispatch fcfs, where no job goes before another: choose priority, edf or sjf"
        document.blame(("preemption",), text)
    for fault in chip.idle:
        blame(document, ("chip",), fault)
    numbers = read_numbers(document, wrong, chip, models)
    if order is None or chip.chip is None or chip.target is None or document.mistakes:
        raise _error(document)
    built = chip.chip
    if numbers.own_width:
        built = chip.target.with_weight_bits(built, numbers.precision.weight_bits)
    return ReadScenario(order, name, built, records, numbers, single, on)


def _named_document(kind: str, name: str, folder: Path | None = None) -> Document:
    """Read the file of a chip or model. If the file gives no `name`, `name` becomes its name.

    folder: where paths of files start.
    """
    document = read_document(file_named(kind, name, folder))
    document.data.setdefault("name", Path(name).stem if is_path(name) else name)
    return document


#: Replaces a name at a path by the chip or model of that name; False if there is none.
Expand = Callable[[DataPath], bool]
#: Names the mappings right below a path that a file may leave out and an override may still change.
LeftOut = Callable[[DataPath], Sequence[str]]


class _NoSuchPathError(Exception):
    """The path of an override leads nowhere; its text is the sentence for the user."""


def apply_overrides(document: Document, overrides: Sequence[str], expand: Expand, left_out: LeftOut) -> None:
    """Change a document's data by texts `PATH=VALUE`, one after another; mistakes are noted in the document.

    expand: called for each path on the way down, to replace a name by the chip or model of that name.
    left_out: names the mappings right below a path that need not be there.
    """
    expected = "must be a list of texts like ['jobs.0.steps=3'], got"
    given: object = overrides
    if isinstance(given, str) or not isinstance(given, Sequence):
        what = "the text " if isinstance(given, str) else ""
        raise InputError(Mistake("overrides", f"{expected} {what}{show(overrides)}"))
    for override in overrides:
        if not isinstance(override, str):
            raise InputError(Mistake("overrides", f"{expected} {show(override)} in it"))
        label = LABEL + (override if override.isprintable() else repr(override))
        target, equals, text = override.partition("=")
        parts = target.strip().split(".")
        if not equals or "" in parts:
            sentence = "must look like PATH=VALUE, for example chip.cores.0.ep=16"
            document.mistakes.append(Mistake(label, sentence))
            continue
        try:
            value = parse_document(text, label)
            _put(document, parts, value, label, expand, left_out)
        except InputError as error:
            document.mistakes.extend(Mistake(label, mistake.sentence) for mistake in error.mistakes)
        except _NoSuchPathError as error:
            chip = document.data.get("chip") if expand(("chip",)) else None
            meant = f"; did you mean 'chip.{target.strip()}'?" if isinstance(chip, dict) and parts[0] in chip else ""
            document.mistakes.append(Mistake(label, f"{error}{meant}"))


def _put(document: Document, parts: list[str], value: Document, label: str, expand: Expand, left_out: LeftOut) -> None:
    path: DataPath = ()
    for name in parts[:-1]:
        container, optional = document.at(path), left_out(path)
        key = _key(container, name, path, optional)
        if name in optional and isinstance(container, dict) and name not in container:
            container[name] = {}
            document.keys[*path, name] = document.values[*path, name] = Place(label)
        path = (*path, key)
        if not expand(path):
            return
    path = (*path, _key(document.at(path), parts[-1], path))
    document.put(path, value.data)
    raw = value.raw(())
    document.keys[path] = Place(label)
    document.values[path] = Place(label, raw=raw)
    document.mistakes.extend(Mistake(label, mistake.sentence) for mistake in value.mistakes)


def _key(container: Any, name: str, path: DataPath, optional: Sequence[str] | None = None) -> str | int:
    """Give `name` as a key or index of a container. `optional`: keys it may lack; None: any, the schema checks it."""
    here = f"{dotted(path)!r}" if path else "the top"
    if isinstance(container, dict):
        if optional is None or name in container or name in optional:
            return name
        raise _NoSuchPathError(f"{here} has no key {show(name)}{nearest(name, [*container, *optional])}")
    if not isinstance(container, list):
        raise _NoSuchPathError(f"{here} is {show(container)}: there is nothing below it")
    entries = "1 entry" if len(container) == 1 else f"{len(container)} entries"
    if not (name.isascii() and name.isdigit() and len(name) < 10):
        raise _NoSuchPathError(f"{here} is a list of {entries}: expected an index, got {show(name)}")
    if int(name) >= len(container):
        raise _NoSuchPathError(f"{here} has {entries}, counted from 0: there is no {name}")
    return int(name)


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
        parts, key = list(path), str(path[-1])
        if parts != ["chip"] and not (len(parts) == 3 and parts[0] == "jobs" and key == "model"):
            return True
        holder = self.document.data if key == "chip" else self.document.data["jobs"][parts[1]]
        name = holder.get(key)
        if not isinstance(name, str):
            return path not in self.failed
        document = self._find(key, name)
        if isinstance(document, InputError):
            for mistake in document.mistakes:
                # A mistake of a whole file is reported at the place that names the file: the user can mend it there.
                inside = mistake.location not in ("", self._file(name))
                self.document.note(mistake if inside else Mistake(self.document.place(path), str(mistake), alone=True))
            holder[key] = None
            self.failed.add(path)
            return False
        holder[key] = copied_data(document.data)
        for below, value_place in document.values.items():
            self.document.values[path + below] = value_place
        for below, key_place in document.keys.items():
            self.document.keys[path + below] = key_place
        return True

    def _file(self, name: str) -> str:
        return str(self.document.folder / name)

    def _find(self, kind: str, name: str) -> Document | InputError:
        if (kind, name) not in self.read:
            try:
                document = _named_document(kind, name, self.document.folder)
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
