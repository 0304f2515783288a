"""A graph in the making, with numpy's rules for shapes, and the values and arguments from which operators draw it.

A name of the network stands for stored numbers or for the result of a drawn operation. What depends on no input is
computed. In the end, the drawn operations that lead to an output become the nodes of a graph, each with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounds import MAX_ELEMENTS, MAX_GRAPH_NODES
from lstmsim.base.errors import InputError
from lstmsim.model.fusion.graph import INPUT, OPERATIONS, REDUCES, Node

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
_MOST_LETTERS = 400
Shape = tuple[int, ...]
#: Bytes of stored numbers that may be computed for a network without weights.
_SPARE = 1 << 24
#: How often the bytes of all weights may be made: a few rearrangements.
_COPIES = 16
#: Nodes that are drawn at most; many of them may lead to no output.
_MOST_NODES = 8 * MAX_GRAPH_NODES


class UnreadableError(Exception):
    """A node cannot be expanded: its arguments are known at run time alone, or are of a form that has no rule."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a network; `elem` as ONNX numbers types, number of the drawn node (-1: `load` gives its numbers)."""

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
        """Stored numbers as a flat list of whole ones; `UnreadableError` if it is computed, or too long for a list."""
        if self.size > 64:
            raise UnreadableError("needs a longer list of numbers than any shape has")
        return [int(each) for each in self.array.reshape(-1)]


def constant(array: Array, elem: int = INT64, label: str = "constant") -> Value:
    """A value whose numbers are given."""
    return Value(array.shape, elem, -1, lambda: array, label)


def width_remark(value: Value) -> str:
    """The sentence on a value whose numbers do not have 4 bytes in its network; empty: they have, or are stored."""
    return next((remark for types, remark in _OTHER_WIDTHS if value.elem in types and not value.stored), "")


@dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of a node; None for an input, and `default` for an attribute, that is left out."""

    kind: str
    version: int
    attributes: Mapping[str, Any]
    inputs: Sequence[Value | None]
    outputs: int = 1

    def value(self, place: int) -> Value:
        """The value at an input; `InputError` if it is left out."""
        value = self.optional(place)
        if value is None:
            raise InputError(f"has no input {place}")
        return value

    def optional(self, place: int) -> Value | None:
        """The value at an input; None if it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def whole(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        return int(self.attributes[name].i) if name in self.attributes else default

    def real(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        return float(self.attributes[name].f) if name in self.attributes else default

    def text(self, name: str, default: str) -> str:
        """An attribute that is a text."""
        return bytes(self.attributes[name].s).decode("utf-8", "replace") if name in self.attributes else default

    def list(self, name: str, place: int = -1) -> list[int] | None:
        """Whole numbers: an attribute in old versions, an input in newer ones; None if both are left out."""
        if name in self.attributes:
            return [int(each) for each in self.attributes[name].ints]
        value = self.optional(place) if place >= 0 else None
        return None if value is None else value.numbers()

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0; `InputError` if there is none of that number."""
        if not -rank <= axis < rank:
            raise InputError(f"names axis {axis} of {rank}")
        return axis % rank

    def scalar(self, place: int, default: float) -> float:
        """A stored number at an input; `UnreadableError` if it is known at run time alone, or is no single one."""
        value = self.optional(place)
        if value is None:
            return default
        if value.size != 1:
            raise UnreadableError(f"has {value.size} numbers at input {place}, expected 1")
        return float(value.array.reshape(-1)[0])


@dataclass
class _Drawn:
    """A node in the making, as `Node`; operands are numbers of nodes (int) or numbers (float)."""

    op: str
    operands: tuple[int | float, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    name: str


def _unused(name: str, taken: dict[str, int]) -> str:
    """The name, followed by a number if it is taken."""
    name = "".join(letter if letter.isprintable() else "?" for letter in name).strip()[:_MOST_LETTERS] or "value"
    own = name
    while own in taken:
        taken[name] += 1
        own = f"{name}.{taken[name]}"
    taken[own] = 1
    return own


Operand = Value | float


class Drawing:
    """Nodes in order, and the numbers of those inputs that are stored in the file, by number of the node."""

    def __init__(self, bytes_of_file: int) -> None:
        self._drawn: list[_Drawn] = []
        self._same: dict[tuple[object, ...], Value] = {}
        self._inputs: dict[int, Value] = {}
        self._reshaped: dict[int, Value] = {}
        self._left = _COPIES * bytes_of_file + _SPARE
        self.stored: dict[int, Value] = {}
        self.prefix = ""

    # What comes from outside.

    def input(self, name: str, shape: Shape, elem: int) -> Value:
        """Something that is given at run time."""
        return self._add(INPUT, (), shape, (), elem, name)

    def drawn(self, value: Value) -> Value:
        """The value as a node: stored numbers become an input of the graph."""
        if not value.stored:
            return value
        if id(value) not in self._inputs:
            made = self._add(INPUT, (), value.shape, (), value.elem, value.label or "constant")
            # the value itself is kept, so that no other one can get its identity
            self.stored[made.number] = value
            self._inputs[id(value)] = made
        return self._inputs[id(value)]

    def call(self, op: str, operands: Sequence[Value], shape: Shape, elem: int) -> Value:
        """A call of a library, or a matrix product."""
        read = tuple(self.drawn(each).number for each in operands)
        return self._add(op, read, shape, (), elem)

    # Operations on elements.

    def element(self, op: str, *operands: Operand, elem: int | None = None) -> Value:
        """An operation on elements, whose operands are repeated to the shape of the result as numpy does it."""
        values = [each for each in operands if isinstance(each, Value)]
        elem = values[0].elem if elem is None else elem
        shape = self._joined([each.shape for each in values])
        if all(each.stored for each in values):
            self._spend(prod(shape) * 8 * len(operands))
            arrays = [_numeric(each.array) if isinstance(each, Value) else each for each in operands]
            with np.errstate(all="ignore"):
                return constant(np.asarray(OPERATIONS[op].function(*arrays)), elem, self.prefix or op)
        read = [self._operand(each, shape) for each in operands]
        sources = [self._reshaped.get(each) for each in read if isinstance(each, int)]
        inner = sources[0].shape if sources and sources[0] else shape
        same = all(each is not None and each.shape == inner for each in sources)
        if same and [size for size in inner if size > 1] == [size for size in shape if size > 1]:
            # a reduce that keeps its axes is a reduce and a reshape: the reshape goes after what follows, or vanishes
            within = [self._reshaped[each].number if isinstance(each, int) else each for each in read]
            return self.reshaped(self._add(op, tuple(within), inner, (), elem), shape)
        return self._add(op, tuple(read), shape, (), elem)

    def _operand(self, operand: Operand, shape: Shape) -> int | float:
        """The number of an operand's node, or the operand as a plain number."""
        if isinstance(operand, Value):
            if operand.stored and operand.size == 1:
                return float(operand.array.reshape(-1)[0])
            return self.drawn(self.stretched(operand, shape)).number
        return float(operand)

    def _joined(self, shapes: Sequence[Shape]) -> Shape:
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            raise InputError(f"the shapes {' and '.join(map(str, shapes))} do not fit each other") from None

    # Operations that move elements.

    def stretched(self, value: Value, shape: Shape) -> Value:
        """The value repeated to a shape."""
        if self._joined([value.shape, shape]) != shape:
            raise InputError(f"the shape {value.shape} cannot be repeated to {shape}")
        if value.size == prod(shape):
            return self.reshaped(value, shape)
        first = len(shape) - len(value.shape)
        kept = [axis for axis, size in enumerate(value.shape) if size == shape[first + axis]]
        narrow = self.drawn(self.reshaped(value, tuple(value.shape[axis] for axis in kept)))
        return self._moved("broadcast", narrow, shape, tuple(first + axis for axis in kept))

    def expanded(self, value: Value, shape: Shape) -> Value:
        """As `stretched`, but stored numbers stay stored."""
        if not value.stored:
            return self.stretched(value, shape)
        self._spend(prod(shape) * value.array.itemsize)
        return constant(np.broadcast_to(value.array, shape), value.elem, value.label)

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """The value with other sizes and as many elements."""
        if value.shape == shape:
            return value
        if prod(shape) != value.size or any(size < 0 for size in shape):
            raise InputError(f"the shape {value.shape} cannot become {shape}")
        if value.stored:
            return self._kept(value, shape, lambda array: array.reshape(shape), ("reshape", shape))
        source = self._reshaped.get(value.number, value)
        if source.shape == shape:
            return source
        made = self._moved("reshape", source, shape, ())
        self._reshaped[made.number] = source
        return made

    def transposed(self, value: Value, perm: Shape) -> Value:
        """The value with its axes in another order; perm: for each axis of the result its axis in the value."""
        if sorted(perm) != list(range(len(value.shape))):
            raise InputError(f"the axes {list(perm)} are not those of the shape {value.shape}")
        shape = tuple(value.shape[axis] for axis in perm)
        if list(perm) == sorted(perm):
            return value
        if value.stored:
            return self._kept(value, shape, lambda array: array.transpose(perm), ("transpose", perm))
        moving = [axis for axis in perm if value.shape[axis] > 1]
        if moving == sorted(moving):
            return self.reshaped(value, shape)
        return self._moved("transpose", value, shape, perm)

    def sliced(self, value: Value, start: Shape, shape: Shape) -> Value:
        """A part of the value; start: its first place in each axis."""
        if shape == value.shape:
            return value
        if 0 in shape:
            return constant(np.zeros(shape, np.float32), value.elem)
        if value.stored:
            places = tuple(slice(at, at + size) for at, size in zip(start, shape, strict=True))
            return self._kept(value, shape, lambda array: array[places], ("slice", start, shape))
        return self._moved("slice", value, shape, start)

    def _kept(self, value: Value, shape: Shape, change: Callable[[Array], Array], key: tuple[object, ...]) -> Value:
        """Stored numbers in another arrangement, the same value for the same arrangement."""
        whole = (id(value), *key)
        if whole not in self._same:

            def load() -> Array:
                # only what is needed is made: most weights are never looked at
                self._spend(value.size)
                return change(value.array)

            made = Value(shape, value.elem, -1, load, value.label)
            self._same[whole] = made
            self._same["kept", id(made)] = value
        return self._same[whole]

    def _moved(self, op: str, value: Value, shape: Shape, axes: Shape) -> Value:
        key = (op, value.number, shape, axes)
        if key not in self._same:
            self._same[key] = self._add(op, (value.number,), shape, axes, value.elem)
        return self._same[key]

    # Operations that reduce axes.

    def reduce(self, op: str, value: Value, axes: Sequence[int], *, keep: bool) -> Value:
        """A reduce."""
        gone = tuple(sorted(set(axes)))
        kept = tuple(1 if axis in gone else size for axis, size in enumerate(value.shape) if keep or axis not in gone)
        if value.stored:
            self._spend(value.size * 8)
            array = REDUCES[op].reduce(_numeric(value.array), axis=gone, keepdims=keep)
            return constant(np.asarray(array), value.elem, self.prefix or op)
        if all(value.shape[axis] == 1 for axis in gone):
            return self.reshaped(value, kept)
        shape = tuple(size for axis, size in enumerate(value.shape) if axis not in gone)
        return self.reshaped(self._add(op, (value.number,), shape, gone, value.elem), kept)

    # The graph.

    def _add(
        self, op: str, operands: tuple[int | float, ...], shape: Shape, axes: Shape, elem: int, name: str = ""
    ) -> Value:
        if len(self._drawn) >= _MOST_NODES:
            raise InputError(f"comes to more than {_MOST_NODES} operations")
        if prod(shape) > MAX_ELEMENTS or 0 in shape:
            raise UnreadableError(f"has a shape of {prod(shape)} elements, expected 1 to {MAX_ELEMENTS}")
        self._drawn.append(_Drawn(op, operands, shape, axes, name or (f"{self.prefix}.{op}" if self.prefix else op)))
        return Value(shape, elem, len(self._drawn) - 1)

    def __len__(self) -> int:
        return len(self._drawn)

    def rename(self, value: Value, name: str) -> None:
        """Give a drawn node the name of a value of the network; what is only reshaped is named by its source."""
        source = self._reshaped.get(value.number)
        inner = self._drawn[source.number] if source else None
        if inner is not None and inner.name == f"{self.prefix}.{inner.op}":
            inner.name, name = name, f"{name}.reshape"
        self._drawn[value.number].name = name

    def nodes(self, outputs: Sequence[Value]) -> tuple[list[Node], list[str], Mapping[str, Value]]:
        """The nodes that lead to outputs, the names of the outputs, and the stored inputs by name."""
        needed, waiting = set[int](), [each.number for each in outputs]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += [each for each in self._drawn[number].operands if isinstance(each, int)]
        taken: dict[str, int] = {}
        names = {number: _unused(self._drawn[number].name, taken) for number in sorted(needed)}
        nodes = []
        for number, name in names.items():
            each = self._drawn[number]
            operands = tuple(names[operand] if isinstance(operand, int) else operand for operand in each.operands)
            nodes.append(Node(name, each.op, operands, each.shape, each.axes))
        stored = {names[number]: value for number, value in self.stored.items() if number in names}
        return nodes, [names[value.number] for value in outputs], stored

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError("computes more stored numbers than any network does")

    def truth(self, value: Value) -> Value:
        """Whether each number is not 0."""
        if value.elem == BOOL:
            return value
        return self.element("greater", self.element("abs", value), 0.0, elem=BOOL)


#: How an operator is drawn: from the arguments of a node to its results.
Rule = Callable[[Drawing, Arguments], list[Value]]


def _numeric(array: Array) -> Array:
    """Numbers that can be computed with: true and false count as 1 and 0, and no whole number overflows."""
    return array.astype(np.int64) if array.dtype.kind in "bui" else array
