"""The formats of a pass, made of the ranges that calibration has measured."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.model.cell import Cell
from lstmsim.model.model import Precision
from lstmsim.model.numerics.calibration import Range
from lstmsim.model.numerics.fixed_point import QFormat, VectorFormat

Format = QFormat | VectorFormat


def largest_of(range_: Range) -> float:
    """Give the largest magnitude within a range.

    >>> largest_of((-3.0, 2.0))
    3.0
    """
    low, high = range_
    return max(-low, high)


def formats_of(cell: Cell, ranges: Mapping[str, Range], x: VectorFormat, precision: Precision) -> dict[str, Format]:
    """Give the format of x and of every sum, node, state and parameter; a state has that of the node that feeds it."""
    formats: dict[str, Format] = {"x": x}
    for name in (*(each.name for each in cell.sums), *cell.parameters):
        formats[name] = QFormat.of(largest_of(ranges[name]), precision.tail_bits)
    for node in cell.nodes:
        largest = largest_of(ranges[node.name])
        if node.operation == "quantize":
            formats[node.name] = VectorFormat.of(largest, precision.vector_bits, precision.tail_bits)
        else:
            kept = node.name in cell.states.values()
            formats[node.name] = QFormat.of(largest, precision.state_bits if kept else precision.tail_bits)
    return formats | {state: formats[target] for state, target in cell.states.items()}


def q_format(own: Format) -> QFormat:
    """Give the Q-format in which nodes read numbers of a format; a vector gives the format of its single elements."""
    return own.element if isinstance(own, VectorFormat) else own
