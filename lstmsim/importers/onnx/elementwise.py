"""Operations on constants that compute each number alone, in the numbers' own type.

Source: the ONNX operator pages of the operations in `ELEMENTWISE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from lstmsim.model.numerics.weights import Floats

__all__ = ["ELEMENTWISE", "computed"]

#: A result of more numbers than this, and than its largest part has, is no weight.
_SMALL = 2**16


def _sigmoid(x: Floats) -> Floats:
    """Sigmoid by way of tanh, which does not overflow."""
    half = x.dtype.type(0.5)
    made: Floats = half + half * np.tanh(half * x)
    return made


#: For each operator: how many constants it reads, and its function.
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
    """Compute one operation on constants.

    kind: a key of `ELEMENTWISE`.
    parts: the constants that it reads.

    `ValueError` if the parts do not fit each other, or the result has far more numbers than the parts.

    >>> computed("Mul", [np.ones((2, 2), np.float32), np.float32([2, 3])]).tolist()
    [[2.0, 3.0], [2.0, 3.0]]
    """
    count, operation = ELEMENTWISE[kind]
    if len(parts) != count or len({part.dtype for part in parts}) != 1:
        raise ValueError
    size = prod(np.broadcast_shapes(*(part.shape for part in parts)))
    if size > max(_SMALL, *(part.size for part in parts)):
        raise ValueError
    # The reader of a weight refuses numbers that are not finite.
    with np.errstate(all="ignore"):
        return operation(*parts)
