"""Plain data with the line of every value and key, and how it is written as YAML 1.2."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import MAX_MISTAKES, InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import dotted, listed, show

#: How the sentence on a value of a type that no file has calls it.
_STRANGE = (", got a value of type ", ", got the class ")


#: Begins the place of what an override gave; the command line calls it `--set`.
LABEL = "overrides "


@record
class Place:
    """The position of a value in a file: line and column from 1 (0: unknown), its path, and its text in the file."""

    file: str
    line: int = 0
    column: int = 0
    path: DataPath = ()
    raw: str | None = None

    def text(self, rest: DataPath = ()) -> str:
        """Give the place as users read it; `rest`: path from the value on to the value that is meant.

        >>> Place("a.yaml", 6, 9, ("chip",)).text(("cores", 0))
        'a.yaml:6:9: chip.cores.0'
        """
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return ": ".join(part for part in (where, dotted(self.path + rest)) if part)


@dataclass
class Document:
    """A file that was read: plain data, and the mistakes so far, after which reading can go on.

    folder: folder to which relative paths in the file refer.
    values, keys: path of a value -> its position in the file, and that of its key.
    """

    data: Any
    name: str
    folder: Path
    values: dict[DataPath, Place] = field(default_factory=dict)
    keys: dict[DataPath, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def reported(self) -> list[Mistake]:
        """Give the mistakes for the user: nothing that is said of a value which was replaced by nothing."""
        strange = {each.location for each in self.mistakes if any(words in each.sentence for words in _STRANGE)}
        return [
            each for each in self.mistakes if each.location not in strange or not each.sentence.endswith("got nothing")
        ]

    def place(self, path: DataPath, *, key: bool = False) -> str:
        """Give the place of the value at `path` (or of its key) as text; for a missing value, that of its holder."""
        if key and path in self.keys:
            return self.keys[path].text()
        for cut in range(len(path), -1, -1):
            if path[:cut] in self.values:
                return self.values[path[:cut]].text(path[cut:])
        return dotted(path)

    def blame(self, path: DataPath, sentence: str, *, key: bool = False, alone: bool = False) -> None:
        """Note a mistake in the value at `path` (or its key); `InputError` with all of them if there are many.

        alone: as of `Mistake`.
        """
        self.note(Mistake(self.place(path, key=key), sentence, alone))

    def note(self, mistake: Mistake) -> None:
        """Note a mistake whose place is known; `InputError` as of `blame`."""
        self.mistakes.append(mistake)
        if len(self.mistakes) >= MAX_MISTAKES:
            raise InputError(self.reported())

    def raw(self, path: DataPath) -> str | None:
        """Give the text of the scalar at `path` as the file has it; None if the text is not known."""
        place = self.values.get(path)
        return None if place is None else place.raw

    def at(self, path: DataPath) -> Any:
        """Give the value at `path`; `KeyError`, `IndexError` or `TypeError` if there is none."""
        value = self.data
        for part in path:
            value = value[part]
        return value

    def put(self, path: DataPath, value: Any) -> None:
        """Set the value at `path` and forget the places below it."""
        if path:
            self.at(path[:-1])[path[-1]] = value
        else:
            self.data = value
        for places in (self.values, self.keys):
            for old in [each for each in places if len(each) > len(path) and each[: len(path)] == path]:
                del places[old]


def document_of(data: Mapping[Any, Any], name: str = "") -> Document:
    """Make a document of data in memory: a deep copy in plain types.

    data: text, numbers, lists and mappings. Values of other types become None, and are noted as mistakes.
    name: name of the document in messages.
    `InputError` if the data is nested too deeply.
    """
    document = Document(None, name, Path())
    try:
        document.data = _plain(data, (), document)
    except RecursionError:
        raise InputError(Mistake(name, "is nested too deeply, or holds itself")) from None
    return document


def _plain(value: Any, path: DataPath, document: Document) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_plain(each, (*path, index), document) for index, each in enumerate(value)]
    if isinstance(value, Mapping):
        strange = [key for key in value if not isinstance(key, str)]
        for key in strange:
            document.blame(path, f"a key must be text, got {show(key)}")
        return {key: _plain(each, (*path, key), document) for key, each in value.items() if key not in strange}
    what = f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
    types = listed(["text", "a number", "true", "false", "nothing", "a list", "a mapping"])
    document.blame(path, f"must be {types}, got {what}")
    return None


#: Words that YAML reads as text without quotes. Some other words get quotes without need.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./()+ -]*[A-Za-z0-9_./()+-])?")
_NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class OnOneLine(dict[str, Any]):
    """A mapping of plain values that is written in braces."""


def yaml_text(data: Mapping[str, Any]) -> str:
    """Write a mapping of plain data as YAML text; lists of plain values stand on one line."""
    return "\n".join(_mapping(data)) + "\n"


def _mapping(data: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in data.items():
        inner = _inline(value)
        if inner is not None:
            lines.append(f"{scalar_text(key)}: {inner}")
        else:
            lines += [f"{scalar_text(key)}:", *(f"  {line}" for line in _block(value))]
    return lines


def _block(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return _mapping(value)
    lines = []
    for each in value:
        inner = _inline(each)
        first, *rest = [inner] if inner is not None else _block(each)
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def _inline(value: Any) -> str | None:
    """Write a value on one line; None if the value needs several lines."""
    if isinstance(value, OnOneLine) or value == {}:
        return "{" + ", ".join(f"{scalar_text(key)}: {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Mapping):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        plain = [scalar_text(each) for each in value if not isinstance(each, Mapping | list | tuple)]
        return f"[{', '.join(plain)}]" if len(plain) == len(value) else None
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """Write a plain value on one line, in quotes where YAML could read a text as another value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES or letter.isprintable():
        return _ESCAPES.get(letter, letter)
    code = ord(letter)
    if 0xD800 <= code < 0xE000:
        # Half a surrogate pair, as in a file's name that is not UTF-8, cannot be written as text.
        return "\N{REPLACEMENT CHARACTER}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
