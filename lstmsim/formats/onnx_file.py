"""ONNX networks as models: the shapes of their LSTM, GRU and RNN nodes, nothing else.

Weights are not looked at, external data is not opened, nothing is executed. What cannot be simulated is refused with
a sentence that names the node. Needs the package onnx (extra `onnx`).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.files import readable_file
from lstmsim.formats.onnx_graph import Scope, label, open_scopes
from lstmsim.formats.onnx_nodes import foreign_recurrent, is_recurrent, read_layer
from lstmsim.formats.onnx_shapes import Shapes
from lstmsim.formats.onnx_stacks import Key, Stack, find_stacks
from lstmsim.formats.onnx_unrolled import explain_absence
from lstmsim.formats.wording import show
from lstmsim.workload.model import Layer, Model

__all__ = ["ImportedModel", "ImportedNetwork", "read_onnx"]

#: What protobuf itself can hold.
MAX_BYTES = 2**31 - 1
MAX_RECURRENT_NODES = 1000
MAX_MISTAKES = 20
_LONGEST_NAME = 150
_LFS_POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class ImportedModel:
    """One stack of recurrent layers found in a network: `nodes` are its ONNX nodes, `notes` what to know about it."""

    model: Model
    nodes: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportedNetwork:
    """Every recurrent model of one ONNX file, at least one."""

    models: tuple[ImportedModel, ...]


def read_onnx(path: str | os.PathLike[str]) -> ImportedNetwork:
    """The recurrent models in an ONNX file; `InputError` if there is none or one cannot be simulated.

    Nodes that feed each other directly become one model, others one each. Models of equal shape in branches of one
    `If`, of which only one runs, are given once.

    >>> read_onnx("no-such-file.onnx")
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.onnx: no such file or folder
    """
    name = os.fspath(path)
    network = _parse(_content(name), name)
    try:
        return _models(network, name)
    except UnicodeDecodeError:
        raise InputError(Mistake(name, "is damaged: a name in it is not UTF-8")) from None
    except InputError as error:
        raise InputError([_placed(mistake, name) for mistake in error.mistakes]) from None


def _placed(mistake: Mistake, name: str) -> Mistake:
    if mistake.place.startswith(name):
        return mistake
    return Mistake(f"{name}: {mistake.place}" if mistake.place else name, mistake.sentence)


def _content(name: str) -> bytes:
    try:
        regular = not os.path.exists(name) or os.path.isdir(name) or stat.S_ISREG(os.stat(name).st_mode)
    except (OSError, ValueError):
        regular = True
    if not regular:
        raise InputError(Mistake(name, "is a device or a pipe, expected a file"))
    with readable_file(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise InputError(Mistake(name, f"has {size} bytes, more than the 2 GB that an ONNX file can have"))
        try:
            return file.read(MAX_BYTES)
        except OSError as error:
            raise InputError(Mistake(name, f"cannot be read: {error.strerror}")) from None


def _parse(content: bytes, name: str) -> Any:
    """The file's message, parsed as protobuf whatever the file's name ends in."""
    try:
        import onnx
    except ImportError:
        raise InputError("reading ONNX needs the extra: pip install 'lstmsim[onnx]'") from None
    if not content:
        raise InputError(Mistake(name, "is empty, expected an ONNX network"))
    if content.startswith(_LFS_POINTER):
        raise InputError(Mistake(name, "is a Git LFS pointer, not the network itself: fetch it with git lfs pull"))
    network = onnx.ModelProto()
    try:
        network.ParseFromString(content)
    except Exception:
        # The class of protobuf's errors differs between its implementations.
        raise InputError(Mistake(name, "is no ONNX network, or is damaged or cut off")) from None
    if not network.ir_version or not network.HasField("graph"):
        raise InputError(Mistake(name, "is no ONNX network: it states no version or holds no graph"))
    return network


def _models(network: Any, name: str) -> ImportedNetwork:
    scopes = open_scopes(network)
    layers = _layers(scopes, name)
    stacks = find_stacks(layers)
    if not {key for stack in stacks for key in stack.keys} >= set(layers):
        raise InputError("is no valid network: recurrent nodes feed each other in a circle")
    producer = " ".join(str(network.producer_name).split())
    origin = PurePath(name).name + (f" (written by {show(producer)})" if producer else "")
    merged = _merged(stacks, layers)
    names = _names(_stem(name), [stack for stack, _ in merged])
    models = []
    for own, (stack, twins) in zip(names, merged, strict=True):
        model = Model(own, tuple(layers[key] for key in stack.keys))
        nodes = tuple(label(*key) for key in stack.keys)
        loops = dict.fromkeys(
            f"runs inside {loop}: its steps repeat in each turn" for key in stack.keys for loop in key[0].loops
        )
        notes = (*stack.notes, *loops, *(f"stands also for {twin}, of which only one runs" for twin in twins))
        models.append(ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", notes))
    return ImportedNetwork(tuple(models))


def _layers(scopes: list[Scope], name: str) -> dict[Key, Layer]:
    """Every recurrent node as a layer; one `InputError` for all that cannot be."""
    shapes = Shapes()
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
        more = len(mistakes) - MAX_MISTAKES
        raise InputError(mistakes[:MAX_MISTAKES] + ([Mistake("", f"and {more} more like these")] if more > 0 else []))
    if not layers:
        raise InputError(explain_absence(scopes))
    return layers


def _merged(stacks: list[Stack], layers: dict[Key, Layer]) -> list[tuple[Stack, list[str]]]:
    """The stacks without those that equal an earlier one in another branch of the same `If`, named beside it."""
    kept: list[tuple[Stack, list[str]]] = []
    by_shape: dict[tuple[Layer, ...], list[int]] = {}
    for stack in stacks:
        shape = tuple(layers[key] for key in stack.keys)
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


def _stem(name: str) -> str:
    """A model's name from a file's name, as model files allow it."""
    text = "".join(letter if letter.isprintable() else "-" for letter in PurePath(name).stem).strip()
    return text[:_LONGEST_NAME].strip() or "network"


def _names(stem: str, stacks: list[Stack]) -> list[str]:
    """The file's name for the only model; otherwise followed by the branch and the node that each begins with."""
    if len(stacks) == 1:
        return [stem]
    names: list[str] = []
    for number, stack in enumerate(stacks, 1):
        scope, index = stack.keys[-1]
        node = scope.nodes[index]
        parts = [branch.removesuffix("_branch") for _, branch in scope.branches] + [str(node.name or node.op_type)]
        slug = re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join(parts)).strip("-.")[-40:].strip("-.")
        own = f"{stem}-{slug}" if slug else stem
        names.append(own if own not in names and slug else f"{own}-{number}")
    return names
