"""Objects among the keys of a scenario or a model (chips, models, layers, jobs), checked as those of a file are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import as_data
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Offer, Scenario

#: The file that stands for numbers in memory while a scenario is checked; it is never opened.
_IN_MEMORY = "in-memory-{}.safetensors"


def is_chip(value: object) -> bool:
    """Whether a value is the description of a chip."""
    return all(hasattr(value, name) for name in vars(Chip) if not name.startswith("_"))


def model_of(value: object) -> tuple[Model, int | None] | None:
    """Give the model (its network in memory) and steps of a `Model` or an `ImportedModel`; None for other values."""
    if isinstance(value, Model):
        return value, None
    if not hasattr(value, "nodes"):
        return None
    # only who imports a network pays for it
    from lstmsim.importers.imported import ImportedModel

    return (replace(value.model, network=value.network), value.steps) if isinstance(value, ImportedModel) else None


def model_data(model: Model) -> dict[str, Any]:
    """Give a model as a file has it."""
    from lstmsim.files.scenario.written import resolved_data

    whole = resolved_data(_alone(model))
    own = {"cells": whole["cells"]} if "cells" in whole else {}
    return {**whole["jobs"][0]["model"], **own}


def layer_data(layer: Layer) -> dict[str, Any]:
    """Give a model of that layer alone, as a file has it; with its cell, if the cell is the user's own."""
    from lstmsim.files.scenario.written import cell_data
    from lstmsim.model.cells import CELLS

    cell = layer.cell
    own = {} if CELLS.get(cell.name) == cell else {"cells": {cell.name: cell_data(cell)}}
    keys = ("hidden", "input", "bidirectional", "projection", "reverse")
    given = {key: getattr(layer, key) for key in keys if getattr(layer, key) not in (None, False)}
    return {"layers": [{"cell": cell.name, **given}], **own}


def chip_data(chip: Any) -> dict[str, Any]:
    """Give a chip as a file has it."""
    from lstmsim.files.scenario.written import resolved_data
    from lstmsim.model.cells import CELLS

    one = Model("one", (Layer(CELLS["dense"], 1, 1),))
    data: dict[str, Any] = resolved_data(Scenario(chip, (Job("one", one, 1),)))["chip"]
    return data


def _alone(model: Model) -> Scenario:
    from lstmsim.files.scenario.scenario_file import load_chip

    return Scenario(load_chip("column-npu-64k"), (Job("one", model, 1),))


def plain_of(source: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Model]]:
    """Give a scenario's keys with data for objects, and the models whose numbers are in memory, by their files.

    >>> from lstmsim.model.cells import cell
    >>> model = Model("m", (Layer(cell("gru"), 8, 4),))
    >>> plain_of({"jobs": [{"model": model}]})[0]["jobs"][0]["model"]["layers"][0]["hidden"]
    8
    """
    in_memory: dict[str, Model] = {}
    data = dict(source)
    if is_chip(data.get("chip")):
        data["chip"] = chip_data(data["chip"])
    elif isinstance(data.get("chip"), Mapping):
        data["chip"] = {key: _keys_of_parts(value) for key, value in data["chip"].items()}
    jobs = data.get("jobs")
    if isinstance(jobs, list | tuple):
        data["jobs"] = [_entry(each, in_memory) if isinstance(each, Mapping) else each for each in jobs]
    return data, in_memory


def _keys_of_parts(value: Any) -> Any:
    """What a chip's key holds, with the keys of descriptions, like cores, in the place of the descriptions."""
    if isinstance(value, list | tuple):
        return [_keys_of_parts(each) for each in value]
    return as_data(value) if is_dataclass(value) else value


def _entry(entry: Mapping[str, Any], in_memory: dict[str, Model]) -> dict[str, Any]:
    data = dict(entry)
    given = model_of(data.get("model"))
    if given is None:
        return data
    model, steps = given
    data["model"] = model_data(model) | ({} if steps is None else {"steps": steps})
    if model.network is not None:
        file = _IN_MEMORY.format(len(in_memory))
        in_memory[file] = model
        data["model"]["weights"] = file
    return data


def with_networks(scenario: Scenario, in_memory: Mapping[str, Model]) -> Scenario:
    """Give the scenario with its models' numbers in memory again, in the place of the files that stood for them."""
    if not in_memory:
        return scenario
    models = {file: replace(model, weights="") for file, model in in_memory.items()}
    jobs = (replace(each, model=models.get(each.model.weights, each.model)) for each in scenario.jobs)
    return replace(scenario, jobs=tuple(jobs))


def ready_jobs(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Give the jobs with unique names. A job whose `initial` names an earlier one comes after it, as in a file."""
    from lstmsim.files.scenario.entries import unique_names

    mistakes = [each for place, job in enumerate(jobs) for each in _position_mistakes(place, job)]
    refuse(mistakes)
    followed = _followed(jobs)
    names = unique_names([each.name for each in jobs])
    return tuple(_ready(*each) for each in zip(range(len(jobs)), jobs, names, followed, strict=True))


def _ready(place: int, job: Job, name: str, followed: int | None) -> Job:
    if job.density is not None and job.density.place != place:
        job = replace(job, density=replace(job.density, place=place))
    if followed is not None:
        return replace(job, name=name, initial="", after=followed, states_of=followed)
    return job if job.name == name else replace(job, name=name)


def _position_mistakes(place: int, job: Job) -> Iterator[Mistake]:
    """What is wrong with the positions of other jobs that a job states."""
    for key in ("after", "states_of"):
        position = getattr(job, key)
        if position is None or 0 <= position < place:
            continue
        earlier = "0, that of the only earlier job" if place == 1 else f"from 0 to {place - 1}, that of an earlier job"
        expected = f"must be {earlier}" if place else "must be left out, because no job stands before this one"
        yield Mistake(f"jobs.{place}.{key}", f"{expected}; got {position}")
    if job.states_of is not None and job.states_of != job.after:
        text = "must be equal to `after`: a job begins with the last states of the job that it comes after"
        yield Mistake(f"jobs.{place}.states_of", f"{text}; got {job.states_of}")


def _followed(jobs: Sequence[Job]) -> list[int | None]:
    """Of each job the position of the job that its `initial` names; None if it names none."""
    from lstmsim.files.scenario.first_states import Initials, names_job
    from lstmsim.files.scenario.models import STAND_IN
    from lstmsim.files.scenario.schema import JobEntry, check
    from lstmsim.files.yaml.document import document_of

    naming = [place for place, job in enumerate(jobs) if names_job(job.initial)]
    followed: list[int | None] = [None] * len(jobs)
    if not naming:
        return followed
    keys = ("initial", "queue_limit", "patience")
    given = [{key: getattr(job, key) for key in keys if getattr(job, key) not in (None, "")} for job in jobs]
    entries = [check(JobEntry, document_of({"model": STAND_IN, **each}))[0] for each in given]
    document = document_of({"jobs": given})
    initials = Initials(document, entries, [job.name for job in jobs], [job.model for job in jobs])
    for place in naming:
        initials.check(place, [1] * len(jobs), comes_from_file=False, single=False)
        followed[place] = initials.follows(place)
        after = jobs[place].after
        if after not in (None, followed[place]):
            text = f"must be left out, or be the position of the job that `initial` names; got {after}"
            document.blame(("jobs", place, "after"), text)
    if document.mistakes:
        raise InputError(document.mistakes)
    return followed


def check_parts(parts: Mapping[str, Any]) -> None:
    """Raise `InputError` for parts of a scenario besides its chip and jobs that are of a wrong type.

    >>> check_parts({"precision_given": "x"})
    Traceback (most recent call last):
    lstmsim.InputError: precision_given: must be true or false, got 'x'
    """
    from lstmsim.base.wording import show

    kinds: dict[str, tuple[str, Callable[[object], bool]]] = {
        "offers": ("a mapping of names to offers", lambda value: _maps(value, Offer)),
        "calibration": ("a mapping of names of models to files", lambda value: _maps(value, str)),
        "precision_given": ("true or false", lambda value: isinstance(value, bool)),
    }
    wrong = []
    for key, (words, fits) in kinds.items():
        value = parts.get(key)
        if value is not None and not fits(value):
            got = "one with other values" if isinstance(value, Mapping) else show(value)
            wrong.append(Mistake(key, f"must be {words}, got {got}"))
    refuse(wrong)


def _maps(value: object, kind: type) -> bool:
    """Whether a value maps texts to values of a type."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(each, kind) for name, each in value.items()
    )
