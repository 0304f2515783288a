"""Through a network in order: each node becomes operations, a call of a library, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.onnx.external import DataFiles
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, attributes, label, resolve
from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.calls import Stated, call_of, stated_shapes
from lstmsim.importers.onnx.operations.drawing import Drawing, Rule
from lstmsim.importers.onnx.operations.elementwise import ELEMENTWISE
from lstmsim.importers.onnx.operations.folding import FOLDING
from lstmsim.importers.onnx.operations.moving import MOVING
from lstmsim.importers.onnx.operations.normalising import NORMALISING
from lstmsim.importers.onnx.operations.products import PRODUCTS
from lstmsim.importers.onnx.operations.stored import constant_node, stored_value
from lstmsim.importers.onnx.operations.values import FLOAT, UnreadableError, Value, width_told
from lstmsim.importers.onnx.sizes import sizes_of_input

__all__ = ["Walk"]

Key = tuple[Scope, str]
#: Most sentences on nodes that were left out.
_MOST_TOLD = 20
_WRONG = (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError, KeyError, MemoryError)


def _single(rule: Callable[[Drawing, Arguments], Value]) -> Rule:
    return lambda draw, given: [rule(draw, given)]


_EXPANDED: Mapping[str, Rule] = {
    **{kind: _single(rule) for kind, rule in ELEMENTWISE.items()},
    **NORMALISING,
    **MOVING,
    **PRODUCTS,
}


class Walk:
    """What the names of a network stand for, as far as its nodes were walked through.

    network: the parsed file.
    main: the scope of its main graph.
    draw: the graph in the making.
    files: the data files beside the network.
    """

    def __init__(self, network: Any, main: Scope, draw: Drawing, files: DataFiles) -> None:
        versions = [int(each.version) for each in network.opset_import if each.domain in DEFAULT_DOMAINS]
        self._version = versions[0] if versions else 1
        self._network, self._main, self._draw, self._files = network, main, draw, files
        self._values: dict[Key, Value] = {}
        self._unknown: dict[Key, str] = {}
        self._told: dict[str, str] = {}

    def told(self, known: Collection[str] = ()) -> list[str]:
        """Sentences on what was left out or assumed; known: reasons (of `why`) that are told elsewhere."""
        told = [sentence for sentence, reason in self._told.items() if reason not in known]
        more = len(told) - _MOST_TOLD
        return [*told[:_MOST_TOLD], *([f"and {more} more like these"] if more > 0 else [])]

    def start(self, sizes: Mapping[str, int]) -> None:
        """Draw the inputs of the network, and walk through its main graph.

        sizes: number of each size that the inputs leave open.
        """
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
        """What a name stands for; None if that is unknown.

        scope: where the name is read.
        name: of a value.
        """
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
        return self._unknown.get((where.scope, where.name), f"{show(name)} stands behind what reads it")

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
            return [], self._left_out(name, "repeats what it holds")
        body = bodies[0] if bodies[0].caller is not None else self._branch(scope, index, name)
        self._scope(body)
        return [self.known(body, each) for each in body.outputs], f"{name} gives something unknown"

    def _branch(self, scope: Scope, index: int, name: str) -> Scope:
        condition = self.known(scope, str(scope.nodes[index].input[0]) if scope.nodes[index].input else "")
        then, *others = scope.children[index]
        if condition is not None and condition.stored and condition.size == 1 and others:
            return then if condition.array.any() else others[0]
        self._told[f"{name}: its then_branch is taken, because its condition is known at run time alone"] = ""
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
        self._told.update({width_told(each): "" for each in results if each is not None and width_told(each)})
        for output, result in zip(node.output, results, strict=False):
            if result is not None and result.number >= before and output:
                self._draw.rename(result, str(output))
        return results, f"{name} gives no such result"

    def _left_out(self, name: str, reason: str) -> str:
        """Tell that a node is left out; returns why its results are unknown."""
        why = f"{name} {reason}"
        self._told[f"{name} is left out: it {reason}"] = why
        return why

    def _results(self, scope: Scope, node: Any, given: Arguments, name: str) -> Sequence[Value | None]:
        """What a node gives: by its rule, else as a call of a library. An empty name: it is none of ONNX's own."""
        if name and given.kind == "Constant":
            return [constant_node(given.attributes, self._files)]
        if name and given.kind in _EXPANDED:
            try:
                return _EXPANDED[given.kind](self._draw, given)
            except UnreadableError as reason:
                self._told[f"{name} is a call of a library: it {reason}"] = ""
        if name and given.kind in FOLDING:
            try:
                return FOLDING[given.kind](self._draw, given)
            except UnreadableError:
                pass
        stated = stated_shapes(given) if name else [None] * given.outputs
        shapes = [own or _declared(scope, str(each)) for own, each in zip(stated, node.output, strict=True)]
        return call_of(self._draw, given, shapes)


def _declared(scope: Scope, name: str) -> Stated | None:
    """The shape that the file states for a value."""
    sizes = scope.declared.get(name)
    known = tuple(size for size in sizes or () if size is not None)
    return (known, FLOAT) if sizes is not None and len(known) == len(sizes) else None
