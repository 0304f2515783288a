"""Plain products after the last recurrent layer of a stack (its head) as `dense` layers.

A product is taken only if it is proven to read the whole output of the layer at every step, and nothing else. The axes
of the output (time, direction, batch, unit) are followed through the operations between. Positions may be in any order,
because each is computed alone; features must be in their own order.

The table of all operators of an ONNX network: what became of each, and its share of the multiply-accumulates.

Sizes that the file leaves open (batch, time) are assumed for the count: one sequence of 1,000 steps, or of the length
of the exporter's example if the network fits no other length. The shares for 100 and 10,000 steps say how much that
matters. An open size is the batch if all recurrent layers have exactly this batch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import FOLDED, LEFT_OUT, SIMULATED, Operators, OperatorTable
from lstmsim.importers.onnx.axes import Layouts, View
from lstmsim.importers.onnx.constants import Constants, width_notes
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Shape, attributes, integer, label, node_input, resolve
from lstmsim.importers.onnx.nodes import NodeWeights, checked_arrays
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.sizes import (
    MAX_COUNTED,
    PRIMES,
    Key,
    frames_of,
    open_sizes,
    outcomes,
    output_sizes,
    prepared,
    products,
    readers_of,
    sized,
)
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats, PassWeights

_ACTIVATIONS = {"Relu": "dense-relu", "Tanh": "dense-tanh", "Sigmoid": "dense-sigmoid"}
_PRODUCTS = ("MatMul", "Gemm")
_MOVING = ("Identity", "Dropout", "Cast", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
_UNREAD = ("Shape", "Size")
_TAKING = ("Gather", "Slice", "Split", "GatherND", "ReduceMean", "ReduceMax")
_PARTLY = "does not read whole outputs of the layer below"
_ARITHMETIC = ("Add", "Sub", "Mul", "Div")
_NO_BIAS = "computes with a constant that is no bias of a dense layer (one number for each unit or one for all)"
#: Operations between two products; real networks have a handful.
_MAX_HOPS = 100
#: Frames that are assumed if the file leaves their number open: the number of the table, then two to compare.
_LENGTHS = (1000, 100, 10_000)


@dataclass(frozen=True)
class Head:
    """One product as a dense layer, with all nodes that it stands for: the product, its bias, its activation.

    `turned`: the matrix is stored as [units, inputs], as the layer has it. The bias is a number for each unit or one
    for all; it may be subtracted.
    """

    layer: Layer
    product: Key
    nodes: tuple[Key, ...]
    turned: bool
    bias: tuple[Scope, str] | None = None
    subtracted: bool = False

    def widths(self) -> list[str]:
        """Note the bits of its weights, if the network computes with fewer than 32."""
        scope, index = self.product
        matrix = {"the matrix": (scope, node_input(scope.nodes[index], 1))}
        return width_notes(matrix | ({"the bias": self.bias} if self.bias else {}), label(scope, index))


@dataclass(frozen=True)
class Chain:
    """The heads after one stack, in order; `reason` says why there is none, or is a note on them."""

    heads: tuple[Head, ...]
    reason: str = ""

    def notes(self) -> tuple[str, ...]:
        """List the notes for a model whose heads were asked for."""
        if self.heads:
            return tuple([note for head in self.heads for note in head.widths()] + [self.reason] * bool(self.reason))
        return (f"the network has no head that can be a dense layer{f': {self.reason}' if self.reason else ''}",)


def head_weights(constants: Constants, head: Head) -> NodeWeights:
    """Read the weights of a product after a stack, or say why they are no constants."""
    scope, index = head.product
    names = {"matrix": (scope, node_input(scope.nodes[index], 1))} | ({"bias": head.bias} if head.bias else {})
    units, width = head.layer.hidden, head.layer.input
    arrays = dict[str, Floats]()
    for name, value in names.items():
        array = constants.of(*value)
        if isinstance(array, str):
            return f"the {name} of {label(scope, index)} comes from {array}: only its shapes are read"
        arrays[name] = array if name == "matrix" and head.turned else array.T
    expected = {"matrix": (units, width), "bias": arrays["bias"].shape if "bias" in arrays else ()}
    arrays = checked_arrays(arrays, expected, label(scope, index))
    biases = {"y": np.full(units, arrays["bias"].reshape(-1))} if "bias" in arrays else {}
    if head.subtracted:
        biases = {name: -array for name, array in biases.items()}
    return (PassWeights({("y", "x"): arrays["matrix"]}, biases),)


def find_heads(network: Any, scopes: list[Scope], layers: Mapping[Key, Layer], ends: Iterable[Key]) -> dict[Key, Chain]:
    """Find the heads after stacks."""
    ends = list(ends)
    if sum(len(scope.nodes) for scope in scopes) > MAX_COUNTED:
        return {key: Chain((), f"the network has more than {MAX_COUNTED:,} nodes") for key in ends}
    by_end: dict[Key, Chain] = {}
    names = open_sizes(network)
    primes = dict(zip(names, PRIMES, strict=False))
    with sized(network, scopes, primes) as shapes:
        batches = {frames_of(shapes, *key)[1] for key in ends}
        walk = _Walk(scopes, shapes, layers)
        by_end = {key: walk.chain(key) for key in ends}
    for length in output_sizes(network) if names else ():
        lost = [key for key in ends if by_end[key].reason.endswith(_PARTLY)]
        if not lost:
            break
        sizes = {name: size if size in batches else length for name, size in primes.items()}
        with sized(network, scopes, sizes) as shapes:
            walk = _Walk(scopes, shapes, layers)
            chains = {key: walk.chain(key).heads for key in lost}
        reason = f"its head is that of runs of {length} steps, a length that the exporter built in"
        by_end |= {key: Chain(heads, reason) for key, heads in chains.items() if heads}
    return by_end


class _Walk:
    """Follows the output of a layer through a network whose sizes are numbers."""

    def __init__(self, scopes: list[Scope], shapes: Shapes, layers: Mapping[Key, Layer]) -> None:
        self._shapes = shapes
        self._layouts = Layouts(shapes, layers)
        self._layers = layers
        self._readers = readers_of(scopes)
        self._fixed = prepared(scopes)
        self._outputs = set(scopes[0].outputs)
        self._main = scopes[0]

    def chain(self, end: Key) -> Chain:
        """Follow the output of a recurrent node to its heads."""
        scope, index = end
        layer = self._layers[end]
        if scope.loops:
            return Chain((), f"{label(*end)} runs inside {scope.loops[0]}")
        batch_first = bool(integer(attributes(scope, scope.nodes[index]), "layout", 0))
        key, width, reason = end, layer.output, ""
        self._layouts.of(scope, str(scope.nodes[index].output[0]))
        view: View | None = self._layouts.sequence(scope, index, batch_first)
        heads: list[Head] = []
        while view:
            product, reason = self._product(key)
            head = self._head(product, view, width) if product else None
            if not isinstance(head, Head):
                reason = head or reason
                break
            heads.append(head)
            key, width = head.nodes[-1], head.layer.hidden
            view = self._layouts.of(key[0], str(key[0].nodes[key[1]].output[0]))
        if heads:
            return Chain(tuple(heads), reason if reason.endswith(_NO_BIAS) else "")
        return Chain((), reason or self._last_state(end))

    def _only(self, key: Key) -> tuple[Key, int] | str | None:
        """The only node that reads a node's output, with the place of its input; a sentence if there are several."""
        scope, index = key
        uses = [use for use in self._readers.get((key, 0), []) if _kind(use[0]) not in _UNREAD]
        if len(uses) > 1:
            names = " and ".join(label(*use[0]) for use in uses[:2])
            return f"{names} read the same values, so that neither can be a layer of the stack"
        if uses and scope is self._main and scope.nodes[index].output[0] in self._outputs:
            return f"what {label(*uses[0][0])} reads is also an output of the network"
        return uses[0] if uses else None

    def _product(self, key: Key) -> tuple[Key | None, str]:
        """The first product after a node; None, and why if that is of use, if another operation comes first."""
        for _ in range(_MAX_HOPS):
            use = self._only(key)
            if use is None or isinstance(use, str):
                return None, use or ""
            key, place = use
            if place != 0:
                return None, ""
            if _kind(key) in _PRODUCTS:
                return key, ""
            if _kind(key) in _TAKING:
                return None, self._picked(*key)
            if _kind(key) not in _MOVING:
                return None, ""
        return None, ""

    def _picked(self, scope: Scope, index: int) -> str:
        """Why a product after a choice of steps is no layer; empty if there is no such product."""
        key: Key = (scope, index)
        for _ in range(10):
            use = self._only(key)
            if use is None or isinstance(use, str):
                return ""
            key = use[0]
            if _kind(key) in _PRODUCTS:
                return f"{label(*key)} reads only what {label(scope, index)} takes{self._taken(scope, index)}"
        return ""

    def _taken(self, scope: Scope, index: int) -> str:
        """The end of a sentence on the part of a layer's output that a node reads; empty if its axes are not known."""
        node = scope.nodes[index]
        name, place = ("axes", 3 if node.op_type == "Slice" else 1)
        if node.op_type in ("Gather", "Split"):
            axes: Shape | None = (integer(attributes(scope, node), "axis", 0),)
        else:
            axes = self._shapes.given(scope, node, name, place)
        value = node_input(node, 0)
        view, whole = self._layouts.of(scope, value), self._shapes.of(scope, value)
        part = self._shapes.of(scope, str(node.output[0]))
        if not view or axes is None or len(axes) != 1 or axes[0] is None or not -len(view) <= axes[0] < len(view):
            return ""
        roles = {each.role for each in view[axes[0]]}
        if "units" in roles:
            return ": not all units of the layer in their order"
        if roles != {"time"} or whole is None or part is None:
            return ""
        sizes, picked = ([each or 0 for each in shape] for shape in (whole, part))
        once = prod(picked) * sizes[axes[0]] == prod(sizes) > 0
        return ": it runs once, not at each step" if once else ": not all steps in their order"

    def _last_state(self, end: Key) -> str:
        """Why a product after the last state is no layer; empty if there is no such product."""
        for key, _ in self._readers.get((end, 1), []):
            for reader in (key, *(use[0] for use in self._readers.get((key, 0), []))):
                if _kind(reader) in _PRODUCTS:
                    return f"{label(*reader)} reads the last state of {label(*end)}: it runs once, not at each step"
        return ""

    def _head(self, key: Key, below: View, width: int) -> Head | str:
        """The layer of a product over the axes `below`, or why it is no layer."""
        scope, index = key
        node = scope.nodes[index]
        given, name = attributes(scope, node), label(scope, index)
        view = self._layouts.of(scope, node_input(node, 0))
        # All positions must be there, in any order; features must be in their own order.
        if not view or view[-1] != below[-1] or Counter(chain(*view[:-1])) != Counter(chain(*below[:-1])):
            return f"{name} {_PARTLY}"
        turned = node.op_type == "Gemm" and bool(integer(given, "transB", 0))
        matrix = self._constant(scope, node_input(node, 1))
        if matrix is None or len(matrix) != 2 or matrix[1 if turned else 0] != width:
            return f"the matrix of {name} is no constant of {width} inputs"
        units = matrix[0 if turned else 1]
        if units is None or not 1 <= units <= MAX_SIZE:
            return f"{name} has {units} outputs, more than the {MAX_SIZE} of a layer"
        scales = [given[each].f for each in ("alpha", "beta") if each in given]
        if integer(given, "transA", 0) or any(scale != 1 for scale in scales):
            return f"{name} scales or turns what it reads"
        bias = None
        if node.op_type == "Gemm" and node_input(node, 2):
            bias = self._bias(scope, node_input(node, 2), units)
            if bias is None:
                return f"the bias of {name} is no constant of {units} numbers or of one"
        return self._completed(Head(Layer(cell("dense"), units, width), key, (key,), turned, bias))

    def _completed(self, head: Head) -> Head | str:
        """The head with the bias and the activation after its product, or why it is no head."""
        use = self._computing_with(head.product) if head.bias is None else None
        if use and _kind(use[0]) in ("Add", "Sub"):
            (scope, index), place = use
            bias = self._bias(scope, node_input(scope.nodes[index], 1 - place), head.layer.hidden)
            subtracted = _kind(use[0]) == "Sub"
            # "constant - product" turns the product's sign: no dense layer does that.
            if bias is not None and not (subtracted and place == 1):
                head = replace(head, bias=bias, subtracted=subtracted, nodes=(*head.nodes, use[0]))
        left = self._arithmetic(head.nodes[-1])
        if left is not None:
            return f"{label(*left)} after {label(*head.product)} {_NO_BIAS}"
        after = self._only(head.nodes[-1])
        if isinstance(after, tuple) and _kind(after[0]) in _ACTIVATIONS:
            own = replace(head.layer, cell=cell(_ACTIVATIONS[_kind(after[0])]))
            head = replace(head, layer=own, nodes=(*head.nodes, after[0]))
        return head

    def _computing_with(self, product: Key) -> tuple[Key, int] | None:
        """The node that computes with a product whose last axis is still the units, and the place of its input."""
        key = product
        for _ in range(_MAX_HOPS):
            use = self._only(key)
            if use is None or isinstance(use, str) or _kind(use[0]) not in _MOVING:
                return use if isinstance(use, tuple) else None
            if not self._keeps_units(*use[0]):
                return None
            key = use[0]
        return None

    def _keeps_units(self, scope: Scope, index: int) -> bool:
        """Whether a node that rearranges leaves the last axis unchanged."""
        node = scope.nodes[index]
        names = (node_input(node, 0), str(node.output[0]))
        before, after = (self._shapes.of(scope, name) for name in names)
        if node.op_type == "Reshape" and before and after:
            # Rows of equal length stay rows; the axes before them do not matter.
            return before[-1] is not None and before[-1] == after[-1]
        views = [self._layouts.of(scope, name) for name in names]
        return all(views) and len({view[-1] for view in views if view}) == 1

    def _arithmetic(self, key: Key) -> Key | None:
        """A node that computes with a constant, directly after a node or after operations that rearrange."""
        for _ in range(_MAX_HOPS):
            uses = self._readers.get((key, 0), [])
            for (scope, index), place in uses:
                other = node_input(scope.nodes[index], 1 - place) if _kind((scope, index)) in _ARITHMETIC else ""
                if other and self._is_constant(scope, other):
                    return scope, index
            moving = [each for each, _ in uses if _kind(each) in _MOVING]
            if len(moving) != 1:
                return None
            key = moving[0]
        return None

    def _is_constant(self, scope: Scope, name: str) -> bool:
        """Whether a value is the same in every run."""
        value = resolve(scope, name)
        return value is not None and (value.tensor is not None or (value.scope, value.index) in self._fixed)

    def _constant(self, scope: Scope, name: str) -> Shape | None:
        """Shape of a value that is the same in every run; None for other values."""
        return self._shapes.of(scope, name) if self._is_constant(scope, name) else None

    def _bias(self, scope: Scope, name: str, units: int) -> tuple[Scope, str] | None:
        shape = self._constant(scope, name)
        if shape is None or any(size != 1 for size in shape[:-1]) or any(size not in (1, units) for size in shape[-1:]):
            return None
        return scope, name


def _kind(key: Key) -> str:
    node = key[0].nodes[key[1]]
    return str(node.op_type) if node.domain in DEFAULT_DOMAINS else ""


def operator_table(
    network: Any,
    scopes: list[Scope],
    layers: Mapping[Key, Layer],
    chains: Mapping[Key, Chain],
    heads: bool,
    written_out: Mapping[Key, str] = MappingProxyType({}),
) -> OperatorTable:
    """Count what became of every node of a network."""
    offered = [head for chain in chains.values() for head in chain.heads]
    became = outcomes(scopes, set(layers), {key for head in offered if heads for key in head.nodes}) | dict(written_out)
    if len(became) > MAX_COUNTED:
        text = f"the network has more than {MAX_COUNTED:,} nodes"
        return OperatorTable(_groups(dict.fromkeys(became, text), became))
    count = _Count(network, scopes, layers, became)
    sizes = open_sizes(network)
    table = _at_lengths(count, sizes) if sizes else count.table({})
    return replace(table, notes=(*table.notes, *_notes(became), *(() if heads else _offer(offered))))


@dataclass(frozen=True)
class _Count:
    """A network whose work can be counted for any sizes of a run."""

    network: Any
    scopes: list[Scope]
    layers: Mapping[Key, Layer]
    became: Mapping[Key, str]

    def table(self, sizes: Mapping[str, int]) -> OperatorTable:
        """Make the table for a run with numbers for the open sizes."""
        with sized(self.network, self.scopes, sizes) as shapes:
            macs = {key: self._macs(shapes, *key) for key in self.became}
            frames = {key: frames_of(shapes, *key) for key in self.layers}
        steps = {time * batch if time is not None and batch is not None else None for time, batch in frames.values()}
        # As in a DPRNN, whose inner layer runs once for each frame of the outer one, and the other way round.
        notes = tuple(
            f"{label(*key)} runs {batch:,} times over {time:,} frames each in such a run: a job here is one of these"
            for key, (time, batch) in frames.items()
            if len({each for _, each in frames.values()}) > 1 and batch is not None and batch > 1 and time is not None
        )
        return OperatorTable(_groups(macs, self.became), steps.pop() if len(steps) == 1 else None, notes=notes)

    def batches(self, sizes: Mapping[str, int]) -> set[int | None]:
        """Give the batches of the recurrent layers in a run with numbers for the open sizes."""
        with sized(self.network, self.scopes, sizes) as shapes:
            return {frames_of(shapes, *key)[1] for key in self.layers}

    def _macs(self, shapes: Shapes, scope: Scope, index: int) -> int | str:
        """Multiply-accumulates of a node in the run, or why they are unknown."""
        layer = self.layers.get((scope, index))
        macs: int | str
        if layer is None:
            macs = products(shapes, scope, index)
        else:
            steps, batch = frames_of(shapes, scope, index)
            macs = f"the number of frames at {label(scope, index)} is not known"
            if steps is not None and batch is not None:
                macs = steps * batch * layer.macs_per_step
        if macs != 0 and scope.loops:
            return f"{label(scope, index)} runs in {scope.loops[0]}, whose turns the file does not fix"
        return macs


def _at_lengths(count: _Count, sizes: list[str]) -> OperatorTable:
    primes = dict(zip(sizes, PRIMES, strict=False))
    batches = count.batches(primes)
    single = [name for name, size in primes.items() if batches - {None} == {size}]
    lengths = [name for name in sizes if name not in single]

    def at(length: int) -> OperatorTable:
        return count.table({name: 1 if name in single else length for name in sizes})

    shown, table = _LENGTHS[0], at(_LENGTHS[0])
    between = None
    if table.left_out is None:
        # Some exports run only with the length of their example, which then is a size of their outputs.
        trials = ((length, at(length)) for length in output_sizes(count.network))
        shown, table = next((trial for trial in trials if trial[1].left_out is not None), (shown, table))
    elif lengths:
        shares = [table.left_out, *(at(length).left_out for length in _LENGTHS[1:])]
        known = [share for share in shares if share is not None]
        between = (min(known), max(known))
    words = [f"{show(name)} = {size:,}" for names, size in ((single, 1), (lengths, shown)) for name in names[:4]]
    more = " and others" if max(len(single), len(lengths)) > 4 else ""
    return replace(table, assumed=f"{listed(words, 'and')}{more}, which the file leaves open", between=between)


def _groups(macs: Mapping[Key, int | str], became: Mapping[Key, str]) -> tuple[Operators, ...]:
    members: dict[tuple[str, str], list[int | str]] = defaultdict(list)
    for key, outcome in became.items():
        # Operations on constants are done once, before any run.
        members[str(key[0].nodes[key[1]].op_type), outcome].append(0 if outcome == FOLDED else macs[key])
    groups = []
    for (kind, outcome), works in members.items():
        reasons = [each for each in works if isinstance(each, str)]
        total = None if reasons else sum(each for each in works if isinstance(each, int))
        groups.append(Operators(kind, outcome, len(works), total, reasons[0] if reasons else ""))
    return tuple(groups)


def _offer(heads: list[Head]) -> tuple[str, ...]:
    if not heads:
        return ()
    names = listed([label(*head.product) for head in heads[:4]], "and") + (" and others" if len(heads) > 4 else "")
    return (f"--heads makes dense layers of {names}",)


def _notes(became: Mapping[Key, str]) -> tuple[str, ...]:
    choices = {
        branch[0]
        for scope, index in became
        for branch in scope.branches
        if became[scope, index] in (SIMULATED, LEFT_OUT)
    }
    count = len(choices)
    if not count:
        return ()
    return (f"both branches of {count} If{'s' if count > 1 else ''} are counted, of which one runs",)
