"""ONNX networks as models: the shapes of their LSTM, GRU and RNN nodes and of cells that they write out step by step,
and their weights where these are asked for.

External data is not opened, nothing is executed. What cannot be simulated is refused with
a sentence that names the node. Needs the package onnx (extra `onnx`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.imported import MAX_BYTES, ImportedModel, bounded_file, model_names, model_stem, placed
from lstmsim.formats.onnx_cells import cell_notes
from lstmsim.formats.onnx_chains import find_unrolled
from lstmsim.formats.onnx_constants import Constants
from lstmsim.formats.onnx_graph import Scope, label, open_scopes
from lstmsim.formats.onnx_nodes import foreign_recurrent, is_recurrent, read_layer
from lstmsim.formats.onnx_shapes import Shapes
from lstmsim.formats.onnx_stacks import Key, Stack, find_stacks
from lstmsim.formats.onnx_unrolled import explain_absence
from lstmsim.formats.onnx_unrolled_models import unrolled_model, unrolled_part
from lstmsim.formats.onnx_unrolled_stacks import UnrolledStack
from lstmsim.formats.wording import show
from lstmsim.workload.model import Layer, Model

__all__ = ["ImportedModel", "ImportedNetwork", "read_onnx"]

MAX_RECURRENT_NODES = 1000


@dataclass(frozen=True)
class ImportedNetwork:
    """Every recurrent model of one ONNX file, at least one."""

    models: tuple[ImportedModel, ...]


def read_onnx(path: str | os.PathLike[str], *, weights: bool = False) -> ImportedNetwork:
    """The recurrent models in an ONNX file; `InputError` if there is none or one cannot be simulated.

    Nodes that feed each other directly become one model, others one each. Models of equal shape in branches of one
    `If`, of which only one runs, are given once; with `weights`, only if these are equal too.

    >>> read_onnx("no-such-file.onnx")
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.onnx: no such file or folder
    """
    name = os.fspath(path)
    network = _parse(_content(name), name)
    try:
        return _models(network, name, weights)
    except UnicodeDecodeError:
        raise InputError(Mistake(name, "is damaged: a name in it is not UTF-8")) from None
    except InputError as error:
        raise placed(error, name) from None


def _content(name: str) -> bytes:
    with bounded_file(name, "an ONNX network") as (file, _):
        return file.read(MAX_BYTES)


def _parse(content: bytes, name: str) -> Any:
    """The file's message, parsed as protobuf whatever the file's name ends in."""
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


def _models(network: Any, name: str, weights: bool) -> ImportedNetwork:
    scopes = open_scopes(network)
    shapes = Shapes()
    layers = _layers(scopes, shapes)
    unrolled, left = _unrolled(scopes, shapes, network)
    if not layers and not unrolled:
        raise InputError([Mistake("", each) for each in left] or explain_absence(scopes))
    stacks = find_stacks(layers)
    if not {key for stack in stacks for key in stack.keys} >= set(layers):
        raise InputError("is no valid network: recurrent nodes feed each other in a circle")
    producer = " ".join(str(network.producer_name).split())
    origin = PurePath(name).name + (f" (written by {show(producer)})" if producer else "")
    numbers = _Numbers(layers, shapes, network.ByteSize()) if weights else None
    merged = _merged(stacks, layers, numbers)
    parts = [*(_part(stack) for stack, _ in merged), *map(unrolled_part, unrolled)]
    names = model_names(model_stem(name), parts)
    models = []
    for own, (stack, twins) in zip(names, merged, strict=False):
        model = Model(own, tuple(layers[key] for key in stack.keys))
        nodes = tuple(label(*key) for key in stack.keys)
        loops = dict.fromkeys(
            f"runs inside {loop}: its steps repeat in each turn" for key in stack.keys for loop in key[0].loops
        )
        cells = dict.fromkeys(note for layer in model.layers for note in cell_notes(layer.cell))
        notes = (*stack.notes, *cells, *loops, *(f"stands also for {twin}, of which only one runs" for twin in twins))
        found = ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", notes)
        models.append(numbers.added(found, stack) if numbers else found)
    models += [
        unrolled_model(stack, own, origin, weights) for own, stack in zip(names[len(merged) :], unrolled, strict=True)
    ]
    return ImportedNetwork(
        tuple(replace(each, notes=(*each.notes, *map("left out: {}".format, left))) for each in models)
    )


def _unrolled(scopes: list[Scope], shapes: Shapes, network: Any) -> tuple[list[UnrolledStack], list[str]]:
    """The layers that are written out step by step, and sentences on those that cannot be simulated."""
    return find_unrolled(scopes, shapes, Constants(shapes, 16 * network.ByteSize() + 2**20))


class _Numbers:
    """The weights of all recurrent nodes of a network."""

    def __init__(self, layers: dict[Key, Layer], shapes: Shapes, size: int) -> None:
        from lstmsim.formats.onnx_weights import fingerprint, node_weights, state_notes

        # A few rearrangements of each weight; names repeated endlessly would fill the memory.
        constants = Constants(shapes, 16 * size + 2**20)
        self.passes = {key: node_weights(constants, *key, layer) for key, layer in layers.items()}
        self.notes = {key: state_notes(constants, *key) for key in layers}
        self.fingerprints = {key: fingerprint(passes) for key, passes in self.passes.items()}

    def added(self, found: ImportedModel, stack: Stack) -> ImportedModel:
        """The model with its weights, or with a note on why it has none."""
        from lstmsim.numerics.weights import Network

        passes = [self.passes[key] for key in stack.keys]
        missing = tuple(each for each in passes if isinstance(each, str))
        notes = (*found.notes, *missing, *(note for key in stack.keys for note in self.notes[key]))
        if missing:
            return replace(found, notes=notes)
        network = Network(found.model, tuple(each for each in passes if not isinstance(each, str)))
        return replace(found, notes=notes, network=network)


def _layers(scopes: list[Scope], shapes: Shapes) -> dict[Key, Layer]:
    """Every recurrent node as a layer; one `InputError` for all that cannot be."""
    layers: dict[Key, Layer] = {}
    mistakes = []
    for scope in scopes:
        for index, node in enumerate(scope.nodes):
            if is_recurrent(node):
                found = read_layer(shapes, scope, index)
                if isinstance(found, Layer):
                    layers[scope, index] = found
                else:
                    mistakes += [Mistake(label(scope, index), sentence) for sentence in found]
            elif foreign_recurrent(node) and index not in scope.children:
                text = f"belongs to {show(str(node.domain))}, only ONNX's own LSTM, GRU and RNN can be read"
                mistakes.append(Mistake(label(scope, index), text))
            if len(layers) > MAX_RECURRENT_NODES:
                raise InputError(f"holds more than {MAX_RECURRENT_NODES} recurrent nodes")
    if mistakes:
        raise InputError(mistakes)
    return layers


def _merged(stacks: list[Stack], layers: dict[Key, Layer], numbers: _Numbers | None) -> list[tuple[Stack, list[str]]]:
    """The stacks without those that equal an earlier one in another branch of the same `If`, named beside it."""
    kept: list[tuple[Stack, list[str]]] = []
    by_shape: dict[tuple[tuple[Layer, str], ...], list[int]] = {}
    for stack in stacks:
        shape = tuple((layers[key], numbers.fingerprints[key] if numbers else "") for key in stack.keys)
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
    """Whether only one of two stacks runs: some of their nodes are in different branches of one `If`."""
    own = {branch[0]: branch[1] for key in first.keys for branch in key[0].branches}
    return any(own.get(at, taken) != taken for key in second.keys for at, taken in key[0].branches)


def _part(stack: Stack) -> str:
    """The branch and the node that a stack's last layer is."""
    scope, index = stack.keys[-1]
    node = scope.nodes[index]
    branches = [branch.removesuffix("_branch") for _, branch in scope.branches]
    return "-".join([*branches, str(node.name or node.op_type)])
