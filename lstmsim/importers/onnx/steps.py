"""One step of an LSTM, GRU or RNN that an ONNX network writes out operation by operation: matched, read, put in order.

PyTorch's exporters write nn.LSTMCell, nn.GRUCell and nn.RNNCell like this, once for each turn of the loop around them:
two products, a sum, its gates apart (Split), then the equations of the cell. Cells written by hand have one product of
x and h put together, one for each gate, or the products of all frames before the loop, as nn.RNN has from the newer
exporter. A step is matched from its new h backwards. Nothing is guessed: every operation between the products and h
must be there, with its operands in place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np

from lstmsim.base.wording import show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, node_input, upstream
from lstmsim.importers.onnx.nodes import HANDING_ON
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stored import is_stored, plain
from lstmsim.model.numerics.weights import Floats

_Any = TypeVar("_Any")
#: What the names of a pattern stand for: values, or parts (`_Part`) of values.
_Names = dict[str, Any]

_MAX_TERMS = 8
WHOLE = HANDING_ON - {"Slice", "Split", "Gather", "Expand", "Tile"}


@dataclass(frozen=True)
class Product:
    """A product of vectors [batch, columns] and a matrix stored as [rows, columns] (`by_rows`) or [columns, rows].

    columns: those that multiply `source`, if it is put together with other vectors.
    frame: the frame of `source` that the product takes, if it is cut from the products of all frames.
    """

    source: Value
    matrix: Value
    by_rows: bool
    columns: tuple[int, int] | None = None
    frame: Frame | None = None


@dataclass(frozen=True)
class _Terms:
    """A sum; products: its products, stored: the stored values in it (biases)."""

    products: tuple[Product, ...]
    stored: tuple[Value, ...]


#: Part `place` of the `count` equal parts of sum number `at`: (at, place, count).
Rows = tuple[int, int, int]


@dataclass(frozen=True)
class Step:
    """One step: its cell, the gates by name, the states before it (if the equations name them) and after it.

    sums: the sums that gates are cut from.
    rows: for each gate, its parts of the sums, which are added; the GRU's last gate has the part of x, then that of h.
    reset: the product of the reset gate and h, for a GRU that has it before the matrix.
    turned: gates whose complement the equations use: 1 - sigmoid(a) is sigmoid(-a).
    A last step whose h nobody reads has c as its `new_h`, too, and no output gate.
    """

    cell: str
    gates: str
    sums: tuple[_Terms, ...]
    rows: tuple[tuple[Rows, ...], ...]
    h: Value | None
    c: Value | None
    new_h: Value
    new_c: Value | None = None
    reset: Value | None = None
    turned: str = ""

    @property
    def products(self) -> list[Product]:
        """The products of all sums."""
        return [each for terms in self.sums for each in terms.products]


@dataclass(frozen=True)
class _Part:
    """Part `place` of the `count` equal parts into which a Split cuts the last dimension of `whole`."""

    whole: Value
    place: int
    count: int


def find_steps(scope: Scope, shapes: Shapes, number: Callable[[Value], float | None]) -> list[Step]:
    """Match the steps in a graph, in the order of its nodes."""
    finder = _Finder(shapes, number)
    steps, ends = list[Step](), list[Step]()
    for node in scope.nodes:
        if node.op_type in ("Mul", "Add", "Tanh", "Relu") and node.output:
            value = plain(scope, str(node.output[0]))
            step = finder.step(value) if value is not None else None
            if step is not None:
                (ends if step.new_h == step.new_c else steps).append(step)
    known = {each.new_c for each in steps}
    left = {each.new_h.name: each for each in ends if each.new_c not in known}
    same, read = {name: name for name in left}, set(scope.outputs)
    for node in scope.nodes if left else ():
        for name in node.input:
            end = same.get(str(name), "")
            read.add(end)
            if node.op_type == "Identity":
                same[str(node.output[0])] = end
            elif node.op_type not in HANDING_ON:
                left.pop(end, None)
    # what nobody reads is no part of a layer
    return [*steps, *(step for name, step in left.items() if name in read)]


def made_of(step: Step) -> set[tuple[Scope, int]]:
    """List the nodes of a step: all nodes between its inputs and its new states."""
    read = {each.source for each in step.products if each.source != step.reset} | {step.h, step.c}
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


def whole_outputs(scope: Scope) -> list[Value]:
    """List what the outputs of the network are, or are put together from, whole and with nothing done to it."""
    while (outer := scope.outer or (scope.caller[0] if scope.caller else None)) is not None:
        scope = outer
    found = [upstream(scope, each, lambda x: x.node.input if x.kind in WHOLE else (), 300) for each in scope.outputs]
    return [*chain.from_iterable(found)]


def _pattern(text: str) -> ast.expr:
    return ast.parse(f"({text})", mode="eval").body


#: Equations of h as exporters and people write them: operators, and names of what they read; `name := ...` names a
#: result. A name that stands twice is one value. Operands of Add and Mul may stand in either order.
_STATE = "c := Add(Mul(Sigmoid(f), before), Mul(Sigmoid(i), Tanh(g)))"
_END = _pattern(_STATE)
_LSTM = _pattern(f"Mul(Sigmoid(o), Tanh({_STATE}))")
_UPDATE = "u := Sigmoid(z)"
_NEW = {"gru": "n := Tanh(Add(nx, Mul(nh, Sigmoid(r))))", "gru-lbr0": "n := Tanh(nr)"}
#: Cell, pattern, gates whose complement it uses.
_GRU = tuple(
    (cell, _pattern(text), turned)
    for cell, new in _NEW.items()
    for text, turned in (
        (f"Add({new}, Mul({_UPDATE}, Sub(before, n)))", ""),
        (f"Add(Mul({_UPDATE}, before), Mul({new}, Sub(one, u)))", ""),
        (f"Add(before, Mul({_UPDATE}, Sub({new}, before)))", "z"),
        (f"Add(Mul({_UPDATE}, {new}), Mul(before, Sub(one, u)))", "z"),
    )
)
_RESET = _pattern("Mul(Sigmoid(r), before)")


class _Finder:
    def __init__(self, shapes: Shapes, number: Callable[[Value], float | None]) -> None:
        self._shapes, self._number = shapes, number

    def step(self, value: Value) -> Step | None:
        """Match the step whose new h is `value`; None if there is none."""
        kind = value.node.op_type
        found: Iterable[Step | None]
        if kind == "Mul":
            found = (self._lstm(value, each) for each in self._matches(_LSTM, value, {}))
        elif kind == "Add":
            ends = (self._lstm(value, each) for each in self._matches(_END, value, {}))
            grus = (
                self._gru(value, each, cell, turned)
                for cell, pattern, turned in _GRU
                for each in self._matches(pattern, value, {})
            )
            found = chain(ends, grus)
        else:
            return self._rnn(value)
        return next((each for each in found if each is not None), None)

    def _matches(self, pattern: ast.expr, value: Any, known: _Names) -> Iterator[_Names]:
        """Every way in which a value is what a pattern says, as values by the names of the pattern."""
        match pattern:
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                for each in self._matches(inner, value, known):
                    yield each | {name: value}
            case ast.Name(id=name):
                if known.get(name, value) == value or self._same_number(known[name], value):
                    yield known | {name: value}
            case ast.Call(func=ast.Name(id=kind), args=[inner]):
                operand: Any = plain(value.scope, node_input(value.node, 0)) if value.kind == kind else None
                part = self._part(value) if isinstance(inner, ast.Name) else None
                if part is not None and part.whole.kind == kind:
                    # The activation of a part is the part of the activation.
                    whole = plain(part.whole.scope, node_input(part.whole.node, 0))
                    operand = None if whole is None else replace(part, whole=whole)
                if operand is not None:
                    yield from self._matches(inner, operand, known)
            case ast.Call(func=ast.Name(id=kind), args=[left, right]):
                pair = self._operands(value, kind)
                orders = [pair, pair[::-1]] if kind != "Sub" else [pair]
                for one, other in orders if pair else ():
                    for each in self._matches(left, one, known):
                        yield from self._matches(right, other, each)

    def _same_number(self, one: Any, other: Any) -> bool:
        """Whether two stored values are one number: an exporter may store the first h again for each use."""
        if isinstance(one, _Part) or isinstance(other, _Part) or not (is_stored(one) and is_stored(other)):
            return False
        return self._number(one) is not None and self._number(one) == self._number(other)

    def _lstm(self, h: Value, found: _Names) -> Step | None:
        gates = "ifgo" if "o" in found else "ifg"
        c = found.get("c", h)
        return self._made("lstm", gates, [self._gate(found[name]) for name in gates], found["before"], h, c)

    def _gru(self, h: Value, found: _Names, cell: str, turned: str) -> Step | None:
        if "one" in found and not (is_stored(found["one"]) and self._number(found["one"]) == 1):
            return None
        if cell == "gru":
            new = [*(self._gate(found["nx"]) or ()), *(self._gate(found["nh"]) or ())]
            gates = [self._gate(found["r"]), self._gate(found["z"]), tuple(new) if len(new) == 2 else None]
            made = self._made(cell, "rzn", gates, None, h, None)
            return made and replace(made, h=found["before"], turned=turned)
        last = self._gate(found["nr"])
        terms = self._terms(last[0].whole) if last else None
        for each in terms.products if terms is not None else ():
            for more in self._matches(_RESET, each.source, {"before": found["before"]}):
                made = self._made(cell, "rzn", [self._gate(more["r"]), self._gate(found["z"]), last], None, h, None)
                return made and replace(made, h=found["before"], turned=turned, reset=each.source)
        return None

    def _rnn(self, h: Value) -> Step | None:
        kind = str(h.node.op_type)
        whole = plain(h.scope, node_input(h.node, 0)) if h.kind == kind else None
        if whole is None:
            return None
        step = self._made("rnn" if kind == "Tanh" else "rnn-relu", "a", [self._gate(whole)], None, h, None)
        return step if step is not None and step.rows == (((0, 0, 1),),) and len(step.products) <= 2 else None

    def _made(
        self,
        cell: str,
        gates: str,
        parts: Sequence[tuple[_Part, ...] | None],
        before_c: Value | None,
        h: Value,
        c: Value | None,
    ) -> Step | None:
        """The step, if each gate has its own parts of sums of products with stored matrices."""
        every = [part for gate in parts if gate is not None for part in gate]
        if None in parts or len(set(every)) < len(every):
            return None
        wholes = list(dict.fromkeys(each.whole for each in every))
        sums = [terms for each in wholes if (terms := self._terms(each)) is not None]
        alike = len({(each.whole, each.count) for each in every}) == len(wholes)
        if len(sums) < len(wholes) or not alike or not any(each.products for each in sums):
            return None
        rows = tuple(
            tuple((wholes.index(each.whole), each.place, each.count) for each in gate) for gate in parts if gate
        )
        return Step(cell, gates, tuple(sums), rows, None, before_c, h, c)

    def _gate(self, value: Any) -> tuple[_Part, ...] | None:
        """What a gate is the sum of: a part of a sum or a whole one, or two parts; None if it is something else."""
        if isinstance(value, _Part):
            return (value,)
        part = self._part(value)
        if part is not None:
            return (part,)
        if self._terms(value) is not None:
            return (_Part(value, 0, 1),)
        parts = tuple(part for each in self._operands(value, "Add") if (part := self._part(each)) is not None)
        return parts if len(parts) == 2 else None

    def _operands(self, value: Value, kind: str) -> list[Value]:
        """Both operands of an operation of a kind; empty if the value is of another kind."""
        if value.kind != kind or len(value.node.input) != 2:
            return []
        operands = [plain(value.scope, str(name)) for name in value.node.input]
        return [each for each in operands if each is not None] if None not in operands else []

    def _part(self, value: Value) -> _Part | None:
        """The part of the last dimension that a Split or a Slice gives; None for anything else."""
        if value.kind not in ("Split", "Slice"):
            return None
        node = value.node
        whole = plain(value.scope, node_input(node, 0))
        if whole is None:
            return None
        # A step works on [batch, gates x hidden]: the last dimension is the second one.
        if value.kind == "Slice":
            shape = self._shapes.of(whole.scope, whole.name)
            (axis, bounds), *more = [*(self._shapes.slice(value.scope, node, 2) or {}).items()] or [(0, (None,) * 3)]
            width = shape[1] if shape is not None and len(shape) == 2 else None
            if axis != 1 or more or None in bounds or not width:
                return None
            begin, end, step = slice(*bounds).indices(width)
            size = end - begin
            fits = step == 1 and size > 0 and not width % size and not begin % size
            return _Part(whole, begin // size, width // size) if fits else None
        axis = integer(attributes(value.scope, node), "axis", 0)
        stated = "split" in attributes(value.scope, node) or bool(node_input(node, 1))
        sizes = self._shapes.given(value.scope, node, "split", 1) if stated else (1,)
        if axis not in (1, -1) or sizes is None or None in sizes or len(set(sizes)) != 1:
            return None
        return _Part(whole, value.place, len(node.output))

    def _terms(self, value: Value, *, of_frames: bool = False) -> _Terms | None:
        """The sum as products and stored numbers; None if anything else is added. of_frames: one of all frames."""
        products: list[Product] = []
        constants: list[Value] = []
        waiting = [value]
        while waiting:
            if len(waiting) + len(products) + len(constants) > _MAX_TERMS:
                return None
            each = waiting.pop()
            own = self._products(each, apart=not of_frames)
            frame = None if own or of_frames else frame_of(each, shapes=self._shapes)
            terms = self._terms(frame.tensor, of_frames=True) if frame is not None else None
            if own:
                products += own
                bias = plain(each.scope, node_input(each.node, 2))
                constants += [bias] if bias is not None else []
            elif is_stored(each):
                constants.append(each)
            elif frame is not None and terms is not None and terms.products:
                products += [replace(part, frame=replace(frame, tensor=part.source)) for part in terms.products]
                constants += terms.stored
            else:
                operands = self._operands(each, "Add")
                if not operands:
                    return None
                waiting += operands
        return _Terms(tuple(products), tuple(constants)) if all(map(is_stored, constants)) else None

    def _products(self, value: Value, *, apart: bool) -> list[Product]:
        """The product that a node computes; if `apart`, one for each of the vectors that it reads put together."""
        if value.kind not in ("Gemm", "MatMul"):
            return []
        node = value.node
        given = attributes(value.scope, node)
        if any(given[key].f != 1 for key in ("alpha", "beta") if key in given) or integer(given, "transA", 0):
            return []
        source, matrix = (plain(value.scope, node_input(node, place)) for place in (0, 1))
        if source is None or matrix is None or not is_stored(matrix):
            return []
        by_rows, joined = bool(integer(given, "transB", 0)), apart and source.kind == "Concat"
        parts = [plain(source.scope, str(name)) for name in source.node.input] if joined else []
        shapes = [self._shapes.of(each.scope, each.name) if each is not None else None for each in parts]
        axis = integer(attributes(source.scope, source.node), "axis", 0) if joined else 0
        widths = [(size[-1] or 0) if size is not None and axis in (-1, len(size) - 1) else 0 for size in shapes]
        if not 2 <= len(parts) <= _MAX_TERMS or 0 in widths:
            return [Product(source, matrix, by_rows)]
        spans = zip(parts, widths, accumulate(widths), strict=True)
        return [Product(each, matrix, by_rows, (end - width, end)) for each, width, end in spans if each is not None]


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
        if matrix.ndim != 2:
            raise Refused(f"its matrix {show(product.matrix.name)} is {list(matrix.shape)}, expected two dimensions")
        matrix = matrix if product.by_rows else matrix.T
        return matrix if product.columns is None else matrix[:, slice(*product.columns)]

    def same(self, one: Product, other: Product) -> bool:
        """Say whether two products have equal weights, stored once or twice."""
        if replace(one, source=other.source, frame=other.frame) == other:
            return True
        try:
            return np.array_equal(self.matrix(one), self.matrix(other))
        except Refused:
            return False

    def biases(self, step: Step) -> tuple[Floats, ...]:
        """Add up the stored terms of each of a step's sums, [rows]; `Refused` if they do not fit the products."""
        totals, kind = list[Floats](), self.of(step.products[0].matrix).dtype
        for terms in step.sums:
            rows = [_row(self.of(each), each).astype(np.float64) for each in terms.stored]
            sizes = {len(each) for each in (*rows, *map(self.matrix, terms.products))}
            if len(sizes) != 1:
                raise Refused(f"the parts of its sum have {' and '.join(map(str, sorted(sizes)))} numbers")
            totals.append(sum(rows, np.zeros(sizes.pop())).astype(kind))
        return tuple(totals)

    def fixed(self, value: Value) -> Floats | None:
        """Read a state that the file fixes, for one inference: [units] or [1]; None if it comes at run time."""
        numbers = self._constants.of(value.scope, value.name)
        return None if isinstance(numbers, str) else _row(numbers, value)


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
    # If the tensor is another one with its frames from the last to the first, the frame is one of that.
    tensor, axis = frame.tensor, frame.axis
    bounds = (shapes.slice(tensor.scope, tensor.node, 3) or {}) if tensor.kind == "Slice" else {}
    inner = plain(tensor.scope, node_input(tensor.node, 0)) if set(bounds) == {axis} else None
    size = shapes.of(inner.scope, inner.name) if inner is not None and None not in bounds[axis] else None
    count = size[axis] if size is not None and len(size) == 3 else None
    if inner is None or count is None or range(count)[slice(*bounds[axis])] != range(count)[::-1]:
        return frame
    return Frame(inner, axis, count - 1 - frame.index, count)


def put_at(frame: Frame | None, shapes: Shapes) -> Value | None:
    """Look up the value that is a frame of a tensor put together from one value for each frame."""
    if frame is None or frame.tensor.kind != "Concat":
        return None
    scope, node, places = frame.tensor.scope, frame.tensor.node, (frame.axis, frame.axis - 3)
    sizes = [shapes.of(scope, str(name)) for name in node.input]
    single = all(size is not None and len(size) == 3 and size[frame.axis] == 1 for size in sizes)
    if integer(attributes(scope, node), "axis", 0) not in places or not single or frame.index >= len(sizes):
        return None
    value = plain(scope, str(node.input[frame.index]))
    if value is None or value.kind != "Unsqueeze":
        return value
    axes = shapes.given(value.scope, value.node, "axes", 1)
    return plain(value.scope, node_input(value.node, 0)) if axes in ((places[0],), (places[1],)) else None


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
