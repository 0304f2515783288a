"""Plain data and tensors out of a pickle, by an interpreter that cannot call anything.

`pickletools` decodes the opcodes; a short list of them is carried out here. A global is a word in a table, never an
imported object. A global that is not in the table is refused by name; where objects are expected besides the data, it
becomes a `Thing`: a name and its arguments, nothing more. A restricted `pickle.Unpickler` is no substitute: 11 bytes
(LONG_BINPUT) make it take gigabytes, and the hash of a key of nested tuples ends the process or never ends.
Tensors are views of storages that lie outside the pickle.

Sources: CPython's `Lib/pickletools.py`; torch/_utils.py, torch/_tensor.py and torch/serialization.py of PyTorch.
"""

from __future__ import annotations

import pickletools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import IO, Any

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.base.wording import show
from lstmsim.importers.tensors import FLOAT_BYTES, Stored, decoded
from lstmsim.model.numerics.weights import Floats

#: Opcodes of one pickle; a network of 1,000 tensors needs some 60,000.
MAX_STEPS = 500_000
#: Bits of a whole number: the longest in these files is the mark of PyTorch's old format with 80.
MAX_BITS = 128
_MARK = object()
_PLAIN: Mapping[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "MARK": lambda: _MARK,
}
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_BYTES = ("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CALLS = ("INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ", "NEWOBJ_EX")
#: A network's file needs nothing from these modules, and none of these functions. A name alone does no harm here,
#: because nothing is called; but a user who opens such a file with another program should know about it.
# fmt: off
_HOSTILE_MODULES = (
    "os", "posix", "nt", "sys", "subprocess", "pty", "shutil", "socket", "importlib", "runpy", "ctypes",
    "pickle", "_pickle", "marshal", "code", "codeop", "webbrowser", "multiprocessing", "platform", "commands",
    "urllib", "http", "ftplib", "smtplib", "signal", "threading", "_thread",
)
_HOSTILE = (
    "eval", "exec", "execfile", "compile", "open", "__import__", "input", "breakpoint", "exit", "quit",
    "globals", "apply",
)
#: What a global stands for when it is called with arguments; None for a global that may be named but not called.
Calls = Mapping[tuple[str, str], Callable[..., Any] | None]
MAX_RANK = 8
#: Kinds of number that are read for no weight, and their bytes.
_ONE, _EIGHT = ("Char", "Byte", "Bool", "QInt8", "QUInt8"), ("Long", "ComplexFloat")
_OTHER_BYTES = {
    **dict.fromkeys(_ONE, 1),
    **dict.fromkeys(_EIGHT, 8),
    "Short": 2,
    "Int": 4,
    "QInt32": 4,
    "ComplexDouble": 16,
}
_STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    **{f"{name}Storage": name for name in _OTHER_BYTES},
}
#: Bytes of one number of each kind of storage.
BYTES: Mapping[str, int] = {**FLOAT_BYTES, **_OTHER_BYTES}
# fmt: on


@dataclass(frozen=True)
class _Global:
    """The name of a global that a pickle names; nothing is imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return show(f"{self.module}.{self.name}").strip("'\"")


@dataclass(eq=False)
class Thing:
    """An object of a class that is not known here, and all that it was given; none of its code has been run."""

    kind: _Global
    arguments: tuple[Any, ...] = ()
    states: list[Any] = field(default_factory=list)
    items: dict[Any, Any] = field(default_factory=dict)
    elements: list[Any] = field(default_factory=list)


def load_data(stream: IO[bytes], calls: Calls, persistent: Callable[[Any], Any], *, objects: bool = False) -> Any:
    """Read the value that the pickle at the stream's position describes; `InputError` for anything but plain data."""
    loader = _Loader(calls, persistent, objects)
    try:
        # a text with a backslash where none belongs makes the standard library warn its own programmers
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
                if count >= MAX_STEPS:
                    raise InputError(f"is no network that is read here: its pickle has more than {MAX_STEPS} opcodes")
                if opcode.name == "STOP":
                    (value,) = loader.stack
                    return value
                loader.step(opcode.name, argument)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError):
        pass
    raise InputError("is damaged or cut off: its pickle cannot be read")


class _Loader:
    """The state of one pickle's interpretation: stack and memo are the pickle machine's own."""

    def __init__(self, calls: Calls, persistent: Callable[[Any], Any], objects: bool) -> None:
        self._calls, self._persistent, self._objects = calls, persistent, objects
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._copied = 0

    def step(self, name: str, argument: Any) -> None:
        """Carry out one opcode; name and argument as `pickletools.genops` gives them."""
        stack = self.stack
        if name in _NUMBERS or name in _TEXTS or (name in _BYTES and self._objects):
            if isinstance(argument, int) and argument.bit_length() > MAX_BITS:
                raise InputError(f"is no network: its pickle holds a number of {argument.bit_length()} bits")
            stack.append(argument)
        elif name in _PLAIN:
            stack.append(_PLAIN[name]())
        elif name.endswith("PUT"):
            self._memo[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name.endswith("GET"):
            stack.append(self._memo[int(argument)])
        elif name in _TUPLES:
            stack.append(self._last(_TUPLES[name]))
        elif name in ("TUPLE", "LIST", "DICT", "FROZENSET"):
            items = self._marked()
            stack.append(_filled({}, items) if name == "DICT" else items if name == "TUPLE" else list(items))
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            self._marked()
        elif name not in ("PROTO", "FRAME"):
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        """The opcodes that fill containers, name globals or call them."""
        stack = self.stack
        if name in ("APPEND", "APPENDS", "ADDITEMS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            target = stack[-1]
            _as(list, target.elements if isinstance(target, Thing) else target).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            target = stack[-1]
            _filled(_as(dict, target.items if isinstance(target, Thing) else target), items)
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            module, word = str(argument).split(" ", 1) if name == "GLOBAL" else self._last(2)
            stack.append(self._known(_as(str, module), _as(str, word)))
        elif name == "REDUCE" or (name in ("NEWOBJ", "NEWOBJ_EX") and self._objects):
            target, arguments = self._last(3)[:2] if name == "NEWOBJ_EX" else self._last(2)
            stack.append(self._called(_as(_Global, target), _as(tuple, arguments)))
        elif name == "BINPERSID":
            stack.append(self._persistent(stack.pop()))
        elif name == "BUILD":
            state, target = stack.pop(), stack[-1]
            if isinstance(target, Thing):
                target.states.append(state)
            # PyTorch gives its ordered dictionaries an attribute _metadata with versions of modules: not needed here.
            elif type(target) is not dict or not isinstance(state, dict):
                raise InputError("asks to set the state of an object (BUILD); nothing was executed")
        elif name in _CALLS:
            named = f" of {show(str(argument).replace(' ', '.'))}" if name == "INST" else ""
            raise InputError(f"asks to make an object{named} ({name}); nothing was executed")
        else:
            raise InputError(f"is no network: its pickle has the opcode {name}; nothing was executed")

    def _known(self, module: str, name: str) -> _Global:
        hostile = module.split(".")[0] in _HOSTILE_MODULES or name == "_load_from_bytes"
        hostile = hostile or (module in ("builtins", "__builtin__") and name in _HOSTILE)
        if (module, name) not in self._calls and (hostile or not self._objects):
            what = f"its pickle names {_Global(module, name)}, which no file of plain weights needs"
            raise InputError(f"{what}; nothing was executed; save only the module's state_dict(), best as safetensors")
        return _Global(module, name)

    def _called(self, target: _Global, arguments: tuple[Any, ...]) -> Any:
        if (target.module, target.name) not in self._calls:
            # The helpers of the old protocols make an object of the class that is their first argument.
            helper = target.name in ("_reconstructor", "__newobj__") and target.module in ("copyreg", "copy_reg")
            known = helper and arguments and isinstance(arguments[0], _Global)
            return Thing(arguments[0] if known else target, arguments)
        made = self._calls[target.module, target.name]
        # A long list that is named again and again would be copied each time.
        self._copied += sum(len(each) for each in arguments if isinstance(each, list | tuple | dict))
        if self._copied > MAX_STEPS:
            raise InputError("is no network that is read here: its pickle copies the same lists over and over")
        if made is None:
            raise InputError(f"its pickle calls {target}, which is no function; nothing was executed")
        return made(*arguments)

    def _last(self, count: int) -> tuple[Any, ...]:
        """The top `count` values, taken off the stack."""
        items = tuple(self.stack[-count:])
        if len(items) != count or _MARK in items:
            raise IndexError
        del self.stack[-count:]
        return items

    def _marked(self) -> tuple[Any, ...]:
        """The values above the last mark, taken off the stack with it."""
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return tuple(reversed(items))


def _as(kind: type | tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _filled(target: dict[Any, Any], items: tuple[Any, ...]) -> dict[Any, Any]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        if isinstance(key, str | int | float | _Global | Thing | bytes | None):
            target[key] = value
        # The hash of a tuple of tuples that share their parts can take for ever; no tensor has such a key.
        elif not isinstance(key, tuple):
            raise TypeError
    return target


@dataclass(frozen=True)
class Storage:
    """A run of `count` numbers outside the pickle, of a kind in `BYTES`; the key tells where it is in the file."""

    kind: str
    key: str
    count: int


@dataclass(frozen=True)
class Tensor:
    """A view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _sizes(values: Any = ()) -> tuple[int, ...]:
    """A short tuple of sizes; `TypeError` for anything else."""
    known = isinstance(values, tuple) and len(values) <= MAX_RANK
    if not known or not all(type(each) is int and 0 <= each < 2**62 for each in values):
        raise TypeError
    return tuple(values)


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Tensor:
    if len(_sizes(shape)) != len(_sizes(strides)):
        raise ValueError
    return Tensor(_as(Storage, storage), _sizes((offset,))[0], shape, strides)


def _parameter(data: Any, *_: Any) -> Any:
    return _as(Tensor, data)


def _ordered(*pairs: Any) -> dict[Any, Any]:
    return {_as((str, int), key): value for key, value in (pairs[0] if pairs else ())}


def _typed(function: Any, _: Any, arguments: Any, *__: Any) -> Any:
    """A tensor with attributes, from the function that makes it, its class, the function's arguments, and the rest."""
    made = CALLS.get((_as(_Global, function).module, function.name))
    if made not in (_rebuild_tensor, _parameter):
        raise TypeError
    return made(*_as(tuple, arguments))


#: The whole list of globals with a meaning: tensors, their storages, and the containers and small values around them.
CALLS: Mapping[tuple[str, str], Callable[..., Any] | None] = {
    ("collections", "OrderedDict"): _ordered,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _parameter,
    ("torch._tensor", "_rebuild_from_type_v2"): _typed,
    ("collections", "defaultdict"): lambda *_: {},
    ("torch", "Size"): _sizes,
    ("torch", "device"): lambda *_: "device",
    **{("torch", name): None for name in _STORAGES},
}


class StorageTable(dict[str, Storage]):
    """The storages that a pickle's persistent ids mean: key to storage."""

    def find(self, value: Any) -> Any:
        """Give the storage of a persistent id, and keep it."""
        if isinstance(value, tuple) and len(value) == 4 and value[0] == "module":
            # Old files put the source code of a module's class with the class; only its name is kept.
            return value[1]
        if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
            raise TypeError
        _, kind, key, _, count, *view = value
        if _as(_Global, kind).name not in _STORAGES:
            raise InputError(f"has numbers of a kind that is not known here: {kind}")
        _as(str, key), _sizes((count,))
        if view and view[0] is not None:
            raise InputError("shares storages between tensors in a way that only very old PyTorch did; save it anew")
        own = Storage(_STORAGES[kind.name], key, count)
        storage = self.setdefault(key, own)
        if storage != own:
            raise InputError(f"is damaged: it states two lengths or kinds of storage {show(key)}")
        return storage


#: Gives a storage's content; `InputError` if the file has fewer bytes.
Fetch = Callable[[Storage], bytes]


def stored_tensor(tensor: Tensor, fetch: Fetch) -> Stored:
    """Make a `Stored` of a tensor."""
    storage, width = tensor.storage, BYTES[tensor.storage.kind]

    def read() -> Floats:
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
        if 0 in tensor.shape or prod(tensor.shape) > storage.count or last >= storage.count:
            raise InputError(f"has a tensor beyond the {storage.count} numbers of storage {show(storage.key)}")
        numbers = decoded(storage.kind, fetch(storage)[tensor.offset * width : (last + 1) * width])
        # the step of a dimension of one means nothing, and may be any number
        sizes = zip(tensor.shape, tensor.strides, strict=True)
        steps = tuple(step * numbers.itemsize if size > 1 else 0 for size, step in sizes)
        return np.array(np.lib.stride_tricks.as_strided(numbers, tensor.shape, steps, writeable=False))

    return Stored(tensor.storage.kind, tensor.shape, read)
