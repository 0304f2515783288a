"""The recurrent matrices of models with weights, each by a name like `resemblyzer:l1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.catalog import model_files
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.importers.files import read_weights
from lstmsim.model.numerics.weights import Network

__all__ = ["weight_matrix", "weight_names"]

_DIRECTIONS = ("", ".backward")


def weight_matrix(name: str) -> tuple[NDArray[Any], str]:
    """Read the matrix of a layer of a model: a row for each unit of each gate, and the columns of x, then those of h.

    Where the candidate gate of a GRU has its parts apart, both stand in one row, as the other gates have it.

    name: the model's name or file, a colon, the layer's number behind an `l`: `resemblyzer:l1`. `.backward` follows for
        the backward direction, `.s1` for the second matrix of a cell that has several.

    The answer is the matrix and one sentence on it. `InputError` with the nearest name if there is none.

    >>> weight_matrix("resemblyzer:l1")[0].shape
    (1024, 512)
    >>> weight_matrix("resemblyser:l1")
    Traceback (most recent call last):
    lstmsim.InputError: no model called 'resemblyser'; did you mean 'resemblyzer'?
    """
    model_name, colon, part = name.rpartition(":")
    if not colon:
        model_name, part = name, ""
    model = load_model(model_name)
    if not model.weights:
        known = listed(_with_weights(), "and")
        text = f"has no weights; of those that come with lstmsim, {known} have"
        raise InputError(Mistake(f"model {model_name}", text))
    matrices = dict(_matrices(read_weights(model.weights, model)))
    if part not in matrices:
        place = f"model {model_name}"
        if not part:
            text = (
                f"has {len(matrices)} matrices, expected one of {listed(f'{model_name}:{each}' for each in matrices)}"
            )
        else:
            text = f"has no matrix {show(part)}{nearest(part, matrices)}; it has {listed(matrices, 'and')}"
        raise InputError(Mistake(place, text))
    return matrices[part], f"weights of {model.name}, {part}: a row for each unit of each gate, columns of x, then of h"


def weight_names() -> list[str]:
    """The names of all matrices of the models that come with lstmsim.

    >>> "silero-vad-16k:l0" in weight_names()
    True
    """
    names = []
    for name in _with_weights():
        model = load_model(name)
        for number, layer in enumerate(model.layers):
            stages = range(len(layer.cell.stages))
            names += [f"{name}:{_part(number, side, each)}" for side in range(layer.directions) for each in stages]
    return names


def _with_weights() -> list[str]:
    return [name for name in model_files() if load_model(name).weights]


def _part(layer: int, direction: int, stage: int) -> str:
    return f"l{layer}{_DIRECTIONS[direction]}" + (f".s{stage}" if stage else "")


def _matrices(network: Network) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each matrix of a network under the last part of its name."""
    for number, (layer, both) in enumerate(zip(network.model.layers, network.passes, strict=True)):
        for direction, weights in enumerate(both):
            for place, stage in enumerate(layer.cell.stages):
                rows = []
                for gate in stage.gates:
                    given = {
                        vector: weights.matrices[each.name, vector] for each in gate.sums for vector in each.vectors
                    }
                    units = layer.units(stage.rows)
                    none = {vector: np.zeros((units, layer.width(vector)), np.float32) for vector in stage.vectors}
                    rows.append(np.concatenate([(none | given)[vector] for vector in stage.vectors], axis=1))
                yield _part(number, direction, place), np.concatenate(rows)
