"""What a name of a network stands for while its graph is drawn: stored numbers, or the result of a drawn operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError

__all__ = ["BOOL", "FLOAT", "FLOATS", "INT64", "NARROW", "Array", "UnreadableError", "Value", "constant", "width_told"]

Array = NDArray[Any]

#: Element types as ONNX numbers them (TensorProto.DataType).
FLOAT, INT64, BOOL = 1, 7, 9
#: Floating-point types of 16 bits and less; a graph computes in 32 instead.
NARROW = (10, 16, 17, 18, 19, 20, 23)
#: All floating-point types; 11 has 64 bits.
FLOATS = (FLOAT, 11, *NARROW)
#: What is said of results that do not have 4 bytes: the types (2 to 5, 21 and 22 are whole numbers), and the sentence.
_OTHER_WIDTHS = (
    (NARROW, "numbers of 16 bits and less are computed in 32, as all numbers of a graph"),
    ((2, 3, 4, 5, 21, 22), "whole numbers of 16 bits and less count as 4 bytes each, as all numbers of a graph"),
    ((INT64, 11, 13), "numbers of 64 bits count as 4 bytes each, as all numbers of a graph"),
)


class UnreadableError(Exception):
    """A node cannot be expanded: its arguments are known at run time alone, or are of a form that has no rule."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a network.

    shape: its sizes.
    elem: its type, as ONNX numbers them.
    number: of the drawn node; -1: its numbers are stored.
    load: gives the stored numbers.
    label: name of what is stored.
    """

    shape: tuple[int, ...]
    elem: int = FLOAT
    number: int = -1
    load: Callable[[], Array] | None = None
    label: str = ""

    @property
    def stored(self) -> bool:
        """Whether its numbers do not depend on the inputs of the network."""
        return self.number < 0

    @cached_property
    def array(self) -> Array:
        """The stored numbers; `UnreadableError` if it is computed."""
        if self.load is None:
            raise UnreadableError("needs numbers that are known at run time alone")
        array = np.asarray(self.load())
        if array.shape != self.shape:
            raise InputError("is damaged: a tensor has not the shape that it states")
        return array

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def real(self) -> bool:
        """Whether its numbers may have fractions."""
        return self.elem in FLOATS

    def numbers(self) -> list[int]:
        """Its stored numbers as a flat list of whole ones; `UnreadableError` if it is computed, or too long for a list.

        >>> constant(np.array([[1, 2]])).numbers()
        [1, 2]
        """
        if self.size > 64:
            raise UnreadableError("needs a longer list of numbers than any shape has")
        return [int(each) for each in self.array.reshape(-1)]


def constant(array: Array, elem: int = INT64, label: str = "constant") -> Value:
    """A value whose numbers are given.

    array: the numbers.
    elem: their type, as ONNX numbers them.
    label: the name of what is stored.
    """
    return Value(array.shape, elem, -1, lambda: array, label)


def width_told(value: Value) -> str:
    """The sentence on a value whose numbers do not have 4 bytes in its network; empty: they have, or are stored.

    value: the value.

    >>> width_told(Value((4,), elem=2, number=0))
    'whole numbers of 16 bits and less count as 4 bytes each, as all numbers of a graph'
    """
    return next((told for types, told in _OTHER_WIDTHS if value.elem in types and not value.stored), "")
