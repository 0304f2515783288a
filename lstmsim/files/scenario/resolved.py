"""A scenario with every key and its value, names and defaults resolved: what a page shows of the input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any

from lstmsim.base.keys import as_data
from lstmsim.files.scenario.cell_data import cell_data
from lstmsim.files.scenario.job_names import job_names
from lstmsim.files.yaml.text import OnOneLine, yaml_text
from lstmsim.model.cell import Cell
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario

__all__ = ["loads_again", "resolved_data", "resolved_text"]

#: Keys of a job that stand elsewhere in a file, or not in every job.
_NOT_PLAIN = (
    "name",
    "model",
    "steps",
    "arrival",
    "inputs",
    "after",
    "tenant",
    *("dispatch", "preempts", "affinity"),
    "cores",
    "split",
    *("initial", "states_of"),
)

#: What `job_names` appends to the name of an entry for each of its jobs.
_SUFFIX = re.compile(r"(.+) #\d+")


def resolved_text(scenario: Scenario) -> str:
    """Write the scenario as a scenario file that loads again and gives the same cycles and numbers.

    Nothing in it is left to a default but `precision`, without which outputs are in float64. Neighbouring jobs of one
    entry that differ in nothing but name, steps and arrival are one entry with a `count`. A job that begins with the
    last states of another job is an entry of its own, and so is the other job.

    >>> from lstmsim.files.scenario.scenario_file import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5, "count": 2}]})
    >>> [line.strip() for line in resolved_text(scenario).splitlines() if "lstm-512" in line or "count" in line]
    ['- count: 1', '- name: lstm-512', 'count: 2', 'name: lstm-512']
    """
    return yaml_text(resolved_data(scenario))


def resolved_data(scenario: Scenario) -> dict[str, Any]:
    """Give the scenario file of `resolved_text` as plain data."""
    cells = _shared_cells(scenario)
    first = scenario.jobs[0]
    data: dict[str, Any] = {"name": scenario.name, "chip": _chip(scenario.chip), "dispatch": first.dispatch}
    data |= {"preemption": first.preempts, "placement": "affinity" if first.affinity else "least-loaded"}
    jobs = []
    for name, group in _groups(scenario.jobs):
        before = group[0].states_of
        follows = "" if before is None else scenario.jobs[before].name
        jobs.append(_job_entry(name, group, follows, own_cells=cells is None))
    data |= {"jobs": jobs} | ({"precision": _precision(scenario)} if scenario.precision_given else {})
    if cells:
        data["cells"] = {name: cell_data(each) for name, each in cells.items()}
    return data


def loads_again(scenario: Scenario) -> bool:
    """Say whether a file can describe the scenario completely.

    It cannot where jobs come after other jobs (except to begin with their last states), or are ranked in unlike ways.
    """
    ways = {(job.dispatch, job.preempts, job.affinity) for job in scenario.jobs}
    return len(ways) == 1 and all(job.after == job.states_of for job in scenario.jobs)


def _chip(chip: Chip) -> dict[str, Any]:
    """The chip as a file describes it: every key of its description with its value."""
    data: dict[str, Any] = {"kind": chip.kind, "name": chip.name}
    parts = as_data(chip)
    data |= {key: _on_one_line(value) for key, value in parts.items()}
    data["cores"] = [
        {"count": sum(1 for _ in same)} | {key: _on_one_line(value) for key, value in as_data(core).items()}
        for core, same in groupby(chip.cores)
    ]
    data["sources"] = dict(chip.sources)
    return data


def _on_one_line(value: Any) -> Any:
    """A part of a description on one line; named parts on a line each."""
    if not isinstance(value, dict):
        return value
    below = any(isinstance(each, dict) for each in value.values()) or not value
    return {key: _on_one_line(each) for key, each in value.items()} if below else OnOneLine(value)


def _precision(scenario: Scenario) -> dict[str, Any]:
    calibration = {"calibration": dict(scenario.calibration)} if scenario.calibration else {}
    return asdict(scenario.precision) | calibration


def _groups(jobs: Sequence[Job]) -> list[tuple[str, list[Job]]]:
    """Jobs that one entry can describe, with the entry's name; all jobs are alone where their names would change."""
    groups: list[tuple[str, list[Job]]] = []
    followed = {jobs[job.states_of].name for job in jobs if job.states_of is not None}
    for job in jobs:
        match = _SUFFIX.fullmatch(job.name)
        alone = job.states_of is not None or job.name in followed
        name = match[1] if match and not alone else job.name
        if groups and groups[-1][0] == name and match and _alike(groups[-1][1][-1], job):
            groups[-1][1].append(job)
        else:
            groups.append((name, [job]))
    groups = [(name if len(group) > 1 else group[0].name, group) for name, group in groups]
    names = job_names([name for name, _ in groups], [len(group) for _, group in groups])
    return groups if names == [job.name for job in jobs] else [(job.name, [job]) for job in jobs]


def _plain_keys(thing: Job, others: Sequence[str]) -> list[str]:
    """Keys whose values stand in a file unchanged: all but `others`."""
    return [each.name for each in fields(thing) if each.name not in others]


def _alike(one: Job, other: Job) -> bool:
    """Whether one entry can describe both jobs."""
    same = one.model == other.model and one.model.weights == other.model.weights
    keys = _plain_keys(one, ("name", "model", "steps", "arrival", "tenant"))
    # Tenants of one entry have its name before a slash.
    same = same and one.tenant.partition("/")[0] == other.tenant.partition("/")[0]
    return same and all(getattr(one, key) == getattr(other, key) for key in keys)


def _job_entry(name: str, group: list[Job], follows: str, own_cells: bool) -> dict[str, Any]:
    job, arrivals = group[0], [job.arrival for job in group]
    arrival = arrivals[0] if len(set(arrivals)) == 1 else arrivals
    data = {"name": name, "count": len(group), "model": _model(job.model, own_cells), "arrival": arrival}
    steps = [each.steps for each in group]
    data["steps"] = job.steps if len(set(steps)) == 1 else steps
    data |= {key: getattr(job, key) for key in _plain_keys(job, _NOT_PLAIN)}
    data |= {"cores": None if job.cores is None else list(job.cores), "split": job.split or None}
    data |= {"inputs": job.inputs} if job.inputs else {}
    data |= {"initial": job.initial} if job.initial else {}
    if follows:
        return data | {"initial": {"job": follows}}
    return data | ({"after": job.after} if job.after is not None else {})


def _model(model: Model, own_cells: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"name": model.name, "layers": [_layer(layer) for layer in model.layers]}
    data["layer_order"] = model.layer_order
    if model.weights:
        data["weights"] = model.weights
    if model.states_from:
        data["states_from"] = model.states_from
        data |= {} if model.states_whole else {"states_whole": False}
    cells = {layer.cell.name: layer.cell for layer in model.layers if layer.cell.name not in CELLS}
    if own_cells and cells:
        data["cells"] = {name: cell_data(each) for name, each in cells.items()}
    return data


def _layer(layer: Layer) -> OnOneLine:
    data = OnOneLine(cell=layer.cell.name, hidden=layer.hidden, input=layer.input, bidirectional=layer.bidirectional)
    if layer.projection is not None:
        data["projection"] = layer.projection
    if layer.reverse:
        data["reverse"] = True
    return data


def _shared_cells(scenario: Scenario) -> dict[str, Cell] | None:
    """The user's own cells by name; None where two cells of one name differ, so that each model needs its own."""
    cells: dict[str, Cell] = {}
    for job in scenario.jobs:
        for layer in job.model.layers:
            if layer.cell.name not in CELLS and cells.setdefault(layer.cell.name, layer.cell) != layer.cell:
                return None
    return cells
