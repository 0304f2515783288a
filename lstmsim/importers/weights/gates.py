"""Stacked gate matrices, as every framework stores them, taken apart into a cell's own sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstmsim.model.cell import Cell
from lstmsim.model.numerics.weights import Floats, PassWeights

__all__ = ["Stacked", "unstacked"]


@dataclass(frozen=True, eq=False)
class Stacked:
    """Weights of one layer in one direction, with the gates of each matrix below each other.

    x: [gates x hidden, input].
    h: [gates x hidden, width of h].
    x_bias, h_bias: [gates x hidden], or None.
    more: (sum, vector) to matrices of the cell that belong to no gate.
    parameters: name to [units], of the cell as a whole.
    """

    x: Floats
    h: Floats
    x_bias: Floats | None = None
    h_bias: Floats | None = None
    more: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    parameters: Mapping[str, Floats] = field(default_factory=dict)


def unstacked(cell: Cell, order: Sequence[str], parts: Stacked) -> PassWeights:
    """Take stacked gates apart into the weights of a pass.

    If a gate is one sum, its two biases are added in float64 and then rounded. If a gate has two sums, as the
    candidate of the GRU with the reset gate after the product, each sum keeps its own bias.

    cell: the cell of the layer.
    order: names of the cell's gates, in the order of the stack.
    parts: the stacked matrices and biases.

    >>> from lstmsim.model.cells import cell
    >>> two = np.ones((3, 1), np.float32)
    >>> weights = unstacked(cell("gru"), "rzn", Stacked(two, two, two[:, 0], two[:, 0]))
    >>> {name: float(bias[0]) for name, bias in weights.biases.items()}
    {'r': 2.0, 'z': 2.0, 'nx': 1.0, 'nh': 1.0}
    """
    matrices = dict(parts.more)
    biases: dict[str, Floats] = {}
    hidden = len(parts.x) // len(order)
    gates = {gate.name: gate for gate in cell.gates}
    for place, name in enumerate(order):
        rows = slice(place * hidden, (place + 1) * hidden)
        for each in gates[name].sums:
            addends = []
            for vector in each.vectors:
                matrix, bias = (parts.x, parts.x_bias) if vector == "x" else (parts.h, parts.h_bias)
                matrices[each.name, vector] = matrix[rows]
                addends += [bias[rows]] if bias is not None else []
            if addends:
                biases[each.name] = addends[0] if len(addends) == 1 else _total(addends)
    return PassWeights(matrices, biases, parts.parameters)


def _total(biases: Sequence[Floats]) -> Floats:
    kind = np.result_type(*biases)
    total: Floats = np.sum([each.astype(np.float64) for each in biases], axis=0).astype(kind)
    return total
