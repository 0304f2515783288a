"""Objects among the keys of a scenario or a model: chips, models, layers and imported networks as file keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from lstmsim.base.keys import as_data
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario

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
