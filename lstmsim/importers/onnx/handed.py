"""Whether the first states of a stack are the last states of another stack, each in its place.

Every last state of every node gets marks: a number of its own for each unit. The operations that exporters put between
states are done to these marks. So a layer, a direction, a state or a unit in another place is noticed, and so is a
constant among the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lstmsim.importers.onnx.constants import COPIES, Constants
from lstmsim.importers.onnx.external import DataFiles
from lstmsim.importers.onnx.graph import Scope, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stacks import Key, Stack
from lstmsim.importers.onnx.states import STATES
from lstmsim.importers.onnx.values import integer
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats

__all__ = ["Handed"]

#: Outputs of a recurrent node that are its last states.
_OUTPUTS = {1: "h", 2: "c"}
#: Marks begin here and are no whole numbers, so that no constant is taken for a mark.
_FIRST = 1000.5


class Handed:
    """The last states of all recurrent nodes of a network, as marks.

    layers: the nodes.
    shapes: the shapes of the network.
    size: bytes of the ONNX file; it bounds the memory that is used.
    files: the data files beside the network.
    """

    def __init__(self, layers: Mapping[Key, Layer], shapes: Shapes, size: int, files: DataFiles) -> None:
        self._marks: dict[tuple[Key, str], Floats] = {}
        given: dict[tuple[Scope, str], Floats] = {}
        first = _FIRST
        for key, layer in layers.items():
            for place, state in _OUTPUTS.items():
                scope, node = key[0], key[0].nodes[key[1]]
                if place < len(node.output) and node.output[place] and state in layer.cell.states:
                    shape = (layer.directions, 1, layer.width(state))
                    marks = first + np.arange(np.prod(shape)).reshape(shape)
                    first += marks.size
                    self._marks[key, state] = marks
                    given[scope, str(node.output[place])] = _turned(marks, *key)
        room = sum(each.nbytes for each in given.values())
        self._values = Constants(shapes, COPIES * (size + room) + 2**20, files, given)

    def whole(self, stack: Stack, stacks: Sequence[Stack]) -> bool:
        """Say whether all layers of a stack begin with all last states of another stack, layer for layer."""
        origins = [self._origin(key) for key in stack.keys]
        return None not in origins and any(list(each.keys) == origins for each in stacks)

    def _origin(self, key: Key) -> Key | None:
        """The node whose last states are a node's first states, each in its place; None if there is no such node."""
        node = key[0].nodes[key[1]]
        origin: Key | None = None
        for state, place in STATES.items():
            if state == "c" and node.op_type != "LSTM":
                continue
            array = self._values.of(key[0], node_input(node, place)) if node_input(node, place) else ""
            if isinstance(array, str) or array.ndim != 3:
                return None
            array = _turned(array, *key)
            candidates = (own for own, name in self._marks if name == state) if origin is None else (origin,)
            origin = next((own for own in candidates if self._equal(array, own, state)), None)
            if origin is None:
                return None
        return origin

    def _equal(self, array: Floats, key: Key, state: str) -> bool:
        marks = self._marks.get((key, state))
        return marks is not None and np.array_equal(array, marks)


def _turned(array: Floats, scope: Scope, index: int) -> Floats:
    """States with the direction first, or turned back: `layout` 1 has the batch first."""
    batch_first = integer(attributes(scope, scope.nodes[index]), "layout", 0)
    return array.transpose(1, 0, 2) if batch_first else array
