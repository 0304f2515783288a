"""Floating-point constants inside an ONNX file, through the operations that exporters put between them and a layer.

Operations that rearrange (`RULES`) or compute each number alone (`ELEMENTWISE`) are done; no other computation is.
A size that the file leaves open is a batch and counts as 1; who needs another size refuses it.
Source: the fields of TensorProto (onnx.proto), the operator pages of the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import kinds_named
from lstmsim.importers.onnx.graph import (
    DEFAULT_DOMAINS,
    Scope,
    Shape,
    Value,
    attributes,
    integer,
    integers,
    label,
    node_input,
    resolve,
    upstream,
)
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stored import (
    DataFiles,
    clipped,
    is_external,
    meant,
    numbers_of,
    stored_tensor,
    stored_whole,
)
from lstmsim.importers.tensors import single_or_double
from lstmsim.model.numerics.weights import Floats

_MAX_REPEATS = 4096
#: Operations whose result may be larger than their inputs.
REPEATING = ("Expand", "Tile", "ConstantOfShape")
#: A result of more numbers than this, and than its largest part has, is no weight.
_SMALL = 2**16
#: Types of numbers as ONNX numbers them.
_HALVES = {10: "F16", 16: "BF16"}
_BITS = {2: 8, 3: 8, 4: 16, 5: 16, 6: 32}
_PLACES = {"W": 1, "R": 2, "B": 3, "P": 7}
_MAX_VALUES = 1000
#: Bytes of the floating-point numbers that weights can have, by ONNX's types.
_BYTES = {1: 4, 10: 2, 11: 8, 16: 2}
_MAX_HOPS = 50
#: How often the bytes of each weight may be made: a few rearrangements. Endless repetitions would fill the memory.
COPIES, _SPARE = 16, 2**20
#: Bytes that count for an operation, besides its result.
_OPERATION = 1024


def _known(numbers: Shape | None) -> list[int]:
    if numbers is None or None in numbers:
        raise ValueError
    return [each for each in numbers if each is not None]


def _single(numbers: Shape | None) -> list[int]:
    """Sizes, with 1 for each size that the file leaves open: a batch is run as one sequence."""
    return [1 if each is None else each for each in numbers or ()]


#: Operations that only rearrange, pick or repeat numbers.
RULES = kinds_named(
    "Identity Dropout Transpose Unsqueeze Squeeze Reshape Concat Slice Cast Gather Split Expand Tile ConstantOfShape"
)


def _rearranged(shapes: Shapes, scope: Scope, node: Any, parts: list[Floats], place: int) -> Floats:
    """Give output `place` of a node of `RULES` from the constants that it reads, at batch 1."""
    given, first = attributes(scope, node), parts[0]
    axis = integer(given, "axis", 0)
    match str(node.op_type):
        case "Transpose":
            order = integers(given, "perm")
            return np.transpose(first, None if order is None else _known(order))
        case "Unsqueeze":
            return np.expand_dims(first, tuple(_known(shapes.given(scope, node, "axes", 1))))
        case "Squeeze":
            axes = shapes.given(scope, node, "axes", 1)
            return np.squeeze(first, None if axes is None and not node_input(node, 1) else tuple(_known(axes)))
        case "Reshape":
            wanted, keep = _known(shapes.given(scope, node, "shape", 1)), not integer(given, "allowzero", 0)
            return first.reshape([first.shape[at] if size == 0 and keep else size for at, size in enumerate(wanted)])
        case "Concat":
            return np.concatenate(parts, axis=axis)
        case "Slice":
            bounds = shapes.slice(scope, node, first.ndim)
            if bounds is None or any(None in each for each in bounds.values()):
                raise ValueError
            return first[tuple(slice(*bounds.get(each, (None,))) for each in range(first.ndim))]
        case "Cast":
            kind = {1: np.float32, 10: np.float16, 11: np.float64}[integer(given, "to", 0)]
            return first.astype(kind).astype(np.float32 if kind == np.float16 else kind)
        case "Gather":
            places, shape = _known(shapes.numbers(scope, node_input(node, 1))), shapes.of(scope, node_input(node, 1))
            if shape is None or len(shape) > 1:
                raise ValueError
            return np.take(first, places if shape else places[0], axis=axis)
        case "Split":
            stated, whole = shapes.given(scope, node, "split", 1), first.shape[axis]
            # If the parts are not equal, the last part is smaller.
            sizes = [-(-whole // len(node.output))] * len(node.output) if stated is None else _known(stated)
            begin = sum(sizes[:place])
            end = begin + sizes[place]
            return np.take(first, range(begin, end if stated is not None else min(end, whole)), axis=axis)
        case "Expand":
            wanted = [max(each, 1) for each in _single(shapes.numbers(scope, node_input(node, 1)))]
            return np.broadcast_to(first, np.broadcast_shapes(first.shape, tuple(wanted)))
        case "Tile":
            repeats = _single(shapes.numbers(scope, node_input(node, 1))) or [1] * first.ndim
            if prod(repeats) > _MAX_REPEATS or min(repeats, default=1) < 1:
                raise ValueError
            return np.tile(first, repeats)
        case "ConstantOfShape":
            if first.size != 1:
                raise ValueError
            # If the shape is not known, the number alone is given: a reader that needs a larger array refuses it.
            return np.broadcast_to(first.reshape(()), _single(shapes.numbers(scope, node_input(node, 0))))
    return first


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
    """Compute one operation on constants."""
    count, operation = ELEMENTWISE[kind]
    if len(parts) != count or len({part.dtype for part in parts}) != 1:
        raise ValueError
    size = prod(np.broadcast_shapes(*(part.shape for part in parts)))
    if size > max(_SMALL, *(part.size for part in parts)):
        raise ValueError
    # The reader of a weight refuses numbers that are not finite.
    with np.errstate(all="ignore"):
        return operation(*parts)


def node_widths(scope: Scope, index: int) -> list[str]:
    """Note the bits of a recurrent node's weights; empty if all have 32 or 64 bits."""
    node = scope.nodes[index]
    named = {name: (scope, node_input(node, place)) for name, place in _PLACES.items() if node_input(node, place)}
    return width_notes(named, label(scope, index))


def width_notes(named: Mapping[str, tuple[Scope, str]], at: str) -> list[str]:
    """Note weights of 16 bits, and weights that are stored as scaled whole numbers."""
    halves, whole = set[str](), dict[str, int]()
    for name, where in named.items():
        for value in _origins(*where):
            kind = _kind(value)
            if kind in _HALVES:
                halves.add(_HALVES[kind])
            bits = _whole_bits(value)
            if bits:
                whole[name] = bits
    notes = []
    if whole:
        size = " and ".join(f"{bits}-bit" for bits in sorted(set(whole.values())))
        verb = "is" if len(whole) == 1 else "are"
        notes.append(f"{listed(list(whole), 'and')} of {at} {verb} stored as {size} numbers, read as what these mean")
    if halves:
        notes.append(f"the weights of {at} have 16 bits ({min(halves)}); they are the same here, the sums are wider")
    return notes


def _origins(scope: Scope, name: str) -> list[Value]:
    """The tensors, and the nodes that change the kind of number, that a weight is put together from."""

    def passing(value: Value) -> bool:
        return value.kind in ELEMENTWISE or (value.kind in RULES and value.kind not in ("Cast", "ConstantOfShape"))

    def follow(value: Value) -> Iterable[str]:
        every = value.kind == "Concat" or value.kind in ELEMENTWISE
        return value.node.input[: None if every else 1] if passing(value) else ()

    return [each for each in upstream(scope, name, follow, _MAX_VALUES) if not passing(each) and not each.inside()]


def _kind(value: Value) -> int:
    """The kind of number that a tensor or a node gives; 0 if the file does not tell."""
    if value.node is None:
        return int(getattr(value.tensor, "data_type", 0))
    scope, node = value.scope, value.node
    if node.op_type == "Cast":
        return integer(attributes(scope, node), "to", 0)
    given = stored_tensor(scope, node_input(node, 1) if node.op_type == "DequantizeLinear" else value.name)
    return int(getattr(given, "data_type", 0))


def _whole_bits(value: Value) -> int:
    """The bits of the whole numbers that a node scales; 0 if it scales none."""
    if value.kind != "DequantizeLinear":
        return 0
    stored = stored_tensor(*clipped(value.scope, node_input(value.node, 0))[0])
    return _BITS.get(getattr(stored, "data_type", 0), 0)


class _NoConstant(Exception):
    """The value is computed, given at run time, or no floating-point number; the text names what gives it."""


class Constants:
    """Constants of one network.

    size: bytes of the network; they bound the bytes that are made of constants, which a file may repeat without end.
    given: (scope, name) to an array that stands for this value as if it were a constant.
    """

    def __init__(
        self, shapes: Shapes, size: int, files: DataFiles, given: Mapping[tuple[Scope, str], Floats] | None = None
    ) -> None:
        self._shapes = shapes
        self._given = given or {}
        self._left = COPIES * size + _SPARE
        self._files = files

    def of(self, scope: Scope, name: str) -> Floats | str:
        """Read the constant that `name` means in `scope`, or say what gives the value instead."""
        try:
            return self._value(resolve(scope, name), 0)
        except _NoConstant as reason:
            return str(reason)

    def _value(self, value: Value | None, hops: int) -> Floats:
        if value is None or hops > _MAX_HOPS:
            raise _NoConstant("nothing in the file")
        if (value.scope, value.name) in self._given:
            return self._given[value.scope, value.name]
        if value.tensor is not None:
            return self._decoded(value.tensor)
        scope, node = value.scope, value.node
        if node is None:
            raise _NoConstant(f"input {show(value.name)}")
        if value.index in scope.children:
            return self._common(value, hops)
        given, kind = attributes(scope, node), str(node.op_type)
        if node.domain not in DEFAULT_DOMAINS or (value.place and kind != "Split"):
            raise _NoConstant(f"a node {kind}")
        if kind == "Constant" and "value" in given:
            return self._decoded(given["value"].t)
        if kind == "DequantizeLinear":
            scale = self._value(resolve(scope, node_input(node, 1)), hops + 1)
            before = self._files.total
            try:
                numbers, zero = stored_whole(scope, node, self._files)
                self._left += COPIES * (self._files.total - before)
                # Each number becomes one of 4 bytes, by way of a wider number.
                self._spend(numbers.nbytes + 4 * numbers.size)
                return meant(scope, node, numbers, scale, zero)
            except ValueError:
                raise _NoConstant("a node DequantizeLinear whose arguments are not read here") from None
        if kind in ELEMENTWISE:
            return self._elementwise(scope, node, hops)
        names = node.input if kind == "Concat" else node.input[: 0 if kind == "ConstantOfShape" else 1]
        if kind not in RULES or len(names) > 64:
            raise _NoConstant(f"a node {kind}")
        parts = [self._value(resolve(scope, str(each)), hops + 1) for each in names]
        if kind == "ConstantOfShape":
            parts = [self._decoded(given["value"].t) if "value" in given else np.zeros(1, np.float32)]
        self._spend(sum(each.nbytes for each in parts))
        try:
            made = _rearranged(self._shapes, scope, node, parts, value.place)
        except (ValueError, IndexError, TypeError, KeyError):
            raise _NoConstant(f"a node {kind} whose arguments do not fit") from None
        self._spend(made.nbytes if kind in REPEATING else 0)
        return made

    def _elementwise(self, scope: Scope, node: Any, hops: int) -> Floats:
        kind, names = str(node.op_type), [str(each) for each in node.input[:3]]
        # Even small parts count: two parts at each of many levels grow without end.
        self._spend(_OPERATION)
        if any(any(_kind(value) in _HALVES for value in _origins(scope, name)) for name in names):
            raise _NoConstant(f"a node {kind} in 16 bits")
        parts = [self._value(resolve(scope, name), hops + 1) for name in names]
        try:
            made = computed(kind, parts)
        except ValueError:
            raise _NoConstant(f"a node {kind} whose arguments do not fit") from None
        self._spend(made.nbytes)
        return made

    def _common(self, value: Value, hops: int) -> Floats:
        """The output of a function's body, or of an `If` whose branches all give the same."""
        made = [self._value(resolve(*each), hops + 1) for each in value.inside()]
        if not made or not all(np.array_equal(each, made[0]) for each in made):
            raise _NoConstant(f"a node {value.node.op_type}")
        return made[0]

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError("repeats its weights more often than any network does")

    def _decoded(self, tensor: Any) -> Floats:
        if not hasattr(tensor, "data_type"):
            raise _NoConstant("a sparse tensor")
        width = _BYTES.get(tensor.data_type)
        if width is None:
            raise _NoConstant(f"{show(str(tensor.name))}, which holds no floating-point numbers")
        size = max(prod(tensor.dims), 0) * width
        # Bytes of a data file add to the bytes that may be made of the network.
        before, outside = self._files.total, is_external(tensor)
        self._spend(0 if outside else size)
        numbers = numbers_of(tensor, self._files)
        self._left += COPIES * (self._files.total - before)
        self._spend(size if outside else 0)
        return single_or_double(numbers)
