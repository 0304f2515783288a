"""One step of an LSTM, GRU or RNN that an ONNX network writes out operation by operation: matched, read, put in order.

PyTorch's exporters write nn.LSTMCell, nn.GRUCell and nn.RNNCell like this, once for each turn of the loop around them:
two products, a sum, its gates apart (Split), then the equations of the cell. A step is matched from its new h
backwards. Nothing is guessed: every operation between the products and h must be there, with its operands in place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lstmsim.base.wording import show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, node_input, resolve
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stored import is_stored, plain
from lstmsim.model.numerics.weights import Floats

_Any = TypeVar("_Any")
_Names = dict[str, Value]

_MAX_TERMS = 8


@dataclass(frozen=True)
class Product:
    """A product of vectors [batch, columns] and a matrix stored as [rows, columns] (`by_rows`) or [columns, rows]."""

    source: Value
    matrix: Value
    by_rows: bool


@dataclass(frozen=True)
class _Terms:
    """A sum; products: its products, stored: the stored values in it (biases)."""

    products: tuple[Product, ...]
    stored: tuple[Value, ...]


@dataclass(frozen=True)
class Step:
    """One step: its cell, the gates in the order of the matrices' rows, the states before it (if the equations name
    them) and after it, and the sums that the gates are cut from; for a GRU one with x, then one with h.
    """

    cell: str
    gates: str
    sums: tuple[_Terms, ...]
    h: Value | None
    c: Value | None
    new_h: Value
    new_c: Value | None


@dataclass(frozen=True)
class _Part:
    """Part `place` of the `count` equal parts into which a Split cuts the last dimension of `whole`."""

    whole: Value
    place: int
    count: int


def find_steps(scope: Scope, shapes: Shapes, number: Callable[[Value], float | None]) -> Iterator[Step]:
    """Match the steps in a graph, in the order of its nodes."""
    finder = _Finder(shapes, number)
    for node in scope.nodes:
        if node.op_type in ("Mul", "Add", "Tanh", "Relu") and node.output:
            value = plain(scope, str(node.output[0]))
            step = finder.step(value) if value is not None else None
            if step is not None:
                yield step


def made_of(step: Step) -> set[tuple[Scope, int]]:
    """List the nodes of a step: all nodes between its inputs and its new states."""
    read = {each.source for terms in step.sums for each in terms.products} | {step.h, step.c}
    nodes: set[tuple[Scope, int]] = set()
    waiting = [each for each in (step.new_h, step.new_c) if each is not None]
    while waiting:
        value = waiting.pop()
        if value.node is None or (value.scope, value.index) in nodes or is_stored(value):
            continue
        nodes.add((value.scope, value.index))
        inputs = [plain(value.scope, str(name)) for name in value.node.input]
        waiting += [each for each in inputs if each is not None and each not in read]
    return nodes


def _pattern(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


#: Equations of h as the exporters write them: operators, and names of what they read; `name := ...` names a result.
#: A name that stands twice is one value. Operands of Add and Mul may stand in either order.
_LSTM = _pattern("Mul(Sigmoid(o), Tanh(c := Add(Mul(Sigmoid(f), before), Mul(Sigmoid(i), Tanh(g)))))")
_UPDATE, _NEW = "z := Sigmoid(Add(zx, zh))", "n := Tanh(Add(nx, Mul(nh, Sigmoid(Add(rx, rh)))))"
_GRU = tuple(
    _pattern(text)
    for text in (
        f"Add({_NEW}, Mul({_UPDATE}, Sub(before, n)))",
        f"Add(Mul({_UPDATE}, before), Mul({_NEW}, Sub(one, z)))",
    )
)


class _Finder:
    def __init__(self, shapes: Shapes, number: Callable[[Value], float | None]) -> None:
        self._shapes, self._number = shapes, number

    def step(self, value: Value) -> Step | None:
        """Match the step whose new h is `value`; None if there is none."""
        kind = value.node.op_type
        if kind == "Mul":
            found = (self._lstm(value, each) for each in self._matches(_LSTM, value, {}))
        elif kind == "Add":
            found = (self._gru(value, each) for pattern in _GRU for each in self._matches(pattern, value, {}))
        else:
            return self._rnn(value)
        return next((each for each in found if each is not None), None)

    def _matches(self, pattern: ast.expr, value: Value, known: _Names) -> Iterator[_Names]:
        """Every way in which a value is what a pattern says, as values by the names of the pattern."""
        match pattern:
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                for each in self._matches(inner, value, known):
                    yield each | {name: value}
            case ast.Name(id=name):
                if known.get(name, value) == value:
                    yield known | {name: value}
            case ast.Call(func=ast.Name(id=kind), args=[inner]):
                operand = plain(value.scope, node_input(value.node, 0)) if value.kind == kind else None
                if operand is not None:
                    yield from self._matches(inner, operand, known)
            case ast.Call(func=ast.Name(id=kind), args=[left, right]):
                pair = self._operands(value, kind)
                orders = [pair, pair[::-1]] if kind != "Sub" else [pair]
                for one, other in orders if pair else ():
                    for each in self._matches(left, one, known):
                        yield from self._matches(right, other, each)

    def _lstm(self, h: Value, found: _Names) -> Step | None:
        parts = [self._part(found[name]) for name in "ifgo"]
        wholes = {each.whole for each in parts if each is not None and each.count == 4}
        if len(wholes) != 1 or not _alike(4, parts):
            return None
        return self._made("lstm", "ifgo", parts, tuple(wholes), None, found["before"], h, found["c"])

    def _gru(self, h: Value, found: _Names) -> Step | None:
        own, recurrent = ([self._part(found[f"{gate}{side}"]) for gate in "rzn"] for side in "xh")
        if (
            not _alike(3, own)
            or not _alike(3, recurrent)
            or [_place(each) for each in own] != [_place(each) for each in recurrent]
        ):
            return None
        if "one" in found and not (is_stored(found["one"]) and self._number(found["one"]) == 1):
            return None
        wholes = tuple(each.whole for each in (own[2], recurrent[2]) if each is not None)
        return self._made("gru", "rzn", own, wholes, found["before"], None, h, None)

    def _rnn(self, h: Value) -> Step | None:
        kind = str(h.node.op_type)
        whole = plain(h.scope, node_input(h.node, 0)) if h.kind == kind else None
        if whole is None:
            return None
        terms = self._terms(whole)
        if terms is None or not 1 <= len(terms.products) <= 2:
            return None
        cell = "rnn" if kind == "Tanh" else "rnn-relu"
        return Step(cell, "a", (terms,), None, None, h, None)

    def _made(
        self,
        cell: str,
        names: str,
        parts: Sequence[_Part | None],
        wholes: tuple[Value, ...],
        before_h: Value | None,
        before_c: Value | None,
        h: Value,
        c: Value | None,
    ) -> Step | None:
        """The step, if it has all its gates and its sums are sums of products with stored matrices."""
        gates = {_place(part): name for part, name in zip(parts, names, strict=True)}
        sums = tuple(self._terms(whole) for whole in wholes)
        if len(gates) != len(names) or any(each is None for each in sums):
            return None
        order = "".join(gates[place] for place in sorted(gates))
        made = tuple(each for each in sums if each is not None)
        return Step(cell, order, made, before_h, before_c, h, c)

    def _operands(self, value: Value, kind: str) -> list[Value]:
        """Both operands of an operation of a kind; empty if the value is of another kind."""
        if value.kind != kind or len(value.node.input) != 2:
            return []
        operands = [plain(value.scope, str(name)) for name in value.node.input]
        return [each for each in operands if each is not None] if None not in operands else []

    def _part(self, value: Value | None) -> _Part | None:
        if value is None or value.kind != "Split":
            return None
        node = value.node
        whole = plain(value.scope, node_input(node, 0))
        axis = integer(attributes(value.scope, node), "axis", 0)
        stated = "split" in attributes(value.scope, node) or bool(node_input(node, 1))
        sizes = self._shapes.given(value.scope, node, "split", 1) if stated else (1,)
        # A step works on [batch, gates x hidden]: the last dimension is the second one.
        if whole is None or axis not in (1, -1) or sizes is None or None in sizes or len(set(sizes)) != 1:
            return None
        return _Part(whole, value.place, len(node.output))

    def _terms(self, value: Value) -> _Terms | None:
        """The sum as products and stored numbers; None if anything else is added."""
        products: list[Product] = []
        constants: list[Value] = []
        waiting = [value]
        while waiting:
            if len(waiting) + len(products) + len(constants) > _MAX_TERMS:
                return None
            each = waiting.pop()
            product = self._product(each)
            if product is not None:
                products.append(product)
                bias = plain(each.scope, node_input(each.node, 2))
                constants += [bias] if bias is not None else []
            elif is_stored(each):
                constants.append(each)
            else:
                operands = self._operands(each, "Add")
                if not operands:
                    return None
                waiting += operands
        return _Terms(tuple(products), tuple(constants)) if all(map(is_stored, constants)) else None

    def _product(self, value: Value) -> Product | None:
        if value.kind not in ("Gemm", "MatMul"):
            return None
        node = value.node
        given = attributes(value.scope, node)
        if any(given[key].f != 1 for key in ("alpha", "beta") if key in given) or integer(given, "transA", 0):
            return None
        source, matrix = (plain(value.scope, node_input(node, place)) for place in (0, 1))
        if source is None or matrix is None or not is_stored(matrix):
            return None
        return Product(source, matrix, bool(integer(given, "transB", 0)))


def _place(part: _Part | None) -> int:
    return -1 if part is None else part.place


def _alike(count: int, parts: Sequence[_Part | None]) -> bool:
    """Whether all parts belong to one value that is cut into `count` parts."""
    wholes = {each.whole for each in parts if each is not None and each.count == count}
    return len(wholes) == 1 and all(each is not None and each.count == count for each in parts)


class Refused(Exception):
    """A chain of steps is no layer that can be simulated; the text says why."""


class StepNumbers:
    """Stored values of one network, each read once; constants: where the values are read."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._known: dict[Value, Floats | str] = {}

    def of(self, value: Value) -> Floats:
        """Read a value from the file; `Refused` if it is no floating-point constant."""
        if value not in self._known:
            self._known[value] = self._constants.of(value.scope, value.name)
        numbers = self._known[value]
        if isinstance(numbers, str):
            raise Refused(f"{show(value.name)} comes from {numbers}")
        return numbers

    def number(self, value: Value) -> float | None:
        """Give the number that fills a stored value; None if the value holds different numbers or is not stored."""
        try:
            numbers = self.of(value)
        except Refused:
            return None
        return float(numbers.flat[0]) if numbers.size and np.all(numbers == numbers.flat[0]) else None

    def matrix(self, product: Product) -> Floats:
        """Read the weights of a product, [rows, columns]."""
        matrix = self.of(product.matrix)
        return matrix if product.by_rows else matrix.T

    def same(self, one: Product, other: Product) -> bool:
        """Say whether two products have equal weights, stored once or twice."""
        if (one.matrix, one.by_rows) == (other.matrix, other.by_rows):
            return True
        try:
            return np.array_equal(self.matrix(one), self.matrix(other))
        except Refused:
            return False

    def biases(self, step: Step) -> tuple[Floats, ...]:
        """Add up the stored terms of each of a step's sums, [rows]; `Refused` if they do not fit the products."""
        matrix = self.matrix(next(each for terms in step.sums for each in terms.products))
        totals = []
        for terms in step.sums:
            total = np.zeros(len(matrix))
            for value in terms.stored:
                row = _row(self.of(value), value)
                if row.shape != total.shape:
                    raise Refused(f"{show(value.name)} has {len(row)} numbers, expected {len(total)}")
                total = total + row
            totals.append(total.astype(matrix.dtype))
        return tuple(totals)

    def fixed(self, value: Value) -> Floats | None:
        """Read a state that the file fixes, for one inference: [units] or [1]; None if it comes at run time."""
        node = value.node
        if node is not None and node.op_type == "ConstantOfShape":
            tensor = next((each.t for each in node.attribute if each.name == "value"), None)
            numbers = [*tensor.float_data] if tensor is not None else [0.0]
            if tensor is not None and tensor.raw_data:
                numbers = list(np.frombuffer(tensor.raw_data, np.float32)) if tensor.data_type == 1 else []
            return np.array(numbers[:1], np.float32) if numbers else None
        if node is not None and node.op_type == "Expand":
            inner = resolve(value.scope, node_input(node, 0))
            return None if inner is None else self.fixed(inner)
        return _row(self.of(value), value) if is_stored(value) else None


def _row(numbers: Floats, value: Value) -> Floats:
    """The row that an array repeats for each inference of a batch; `Refused` if its rows differ."""
    rows = numbers.reshape(-1, numbers.shape[-1]) if numbers.ndim else numbers.reshape(1, 1)
    if not len(rows) or not np.array_equal(rows, np.broadcast_to(rows[:1], rows.shape)):
        raise Refused(f"{show(value.name)} is not the same for every inference of a batch")
    first: Floats = rows[0]
    return first


@dataclass(frozen=True)
class Frame:
    """Frame `index` on the time axis of a tensor of three axes; `count`: frames on this axis, None if left open."""

    tensor: Value
    axis: int
    index: int
    count: int | None


def frame_of(value: Value, kept: bool = False, *, shapes: Shapes) -> Frame | None:
    """Tell which frame of which tensor a value is; None if it is no frame or the file does not say which."""
    axes: tuple[int | None, ...] | None = None
    if kept:
        # The axis that is kept must be the axis of time of a recurrent node: the first.
        axes = (0,)
    elif value.kind == "Squeeze":
        axes = shapes.given(value.scope, value.node, "axes", 1)
        inner = plain(value.scope, node_input(value.node, 0))
        if inner is None or axes is None or len(axes) != 1:
            return None
        value, kept = inner, True
    frame = _picked(value, shapes, kept)
    if frame is None or (kept and axes not in ((frame.axis,), (frame.axis - 3,))):
        return None
    return frame


def run_of_frames(frames: Sequence[Frame | None]) -> bool:
    """Say whether frames go through one tensor from the last to the first, rather than from the first to the last."""
    known = [each for each in frames if each is not None]
    if len(known) < len(frames):
        at = next(at for at, each in enumerate(frames) if each is None)
        raise Refused(f"step {at} reads what is not shown to be frame {at} of one tensor")
    if len({(each.tensor, each.axis) for each in known}) > 1:
        raise Refused("its steps read frames of several tensors")
    places, forward = [each.index for each in known], list(range(len(known)))
    if places not in (forward, forward[::-1]):
        some = ", ".join(map(str, places[:6])) + (", ..." if len(places) > 6 else "")
        raise Refused(f"its steps read frames {some}: only all of them in order can be simulated")
    return places != forward


def picked_by(value: Value) -> list[tuple[Scope, int]]:
    """List the nodes that pick a frame, from the frame to the tensor."""
    nodes, each = list[tuple[Scope, int]](), value
    while each.kind in ("Squeeze", "Gather", "Slice", "Split") and len(nodes) < 2:
        nodes.append((each.scope, each.index))
        inner = plain(each.scope, node_input(each.node, 0))
        if inner is None:
            break
        each = inner
    return nodes


def _picked(value: Value, shapes: Shapes, kept: bool) -> Frame | None:
    """The frame that a Gather, Slice or Split picks; `kept`: the axis of time stays, with one element."""
    node, kind = value.node, value.kind
    if kind not in ("Gather", "Slice", "Split") or (kind != "Gather" and not kept):
        return None
    tensor = plain(value.scope, node_input(node, 0))
    shape = None if tensor is None else shapes.of(tensor.scope, tensor.name)
    if tensor is None or (shape is not None and len(shape) != 3):
        return None
    # A product reads [batch, width], so the tensor that it is taken from has three dimensions even if none is known.
    sizes_known = shape if shape is not None else (None, None, None)
    given = attributes(value.scope, node)
    axis: int | None = integer(given, "axis", 0)
    if kind == "Gather":
        places = shapes.numbers(value.scope, node_input(node, 1))
        single = shapes.of(value.scope, node_input(node, 1)) == ((1,) if kept else ())
        index = places[0] if places and len(places) == 1 and single else None
    elif kind == "Split":
        stated = "split" in given or node_input(node, 1)
        sizes = shapes.given(value.scope, node, "split", 1) if stated else None
        size = sizes_known[axis] if axis is not None and -3 <= axis < 3 else None
        single = set(sizes) == {1} if sizes else size == len(node.output)
        index = value.place if single else None
    else:
        axis, index = _sliced(value, shapes)
    if axis is None or index is None or axis % 3 == 2 or not -3 <= axis < 3:
        return None
    count = sizes_known[axis % 3]
    if index < 0:
        if count is None:
            return None
        index += count
    return Frame(tensor, axis % 3, index, count)


def _sliced(value: Value, shapes: Shapes) -> tuple[int | None, int | None]:
    bounds = shapes.slice(value.scope, value.node, 3) or {}
    axis, (start, end, step) = next(iter(bounds.items()), (None, (None, None, None)))
    if len(bounds) != 1 or step != 1 or start is None or end is None:
        return None, None
    return (axis, start) if end == start + 1 or (start == -1 and end >= 2**31 - 1) else (None, None)
