"""Stacked gate matrices, as every framework stores them, taken apart into a cell's own sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lstmsim.numerics.weights import Floats, PassWeights
from lstmsim.workload.cell import Cell

__all__ = ["Stacked", "unstacked"]


@dataclass(frozen=True, eq=False)
class Stacked:
    """One layer in one direction with gates below each other: `x` [gates x hidden, input], `h` [gates x hidden, width
    of h], `x_bias` and `h_bias` [gates x hidden] or None; the rest belongs to the cell as a whole."""

    x: Floats
    h: Floats
    x_bias: Floats | None = None
    h_bias: Floats | None = None
    more: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    parameters: Mapping[str, Floats] = field(default_factory=dict)


def unstacked(cell: Cell, order: Sequence[str], parts: Stacked) -> PassWeights:
    """The weights of a pass whose stacked gates come in `order` (names of the cell's gates).

    Where a gate is one sum, its two biases are added (in float64, then rounded); where its parts stay apart, as in
    the candidate of the GRU with the reset gate after the product, each keeps its own.

    >>> from lstmsim.workload.cells import cell
    >>> two = np.ones((3, 1), np.float32)
    >>> found = unstacked(cell("gru"), "rzn", Stacked(two, two, two[:, 0], two[:, 0]))
    >>> {name: float(bias[0]) for name, bias in found.biases.items()}
    {'r': 2.0, 'z': 2.0, 'nx': 1.0, 'nh': 1.0}
    """
    matrices = dict(parts.more)
    biases: dict[str, Floats] = {}
    hidden = len(parts.x) // len(order)
    gates = {gate.name: gate for gate in cell.gates}
    for place, name in enumerate(order):
        rows = slice(place * hidden, (place + 1) * hidden)
        for each in gates[name].sums:
            found = []
            for vector in each.vectors:
                matrix, bias = (parts.x, parts.x_bias) if vector == "x" else (parts.h, parts.h_bias)
                matrices[each.name, vector] = matrix[rows]
                found += [bias[rows]] if bias is not None else []
            if found:
                biases[each.name] = found[0] if len(found) == 1 else _total(found)
    return PassWeights(matrices, biases, parts.parameters)


def _total(biases: Sequence[Floats]) -> Floats:
    kind = np.result_type(*biases)
    total: Floats = np.sum([each.astype(np.float64) for each in biases], axis=0).astype(kind)
    return total
