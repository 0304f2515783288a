"""How far executed kernels are from numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.model.fusion.device import FusionDevice
from lstmsim.model.fusion.evaluate import drawn_inputs, evaluated
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.interpreter.run import executed
from lstmsim.model.fusion.plan import PlannedKernel

__all__ = ["TOLERANCE", "Difference", "difference", "difference_of_run"]

Values = NDArray[np.float64]

#: Differences up to this are equal; docs/fusion.md, section 8.
TOLERANCE = 1e-6


@record
class Difference:
    """How far executed kernels are from numpy.

    largest: the largest |value - numpy's| / max(1, |numpy's|); infinite where only one of them is a number.
    node: name of the node where that is; of equal ones the first.
    elements: how many were compared: all that lies in memory of the device at the end, inputs left out.
    endless: how many of numpy's are infinite or no number: equal ones of these tell little.
    """

    largest: float
    node: str
    elements: int
    endless: int = 0

    @property
    def equal(self) -> bool:
        """Whether all is equal within `TOLERANCE`."""
        return self.largest <= TOLERANCE


def difference_of_run(
    graph: Graph, kernels: Sequence[PlannedKernel], device: FusionDevice, seed: int = 0
) -> Difference:
    """Execute kernels on drawn inputs, and compare with numpy; `Fault` if a plan is wrong.

    graph, kernels, device: as of `executed`.
    seed: of the inputs.
    """
    inputs = drawn_inputs(graph, seed)
    return difference(graph, executed(graph, kernels, inputs, device), inputs)


def difference(graph: Graph, values: Mapping[int, Values], inputs: Mapping[int, Values]) -> Difference:
    """Compare values of nodes with numpy's.

    graph: the graph.
    values: by number of the node.
    inputs: number of each input -> its value.

    >>> from lstmsim.model.fusion.graph import Node
    >>> graph = Graph("g", (Node("x", "input", (), (2,)), Node("y", "negate", ("x",), (2,))), ("y",))
    >>> difference(graph, {1: np.array([-1.0, -2.5])}, {0: np.array([1.0, 2.0])})
    Difference(largest=0.25, node='y', elements=2, endless=0)
    """
    expected = evaluated(graph, inputs)
    compared = sorted(set(values) - set(inputs))
    far = [(_largest(values[number], expected[number]), -number) for number in compared]
    largest, place = max(far, default=(0.0, 0))
    return Difference(
        largest=largest,
        node=graph.nodes[-place].name if far else "",
        elements=sum(graph.nodes[number].size for number in compared),
        endless=sum(int(np.count_nonzero(~np.isfinite(expected[number]))) for number in compared),
    )


def _largest(value: Values, expected: Values) -> float:
    with np.errstate(all="ignore"):
        far = np.abs(value - expected) / np.maximum(1.0, np.abs(expected))
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    far = np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))
    return float(far.max(initial=0.0))
