"""ONNX networks as models: shapes and, if asked for, weights of LSTM, GRU and RNN nodes and of written-out cells.

Data files of the network are opened only if weights are asked for. Nothing is executed. A node that cannot be
simulated is refused with a sentence that names it. Needs the package onnx (extra `onnx`).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import listed, show
from lstmsim.importers.imported import ImportedModel, OperatorTable, model_names, model_stem
from lstmsim.importers.onnx.axes import Layouts, length_notes
from lstmsim.importers.onnx.constants import Constants, node_widths
from lstmsim.importers.onnx.graph import Scope, Value, label, node_input, open_scopes, resolve, upstream, version_of
from lstmsim.importers.onnx.nodes import (
    LAST_STATES,
    Begin,
    begin_of,
    c_alone,
    cell_notes,
    constant_states,
    fingerprint,
    foreign_recurrent,
    is_recurrent,
    node_weights,
    read_layer,
)
from lstmsim.importers.onnx.operators import Chain, Head, find_heads, head_weights, operator_table
from lstmsim.importers.onnx.shapes import ComputedShapes, Shapes
from lstmsim.importers.onnx.stacks import PASSING, Handed, Key, Stack, find_stacks
from lstmsim.importers.onnx.stored import DataFiles, data_files_of, dequantise, rounding_notes, stored_at
from lstmsim.importers.onnx.unrolled import UnrolledStack, find_node_chains, find_unrolled, unrolled_model, written_out
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Network

MAX_RECURRENT_NODES = 1000
_PRODUCTS = ("MatMul", "Gemm")
#: Operations between one product with h and the next.
_BETWEEN = PASSING | {"Add", "Sub", "Mul", "Tanh", "Sigmoid", "Relu"}
_CANDIDATES = 8
_SHOWN_OPERATIONS = 8
_MAX_HOPS = 100
_ADVICE = "no nn layer is recognised in it, write its cell as a graph (docs/howto/add_a_cell.md)"


@dataclass(frozen=True)
class ImportedNetwork:
    """The content of one ONNX file: its recurrent models, at least one, and what became of all operators."""

    models: tuple[ImportedModel, ...]
    operators: OperatorTable


def read_onnx(path: str | os.PathLike[str], *, weights: bool = False, heads: bool = False) -> ImportedNetwork:
    """Import the recurrent models in an ONNX file."""
    name = os.fspath(path)
    network = parsed_network(name)
    try:
        return _models(network, name, weights, heads)
    except UnicodeDecodeError:
        raise InputError(Mistake(name, "is damaged: a name in it is not UTF-8")) from None
    except InputError as error:
        raise placed(error, name) from None


def parsed_network(name: str) -> Any:
    """Parse a file as protobuf, whatever its name; `InputError` if it holds no network."""
    with bounded_file(name, "an ONNX network") as (file, size):
        content = file.read(size)
    try:
        import onnx
    except ImportError:
        raise InputError("reading ONNX needs the extra: pip install 'lstmsim[onnx]'") from None
    network = onnx.ModelProto()
    try:
        network.ParseFromString(content)
    except Exception:
        # The class of protobuf's errors differs between its implementations.
        raise InputError(Mistake(name, "is no ONNX network, or is damaged or cut off")) from None
    if not network.ir_version or not network.HasField("graph"):
        raise InputError(Mistake(name, "is no ONNX network: it states no version or holds no graph"))
    return network


def _models(network: Any, name: str, weights: bool, heads: bool) -> ImportedNetwork:
    files = DataFiles(name)
    quantised = dequantise(network, files if weights else None)
    scopes = open_scopes(network)
    shapes = Shapes()
    layers = _layers(scopes, shapes)
    every, exact = dict(layers), ComputedShapes(version_of(network))
    unrolled, left = _unrolled(scopes, layers, (exact, Constants(exact, network.ByteSize(), files)), weights)
    if not layers and not unrolled:
        raise InputError([Mistake("", each) for each in left] or explain_absence(scopes))
    layouts = Layouts(shapes, layers)
    begins = {key: begin_of(*key) for key in layers}
    lengths = length_notes(layers, layouts, refuse=weights)
    joined = find_stacks(layers, layouts)
    handed = Handed(layers, shapes, network.ByteSize(), files)
    begun = [_begun(stack, begins, handed, joined) for stack in joined]
    lengths = {key: (*notes, *_never_run(*key, shapes), *_c_alone(*key)) for key, notes in lengths.items()}
    stacks = [_noted(stack, begins, lengths, quantised) for stack in begun]
    if not {key for stack in stacks for key in stack.keys} >= set(layers):
        raise InputError("is no valid network: recurrent nodes feed each other in a circle")
    numbers = _Numbers(layers, begins, Constants(shapes, network.ByteSize(), files)) if weights else None
    merged = _merged(stacks, layers, begins, numbers)
    chains = find_heads(network, scopes, layers, [stack.keys[-1] for stack, twins in merged if not twins])
    apart = written_out(unrolled)
    simulated = {key: each for key, each in every.items() if key in layers or key in apart}
    operators = operator_table(network, scopes, simulated, chains, heads, apart)
    if len(simulated) > len(layers):
        # Nodes of one step are steps of a layer: their work together is no work for each step.
        operators = replace(operators, steps=None)
    producer = " ".join(str(network.producer_name).split())
    origin = PurePath(name).name + (f" (written by {show(producer)})" if producer else "")
    names = model_names(
        model_stem(name), [*(_part(stack) for stack, _ in merged), *(each[-1].name for each in unrolled)]
    )
    models, data_files = [], data_files_of(scopes, name)
    for own, (stack, twins) in zip(names, merged, strict=False):
        chain = chains.get(stack.keys[-1], Chain((), "it stands for others in branches of an If"))
        taken = chain.heads if heads else ()
        every_layer = (*(layers[key] for key in stack.keys), *(head.layer for head in taken))
        model = Model(own, every_layer, states_from=stack.states_from, states_whole=stack.states_whole)
        nodes = tuple(label(*key) for key in (*stack.keys, *(head.product for head in taken)))
        twin_notes = (f"stands also for {twin}, of which only one runs" for twin in twins)
        cells = dict.fromkeys(note for layer in every_layer for note in cell_notes(layer.cell))
        notes = (*stack.notes, *cells, *twin_notes, *(chain.notes() if heads else ()))
        imported = ImportedModel(
            model, nodes, f"{origin}: {', '.join(nodes)}", notes, files=data_files, operators=operators
        )
        models.append(numbers.added(imported, stack, taken) if numbers else imported)
    for own, each in zip(names[len(merged) :], unrolled, strict=True):
        imported = unrolled_model(each, own, origin, weights)
        models.append(replace(imported, files=data_files, operators=operators))
    return ImportedNetwork(
        tuple(replace(each, notes=(*each.notes, *map("left out: {}".format, left))) for each in models), operators
    )


def _unrolled(
    scopes: list[Scope], layers: dict[Key, Layer], read: tuple[Shapes, Constants], needed: bool
) -> tuple[list[UnrolledStack], list[str]]:
    """The layers that are written out step by step, and sentences on layers that cannot be simulated."""
    try:
        stacks, used, refused = find_node_chains(layers, *read)
        written, sentences = find_unrolled(scopes, *read)
    except InputError as error:
        if needed:
            raise
        return [], [str(error)]
    for key in used:
        del layers[key]
    return [*stacks, *written], [*refused, *sentences]


def _noted(
    stack: Stack, begins: dict[Key, Begin], lengths: dict[Key, tuple[str, ...]], quantised: dict[str, str]
) -> Stack:
    notes = [note for key in stack.keys for note in lengths[key]]
    notes += [f"runs inside {loop}: its steps repeat in each turn" for key in stack.keys for loop in key[0].loops]
    weights = [node_input(key[0].nodes[key[1]], 1) for key in stack.keys]
    notes += rounding_notes([quantised[each] for each in weights if each in quantised])
    notes += [note for key in stack.keys for note in node_widths(*key)]
    inputs = dict.fromkeys(f"input {show(each)}" for key in stack.keys for each in begins[key].inputs)
    if inputs:
        text = f"the states before the first step come from {listed(inputs, 'and')} of the network"
        notes.append(f"{text}: a run begins at 0 unless its job has `initial`")
    if stack.states_from:
        how = "" if stack.states_whole else " with a file of states"
        text = f"begins with {stack.states_from}: numbers that no file holds"
        notes.append(f"{text}, so its job has to have `initial`{how}")
    return replace(stack, notes=tuple(dict.fromkeys((*stack.notes, *notes))))


def _never_run(scope: Scope, index: int, shapes: Shapes) -> Iterator[str]:
    """Note a node in a branch of an `If` that the network cannot take, as stored numbers or stated shapes show."""
    inner = scope
    while (outer := inner.outer or (inner.caller[0] if inner.caller else None)) is not None:
        at = next(at for at, bodies in outer.children.items() if inner in bodies)
        is_choice = outer.nodes[at].op_type == "If"
        condition = shapes.numbers(outer, node_input(outer.nodes[at], 0)) if is_choice else None
        taken = "else_branch" if condition == (0,) else "then_branch"
        if condition and condition[0] is not None and inner.branches[-1][1] != taken:
            yield f"{label(scope, index)} never runs: the file fixes that {label(outer, at)} takes its {taken}"
        inner = outer


def _c_alone(scope: Scope, index: int) -> list[str]:
    """Note an LSTM whose h nobody reads."""
    *h, c = [*map(str, scope.nodes[index].output), "", ""][:3]
    return c_alone(scope, label(scope, index), {*h} - {""}, {c}) if c else []


def _begun(stack: Stack, begins: dict[Key, Begin], handed: Handed, stacks: Sequence[Stack]) -> Stack:
    """The stack with words on what computes its first states, if the network computes them."""
    words = dict.fromkeys(each for key in stack.keys for each in begins[key].states_from)
    if not words:
        return stack
    whole = handed.whole(stack, stacks)
    parts = not whole and any(each.startswith(LAST_STATES) for each in words)
    computed = listed(words, "and") + (", in part or in another order" if parts else "")
    return replace(stack, states_from=computed, states_whole=whole)


class _Numbers:
    def __init__(self, layers: dict[Key, Layer], begins: dict[Key, Begin], constants: Constants) -> None:
        self._constants = constants
        self.passes = {key: node_weights(constants, *key, layer) for key, layer in layers.items()}
        self.states = {key: constant_states(constants, *key, layer, begins[key]) for key, layer in layers.items()}
        self.fingerprints = {key: fingerprint(passes, self.states[key]) for key, passes in self.passes.items()}

    def added(self, imported: ImportedModel, stack: Stack, heads: tuple[Head, ...]) -> ImportedModel:
        """Give the model with its weights, or with a note on why it has none."""
        passes = [*(self.passes[key] for key in stack.keys), *(head_weights(self._constants, head) for head in heads)]
        missing = tuple(each for each in passes if isinstance(each, str))
        notes = (*imported.notes, *missing)
        if missing:
            return replace(imported, notes=notes)
        states = {(at, side): each for at, key in enumerate(stack.keys) for side, each in self.states[key].items()}
        network = Network(imported.model, tuple(each for each in passes if not isinstance(each, str)), states)
        return replace(imported, notes=notes, network=network)


def _layers(scopes: list[Scope], shapes: Shapes) -> dict[Key, Layer]:
    """Every recurrent node as a layer; one `InputError` for all nodes that cannot be simulated."""
    layers: dict[Key, Layer] = {}
    mistakes = []
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            if is_recurrent(node):
                answer = read_layer(shapes, scope, index)
                if isinstance(answer, Layer):
                    layers[scope, index] = answer
                else:
                    mistakes += [Mistake(label(scope, index), sentence) for sentence in answer]
            elif foreign_recurrent(node) and index not in scope.children:
                text = f"belongs to {show(str(node.domain))}, only ONNX's own LSTM, GRU and RNN can be read"
                mistakes.append(Mistake(label(scope, index), text))
            if len(layers) > MAX_RECURRENT_NODES:
                raise InputError(f"holds more than {MAX_RECURRENT_NODES} recurrent nodes")
    refuse(mistakes)
    return layers


def _merged(
    stacks: list[Stack], layers: dict[Key, Layer], begins: dict[Key, Begin], numbers: _Numbers | None
) -> list[tuple[Stack, list[str]]]:
    """The stacks, without a stack that equals an earlier one in another branch of the same `If`."""
    kept: list[tuple[Stack, list[str]]] = []
    by_shape: dict[tuple[tuple[Layer, Begin, str], ...], list[int]] = {}
    for stack in stacks:
        shape = tuple((layers[key], begins[key], numbers.fingerprints[key] if numbers else "") for key in stack.keys)
        twin = next((at for at in by_shape.get(shape, []) if _alternatives(kept[at][0], stack)), None)
        if twin is None:
            by_shape.setdefault(shape, []).append(len(kept))
            kept.append((stack, []))
        else:
            kept[twin][1].append(" and ".join(label(*key) for key in stack.keys))
            notes = tuple(dict.fromkeys((*kept[twin][0].notes, *stack.notes)))
            kept[twin] = (replace(kept[twin][0], notes=notes), kept[twin][1])
    return kept


def _alternatives(first: Stack, second: Stack) -> bool:
    """Whether at most one of two stacks runs: some of their nodes are in different branches of one `If`."""
    own = {branch[0]: branch[1] for key in first.keys for branch in key[0].branches}
    return any(own.get(at, taken) != taken for key in second.keys for at, taken in key[0].branches)


def _part(stack: Stack) -> str:
    """The branch and the name of a stack's last node."""
    scope, index = stack.keys[-1]
    node = scope.nodes[index]
    branches = [branch.removesuffix("_branch") for _, branch in scope.branches]
    return "-".join([*branches, str(node.name or node.op_type)])


def explain_absence(scopes: list[Scope]) -> str:
    """Say what a network holds instead of recurrent nodes, and what to do if it holds an unrolled layer."""
    for scope in scopes:
        if (repeated := _repeated(scope)) is not None:
            steps, first = repeated
            return (
                f"holds no LSTM, GRU or RNN node, but what looks like a recurrent layer unrolled over {steps} "
                f"steps or more, from {label(scope, first)} on: {_ADVICE}"
            )
    counts = Counter(str(node.op_type) for scope in scopes for node in scope.nodes)
    common = [f"{count} {kind}" for kind, count in counts.most_common(_SHOWN_OPERATIONS)]
    more = len(counts) - len(common)
    rest = f" and {more} other kinds" if more else ""
    text = f"holds no LSTM, GRU or RNN node; it has {', '.join(common) or 'no nodes'}{rest}"
    written_out = next((_gates(scope) for scope in scopes if _gates(scope)), "")
    if written_out:
        text += f"; its {written_out} may be a recurrent cell written out operation by operation: {_ADVICE}"
    return text


def _gates(scope: Scope) -> str:
    """The operations of a graph in words, if they suffice for one GRU or LSTM step; else empty."""
    counts = Counter(str(node.op_type) for node in scope.nodes)
    products = sum(counts[kind] for kind in _PRODUCTS)
    if products < 1 or counts["Sigmoid"] < 2 or counts["Tanh"] < 1 or counts["Mul"] < 2:
        return ""
    kinds = [*(kind for kind in _PRODUCTS if counts[kind]), "Sigmoid", "Tanh", "Mul"]
    return listed([f"{counts[kind]} {kind}" for kind in kinds], "and")


def _repeated(scope: Scope) -> tuple[int, int] | None:
    """How often a product feeds the next one with the same matrix, and the first such product; None if never."""
    uses = defaultdict[Value, list[tuple[int, str]]](list)
    for index, node in enumerate(scope.nodes):
        read = [node_input(node, place) for place in (0, 1)] if node.op_type in _PRODUCTS else []
        roots = [stored_at(resolve(scope, name)) for name in read]
        for root, other in zip(roots, (1, 0), strict=False):
            if root is not None and roots[other] is None:
                uses[root].append((index, node_input(node, other)))

    def follow(value: Value) -> Iterable[str]:
        return value.node.input if value.kind in _BETWEEN else ()

    for found in sorted(uses.values(), key=len, reverse=True)[:_CANDIDATES]:
        fed = [
            lower
            for (lower, _), (_, source) in pairwise(found)
            if lower in {each.index for each in upstream(scope, source, follow, _MAX_HOPS)}
        ]
        if fed:
            return len(fed) + 1, found[0][0]
    return None
