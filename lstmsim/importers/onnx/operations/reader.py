"""An ONNX file becomes a graph: each node in order becomes operations, a call of a library, or unknown.

A node without a rule is a call of a library, with the shapes that ONNX's own rules give its results.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import placed
from lstmsim.base.bounds import MAX_AXIS
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.importers.onnx.file import parsed_network
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, attributes, label, open_scopes, resolve, version_of
from lstmsim.importers.onnx.operations.computing import ELEMENTWISE, NORMALISING, PRODUCTS
from lstmsim.importers.onnx.operations.drawing import (
    FLOAT,
    Arguments,
    Drawing,
    Rule,
    UnreadableError,
    Value,
    width_remark,
)
from lstmsim.importers.onnx.operations.moving import FOLDING, MOVING, constant_node, stored_value
from lstmsim.importers.onnx.shapes import Input, inferred_types
from lstmsim.importers.onnx.sizes import open_dims, sizes_of_input
from lstmsim.importers.onnx.stored import DataFiles, dequantise
from lstmsim.model.fusion.graph import COMPUTE, Graph, class_of, mistaken_name
from lstmsim.model.fusion.graph_rules import checked_graph, remarks

Stated = tuple[tuple[int, ...], int]
#: What of a recurrent node is a part of its first result: the last states.
_RECURRENT = ("LSTM", "GRU", "RNN")
_MOST_NUMBERS = 4096
Key = tuple[Scope, str]
_WRONG = (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError, KeyError, MemoryError)
_MOST_REPORTED = 20


def _stated_shapes(given: Arguments) -> list[Stated | None]:
    """The shapes and types of a node's results, as the rules of ONNX give them; None for one that does not follow."""
    from onnx import helper

    inputs = list[Input | None]()
    for value in given.inputs:
        array = None
        if value is not None and value.stored and value.size <= _MOST_NUMBERS and value.load and not value.real:
            array = np.asarray(value.array, helper.tensor_dtype_to_np_dtype(value.elem))
        inputs.append(None if value is None else (value.elem or FLOAT, value.shape, array))
    return [
        _stated(each) for each in inferred_types(given.kind, given.version, given.attributes, inputs, given.outputs)
    ]


def _stated(kind: Any) -> Stated | None:
    if kind is None or not kind.HasField("shape"):
        return None
    sizes = [int(dim.dim_value) if dim.HasField("dim_value") else 0 for dim in kind.shape.dim]
    return (tuple(sizes), int(kind.elem_type)) if min(sizes, default=1) > 0 else None


def _call_of(draw: Drawing, given: Arguments, shapes: Sequence[Stated | None]) -> list[Value | None]:
    """A call of a library with all its results; None for those whose shapes are not known."""
    # of inputs that are whole numbers, only those that a library reads at run time are operands: not axes, not shapes
    read = [each for each in given.inputs if each is not None and not (each.stored and not each.real)]
    op = _library_name(given.kind)
    results: list[Value | None] = []
    first: Value | None = None
    for place, stated in enumerate(shapes):
        if stated is None:
            results.append(None)
        elif first is None:
            first = draw.call(op, read, *stated)
            results.append(first)
        elif place == 1 and _last_is_slice(given, first):
            results.append(draw.reshaped(_last(draw, given, first), stated[0]))
        else:
            results.append(draw.call(f"{op}_result_{place}", [first], *stated))
    if first is None:
        raise UnreadableError("has results of unknown shape")
    return results


def _library_name(kind: str) -> str:
    """The name of a library's operation, which is not taken for one of the graph's own."""
    op = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()[:200]
    return f"onnx_{op}" if class_of(op) != COMPUTE or mistaken_name(op) else op


def _last_is_slice(given: Arguments, states: Value) -> bool:
    """Whether the last states of a recurrent node are one step of all its states."""
    forward = given.text("direction", "forward") in ("forward", "reverse")
    return given.kind in _RECURRENT and forward and given.optional(4) is None and len(states.shape) == 4


def _last(draw: Drawing, given: Arguments, states: Value) -> Value:
    axis = 1 if given.whole("layout", 0) else 0
    last = 0 if given.text("direction", "forward") == "reverse" else states.shape[axis] - 1
    start = tuple(last if at == axis else 0 for at in range(4))
    return draw.sliced(states, start, tuple(1 if at == axis else size for at, size in enumerate(states.shape)))


def _single(rule: Callable[[Drawing, Arguments], Value]) -> Rule:
    return lambda draw, given: [rule(draw, given)]


_EXPANDED: Mapping[str, Rule] = {
    **{kind: _single(rule) for kind, rule in ELEMENTWISE.items()},
    **NORMALISING,
    **MOVING,
    **PRODUCTS,
}


class _Walk:
    """The values of the names of a network, as far as its nodes were walked through."""

    def __init__(self, network: Any, main: Scope, draw: Drawing, files: DataFiles) -> None:
        self._version = version_of(network)
        self._network, self._main, self._draw, self._files = network, main, draw, files
        self._values: dict[Key, Value] = {}
        self._unknown: dict[Key, str] = {}
        self._remarks: dict[str, str] = {}

    def remarks(self, known: Collection[str] = ()) -> list[str]:
        """Sentences on what was left out or assumed; known: reasons (of `why`) that are reported elsewhere."""
        reported = [sentence for sentence, reason in self._remarks.items() if reason not in known]
        more = len(reported) - _MOST_REPORTED
        return [*reported[:_MOST_REPORTED], *([f"and {more} more like these"] if more > 0 else [])]

    def start(self, sizes: Mapping[str, int]) -> None:
        """Draw the inputs of the network, and walk through its main graph."""
        for info in self._network.graph.input:
            name = str(info.name)
            shape = sizes_of_input(info, sizes)
            if name in self._main.tensors:
                continue
            if shape is None:
                self._unknown[self._main, name] = f"input {show(name)} is no tensor of known rank"
                continue
            try:
                elem = int(info.type.tensor_type.elem_type) or FLOAT
                self._values[self._main, name] = self._draw.input(name, shape, elem)
            except UnreadableError as reason:
                raise InputError(Mistake(f"input {show(name)}", str(reason))) from None
        self._scope(self._main)

    def known(self, scope: Scope, name: str) -> Value | None:
        """The value of a name; None if it is unknown."""
        where = resolve(scope, name)
        if where is None:
            return None
        key = where.scope, where.name
        if key not in self._values and where.tensor is not None:
            value = stored_value(where.tensor, self._files)
            if value is None:
                self._unknown[key] = f"{show(where.name)} holds no numbers"
            else:
                self._values[key] = value
        return self._values.get(key)

    def why(self, scope: Scope, name: str) -> str:
        """Why a name is unknown, in words; arguments as of `known`."""
        where = resolve(scope, name)
        if where is None:
            return f"nothing is called {show(name)}"
        return self._unknown.get((where.scope, where.name), f"{show(name)} comes after the node that reads it")

    def _scope(self, scope: Scope) -> None:
        for index, node in enumerate(scope.nodes):
            results: Sequence[Value | None]
            if index in scope.children:
                results, why = self._inner(scope, index)
            else:
                results, why = self._node(scope, index)
            for place, name in enumerate(node.output):
                value = results[place] if place < len(results) else None
                if value is not None:
                    self._values[scope, str(name)] = value
                else:
                    self._unknown[scope, str(name)] = why

    def _inner(self, scope: Scope, index: int) -> tuple[Sequence[Value | None], str]:
        """The results of a node that holds others: a function, or a branch of an `If`."""
        node, bodies, name = scope.nodes[index], scope.children[index], label(scope, index)
        if bodies[0].caller is None and node.op_type != "If":
            return [], self._left_out(name, "repeats its body")
        body = bodies[0] if bodies[0].caller is not None else self._branch(scope, index, name)
        self._scope(body)
        return [self.known(body, each) for each in body.outputs], f"{name} gives something unknown"

    def _branch(self, scope: Scope, index: int, name: str) -> Scope:
        condition = self.known(scope, str(scope.nodes[index].input[0]) if scope.nodes[index].input else "")
        then, *others = scope.children[index]
        if condition is not None and condition.stored and condition.size == 1 and others:
            return then if condition.array.any() else others[0]
        self._remarks[f"{name}: its then_branch is taken, because its condition is known at run time alone"] = ""
        return then

    def _node(self, scope: Scope, index: int) -> tuple[Sequence[Value | None], str]:
        node, name = scope.nodes[index], label(scope, index)
        own = node.domain in DEFAULT_DOMAINS
        inputs = [self.known(scope, str(each)) if each else None for each in node.input]
        for each, value in zip(node.input, inputs, strict=True):
            if each and value is None:
                return [], self.why(scope, str(each))
        kind = str(node.op_type)
        given = Arguments(kind, self._version, attributes(scope, node), inputs, len(node.output))
        first = next((str(each) for each in node.output if each), kind)
        self._draw.prefix = first
        before = len(self._draw)
        try:
            results = self._results(scope, node, given, name if own else "")
        except UnreadableError as reason:
            return [], self._left_out(name, str(reason))
        except InputError as error:
            raise InputError([Mistake(name, each.sentence) for each in error.mistakes]) from None
        except RecursionError:
            raise InputError(Mistake(name, "reads numbers that are rearranged too often")) from None
        except _WRONG:
            raise InputError(Mistake(name, "has arguments that do not fit")) from None
        self._remarks.update({width_remark(each): "" for each in results if each is not None and width_remark(each)})
        for output, result in zip(node.output, results, strict=False):
            if result is not None and result.number >= before and output:
                self._draw.rename(result, str(output))
        return results, f"{name} gives no such result"

    def _left_out(self, name: str, reason: str) -> str:
        why = f"{name} {reason}"
        self._remarks[f"{name} is left out: it {reason}"] = why
        return why

    def _results(self, scope: Scope, node: Any, given: Arguments, name: str) -> Sequence[Value | None]:
        """The results of a node, by its rule or else as a call of a library; an empty name: it is not ONNX's own."""
        if name and given.kind == "Constant":
            return [constant_node(given.attributes, self._files)]
        if name and given.kind in _EXPANDED:
            try:
                return _EXPANDED[given.kind](self._draw, given)
            except UnreadableError as reason:
                self._remarks[f"{name} is a call of a library: it {reason}"] = ""
        if name and given.kind in FOLDING:
            try:
                return FOLDING[given.kind](self._draw, given)
            except UnreadableError:
                pass
        stated = _stated_shapes(given) if name else [None] * given.outputs
        shapes = [own or _declared(scope, str(each)) for own, each in zip(stated, node.output, strict=True)]
        return _call_of(self._draw, given, shapes)


def _declared(scope: Scope, name: str) -> Stated | None:
    sizes = scope.declared.get(name)
    known = tuple(size for size in sizes or () if size is not None)
    return (known, FLOAT) if sizes is not None and len(known) == len(sizes) else None


@record
class OnnxGraph:
    """A graph, its outputs -> the network's outputs, and those of its inputs whose numbers the file holds -> these."""

    graph: Graph
    sources: Mapping[str, str]
    values: Mapping[str, Value]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The numbers of an input that the file holds."""
        return np.asarray(self.values[name].array, np.float64)


def graph_of_onnx(path: str | os.PathLike[str], sizes: Mapping[str, int] | None = None) -> Graph:
    """Make a graph of an ONNX file.

    sizes: a number for each size that the network's inputs leave open, by its name there.

    `InputError` for a damaged file, for an open size without a number, or if no output can be reached. A node that is
    not expanded is a call of a library; the graph's `about` names it, and all that was left out.
    """
    return read_onnx_graph(path, sizes).graph


def read_onnx_graph(path: str | os.PathLike[str], sizes: Mapping[str, int] | None = None) -> OnnxGraph:
    """Make a graph of an ONNX file, with the numbers that it holds; arguments and errors as of `graph_of_onnx`."""
    name = os.fspath(path)
    network = parsed_network(name)
    try:
        return _read(network, name, dict(sizes or {}))
    except UnicodeDecodeError:
        raise InputError(Mistake(name, "is damaged: a name in it is not UTF-8")) from None
    except InputError as error:
        raise placed(error, name) from None


def _read(network: Any, name: str, sizes: dict[str, int]) -> OnnxGraph:
    _check_sizes(network, sizes)
    dequantise(network, None)
    scopes = open_scopes(network)
    draw = Drawing(network.ByteSize())
    walk = _Walk(network, scopes[0], draw, DataFiles(name))
    walk.start(sizes)
    outputs, about, reasons = [], [], []
    for info in network.graph.output:
        value = walk.known(scopes[0], str(info.name))
        if value is None:
            reasons.append(walk.why(scopes[0], str(info.name)))
            about.append(f"output {show(str(info.name))} is left out: {reasons[-1]}")
        elif value.stored:
            about.append(f"output {show(str(info.name))} is left out: it does not depend on the inputs")
        else:
            outputs.append((str(info.name), value))
    if not outputs:
        raise InputError([Mistake("", each) for each in about] or "has no output")
    apart: dict[int, tuple[str, Value]] = {}
    for called, value in outputs:
        same = apart.setdefault(value.number, (called, value))[0]
        about += [f"output {show(called)} is the same as {show(same)}"] if same != called else []
    ordered = list(apart.values())
    nodes, names, stored = draw.nodes([value for _, value in ordered])
    graph = Graph(PurePath(name).stem, tuple(nodes), tuple(names))
    text = (*_origin(network, name, sizes), *about, *walk.remarks(reasons), *_unread(network, graph))
    graph = checked_graph(Graph(graph.name, graph.nodes, graph.outputs, text))
    graph = Graph(graph.name, graph.nodes, graph.outputs, (*text, *remarks(graph)))
    return OnnxGraph(graph, dict(zip(names, (called for called, _ in ordered), strict=True)), stored)


def _check_sizes(network: Any, sizes: Mapping[str, int]) -> None:
    dims = open_dims(network)
    wanted = list(dims)
    there = f"; open are {listed(wanted, 'and')}" if wanted else ": all its sizes are stated"
    wrong = [
        Mistake("size", f"no input leaves a size {show(each)} open{nearest(each, wanted) or there}")
        for each in sizes
        if each not in wanted
    ]
    wrong += [
        Mistake("size", f"{show(each)} must be a whole number from 1 to {MAX_AXIS}, got {show(number)}")
        for each, number in sizes.items()
        if each in wanted and (type(number) is not int or not 1 <= number <= MAX_AXIS)
    ]
    missing = [each for each in wanted if each not in sizes]
    # some exporters state 0 for an open size
    none = {name for name, dim in dims.items() if dim.HasField("dim_value") and dim.dim_value == 0}
    for names, sentence in (
        ([each for each in missing if each not in none], "leave sizes open; a number is needed for each"),
        (
            [each for each in missing if each in none],
            "state a size of 0, so there is nothing to compute; a number in its place may be given",
        ),
    ):
        words = " ".join(f"{each}=N" for each in names[:_MOST_REPORTED])
        wrong += [Mistake("size", f"the network's inputs {sentence}: {words}")] if names else []
    refuse(wrong)


def _origin(network: Any, name: str, sizes: Mapping[str, int]) -> list[str]:
    producer = " ".join(str(network.producer_name).split())
    words = ", ".join(f"{key} {number}" for key, number in sizes.items())
    by = f", written by {show(producer)}" if producer else ""
    return [f"from {PurePath(name).name}{by}{f', with {words}' if words else ''}"]


def _unread(network: Any, graph: Graph) -> list[str]:
    stored = {str(each.name) for each in network.graph.initializer}
    names = {node.name for node in graph.nodes}
    idle = [show(str(each.name)) for each in network.graph.input if each.name not in stored | names]
    return [f"{listed(idle, 'and')} of the network's inputs: no operation of the graph reads it"] if idle else []
