"""The weights of ONNX's recurrent nodes in the terms of the cells that they are.

Order of the gates and of the biases as on the ONNX operator pages: LSTM i o f c, GRU z r h, peepholes i o f.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial

import numpy as np

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.onnx_constants import Constants
from lstmsim.formats.onnx_graph import Scope, label, node_input, resolve
from lstmsim.formats.onnx_heads import Head
from lstmsim.formats.weights.gates import Stacked, unstacked
from lstmsim.formats.weights.tensors import Stored, floats
from lstmsim.numerics.weights import Floats, PassWeights
from lstmsim.workload.model import Layer

__all__ = ["NodeWeights", "fingerprint", "head_weights", "node_weights", "state_notes"]

_ORDERS = {"LSTM": "iofg", "GRU": "zrn", "RNN": "a"}
_PEEPHOLES = ("pi", "po", "pf")
_PLACES = {"W": 1, "R": 2, "B": 3, "P": 7}

#: One pass per direction, or the sentence that says why there are no constant weights.
NodeWeights = tuple[PassWeights, ...] | str


def node_weights(constants: Constants, scope: Scope, index: int, layer: Layer) -> NodeWeights:
    """The weights of a recurrent node; `InputError` if they are damaged, outside the file or not finite."""
    node, arrays = scope.nodes[index], dict[str, Floats]()
    for name, place in _PLACES.items():
        if node_input(node, place):
            found = constants.of(scope, node_input(node, place))
            if isinstance(found, str):
                return f"{name} of {label(scope, index)} comes from {found}: shapes only"
            arrays[name] = found
    order = _ORDERS[str(node.op_type)]
    rows = len(order) * layer.hidden
    expected = {
        "W": (layer.directions, rows, layer.input),
        "R": (layer.directions, rows, layer.hidden),
        "B": (layer.directions, 2 * rows),
        "P": (layer.directions, 3 * layer.hidden),
    }
    arrays = _checked(arrays, expected, label(scope, index))
    return tuple(unstacked(layer.cell, order, _stacked(arrays, layer, side, rows)) for side in range(layer.directions))


def head_weights(constants: Constants, head: Head) -> NodeWeights:
    """The weights of a product behind a stack; `InputError` if they are damaged or not finite."""
    scope, index = head.product
    names = {"matrix": (scope, node_input(scope.nodes[index], 1))} | ({"bias": head.bias} if head.bias else {})
    units, width = head.layer.hidden, head.layer.input
    arrays = dict[str, Floats]()
    for name, value in names.items():
        found = constants.of(*value)
        if isinstance(found, str):
            return f"the {name} of {label(scope, index)} comes from {found}: shapes only"
        arrays[name] = found if name == "matrix" and head.turned else found.T
    expected = {"matrix": (units, width), "bias": arrays["bias"].shape if "bias" in arrays else ()}
    arrays = _checked(arrays, expected, label(scope, index))
    biases = {"y": arrays["bias"].reshape(units)} if "bias" in arrays else {}
    return (PassWeights({("y", "x"): arrays["matrix"]}, biases),)


def _checked(arrays: dict[str, Floats], expected: Mapping[str, tuple[int, ...]], at: str) -> dict[str, Floats]:
    stored = {name: Stored("F32", array.shape, partial(np.asarray, array)) for name, array in arrays.items()}
    try:
        return floats(stored, expected)
    except InputError as error:
        raise InputError([Mistake(at, f"{each.place} {each.sentence}") for each in error.mistakes]) from None


def _stacked(arrays: dict[str, Floats], layer: Layer, side: int, rows: int) -> Stacked:
    biases = arrays["B"][side] if "B" in arrays else None
    hidden = layer.hidden
    peepholes = {
        name: arrays["P"][side, at * hidden : (at + 1) * hidden] for at, name in enumerate(_PEEPHOLES) if "P" in arrays
    }
    own, recurrent = (None, None) if biases is None else (biases[:rows], biases[rows:])
    return Stacked(arrays["W"][side], arrays["R"][side], own, recurrent, parameters=peepholes)


def state_notes(constants: Constants, scope: Scope, index: int) -> list[str]:
    """What to know about initial states that the file fixes: runs here begin from 0 unless they are told otherwise."""
    notes = []
    for name, place in (("initial_h", 5), ("initial_c", 6)):
        given = node_input(scope.nodes[index], place)
        value = resolve(scope, given) if given else None
        if value is None or (value.tensor is None and value.node is None):
            continue
        found = constants.of(scope, given)
        if not isinstance(found, str) and found.any():
            notes.append(f"{name} of {label(scope, index)} is a constant other than 0; it is not read")
    return notes


def fingerprint(passes: NodeWeights) -> str:
    """A text that is equal for equal weights.

    >>> fingerprint("W comes from input 'w'")
    ''
    """
    if isinstance(passes, str):
        return ""
    digest = hashlib.sha256()
    for each in passes:
        for group in (each.matrices, each.biases, each.parameters):
            for key, array in group.items():
                digest.update(f"{key}{array.dtype}{array.shape}".encode())
                digest.update(array.tobytes())
    return digest.hexdigest()
