"""Weight files for tests, written without the package under test: pickles by opcode, zips, Keras's layout."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

Arrays = Mapping[str, np.ndarray]
KINDS = {"float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage"}


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def torch_tensors(kind: str, hidden: int, width: int, layers: int = 1, **options: Any) -> dict[str, np.ndarray]:
    """Make a state dictionary as torch.nn.LSTM, GRU or RNN has it; options: both, bias, projection, seed."""
    both, bias, projection = options.get("both", False), options.get("bias", True), options.get("projection")
    rows = {"lstm": 4, "gru": 3, "rnn": 1}[kind] * hidden
    random = np.random.default_rng(options.get("seed", 0))
    tensors = {}
    out = projection or hidden
    for layer in range(layers):
        for suffix in ("", "_reverse") if both else ("",):
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (projection, hidden)} if projection else {}
            for name, shape in shapes.items():
                tensors[f"{name}_l{layer}{suffix}"] = random.normal(0, 0.5, shape).astype(np.float32)
        width = out * (2 if both else 1)
    return tensors


def text(word: str) -> bytes:
    """Encode a text with the opcode BINUNICODE."""
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def number(value: int) -> bytes:
    """Encode a whole number with BININT, or with LONG1 if it does not fit."""
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def numbers(values: tuple[int, ...]) -> bytes:
    """Encode a tuple of whole numbers."""
    return b"(" + b"".join(map(number, values)) + b"t"


def glob(module: str, name: str) -> bytes:
    """Encode a name with the opcode GLOBAL."""
    return f"c{module}\n{name}\n".encode()


def tensor(key: str, array: np.ndarray, old: bool, **claims: Any) -> bytes:
    """Encode a tensor as PyTorch pickles it; `claims` overrides shape, strides, count, offset, kind, mark."""
    shape = claims.get("shape", array.shape)
    strides = claims.get("strides", tuple(step // array.itemsize for step in array.strides))
    kind = claims.get("kind", KINDS[array.dtype.name])
    place = b"(" + text(claims.get("mark", "storage")) + glob("torch", kind) + text(key) + text("cpu")
    place += number(claims.get("count", array.size)) + (b"N" if old else b"") + b"tQ"
    arguments = b"(" + place + number(claims.get("offset", 0)) + numbers(shape) + numbers(strides) + b"\x89"
    return glob("torch._utils", "_rebuild_tensor_v2") + arguments + glob("collections", "OrderedDict") + b")RtR"


def state_dict(arrays: Arrays, old: bool, **claims: Any) -> bytes:
    """Encode an ordered dictionary of tensors with _metadata as PyTorch's modules give it, without PROTO and STOP."""
    body = glob("collections", "OrderedDict") + b")R("
    for at, (name, array) in enumerate(arrays.items()):
        body += text(name) + tensor(str(at), array, old, **claims)
    return body + b"u}" + text("_metadata") + glob("collections", "OrderedDict") + b")Rsb"


def under(key: str, value: bytes) -> bytes:
    """Encode a dictionary of the value and one more entry."""
    return b"}(" + text("steps") + number(7) + text(key) + value + b"u"


def torch_zip(arrays: Arrays, body: bytes | None = None, extra: Mapping[str, bytes] | None = None) -> bytes:
    """Make a file in PyTorch's zip format."""
    body = state_dict(arrays, old=False) if body is None else body
    members = {"data.pkl": b"\x80\x02" + body + b".", "byteorder": b"little", "version": b"3\n"}
    members |= {f"data/{at}": array.tobytes() for at, array in enumerate(arrays.values())}
    return zipped({f"archive/{name}": content for name, content in members.items()} | dict(extra or {}))


def torch_stream(arrays: Arrays, body: bytes | None = None) -> bytes:
    """Make a file in PyTorch's old format."""
    body = state_dict(arrays, old=True) if body is None else body
    machine = b"}(" + text("protocol_version") + number(1001) + text("little_endian") + b"\x88u"
    keys = b"](" + b"".join(text(str(at)) for at in range(len(arrays))) + b"e"
    pickles = (number(0x1950A86A20F9469CFC6C), number(1001), machine, body, keys)
    content = b"".join(b"\x80\x02" + each + b"." for each in pickles)
    return content + b"".join(struct.pack("<q", array.size) + array.tobytes() for array in arrays.values())


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Make a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def safe(header: Any, numbers: bytes = b"") -> bytes:
    """Make a safetensors file with any header (an object or its text)."""
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(content).to_bytes(8, "little") + content + numbers


def keras_layer(kind: str, name: str, units: int, **config: Any) -> dict[str, Any]:
    """Make a recurrent layer's entry in config.json."""
    functions: dict[str, Any] = {"activation": "tanh"} | (
        {} if kind == "SimpleRNN" else {"recurrent_activation": "sigmoid"}
    )
    functions |= {"reset_after": True} if kind == "GRU" else {}
    defaults = {"name": name, "units": units, "use_bias": True, "return_sequences": True, "go_backwards": False}
    return {"module": "keras.layers", "class_name": kind, "config": defaults | functions | config}


def keras_both(
    entry: dict[str, Any], name: str, merge: str = "concat", backward: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Make the entry of a layer in both directions; `backward` changes the configuration of the second direction."""
    other = {**entry, "config": {**entry["config"], "go_backwards": True, **(backward or {})}}
    config = {"name": name, "layer": entry, "backward_layer": other, "merge_mode": merge}
    return {"module": "keras.layers", "class_name": "Bidirectional", "config": config}


def keras_model(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Make config.json of a Sequential model."""
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "sequential", "layers": layers}}


def keras_variables(kind: str, units: int, width: int, seed: int = 0, reset_after: bool = True) -> list[np.ndarray]:
    """Draw kernel, recurrent kernel and bias of a cell."""
    columns = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}[kind] * units
    random = np.random.default_rng(seed)
    bias = (2, columns) if kind == "GRU" and reset_after else (columns,)
    return [random.normal(0, 0.5, shape).astype(np.float32) for shape in ((width, columns), (units, columns), bias)]


def h5(datasets: Mapping[str, Any]) -> bytes:
    """Make an HDF5 file; a callable in place of an array is called with (file, path) and writes there itself."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for path, value in datasets.items():
            if callable(value):
                value(file, path)
            else:
                file[path] = value
    return buffer.getvalue()


def cell_at(path: str, variables: list[np.ndarray]) -> dict[str, Any]:
    """List the datasets of one cell."""
    return {f"{path}/cell/vars/{at}": array for at, array in enumerate(variables)}


def keras_file(config: Any, datasets: Mapping[str, Any] | bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    """Make a whole `.keras` file."""
    content = datasets if isinstance(datasets, bytes) else h5(datasets)
    text = config if isinstance(config, bytes) else json.dumps(config).encode()
    return zipped({"metadata.json": b"{}", "config.json": text, "model.weights.h5": content}, method)
