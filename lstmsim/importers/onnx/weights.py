"""Weights and first states of ONNX's recurrent nodes, in the terms of their cells.

Order of the gates and of the biases as on the ONNX operator pages: LSTM i o f c, GRU z r h, peepholes i o f.
First states that are constants go into the network's numbers. An input is 0 until a job gives it. No file holds states
that the network computes: the model says in words what computes them (`states_from`), and a job must give them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, attributes, integer, label, node_input, resolve
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.operators import Head
from lstmsim.importers.tensors import Stacked, Stored, floats, unstacked
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import LARGEST, Floats, PassWeights

#: The words for states that another node ends with begin so.
LAST_STATES = "the last states of"
#: State to the place of the input that gives it.
STATES = {"h": 5, "c": 6}
#: Operations that hand numbers on, rearranged, in part, or repeated.
_HANDING_ON = frozenset(
    (
        *("Transpose", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Identity", "Cast", "Dropout"),
        *("Concat", "Slice", "Gather", "Split", "Expand", "Tile"),
    )
)
_MAX_VISITED = 300
_ORDERS = {"LSTM": "iofg", "GRU": "zrn", "RNN": "a"}
_PEEPHOLES = ("pi", "po", "pf")
_ADVICE = "export it with a stored state and a batch of 1, or read shapes only (--no-weights)"
_PLACES = {"W": 1, "R": 2, "B": 3, "P": 7}
#: One pass for each direction, or the sentence that says why there are no constant weights.
NodeWeights = tuple[PassWeights, ...] | str


@dataclass(frozen=True)
class Begin:
    """Where the states before the first step come from: names of the states that the file holds, inputs of the
    network, and in words what computes others.
    """

    constants: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    states_from: tuple[str, ...] = ()


@dataclass
class Sources:
    """The parts that a value is put together from: constants, inputs of the network, and all others in words."""

    constants: list[tuple[Scope, str]]
    inputs: list[str]
    computed: list[str]


def begin_of(scope: Scope, index: int) -> Begin:
    """Tell where the first states of a recurrent node come from, through operations that hand them on."""
    node = scope.nodes[index]
    constants, given, computed = list[str](), list[str](), list[str]()
    for name, place in STATES.items():
        if not node_input(node, place) or (name == "c" and node.op_type != "LSTM"):
            continue
        origins = sources(scope, node_input(node, place))
        if origins.computed or (origins.inputs and origins.constants):
            computed += [*origins.computed, *(f"input {show(each)}" for each in origins.inputs)]
            computed += ["constants"] if origins.constants else []
        elif origins.inputs:
            given += origins.inputs
        elif origins.constants:
            constants.append(name)
        else:
            computed.append(f"initial_{name}, which is nowhere in the file")
    return Begin(tuple(constants), tuple(dict.fromkeys(given)), tuple(dict.fromkeys(computed)))


def sources(scope: Scope, name: str) -> Sources:
    """List the constants, inputs and computing nodes that a value is put together from."""
    origins, seen, waiting = Sources([], [], []), set[tuple[Scope, str]](), [(scope, name)]
    while waiting:
        value = resolve(*waiting.pop())
        if value is None or (value.scope, value.name) in seen:
            continue
        if len(seen) > _MAX_VISITED:
            origins.computed.append("more values than can be followed")
            break
        seen.add((value.scope, value.name))
        node = value.node
        if value.tensor is not None or (node is not None and node.op_type in ("Constant", "ConstantOfShape")):
            origins.constants.append((value.scope, value.name))
        elif node is None:
            inside = value.scope.inside
            (origins.computed if inside else origins.inputs).append(
                f"{show(value.name)}{inside}" if inside else value.name
            )
        elif value.inside():
            waiting += value.inside()
        elif is_recurrent(node):
            what = LAST_STATES if value.place else "the outputs of"
            origins.computed.append(f"{what} {label(value.scope, value.index)}")
        elif value.kind in _HANDING_ON:
            names = node.input if node.op_type == "Concat" else node.input[:1]
            waiting += reversed([(value.scope, str(each)) for each in names[:_MAX_VISITED]])
        else:
            origins.computed.append(f"node {label(value.scope, value.index)}")
    return origins


def node_weights(constants: Constants, scope: Scope, index: int, layer: Layer) -> NodeWeights:
    """Read the weights of a recurrent node, or say why they are no constants."""
    node, arrays = scope.nodes[index], dict[str, Floats]()
    for name, place in _PLACES.items():
        if node_input(node, place):
            array = constants.of(scope, node_input(node, place))
            if isinstance(array, str):
                return f"{name} of {label(scope, index)} comes from {array}: shapes only"
            arrays[name] = array
    order = _ORDERS[str(node.op_type)]
    rows = len(order) * layer.hidden
    expected = {
        "W": (layer.directions, rows, layer.input),
        "R": (layer.directions, rows, layer.hidden),
        "B": (layer.directions, 2 * rows),
        "P": (layer.directions, 3 * layer.hidden),
    }
    arrays = _checked(arrays, expected, label(scope, index))
    gates = [name for name in order if name in {gate.name for gate in layer.cell.gates}]
    return tuple(unstacked(layer.cell, gates, _stacked(arrays, layer, side, order)) for side in range(layer.directions))


def head_weights(constants: Constants, head: Head) -> NodeWeights:
    """Read the weights of a product after a stack, or say why they are no constants."""
    scope, index = head.product
    names = {"matrix": (scope, node_input(scope.nodes[index], 1))} | ({"bias": head.bias} if head.bias else {})
    units, width = head.layer.hidden, head.layer.input
    arrays = dict[str, Floats]()
    for name, value in names.items():
        array = constants.of(*value)
        if isinstance(array, str):
            return f"the {name} of {label(scope, index)} comes from {array}: shapes only"
        arrays[name] = array if name == "matrix" and head.turned else array.T
    expected = {"matrix": (units, width), "bias": arrays["bias"].shape if "bias" in arrays else ()}
    arrays = _checked(arrays, expected, label(scope, index))
    biases = {"y": np.full(units, arrays["bias"].reshape(-1))} if "bias" in arrays else {}
    if head.subtracted:
        biases = {name: -array for name, array in biases.items()}
    return (PassWeights({("y", "x"): arrays["matrix"]}, biases),)


def _checked(arrays: dict[str, Floats], expected: Mapping[str, tuple[int, ...]], at: str) -> dict[str, Floats]:
    stored = {name: Stored("F32", array.shape, partial(np.asarray, array)) for name, array in arrays.items()}
    try:
        return floats(stored, expected)
    except InputError as error:
        raise InputError([Mistake(at, f"{each.place} {each.sentence}") for each in error.mistakes]) from None


def _stacked(arrays: dict[str, Floats], layer: Layer, side: int, order: str) -> Stacked:
    """The parts of one direction, without rows of gates that the cell lacks: f, if it is coupled to i."""
    names = {gate.name for gate in layer.cell.gates}
    rows = np.repeat([name in names for name in order], layer.hidden)
    peepholes = {
        name: part
        for name, part in zip(_PEEPHOLES, np.split(arrays["P"][side], 3) if "P" in arrays else (), strict=False)
        if name in layer.cell.parameters
    }
    own, recurrent = (part[rows] for part in np.split(arrays["B"][side], 2)) if "B" in arrays else (None, None)
    return Stacked(arrays["W"][side][rows], arrays["R"][side][rows], own, recurrent, parameters=peepholes)


def constant_states(
    constants: Constants, scope: Scope, index: int, layer: Layer, begin: Begin
) -> Mapping[int, Mapping[str, Floats]]:
    """Read the first states that the file holds: direction to name to [units]; a state that is all 0 is left out."""
    node = scope.nodes[index]
    states: dict[int, dict[str, Floats]] = {}
    for name in begin.constants:
        array = _read(constants, scope, node_input(node, STATES[name]))
        if isinstance(array, str):
            text = f"initial_{name} is made of constants in a way that cannot be read ({array}): {_ADVICE}"
            raise InputError(Mistake(label(scope, index), text))
        if integer(attributes(scope, node), "layout", 0) and array.ndim == 3:
            array = array.transpose(1, 0, 2)
        for side, values in enumerate(_rows(array, name, label(scope, index), layer)):
            if values.any():
                states.setdefault(side, {})[name] = values
    return states


def _read(constants: Constants, scope: Scope, name: str) -> Floats | str:
    """The array at batch 1; 0 for an array that is put together from zeros in any way."""
    array = constants.of(scope, name)
    if isinstance(array, str):
        leaves = [constants.of(*each) for each in sources(scope, name).constants]
        if all(not isinstance(each, str) and not each.any() for each in leaves):
            return np.zeros(())
    return array


def _rows(array: Floats, name: str, place: str, layer: Layer) -> Floats:
    wanted = (layer.directions, 1, layer.hidden)
    if not array.ndim:
        return np.zeros((layer.directions, layer.hidden))
    if array.ndim != 3 or array.shape[::2] != wanted[::2] or not array.shape[1]:
        text = f"initial_{name} is {list(array.shape)} at a batch of 1, expected {list(wanted)}"
        raise InputError(Mistake(place, text))
    if not np.all(np.isfinite(array)) or np.abs(array).max(initial=0) > LARGEST:
        raise InputError(Mistake(place, f"initial_{name} holds numbers above {LARGEST:g} or none at all"))
    if not (array == array[:, :1]).all():
        text = (
            f"initial_{name} differs between the {array.shape[1]} sequences of its batch, where a run is of one "
            f"sequence: {_ADVICE}"
        )
        raise InputError(Mistake(place, text))
    return array[:, 0]


def fingerprint(passes: NodeWeights, states: Mapping[int, Mapping[str, Floats]]) -> str:
    """Make a text that is equal for equal weights and equal first states; empty without weights."""
    if isinstance(passes, str):
        return ""
    digest = hashlib.sha256()
    groups = [group for each in passes for group in (each.matrices, each.biases, each.parameters)]
    for group in (*groups, {(side, *each): states[side][each] for side in states for each in states[side]}):
        for key, array in group.items():
            digest.update(f"{key}{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
