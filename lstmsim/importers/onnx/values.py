"""Small values inside an ONNX file: attributes, and short constants of whole numbers (axes, bounds, target shapes).

Weights and external data are never decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

__all__ = [
    "MAX_ELEMENTS",
    "Shape",
    "broadcast",
    "checked",
    "constant_shape",
    "elements",
    "integer",
    "integers",
    "kinds_named",
    "product",
    "text",
]

#: Sizes of a value's dimensions, with None for a size that the file leaves open.
Shape = tuple[int | None, ...]

MAX_ELEMENTS = 64
_MAX_SIZE = 2**62
_INT32, _INT64, _EXTERNAL = 6, 7, 1


def checked(shape: Shape | None) -> Shape | None:
    """Give the shape with None in place of sizes that no tensor has."""
    if shape is None:
        return None
    return tuple(size if size is not None and 0 <= size < _MAX_SIZE else None for size in shape)


def product(sizes: Iterable[int | None]) -> int | None:
    """Multiply sizes; None if one is not known."""
    whole = 1
    for size in sizes:
        if size is None:
            return None
        whole *= size
    return whole


def broadcast(shapes: list[Shape | None]) -> Shape | None:
    """Give the shape of a result that is computed element by element from tensors; None if a shape is not known.

    >>> broadcast([(5, 1, 3), (4, 3)]), broadcast([(2,), None])
    ((5, 4, 3), None)
    """
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    rank = max(map(len, known))
    joined: list[int | None] = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in known), strict=True):
        wide = {size for size in sizes if size != 1}
        joined.append(wide.pop() if len(wide) == 1 else None if wide else 1)
    return tuple(joined)


def integer(given: dict[str, Any], name: str, default: int) -> int:
    """Read a whole-number attribute of a node; given: its attributes by name, default: for one that is left out."""
    return int(given[name].i) if name in given else default


def integers(given: dict[str, Any], name: str) -> Shape | None:
    """Read an attribute that lists whole numbers; given: a node's attributes by name. None if it is left out."""
    return tuple(int(each) for each in given[name].ints) if name in given else None


def constant_shape(given: dict[str, Any]) -> Shape | None:
    """Give the shape of the value of a `Constant` node from its attributes; None if they hold no value."""
    if "value" in given:
        return checked(tuple(given["value"].t.dims))
    if "sparse_value" in given:
        return checked(tuple(given["sparse_value"].sparse_tensor.dims))
    for name in ("value_ints", "value_floats"):
        if name in given:
            return (len(given[name].ints) or len(given[name].floats),)
    return () if {"value_int", "value_float"} & set(given) else None


def elements(tensor: Any) -> Shape | None:
    """Read a short tensor of whole numbers that is inside the file; None for any other tensor."""
    kind = getattr(tensor, "data_type", None)
    if kind not in (_INT32, _INT64) or tensor.data_location == _EXTERNAL:
        return None
    count = product(tuple(tensor.dims))
    if count is None or not 0 <= count <= MAX_ELEMENTS:
        return None
    size, letter = (8, "q") if kind == _INT64 else (4, "i")
    if tensor.raw_data:
        return struct.unpack(f"<{count}{letter}", tensor.raw_data) if len(tensor.raw_data) == count * size else None
    stored = tensor.int64_data if kind == _INT64 else tensor.int32_data
    return tuple(int(each) for each in stored) if len(stored) == count else None


def text(given: dict[str, Any], name: str, default: str) -> str:
    """Read a text attribute in lower case; given: a node's attributes by name, default: for one that is left out."""
    return bytes(given[name].s).decode("utf-8", "replace").lower() if name in given else default


def kinds_named(names: str) -> frozenset[str]:
    """Make a set of operator types from their names in one text.

    >>> sorted(kinds_named("Relu Conv"))
    ['Conv', 'Relu']
    """
    return frozenset(names.split())
