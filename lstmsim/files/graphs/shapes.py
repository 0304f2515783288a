"""The shape of a node that states none, where it follows from its operands."""

from __future__ import annotations

import numpy as np

from lstmsim.model.fusion.operations import OPERATIONS, REDUCES

__all__ = ["following_shape"]

Shape = tuple[int, ...]


def following_shape(op: str, operands: list[Shape], axes: Shape) -> Shape | None:
    """The shape of a result; None if it does not follow, or its operands are wrong.

    op: the operation.
    operands: the shapes of its operands, without plain numbers.
    axes: as of `lstmsim.model.fusion.graph.Node`.

    >>> following_shape("reduce_sum", [(5, 4, 6)], (1,)), following_shape("reshape", [(5, 4)], ())
    ((5, 6), None)
    """
    if not operands:
        return None
    first = operands[0]
    if op in OPERATIONS:
        return first
    if op in REDUCES:
        return tuple(size for axis, size in enumerate(first) if axis not in axes)
    if op == "transpose":
        return tuple(first[axis] for axis in axes) if sorted(axes) == list(range(len(first))) else None
    if op == "matmul" and len(operands) == 2:
        return _product(*operands)
    return None


def _product(a: Shape, b: Shape) -> Shape | None:
    if len(a) < 2 or len(b) < 2:
        return None
    try:
        outer = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return None
    return (*outer, a[-2], b[-1])
