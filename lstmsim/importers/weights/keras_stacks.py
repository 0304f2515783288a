"""Keras layers with their weights, from any kind of file, put together into models.

Keras stores `kernel` [input, gates x hidden], `recurrent_kernel` [hidden, gates x hidden] and `bias`; gates i f c o and
z r h (keras.io: LSTM, GRU).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.weights.gates import Stacked, unstacked
from lstmsim.importers.weights.imported import ImportedModel, model_names, model_stem
from lstmsim.importers.weights.keras_config import KerasLayer
from lstmsim.importers.weights.tensors import Stored, floats
from lstmsim.importers.weights.unread import keras_table
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights

__all__ = ["ORDERS", "Part", "keras_models", "parts_of"]

#: The order of the gates in Keras's matrices, in the names that the cells have for their gates.
ORDERS = {"lstm": "ifgo", "gru": "zrn", "gru-lbr0": "zrn", "rnn": "a", "rnn-relu": "a"}
_SIDES = ("forward", "backward")

#: Gives the variables of a layer in one direction ("" for a layer of one direction): kernel, recurrent kernel and bias
#: by their names in the file.
Variables = Callable[[KerasLayer, str], dict[str, Stored]]


@dataclass(frozen=True, eq=False)
class Part:
    """A Keras layer with its numbers.

    described: the layer as Keras describes it.
    layer: the same as a layer here.
    passes: its weights in each direction.
    variables: names of its variables in the file.
    """

    described: KerasLayer
    layer: Layer
    passes: tuple[PassWeights, ...]
    variables: tuple[str, ...]


def parts_of(layers: Sequence[KerasLayer], variables: Variables) -> list[Part]:
    """Read the numbers of layers.

    layers: the layers as Keras describes them.
    variables: gives the variables of a layer in one direction.

    One `InputError` for everything that is missing or does not fit.
    """
    parts: list[Part] = []
    mistakes: list[Mistake] = []
    for layer in layers:
        try:
            parts.append(_part(layer, variables))
        except InputError as error:
            own = f"layer {layer.name!r}"
            mistakes += [Mistake(": ".join(filter(None, (own, each.place))), each.sentence) for each in error.mistakes]
    if mistakes:
        raise InputError(mistakes)
    return parts


def _part(layer: KerasLayer, variables: Variables) -> Part:
    rows = len(ORDERS[layer.cell]) * layer.hidden
    bias = (2, rows) if layer.cell == "gru" else (rows,)
    sides = [variables(layer, side) for side in (_SIDES if layer.merge else ("",))]
    width = None
    stored: dict[str, Stored] = {}
    expected: dict[str, tuple[int, ...]] = {}
    for side in sides:
        kernel = next(iter(side.values())).shape
        width = width or (kernel[0] if len(kernel) == 2 else 1)
        stored |= side
        expected |= dict(zip(side, [(width, rows), (layer.hidden, rows), bias], strict=False))
    arrays = floats(stored, expected)
    own = Layer(cell(layer.cell), layer.hidden, width or 1, bool(layer.merge), reverse=layer.reverse)
    return Part(layer, own, tuple(_pass(layer, [arrays[name] for name in side]) for side in sides), tuple(stored))


def _pass(layer: KerasLayer, arrays: list[Floats]) -> PassWeights:
    kernel, recurrent, *rest = arrays
    bias = rest[0] if rest else None
    own, other = (bias[0], bias[1]) if bias is not None and bias.ndim == 2 else (bias, None)
    parts = Stacked(np.ascontiguousarray(kernel.T), np.ascontiguousarray(recurrent.T), own, other)
    return unstacked(cell(layer.cell), ORDERS[layer.cell], parts)


def keras_models(
    parts: list[Part],
    file: str,
    weights: bool,
    notes: Sequence[str] = (),
    kinds: Sequence[tuple[str, str]] = (),
) -> list[ImportedModel]:
    """Join layers that feed each other directly with whole sequences into one model; every other layer is a model.

    parts: the layers with their numbers.
    file: name of the file, for names and sources.
    weights: False leaves the numbers out.
    notes: notes for every model.
    kinds: class and path of every layer of the file; empty if the file has no configuration.
    """
    stacks: list[list[Part]] = []
    by_path: dict[str, list[Part]] = {}
    for part in parts:
        stack = by_path.get(part.described.below)
        if stack is not None and stack[-1].described.path == part.described.below and _chains(stack[-1], part):
            stack.append(part)
        else:
            stack = [part]
            stacks.append(stack)
        by_path[part.described.path] = stack
    names = model_names(model_stem(file), [stack[0].described.name for stack in stacks])
    title = PurePath(file).name
    by_own = {part.described.path: part.described for part in parts}
    origins = [[part.described.name for part in stack] for stack in stacks]
    models = [
        _model(name, stack, title, weights, (*_apart(stack[0].described, by_own), *notes), origins)
        for name, stack in zip(names, stacks, strict=True)
    ]
    if not kinds:
        return models
    calls = {part.described.path: part.described.calls for part in parts}
    table = keras_table(kinds, {part.described.path: part.layer for part in parts}, calls)
    return [replace(each, operators=table) for each in models]


def _chains(lower: Part, upper: Part) -> bool:
    """Whether the upper layer reads step by step what the lower layer gives here."""
    whole = lower.described.sequences and lower.described.merge in ("", "concat") and not lower.described.reverse
    return whole and lower.layer.output == upper.layer.input


def _apart(layer: KerasLayer, by_path: Mapping[str, KerasLayer]) -> list[str]:
    """Why a layer forms no stack with the recurrent layers that it reads; empty if it reads none."""
    below = by_path.get(layer.below)
    why = ""
    if below is not None and not below.sequences:
        why = "only the end of {}"
    elif below is not None and below.merge not in ("", "concat"):
        why = f"{{}}, whose directions Keras joins by {show(below.merge).replace('{', '{{').replace('}', '}}')}"
    elif below is not None and below.reverse:
        why = "{}, whose last step Keras hands on first"
    text = layer.upstream.sentence(layer.name, why)
    return [text] if text else []


def _model(
    name: str, stack: list[Part], file: str, weights: bool, notes: Sequence[str], origins: Sequence[list[str]]
) -> ImportedModel:
    """The model of one stack; `origins` are the layers of each stack, with whose last states another may begin."""
    described = [each.described for each in stack]
    states_from = " and ".join(
        dict.fromkeys(each.beginning.states_from for each in described if each.beginning.states_from)
    )
    whole = [each.beginning.origin for each in described] in origins
    if "the last states" in states_from and not whole:
        states_from += ", in part or in other places"
    layers = tuple(each.layer for each in stack)
    model = Model(name, layers, states_from=states_from, states_whole=whole or not states_from)
    initial: dict[tuple[int, int], dict[str, Floats]] = {}
    for number, each in enumerate(described):
        for side, state, values in each.beginning.fixed:
            initial.setdefault((number, side), {})[state] = np.array(values)
    network = Network(model, tuple(each.passes for each in stack), initial)
    nodes = tuple(each.name for each in described)
    own = tuple(dict.fromkeys(note for each in described for note in each.notes))
    return ImportedModel(model, nodes, f"{file}: {', '.join(nodes)}", (*own, *notes), network if weights else None)
