"""Tensors that an ONNX file holds, in the file or in data files, and the real numbers that stored whole numbers mean.

External data: only plain files in the model's own folder or below are opened: no absolute path, no `..`, no link that
leads out, no file with a second name. Whole numbers: `DequantizeLinear` means (x - zero point) x scale, with one scale
for the tensor or for each index of an axis. `DynamicQuantizeLSTM` of com.microsoft (W [directions, input, 4 x hidden],
R alike) becomes an LSTM with the weights that it means.
Sources: ONNX's docs/ExternalData.md and operator pages; onnxruntime's contrib operators.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import LFS_POINTER, MAX_BYTES
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import note_read
from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.graph import Scope, Value, attributes, integer, node_input, resolve
from lstmsim.importers.tensors import shape_text
from lstmsim.model.numerics.weights import Floats

_EXTERNAL = 1
_TENSOR, _TENSORS = 4, 9
#: Digits of the largest file that any file system holds.
_MAX_DIGITS = 19
_ONE_FILE = "export the network as one file (external_data=False), or read shapes only (--no-weights)"
_MAX_HOPS = 100
#: Operations between a stored matrix and the product that reads it.
_REARRANGING = ("Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Cast", "DequantizeLinear", "Expand")
_KIND, _DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"
_GRAPH, _GRAPHS, _FLOAT, _UINT8, _INT8, _HALF = 5, 10, 1, 2, 3, 10
#: Whole numbers of 8, 16 and 32 bits.
_WHOLE = (_UINT8, _INT8, 4, 5, 6)
#: Where a matrix, its scales and its zero points stand among the inputs.
_MATRICES = {"W": (1, 8, 9), "R": (2, 10, 11)}
_COPIES, _SPARE = 16, 2**20
_Tensors = Mapping[str, Any]


def is_external(tensor: Any) -> bool:
    """Say whether the numbers of a TensorProto lie in another file."""
    return bool(tensor.data_location == _EXTERNAL)


class DataFiles:
    """The data files of one network. A file is opened when a tensor in it is needed, for that tensor's bytes only."""

    def __init__(self, model: str) -> None:
        self._folder = os.path.realpath(os.path.dirname(model) or ".")
        self._ranges: set[tuple[str, int, int]] = set()
        self.total = 0

    def read(self, tensor: Any, size: int) -> bytes:
        """Read the `size` bytes of a tensor; `InputError` if its file is missing, too short or may not be opened."""
        fields = {str(each.key): str(each.value) for each in tensor.external_data}
        location = fields.get("location", "")
        what = f"its weights {show(str(tensor.name))} are in {show(location)}"
        path = self._path(location, what)
        offset = _whole(fields.get("offset") or "0", f"{what}: offset")
        length = _whole(fields.get("length") or str(size), f"{what}: length")
        if length != size:
            raise InputError(f"{what} in {length} bytes, but their shape needs {size}: the network is damaged")
        self._count((path, offset, size), what)
        return _content(path, offset, size, what)

    def _path(self, location: str, what: str) -> str:
        """The real path of a location in the model's folder."""
        if not location or "\0" in location:
            raise InputError(f"{what}, which is no file name: the network is damaged")
        # The spelling of Windows is refused on all systems, so that a network means the same everywhere.
        away = "\\" in location or PureWindowsPath(location).drive or location.startswith("/")
        if away or ".." in location.split("/"):
            raise InputError(f"{what}, which leaves the network's folder: never opened")
        path = os.path.join(self._folder, location)
        try:
            real = os.path.realpath(path)
            there = os.path.lexists(path)
        except (OSError, ValueError):
            raise InputError(f"{what}, which is no file name: the network is damaged") from None
        if not real.startswith(os.path.join(self._folder, "")):
            raise InputError(f"{what}, a link that leaves the network's folder: never opened; copy the file itself")
        if not there:
            raise InputError(f"{what}, but there is no such file next to the network: fetch it too, {_ONE_FILE}")
        return real

    def _count(self, span: tuple[str, int, int], what: str) -> None:
        if span not in self._ranges:
            self._ranges.add(span)
            self.total += span[2]
        if self.total > MAX_BYTES:
            raise InputError(f"{what}; its recurrent layers have more than the 2 GB of weights that are read here")


def _content(path: str, offset: int, size: int, what: str) -> bytes:
    """Bytes of a plain file, which is checked through the same descriptor that reads it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            _check_file(os.fstat(descriptor), what)
            note_read(path)
            with open(descriptor, "rb", closefd=False) as file:
                if file.read(len(LFS_POINTER)) == LFS_POINTER:
                    text = "which is a Git LFS pointer, not the weights: fetch them with git lfs pull"
                    raise InputError(f"{what}, {text}")
                length = os.fstat(descriptor).st_size
                if offset + size > length:
                    text = f"{what} at bytes {offset} to {offset + size}, but the file has {length}"
                    raise InputError(f"{text}: it is cut off or belongs to another network")
                file.seek(offset)
                return file.read(size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{what}, which cannot be read: {error.strerror}") from None


def _check_file(about: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise InputError(f"{what}, which is no plain file: never opened")
    if about.st_nlink > 1:
        # A hard link does not tell where its other names are: perhaps outside the folder.
        raise InputError(f"{what}, which has another name too (a hard link): never opened; copy the file itself")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InputError(f"{what} is {show(text)}, expected a whole number of bytes from 0 on")
    return int(text)


def data_files_of(scopes: list[Scope], model: str) -> tuple[str, ...]:
    """List every existing file that a network names for its data: no output may replace one."""
    folder = os.path.dirname(model)
    locations = dict.fromkeys(
        str(each.value)
        for scope in scopes
        for tensor in _tensors(scope)
        for each in tensor.external_data
        if each.key == "location" and "\0" not in str(each.value)
    )
    paths = (os.path.join(folder, location) for location in locations)
    return tuple(path for path in paths if os.path.isfile(path))


def _tensors(scope: Scope) -> Iterator[Any]:
    """The tensors of a scope: initializers, and tensors in attributes of its nodes; a sparse tensor holds two."""
    stored = [*scope.tensors.values()]
    for node in scope.nodes:
        for each in node.attribute:
            stored += [each.t] if each.type == _TENSOR else list(each.tensors) if each.type == _TENSORS else []
    for tensor in stored:
        yield from (tensor.values, tensor.indices) if hasattr(tensor, "indices") else (tensor,)


def plain(scope: Scope, name: str) -> Value | None:
    """Look up what a name stands for, through operations that hand a value on unchanged; None if it means nothing."""
    value = resolve(scope, name)
    for _ in range(_MAX_HOPS):
        if value is None or value.place or value.kind not in ("Identity", "Dropout"):
            return value
        value = resolve(value.scope, node_input(value.node, 0))
    return None


def stored_at(value: Value | None) -> Value | None:
    """Look up the value of the file that another one is, as it is or in another arrangement; None if there is none."""
    for _ in range(_MAX_HOPS):
        if value is None or value.tensor is not None or value.kind == "Constant":
            return value
        if value.place or value.kind not in _REARRANGING:
            break
        value = resolve(value.scope, node_input(value.node, 0))
    return None


def is_stored(value: Value) -> bool:
    """Say whether the file holds a value, as it is or in another arrangement."""
    return stored_at(value) is not None


def dequantise(network: Any, files: DataFiles | None) -> dict[str, str]:
    """Turn the nodes `DynamicQuantizeLSTM` of a network into LSTM nodes, in place."""
    names: dict[str, str] = {}
    left = _COPIES * network.ByteSize() + _SPARE
    for node, tensors in _nodes(network.graph):
        if any(name not in tensors for name in _names(node)):
            continue
        place = f"{_KIND} {show(str(node.name))}"
        # Only the 8-bit form has inputs 8 to 11; input 7, P, is the same in both forms.
        kept = [str(each) for each in node.input[:8]]
        for name, places in _MATRICES.items():
            parts = [tensors[str(node.input[at])] if at < len(node.input) else None for at in places]
            kept[places[0]] = f"{name} of {node.name} dequantised, {len(network.graph.initializer)}"
            tensor = network.graph.initializer.add(name=kept[places[0]], data_type=_FLOAT)
            try:
                left -= _fill(tensor, parts, files)
            except InputError as error:
                raise InputError([Mistake(place, f"{name} {each.sentence}") for each in error.mistakes]) from None
            if left < 0:
                raise InputError("repeats its weights more often than any network does")
        node.op_type, node.domain = "LSTM", ""
        del node.input[:]
        node.input.extend(kept)
        names[kept[1]] = place
    return names


def rounding_notes(names: Sequence[str]) -> list[str]:
    """Note what a model with nodes of 8-bit weights leaves out; names: the old names of these nodes."""
    if not names:
        return []
    have = f"{listed(names, 'and')} {'has' if len(names) == 1 else 'have'} 8-bit weights, read as the numbers they mean"
    return [f"{have}; the original also rounds x and h at each step, by ranges found at run time: not simulated"]


def _names(node: Any) -> list[str]:
    """The inputs of a node that must be tensors."""
    return [str(node.input[at]) if at < len(node.input) else "" for places in _MATRICES.values() for at in places]


def _nodes(graph: Any) -> Iterator[tuple[Any, _Tensors]]:
    waiting: list[tuple[Any, _Tensors]] = [(graph, {})]
    while waiting:
        graph, outer = waiting.pop()
        # A chain of bodies without tensors of their own shares one table.
        own = {str(each.name): each for each in graph.initializer}
        tensors = {**outer, **own} if own else outer
        for node in graph.node:
            if node.op_type == _KIND and node.domain == _DOMAIN:
                yield node, tensors
            for each in node.attribute:
                bodies = [each.g] if each.type == _GRAPH else list(each.graphs) if each.type == _GRAPHS else []
                waiting += [(body, tensors) for body in bodies]


def _fill(tensor: Any, parts: list[Any], files: DataFiles | None) -> int:
    """Give `tensor` the shape and the numbers of the ordinary LSTM; the result is the bytes of these numbers."""
    matrix, scale, zero = parts
    shape = tuple(int(size) for size in matrix.dims)
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(f"is {shape_text(shape)}, expected [directions, inputs, 4 x hidden]")
    directions, width, rows = shape
    tensor.dims.extend((directions, rows, width))
    if files is None:
        return 0
    around = [tuple(int(size) for size in each.dims) for each in (scale, zero)]
    for name, own in zip(("its scales", "its zero points"), around, strict=True):
        if own not in ((directions,), (directions, rows)):
            raise InputError(
                f"has {name} of shape {shape_text(own)}, expected [{directions}] or [{directions}, {rows}]"
            )
    if matrix.data_type not in (_UINT8, _INT8) or zero.data_type != matrix.data_type or scale.data_type != _FLOAT:
        raise InputError("holds other kinds of numbers than 8 bits with float32 scales")
    numbers, scales, zeros = (numbers_of(each, files) for each in parts)
    scales, zeros = (each.reshape(directions, 1, -1) for each in (scales, zeros))
    real = (numbers.astype(np.float32) - zeros.astype(np.float32)) * scales
    tensor.raw_data = np.ascontiguousarray(real.transpose(0, 2, 1), "<f4").tobytes()
    return len(tensor.raw_data)


def numbers_of(tensor: Any, files: DataFiles) -> NDArray[Any]:
    """Read the numbers of a tensor, in its own type; `InputError` if they are not as many as its shape states."""
    from onnx import helper, numpy_helper

    shape = tuple(int(size) for size in tensor.dims)
    try:
        if min(shape, default=0) < 0:
            raise ValueError
        if not is_external(tensor):
            return numpy_helper.to_array(tensor)
        kind = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        return np.frombuffer(files.read(tensor, prod(shape) * kind.itemsize), kind).reshape(shape)
    except InputError:
        raise
    except Exception:
        # protobuf, numpy and onnx each have classes of their own for what does not fit here
        text = f"the tensor {show(str(tensor.name))} has not the {prod(shape)} numbers that its shape states"
        raise InputError(f"is damaged or cut off: {text}") from None


def stored_tensor(scope: Scope, name: str) -> Any:
    """Give the tensor that a name stands for; None if the value is computed or given at run time."""
    value = plain(scope, name)
    if value is None or value.node is None:
        return None if value is None else value.tensor
    given = attributes(value.scope, value.node)
    return given["value"].t if value.node.op_type == "Constant" and "value" in given else None


def clipped(scope: Scope, name: str) -> list[tuple[Scope, str]]:
    """List where a value is stored, and, if it is clipped, the least and the greatest number allowed."""
    value = plain(scope, name)
    if value is None or value.kind != "Clip":
        return [(scope, name)]
    return [(value.scope, node_input(value.node, place)) for place in range(3)]


def stored_whole(scope: Scope, node: Any, files: DataFiles) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the whole numbers, perhaps clipped, and the zero points of a node `DequantizeLinear`."""
    places = clipped(scope, node_input(node, 0))
    zero = [(scope, node_input(node, 2))] if node_input(node, 2) else []
    tensors = [stored_tensor(*each) for each in (*places, *zero)]
    kinds = {getattr(each, "data_type", 0) for each in tensors}
    if len(kinds) != 1 or not kinds <= set(_WHOLE):
        raise ValueError
    numbers, *others = (numbers_of(each, files) for each in tensors)
    if len(places) > 1:
        numbers = np.clip(numbers, *others[:2])
    return numbers, others[-1] if zero else np.zeros((), numbers.dtype)


def meant(scope: Scope, node: Any, numbers: NDArray[Any], scale: Floats, zero: NDArray[Any]) -> Floats:
    """Compute the real numbers in float32; a stored scale of 16 bits gives numbers of 16 bits."""
    given = attributes(scope, node)
    kind = getattr(stored_tensor(scope, node_input(node, 1)), "data_type", _FLOAT)
    if integer(given, "block_size", 0) or kind not in (_FLOAT, _HALF) or (zero.ndim and zero.shape != scale.shape):
        raise ValueError
    if integer(given, "output_dtype", 0) not in (0, kind):
        raise ValueError
    # The difference of two 32-bit numbers needs more than 32 bits.
    apart = numbers.astype(np.int64 if numbers.dtype.itemsize > 2 else np.int32)
    if scale.size != 1:
        axis = integer(given, "axis", 1)
        if scale.ndim != 1 or not -numbers.ndim <= axis < numbers.ndim or scale.size != numbers.shape[axis]:
            raise ValueError
        along = [-1 if at == axis % numbers.ndim else 1 for at in range(numbers.ndim)]
        scale, zero = scale.reshape(along), zero.reshape(along) if zero.ndim else zero
    elif zero.size == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    made: Floats = (apart - zero).astype(np.float32) * scale
    return made.astype(np.float16).astype(np.float32) if kind == _HALF else made
