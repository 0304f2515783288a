"""What operations that compute each number alone make of constants, in the numbers' own type.

Source: the ONNX operator pages of the operations in `ELEMENTWISE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from lstmsim.numerics.weights import Floats

__all__ = ["ELEMENTWISE", "computed"]

#: A result of more numbers than its largest part has is no weight.
_SMALL = 2**16


def _sigmoid(x: Floats) -> Floats:
    """By way of tanh, which does not overflow."""
    half = x.dtype.type(0.5)
    made: Floats = half + half * np.tanh(half * x)
    return made


#: The operation, by how many constants it reads.
ELEMENTWISE: dict[str, tuple[int, Callable[..., Floats]]] = {
    "Add": (2, np.add),
    "Sub": (2, np.subtract),
    "Mul": (2, np.multiply),
    "Div": (2, np.divide),
    "Neg": (1, np.negative),
    "Tanh": (1, np.tanh),
    "Sigmoid": (1, _sigmoid),
    "Sqrt": (1, np.sqrt),
}


def computed(kind: str, parts: Sequence[Floats]) -> Floats:
    """The result of one operation; `ValueError` where its parts do not fit, or make far more numbers than they have.

    >>> computed("Mul", [np.ones((2, 2), np.float32), np.float32([2, 3])]).tolist()
    [[2.0, 3.0], [2.0, 3.0]]
    """
    count, operation = ELEMENTWISE[kind]
    if len(parts) != count or len({part.dtype for part in parts}) != 1:
        raise ValueError
    size = prod(np.broadcast_shapes(*(part.shape for part in parts)))
    if size > max(_SMALL, *(part.size for part in parts)):
        raise ValueError
    # What is infinite or no number is refused by whoever reads a weight.
    with np.errstate(all="ignore"):
        return operation(*parts)
