"""One step of an LSTM, GRU or RNN that an ONNX network writes out operation by operation.

PyTorch's exporters write nn.LSTMCell, nn.GRUCell and nn.RNNCell like this, once for each turn of the loop around them:
two products, a sum, its gates apart (Split), then the equations of the cell. A step is matched from its new h
backwards. Nothing is guessed: every operation between the products and h must be there, with its operands in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.stored import is_stored, plain
from lstmsim.importers.onnx.values import integer

__all__ = ["Product", "Step", "Terms", "find_steps", "made_of"]

_Any = TypeVar("_Any")

_MAX_TERMS = 8


@dataclass(frozen=True)
class Product:
    """A product of a vector and a stored matrix.

    source: the vectors, [batch, columns].
    matrix: the stored matrix.
    by_rows: whether it is stored as [rows, columns], else as [columns, rows].
    """

    source: Value
    matrix: Value
    by_rows: bool


@dataclass(frozen=True)
class Terms:
    """A sum; products: its products, stored: the stored values in it (biases)."""

    products: tuple[Product, ...]
    stored: tuple[Value, ...]


@dataclass(frozen=True)
class Step:
    """One step.

    cell: name of the cell.
    gates: the cell's gates in the order of the matrices' rows.
    sums: the sums that the gates are cut from; for a GRU the sum with x, then the sum with h, else one sum of both.
    h, c: the states before the step, if the equations name them.
    new_h, new_c: the states after the step.
    """

    cell: str
    gates: str
    sums: tuple[Terms, ...]
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
    """Match the steps in a graph, in the order of its nodes.

    scope: the graph.
    shapes: the shapes of the network.
    number: gives the one number that fills a stored value, or None.

    >>> from lstmsim.importers.onnx.graph import open_scopes
    >>> from onnx import helper
    >>> graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [], [])
    >>> list(find_steps(open_scopes(helper.make_model(graph))[0], Shapes(), lambda value: None))
    []
    """
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


class _Finder:
    """Matches the steps of one network."""

    def __init__(self, shapes: Shapes, number: Callable[[Value], float | None]) -> None:
        self._shapes, self._number = shapes, number

    def step(self, value: Value) -> Step | None:
        """Match the step whose new h is `value`; None if there is none."""
        kind = value.node.op_type
        if kind == "Mul":
            return self._lstm(value)
        return self._gru(value) if kind == "Add" else self._rnn(value)

    def _lstm(self, h: Value) -> Step | None:
        """h = sigmoid(o) * tanh(c), c = sigmoid(f) * c before + sigmoid(i) * tanh(g)."""
        for out, squashed in _both_ways(self._operands(h, "Mul")):
            o, c = self._part(self._operand(out, "Sigmoid")), self._operand(squashed, "Tanh")
            if o is None or c is None:
                continue
            for forgot, added in _both_ways(self._operands(c, "Add")):
                i_g, f_c = self._gated(added, "Tanh"), self._gated(forgot, "")
                for i, g in i_g:
                    for f, before in f_c:
                        parts = (i, f, self._part(g), o)
                        if all(each is not None and each.whole == o.whole and each.count == 4 for each in parts):
                            return self._made("lstm", "ifgo", parts, (o.whole,), None, before, h, c)
        return None

    def _gated(self, value: Value, other: str) -> list[tuple[_Part, Value]]:
        """Pairs (gate, inner value) of sigmoid(gate) * other(inner value)."""
        pairs = []
        for gate, multiplied in _both_ways(self._operands(value, "Mul")):
            part = self._part(self._operand(gate, "Sigmoid"))
            inner = self._operand(multiplied, other) if other else multiplied
            if part is not None and inner is not None:
                pairs.append((part, inner))
        return pairs

    def _gru(self, h: Value) -> Step | None:
        """h = n + z * (h before - n), n = tanh(nx + r * nh); or h = (1 - z) * n + z * h before."""
        for first, second in _both_ways(self._operands(h, "Add")):
            for z, n, before in [*self._difference(first, second), *self._mixture(first, second)]:
                step = self._candidate(h, z, n, before)
                if step is not None:
                    return step
        return None

    def _difference(self, scaled: Value, n: Value) -> Iterator[tuple[Value, Value, Value]]:
        for left, z in _both_ways(self._operands(scaled, "Mul")):
            pair = self._operands(left, "Sub")
            if pair and pair[1] == n:
                yield z, n, pair[0]

    def _mixture(self, first: Value, second: Value) -> Iterator[tuple[Value, Value, Value]]:
        for rest, n in _both_ways(self._operands(first, "Mul")):
            for z, before in _both_ways(self._operands(second, "Mul")):
                pair = self._operands(rest, "Sub")
                if pair and pair[1] == z and is_stored(pair[0]) and self._number(pair[0]) == 1:
                    yield z, n, before

    def _candidate(self, h: Value, z: Value, n: Value, before: Value) -> Step | None:
        inner, update = self._operand(n, "Tanh"), self._operand(z, "Sigmoid")
        if inner is None or update is None:
            return None
        for candidate, scaled in _both_ways(self._operands(inner, "Add")):
            nx = self._part(candidate)
            for recurrent, gate in _both_ways(self._operands(scaled, "Mul")):
                nh, reset = self._part(recurrent), self._operand(gate, "Sigmoid")
                if nx is None or nh is None or reset is None:
                    continue
                for r_x, r_h in _both_ways([self._part(each) for each in self._operands(reset, "Add")]):
                    for z_x, z_h in _both_ways([self._part(each) for each in self._operands(update, "Add")]):
                        if _alike(3, (r_x, z_x, nx)) and _alike(3, (r_h, z_h, nh)):
                            parts = (r_x, z_x, nx)
                            if [_place(each) for each in parts] == [_place(each) for each in (r_h, z_h, nh)]:
                                wholes = (nx.whole, nh.whole)
                                return self._made("gru", "rzn", parts, wholes, before, None, h, None)
        return None

    def _rnn(self, h: Value) -> Step | None:
        kind = str(h.node.op_type)
        whole = self._operand(h, kind)
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
        parts: tuple[_Part | None, ...],
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
        node = value.node
        if node is None or node.op_type != kind or node.domain not in DEFAULT_DOMAINS or len(node.input) != 2:
            return []
        operands = [plain(value.scope, str(name)) for name in node.input]
        return [each for each in operands if each is not None] if None not in operands else []

    def _operand(self, value: Value, kind: str) -> Value | None:
        node = value.node
        if node is None or node.op_type != kind or node.domain not in DEFAULT_DOMAINS:
            return None
        return plain(value.scope, node_input(node, 0))

    def _part(self, value: Value | None) -> _Part | None:
        node = None if value is None else value.node
        if value is None or node is None or node.op_type != "Split" or node.domain not in DEFAULT_DOMAINS:
            return None
        whole = plain(value.scope, node_input(node, 0))
        axis = integer(attributes(value.scope, node), "axis", 0)
        stated = "split" in attributes(value.scope, node) or bool(node_input(node, 1))
        sizes = self._shapes.given(value.scope, node, "split", 1) if stated else (1,)
        # A step works on [batch, gates x hidden]: the last dimension is the second one.
        if whole is None or axis not in (1, -1) or sizes is None or None in sizes or len(set(sizes)) != 1:
            return None
        return _Part(whole, value.place, len(node.output))

    def _terms(self, value: Value) -> Terms | None:
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
        return Terms(tuple(products), tuple(constants)) if all(map(is_stored, constants)) else None

    def _product(self, value: Value) -> Product | None:
        node = value.node
        if node is None or node.op_type not in ("Gemm", "MatMul") or node.domain not in DEFAULT_DOMAINS:
            return None
        given = attributes(value.scope, node)
        if any(given[key].f != 1 for key in ("alpha", "beta") if key in given) or integer(given, "transA", 0):
            return None
        source, matrix = (plain(value.scope, node_input(node, place)) for place in (0, 1))
        if source is None or matrix is None or not is_stored(matrix):
            return None
        return Product(source, matrix, bool(integer(given, "transB", 0)))


def _both_ways(pair: Sequence[_Any]) -> list[tuple[_Any, _Any]]:
    """The two orders of a pair; empty if there is no pair."""
    return [(pair[0], pair[1]), (pair[1], pair[0])] if pair else []


def _place(part: _Part | None) -> int:
    return -1 if part is None else part.place


def _alike(count: int, parts: tuple[_Part | None, ...]) -> bool:
    """Whether all parts belong to one value that is cut into `count` parts."""
    wholes = {each.whole for each in parts if each is not None and each.count == count}
    return len(wholes) == 1 and all(each is not None and each.count == count for each in parts)
