"""Layers, models, jobs and scenarios as a user writes them: with names in the place of objects, checked like a file.

A call of a class here builds an object of the pure class of the same name, which the rest of lstmsim works with:
`lstmsim.Job("a", "lstm-512")` is a `lstmsim.model.scenario.Job`. A mistake is told in the words of a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, NoReturn

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.model import model as models
from lstmsim.model import scenario as scenarios
from lstmsim.model.batching import Batching
from lstmsim.model.cell import Cell
from lstmsim.model.model import Precision
from lstmsim.studies.shared.loading import scenario_of
from lstmsim.studies.shared.objects import layer_data, model_of


class _Built(type):
    """The class of all classes here: a call builds an object of the pure class; `isinstance` takes that object."""

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        if len(cls.__mro__) > 1 and isinstance(cls.__mro__[1], _Built):
            made = cls.__mro__[2]
            text = f"is no class to derive from, because it makes a {made.__module__}.{made.__name__}: derive from that"
            raise TypeError(f"lstmsim.{cls.__mro__[1].__name__} {text}")
        signature = inspect.signature(members["__init__"])
        cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
        cls.__doc__ = members.get("__doc__")

    def __call__(cls, *values: Any, **named: Any) -> Any:
        _check_names(cls, len(values), named)
        given = cls.__signature__.bind(*values, **named)
        given.apply_defaults()
        build: Any = cls.__dict__["_build"].__func__
        return build(**given.arguments)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


def _check_names(cls: _Built, positional: int, named: Mapping[str, Any]) -> None:
    """Raise `InputError` for keys that the class does not have, and for keys that it needs and does not get."""
    from lstmsim.base.wording import listed, nearest

    known = cls.__signature__.parameters
    place = cls.__name__.lower()
    wrong = [
        Mistake(f"{place}: {each}", f"unknown key{nearest(each, known) or '; known keys: ' + listed(known, 'and')}")
        for each in named
        if each not in known
    ]
    needed = [name for name, each in known.items() if each.default is each.empty]
    missing = [each for each in needed[positional:] if each not in named]
    wrong += [Mistake(f"{place}: {each}", "required key is missing") for each in missing]
    refuse(wrong)


class Layer(models.Layer, metaclass=_Built):
    """One recurrent layer.

    cell: a `Cell`, or the name of a built-in one, like `lstm`.
    hidden: units.
    input: elements of its input.
    bidirectional: a second pass runs backward.
    projection: units of h where the cell projects it.
    reverse: the only pass runs backward.

    `InputError` with the sentences of a model file.

    >>> Layer("gru", hidden=512, input=256).cell.name
    'gru'
    >>> Layer("grru", hidden=512, input=256)
    Traceback (most recent call last):
    lstmsim.InputError: layer: cell: no cell called 'grru'; did you mean 'gru'?
    """

    def __init__(
        self,
        cell: Cell | str,
        hidden: int,
        input: int,
        bidirectional: bool = False,
        projection: int | None = None,
        reverse: bool = False,
    ) -> None: ...

    @staticmethod
    def _build(cell: Any, **keys: Any) -> models.Layer:
        from lstmsim.files.scenario.scenario_file import model_and_steps

        given = {key: value for key, value in keys.items() if value is not None}
        data: dict[str, Any] = {"layers": [{"cell": cell, **given}]}
        if isinstance(cell, Cell):
            data = layer_data(models.Layer(cell, 1, 1, projection=1 if cell.projected else None))
            data["layers"][0] = {"cell": cell.name, **given}
        with _Told("layer", "layers.0"):
            (layer,) = model_and_steps(data)[0].layers
        return replace(layer, cell=cell) if isinstance(cell, Cell) else layer


class Model(models.Model, metaclass=_Built):
    """A stack of layers, each reading the output of the layer below.

    name: how jobs call the model; made of its first layer unless given.
    layers: `Layer`s, or mappings as in a model file.
    layer_order: `layer` or `step`.
    weights: the file with its numbers.
    states_from, states_whole: where the states before the first step come from.
    network: its numbers in memory.

    `InputError` with the sentences of a model file.

    >>> Model(layers=[Layer("lstm", 512, 256)]).name
    'model-lstm-512'
    """

    def __init__(
        self,
        name: str | None = None,
        layers: Sequence[models.Layer | Mapping[str, Any]] = (),
        layer_order: str = "layer",
        weights: str | PathLike[str] = "",
        states_from: str = "",
        states_whole: bool = True,
        network: object | None = None,
    ) -> None: ...

    @staticmethod
    def _build(layers: Any, network: object | None, **keys: Any) -> models.Model:
        from lstmsim.files.scenario.scenario_file import model_and_steps

        if isinstance(keys["name"], list | tuple) and not layers:
            text = "must be text, got a list; layers are given by their name: Model(layers=[...])"
            raise InputError(Mistake("model: name", text))
        data = {key: value for key, value in keys.items() if value is not None}
        if isinstance(data.get("weights"), str) and not data["weights"]:
            del data["weights"]
        several = isinstance(layers, list | tuple)
        listed, cells = list[Any](), dict[str, Any]()
        for each in layers if several else ():
            alone = layer_data(each) if isinstance(each, models.Layer) else {"layers": [each]}
            listed += alone["layers"]
            cells |= alone.get("cells", {})
        data["layers"] = listed if several else layers
        with _Told("model"):
            model, _ = model_and_steps(data | ({"cells": cells} if cells else {}))
        pairs = zip(layers, model.layers, strict=True)
        kept = tuple(each if isinstance(each, models.Layer) else read for each, read in pairs)
        return replace(model, layers=kept, network=network)


class Job(scenarios.Job, metaclass=_Built):
    """One inference: `steps` of a model, arriving at cycle `arrival`.

    name: the model's name unless given.
    model: a name, a file's path, a mapping, a `Model` or an `ImportedModel`.
    steps: the steps that the model's file states unless given.

    The other arguments are those of `lstmsim.model.scenario.Job`.

    `InputError` with the sentences of a scenario file.

    >>> job = Job(model="deepbench-gru-1024-1500")
    >>> job.name, job.steps
    ('deepbench-gru-1024-1500', 1500)
    """

    def __init__(
        self,
        name: str | None = None,
        model: models.Model | str | PathLike[str] | Mapping[str, Any] | Any = None,
        steps: int | None = None,
        arrival: int = 0,
        frame_interval: int = 0,
        cores: Sequence[int] | None = None,
        batch: int = 1,
        inputs: str | PathLike[str] = "",
        after: int | None = None,
        priority: int = 0,
        deadline: int | None = None,
        dispatch: str = "fcfs",
        split: str = "",
        preempts: bool = False,
        affinity: bool = False,
        queue_limit: int | None = None,
        patience: int | None = None,
        tenant: str = "",
        initial: str = "",
        states_of: int | None = None,
        threads: int | None = None,
        density: scenarios.Density | Mapping[str, Any] | None = None,
        numbers: None = None,
        weights: str | None = None,
        on: scenarios.OnMachines = (),
        batching: Batching | Mapping[str, Any] | None = None,
        session: tuple[int, int] | None = None,
        move_cycles: int = 0,
    ) -> None: ...

    @staticmethod
    def _build(model: Any, **keys: Any) -> scenarios.Job:
        from lstmsim.files.scenario.jobs import checked_job
        from lstmsim.files.scenario.scenario_file import model_and_steps

        name = keys["name"]
        # A name that is no name would break the sentence that tells so.
        sound = isinstance(name, str) and name.isprintable() and 0 < len(name) <= 200
        place = f"job {name}" if sound else "job"
        with _Told(place):
            if model is None:
                text = "required key is missing (a model's name, its path, or its layers)"
                raise InputError(Mistake("model", text))
            # What is wrong inside a mapping has a place in it; files and names have places of their own.
            with _Told("model", joint="." if isinstance(model, Mapping) else ": "):
                own, stated = model_of(model) or model_and_steps(model)
            return checked_job(own, stated, keys)


class Scenario(scenarios.Scenario, metaclass=_Built):
    """A chip and the jobs that it serves.

    chip: a preset's name, a file's path, a mapping, or a chip like `ColumnNpu`.
    jobs: `Job`s, or mappings as in a scenario file.
    name: what reports call the scenario.
    precision: a `Precision`, or a mapping as in a file.
    offers, precision_given, calibration: as in `lstmsim.model.scenario.Scenario`.

    `InputError` with the sentences of a scenario file.

    >>> scenario = Scenario(chip="column-npu-64k", jobs=[Job(model="lstm-512", steps=20)])
    >>> scenario.chip.name, scenario.jobs[0].name
    ('column-npu-64k', 'lstm-512')
    """

    def __init__(
        self,
        chip: scenarios.Chip | str | PathLike[str] | Mapping[str, Any],
        jobs: Sequence[scenarios.Job | Mapping[str, Any]],
        name: str = "scenario",
        precision: Precision | Mapping[str, Any] | None = None,
        offers: Mapping[str, Any] | None = None,
        precision_given: bool | None = None,
        calibration: Mapping[str, str] | None = None,
    ) -> None: ...

    @staticmethod
    def _build(**keys: Any) -> scenarios.Scenario:
        return scenario_of(**keys)


class _Told:
    """Puts the name of what was built before the places of the mistakes in it."""

    def __init__(self, name: str, inside: str = "", joint: str = ": ") -> None:
        self.name, self.inside, self.joint = name, inside, joint

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, _: object) -> None:
        if isinstance(error, InputError):
            self._tell(error)

    def _tell(self, error: InputError) -> NoReturn:
        reported = []
        for each in error.mistakes:
            place = each.location.removeprefix(self.inside).removeprefix(".") if self.inside else each.location
            reported.append(Mistake(f"{self.name}{self.joint}{place}" if place else self.name, each.sentence))
        raise InputError(reported) from None
