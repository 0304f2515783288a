"""PyTorch's own files (`.pt`, `.pth`) and modules in memory: where their tensors are. Nothing is executed or imported.

Zip (since PyTorch 1.6): `NAME/data.pkl` and one member `NAME/data/KEY` per storage. Old: pickles of a mark, a version,
the machine's sizes, the object and the storages' keys, then for each storage 8 bytes of length and its numbers.
Sources: torch/serialization.py, torch/_utils.py and torch/nn/modules/module.py of PyTorch.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any

import numpy as np

from lstmsim.base.bounded import bounded_file, open_zip, placed, read_member
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.pytorch.names import PYTORCH_NAMES, Fact, function_of, import_groups, in_parts, is_recurrent_name
from lstmsim.importers.pytorch.pickled import (
    BYTES,
    CALLS,
    Fetch,
    Storage,
    StorageTable,
    Tensor,
    Thing,
    load_data,
    stored_tensor,
)
from lstmsim.importers.tensors import FLOAT_BYTES, Stored, single_or_double
from lstmsim.model.numerics.weights import Floats

MAX_MODULES = 100_000
#: Names of the packed weights of quantised layers (torch/ao/nn/quantized/dynamic/modules/rnn.py).
_PACKED = ("_all_weight_values", "_packed_weight_ih", "_packed_weight_hh")
QUANTISED = (
    "holds a quantised recurrent layer, whose packed weights cannot be read: save the network before quantize_dynamic"
)
_FINAL = re.compile(r'^\s+(?:mode|nonlinearity) : Final\[str\] = "(\w{1,40})"', re.MULTILINE)
_USED = re.compile(r"\btorch\.rnn_(tanh|relu)(?:_cell)?\(")

#: Gives the text of a module's class in TorchScript by the class's name; empty if there is none. The text is searched,
#: never run.
Source = Callable[[str], str]
_KINDS = {"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"}


@dataclass(frozen=True)
class State:
    """The tensors of one dictionary or module, the path to it in the file, and facts about its modules."""

    path: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Fact] = field(default_factory=dict)


def states_in(value: Any, source: Source) -> list[State]:
    """List every dictionary and module in a file's value that has tensors of recurrent layers."""
    states = []
    for path, each in _containers(value):
        if isinstance(each, Thing):
            own = _module(each, path, source)
        else:
            own = State(path, {name: item for name, item in each.items() if isinstance(item, Tensor)})
            if any(_is_packed(name) for name in each):
                raise InputError(QUANTISED)
        if any(is_recurrent_name(name) or in_parts(name) for name in own.tensors):
            states.append(own)
    if not states:
        raise InputError(f"holds no recurrent layer by PyTorch's names: {PYTORCH_NAMES}")
    return states


def _is_packed(name: Any) -> bool:
    """Say whether an entry of this name in a state dictionary is the packed weight of a quantised layer."""
    return isinstance(name, str) and any(part in _PACKED for part in name.split("."))


def _containers(value: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any] | Thing]]:
    """Every dictionary and every module in a value, once, with the texts that lead to it; a value may hold itself."""
    seen: set[int] = set()
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if not isinstance(each, dict | list | tuple | Thing) or id(each) in seen:
            continue
        seen.add(id(each))
        inner: list[tuple[Any, Any]]
        if isinstance(each, Thing):
            if _is_module(each):
                yield path, each
                continue
            inner = [("", part) for part in (each.arguments, each.states, each.items, each.elements) if part]
        elif isinstance(each, dict):
            yield path, {key: item for key, item in each.items() if isinstance(key, str)}
            inner = list(each.items())
        else:
            inner = list(enumerate(each))
        # Paths are cut: they only give names, and a chain of a million links would make them long.
        steps = [(str(key)[:80], below) for key, below in inner]
        short = len(path) < 8
        waiting += reversed([((*path, step) if short and step else path, below) for step, below in steps])


def _attributes(thing: Thing) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for state in thing.states:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                attributes |= {key: item for key, item in part.items() if isinstance(key, str)}
    return attributes


def _is_script(thing: Thing) -> bool:
    return thing.kind.module.split(".")[0] == "__torch__"


def _is_module(thing: Thing) -> bool:
    attributes = _attributes(thing)
    return _is_script(thing) or (
        isinstance(attributes.get("_parameters"), dict) and isinstance(attributes.get("_modules"), dict)
    )


def _module(root: Thing, path: tuple[str, ...], source: Source) -> State:
    """The tensors of a module and of the modules in it, named as by state_dict(), and what each module is."""
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Fact] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Thing]] = [("", root)]
    while waiting:
        prefix, thing = waiting.pop()
        if id(thing) in seen or len(seen) > MAX_MODULES or len(prefix) > 1000:
            continue
        seen.add(id(thing))
        attributes = _attributes(thing)
        values: dict[str, Any] = {}
        if _is_script(thing):
            values = dict(attributes)
        else:
            for part in ("_parameters", "_buffers", "_modules"):
                inner = attributes.get(part)
                if isinstance(inner, dict):
                    values |= {key: item for key, item in inner.items() if isinstance(key, str)}
        if any(name in _PACKED for name in (*attributes, *values)):
            raise InputError(QUANTISED)
        own, children = (
            {name: item for name, item in values.items() if isinstance(item, Tensor)},
            {name: item for name, item in values.items() if isinstance(item, Thing)},
        )
        tensors |= {f"{prefix}{name}": item for name, item in own.items()}
        facts[prefix.rstrip(".")] = _fact(thing, attributes, source)
        waiting += reversed([(f"{prefix}{name}.", item) for name, item in children.items()])
    return State(path, tensors, facts)


def _fact(thing: Thing, attributes: Mapping[str, Any], source: Source) -> Fact:
    words = [attributes.get(name) for name in ("mode", "nonlinearity")]
    kind = f"{thing.kind.module}.{thing.kind.name}"
    if _is_script(thing):
        text = source(kind)
        words += _FINAL.findall(text)
        used = set(_USED.findall(text))
        words += used if len(used) == 1 else []
        kind = ".".join(part for part in kind.split(".")[1:] if not part.startswith("___torch_mangle_"))
    return Fact(kind, next((function for word in words if (function := function_of(word))), ""))


def from_torch(module: Any, *, name: str = "network", cell: str | None = None) -> list[ImportedModel]:
    """Take the recurrent layers out of a PyTorch module in memory: one model for each LSTM, GRU, RNN or cell of these.

    The numbers are copied; later training does not change them. Weight and spectral normalisation and pruning are
    computed as PyTorch does it in `eval()`. Which module feeds which is not known, so each module is a model of its
    own.

    module: anything with PyTorch's `state_dict()` and `named_modules()`; it is asked for nothing else.
    name: the name of the model, or the beginning of the names of several models.
    cell: `rnn` (tanh) or `rnn-relu`, the cell of a module that has the shapes of an RNN and does not say which RNN.

    `InputError` if there is no recurrent layer, or names every layer that cannot be simulated.

    >>> import lstmsim
    >>> from types import SimpleNamespace
    >>> tensors = {"weight_ih_l0": np.ones((8, 3)), "weight_hh_l0": np.ones((8, 2))}
    >>> stand_in = SimpleNamespace(state_dict=lambda: tensors, named_modules=lambda: [])
    >>> lstmsim.from_torch(stand_in, name="speech")[0].model.layers[0].cell.name
    'lstm'
    """
    state = None if isinstance(module, type) else getattr(module, "state_dict", None)
    modules = getattr(module, "named_modules", None)
    values = state() if callable(state) else None
    if not isinstance(values, Mapping) or not callable(modules):
        kind = (
            f"the class {module.__name__}" if isinstance(module, type) else f"a value of type {type(module).__name__}"
        )
        raise InputError(
            Mistake("from_torch", f"expected a PyTorch module (with state_dict and named_modules), got {kind}")
        )
    if any(_is_packed(key) for key in values):
        raise InputError(Mistake(name, QUANTISED))
    tensors = {str(key): _stored(value) for key, value in values.items() if _has_shape(value)}
    facts = {str(path): _fact_from_torch(each) for path, each in modules()}
    try:
        return import_groups(tensors, name, cell=cell, facts=facts)
    except InputError as error:
        raise placed(error, name) from None


def _fact_from_torch(module: Any) -> Fact:
    kind = type(module)
    words = (getattr(module, "mode", ""), getattr(module, "nonlinearity", ""))
    function = next((named for word in words if (named := function_of(word))), "")
    # PyTorch makes a class of its own for each module with parametrised weights.
    base = kind.__mro__[1] if kind.__module__ == "torch.nn.utils.parametrize" and len(kind.__mro__) > 1 else kind
    return Fact(f"{base.__module__}.{base.__qualname__}", function)


def _has_shape(value: Any) -> bool:
    """Whether a value is a tensor; PyTorch's lazy modules raise if the shape is not known yet."""
    try:
        return hasattr(value, "shape")
    except Exception:
        return False


def _stored(tensor: Any) -> Stored:
    """A tensor of PyTorch on any device and of any kind, or an array, as a `Stored`."""
    shape = tuple(int(size) for size in tensor.shape)
    if not hasattr(tensor, "detach"):
        array = np.asarray(tensor)
        kind = f"F{8 * array.itemsize}" if array.dtype.kind == "f" else str(array.dtype)
        return Stored(kind, shape, lambda: single_or_double(array))
    kind = _KINDS.get(str(tensor.dtype), str(tensor.dtype))

    def read() -> Floats:
        try:
            own = tensor.detach().cpu()
            array = np.asarray((own if kind in ("F64", "F32") else own.float()).numpy())
        except Exception as error:
            # Tensors without numbers (on device "meta", or fake tensors) raise errors of any class.
            where = f" on device {show(str(tensor.device))}" if hasattr(tensor, "device") else ""
            raise InputError(f"is a tensor{where} whose numbers cannot be read ({type(error).__name__})") from None
        return single_or_double(array)

    return Stored(kind, shape, read)


MAX_PICKLE = 64 * 2**20
MAX_SOURCE = 2**20
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


def _none(value: Any) -> Any:
    """Refuse a persistent id: it has no place in the small pickles around the object."""
    raise TypeError


def import_pytorch(
    path: str | os.PathLike[str], *, weights: bool = True, cell: str | None = None
) -> list[ImportedModel]:
    """Import the recurrent layers in a PyTorch file. Nothing is executed."""
    name = os.fspath(path)
    with bounded_file(name, "a PyTorch file") as (file, size):
        start = file.read(4)
        file.seek(0)
        try:
            if start == b"PK\x03\x04":
                return _from_zip(file, name, weights, cell)
            return _from_stream(file, size, name, weights, cell)
        except InputError as error:
            raise placed(error, name) from None


def _from_zip(file: IO[bytes], name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    with open_zip(file) as archive:
        names = set(archive.namelist())
        pickles = [each for each in names if each == "data.pkl" or each.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise InputError("is no PyTorch file of tensors: a zip file with one data.pkl")
        folder = pickles[0].removesuffix("data.pkl")
        if f"{folder}byteorder" in names and read_member(archive, f"{folder}byteorder", 100).strip() != b"little":
            raise InputError("was written on a big-endian machine, only little-endian numbers are read")
        content = io.BytesIO(read_member(archive, pickles[0], MAX_PICKLE))
        value = load_data(content, CALLS, StorageTable().find, objects=True)

        @lru_cache(maxsize=1)
        def fetch(storage: Storage) -> bytes:
            content = read_member(archive, f"{folder}data/{storage.key}", storage.count * FLOAT_BYTES[storage.kind])
            return _checked(content, storage)

        return _models(value, fetch, name, weights, cell, _source(archive, folder))


def _from_stream(file: IO[bytes], size: int, name: str, weights: bool, cell: str | None) -> list[ImportedModel]:
    # Read into memory, because a pickle may state any length.
    stream = io.BytesIO(file.read(MAX_PICKLE))
    if not stream.getvalue().startswith(b"\x80"):
        raise InputError("is no PyTorch file: neither a zip file nor a pickle")
    mark = load_data(stream, {}, _none)
    if mark != _MAGIC:
        raise InputError("is a pickle, but not one of PyTorch's; pickles can run anything and are never unpickled")
    version, machine = load_data(stream, {}, _none), load_data(stream, {}, _none)
    if version != _VERSION or not isinstance(machine, dict) or machine.get("little_endian") is not True:
        raise InputError(f"is no PyTorch file of version {_VERSION} from a little-endian machine")
    storages = StorageTable()
    value, keys = load_data(stream, CALLS, storages.find, objects=True), load_data(stream, {}, _none)
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise InputError("is damaged: its list of storages is none")
    places = _places(file, stream.tell(), size, keys, storages)

    @lru_cache(maxsize=1)
    def fetch(storage: Storage) -> bytes:
        if storage.key not in places:
            raise InputError(f"has no storage {show(storage.key)}")
        file.seek(places[storage.key])
        return _checked(file.read(storage.count * FLOAT_BYTES[storage.kind]), storage)

    return _models(value, fetch, name, weights, cell, lambda kind: "")


def _places(file: IO[bytes], start: int, size: int, keys: list[str], known: Mapping[str, Storage]) -> dict[str, int]:
    """Where in an old file each storage's numbers begin."""
    places = {}
    for key in keys:
        file.seek(start)
        count = int.from_bytes(file.read(8), "little")
        storage = known.get(key)
        if storage is None or storage.count != count:
            raise InputError(f"is damaged: storage {show(key)} has not the length that its tensors state")
        places[key] = start + 8
        start += 8 + count * BYTES[storage.kind]
        if start > size:
            raise InputError(f"is cut off: storage {show(key)} ends at byte {start}, the file has {size}")
    return places


def _checked(content: bytes, storage: Storage) -> bytes:
    if len(content) != storage.count * FLOAT_BYTES[storage.kind]:
        text = f"has {len(content)} bytes, its {storage.count} numbers need {storage.count * FLOAT_BYTES[storage.kind]}"
        raise InputError(f"is damaged or cut off: storage {show(storage.key)} {text}")
    return content


def _source(archive: zipfile.ZipFile, folder: str) -> Source:
    """A function for the text of a class of TorchScript: `__torch__.a.b.C` stands in `code/__torch__/a/b.py`."""
    names = set(archive.namelist())

    @lru_cache(maxsize=8)
    def text_of(member: str) -> str:
        return read_member(archive, member, MAX_SOURCE).decode("utf-8", "replace") if member in names else ""

    def source(kind: str) -> str:
        *modules, own = kind.split(".")
        blocks = re.split(r"^class (\w+)\(", text_of(f"{folder}code/{'/'.join(modules)}.py"), flags=re.MULTILINE)
        return dict(zip(blocks[1::2], blocks[2::2], strict=True)).get(own, "")

    return source


def _models(
    value: Any, fetch: Fetch, name: str, weights: bool, cell: str | None, source: Source
) -> list[ImportedModel]:
    states = states_in(value, source)
    single = len(states) == 1
    tensors: dict[str, Stored] = {}
    facts: dict[str, Fact] = {}
    for each in states:
        path = () if single else each.path
        tensors |= {".".join((*path, key)): stored_tensor(tensor, fetch) for key, tensor in each.tensors.items()}
        facts |= {".".join((*path, title) if title else path): fact for title, fact in each.facts.items()}
    return import_groups(tensors, name, weights=weights, cell=cell, facts=facts)
