"""Plain data out of a pickle, by an interpreter of its own that cannot call anything.

The standard library's `pickletools` only decodes the opcodes; what they mean is done here, for a short list of them.
A global is a word in a table, never an imported object: whatever is not in the table is refused by name. The stream
format is documented in CPython's `Lib/pickletools.py`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from lstmsim.errors import InputError
from lstmsim.formats.wording import show

__all__ = ["MAX_STEPS", "Global", "Loader", "load_data"]

#: Opcodes of one pickle; a network of 1,000 tensors needs some 60,000.
MAX_STEPS = 500_000
#: Bits of a whole number: the longest in these files is the mark of PyTorch's old format with 80.
MAX_BITS = 128
_EMPTY: Mapping[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_PUT = ("PUT", "BINPUT", "LONG_BINPUT")
_GET = ("GET", "BINGET", "LONG_BINGET")
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CALLS = ("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4")
_MARK = object()


@dataclass(frozen=True)
class Global:
    """A global that a pickle names: only its name."""

    module: str
    name: str

    def __str__(self) -> str:
        return show(f"{self.module}.{self.name}").strip("'\"")


#: What a global stands for when it is called with arguments; None for one that may be named, not called.
Calls = Mapping[tuple[str, str], Callable[..., Any] | None]


@dataclass
class Loader:
    """The state of one pickle's interpretation: `calls` is the whole table of globals, `persistent` resolves the
    persistent ids with which a stream points out of itself."""

    calls: Calls
    persistent: Callable[[Any], Any]
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    copied: int = 0

    def step(self, name: str, argument: Any) -> None:
        """One opcode."""
        if name in _NUMBERS or name in _TEXTS:
            if isinstance(argument, int) and argument.bit_length() > MAX_BITS:
                raise InputError(f"is no network: its pickle holds a number of {argument.bit_length()} bits")
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name in _PUT:
            self.memo[int(argument)] = self.stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name in _GET:
            self.stack.append(self.memo[int(argument)])
        elif name in _TUPLES:
            self.stack.append(self._last(_TUPLES[name]))
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self._marked()
            self.stack.append(_filled({}, items) if name == "DICT" else list(items) if name == "LIST" else items)
        elif name == "POP":
            self.stack.pop()
        elif name == "POP_MARK":
            self._marked()
        elif name not in ("PROTO", "FRAME"):
            self._build(name, argument)

    def _build(self, name: str, argument: Any) -> None:
        """The opcodes that fill containers, name globals or call them."""
        if name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            _as(list, self.stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            _filled(_as(dict, self.stack[-1]), items)
        elif name == "GLOBAL":
            self.stack.append(self._known(*str(argument).split(" ", 1)))
        elif name == "STACK_GLOBAL":
            module, word = self._last(2)
            self.stack.append(self._known(_as(str, module), _as(str, word)))
        elif name == "REDUCE":
            target, arguments = self._last(2)
            self.stack.append(self._called(_as(Global, target), _as(tuple, arguments)))
        elif name == "BINPERSID":
            self.stack.append(self.persistent(self.stack.pop()))
        elif name == "BUILD":
            # PyTorch gives its ordered dictionaries an attribute _metadata: versions of modules, not needed here.
            state, target = self.stack.pop(), self.stack[-1]
            if type(target) is not dict or not isinstance(state, dict):
                raise InputError("asks to set the state of an object (BUILD); nothing was executed")
        elif name in _CALLS:
            named = f" of {show(str(argument).replace(' ', '.'))}" if name == "INST" else ""
            raise InputError(f"asks to make an object{named} ({name}); nothing was executed")
        else:
            raise InputError(f"is no network: its pickle has the opcode {name}; nothing was executed")

    def _known(self, module: str, name: str) -> Global:
        if (module, name) not in self.calls:
            what = f"its pickle names {Global(module, name)}, which no file of plain weights needs"
            raise InputError(f"{what}; nothing was executed; save only the module's state_dict(), best as safetensors")
        return Global(module, name)

    def _called(self, target: Global, arguments: tuple[Any, ...]) -> Any:
        made = self.calls[target.module, target.name]
        # A long list named again and again would be copied as often.
        self.copied += sum(len(each) for each in arguments if isinstance(each, list | tuple | dict))
        if self.copied > MAX_STEPS:
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


def _as(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _filled(target: dict[Any, Any], items: tuple[Any, ...]) -> dict[Any, Any]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        # Hashing a tuple of tuples that share their parts can take for ever.
        if not isinstance(key, str | int | float | None):
            raise TypeError
        target[key] = value
    return target


def load_data(stream: IO[bytes], calls: Calls, persistent: Callable[[Any], Any]) -> Any:
    """The value that the pickle at the stream's position describes; `InputError` for anything but plain data.

    The stream must be in memory: a stated length is then never more than what is there.

    >>> import io
    >>> load_data(io.BytesIO(b"\\x80\\x02}X\\x01\\x00\\x00\\x00aK\\x07s."), {}, list)
    {'a': 7}
    >>> load_data(io.BytesIO(b"cos\\nsystem\\n(S'ls'\\ntR."), {}, list)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lstmsim.errors.InputError: its pickle names os.system, which no file of plain weights needs; nothing was executed...
    """
    loader = Loader(calls, persistent)
    try:
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
