"""The weights of ONNX's recurrent nodes in the terms of the cells that they are.

Order of the gates and of the biases as on the ONNX operator pages: LSTM i o f c, GRU z r h, peepholes i o f.
"""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.onnx_constants import Constants
from lstmsim.formats.onnx_graph import Scope, label, node_input, resolve
from lstmsim.formats.weights.gates import Stacked, unstacked
from lstmsim.formats.weights.tensors import Stored, floats
from lstmsim.numerics.weights import Floats, PassWeights
from lstmsim.workload.model import Layer

__all__ = ["NodeWeights", "fingerprint", "node_weights", "state_notes"]

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
    stored = {name: Stored("F32", array.shape, partial(np.asarray, array)) for name, array in arrays.items()}
    try:
        arrays = floats(stored, expected)
    except InputError as error:
        at = label(scope, index)
        raise InputError([Mistake(at, f"{each.place} {each.sentence}") for each in error.mistakes]) from None
    gates = [name for name in order if name in {gate.name for gate in layer.cell.gates}]
    return tuple(unstacked(layer.cell, gates, _stacked(arrays, layer, side, order)) for side in range(layer.directions))


def _stacked(arrays: dict[str, Floats], layer: Layer, side: int, order: str) -> Stacked:
    """The parts of one direction, without the rows of gates that the cell has not: f, where i stands for it too."""
    names = {gate.name for gate in layer.cell.gates}
    rows = np.repeat([name in names for name in order], layer.hidden)
    peepholes = {
        name: part
        for name, part in zip(_PEEPHOLES, np.split(arrays["P"][side], 3) if "P" in arrays else (), strict=False)
        if name in layer.cell.parameters
    }
    own, recurrent = (part[rows] for part in np.split(arrays["B"][side], 2)) if "B" in arrays else (None, None)
    return Stacked(arrays["W"][side][rows], arrays["R"][side][rows], own, recurrent, parameters=peepholes)


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
