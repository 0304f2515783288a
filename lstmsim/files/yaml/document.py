"""Plain data (text, numbers, lists, mappings) together with the place of every value and key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from lstmsim.base.errors import MAX_MISTAKES, InputError, Mistake
from lstmsim.base.key_values import DataPath
from lstmsim.base.records import record
from lstmsim.base.wording import dotted, listed, show

__all__ = ["DataPath", "Document", "Place", "document_of"]

#: How the sentence on a value of a type that no file has calls it.
_STRANGE = (", got a value of type ", ", got the class ")


@record
class Place:
    """The place of a value in a file.

    file: name of the file.
    line, column: counted from 1; 0: unknown.
    path: path of the value in the file.
    raw: the text of the value in the file; None: unknown.
    """

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
    """A file that was read.

    data: plain data of the file.
    name: name of the file.
    folder: folder to which relative paths in the file refer.
    values, keys: path of a value -> its place in the file, and the place of its key.
    mistakes: mistakes so far, after which reading can go on.
    """

    data: Any
    name: str
    folder: Path
    values: dict[DataPath, Place] = field(default_factory=dict)
    keys: dict[DataPath, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def told(self) -> list[Mistake]:
        """Give the mistakes that a user is told.

        A value of a type that no file has was replaced by nothing. What is said of that nothing is not true.
        """
        strange = {each.place for each in self.mistakes if any(words in each.sentence for words in _STRANGE)}
        return [
            each for each in self.mistakes if each.place not in strange or not each.sentence.endswith("got nothing")
        ]

    def place(self, path: DataPath, *, key: bool = False) -> str:
        """Give the place of the value at `path` (or of its key) as text; for a missing value, that of its holder."""
        if key and path in self.keys:
            return self.keys[path].text()
        for cut in range(len(path), -1, -1):
            if path[:cut] in self.values:
                return self.values[path[:cut]].text(path[cut:])
        return dotted(path)

    def blame(self, path: DataPath, sentence: str, *, key: bool = False) -> None:
        """Note that the value at `path` (or its key) is a mistake.

        `InputError` with all of them where there are many: a file with a hundred mistakes is of another kind.
        """
        self.note(Mistake(self.place(path, key=key), sentence))

    def note(self, mistake: Mistake) -> None:
        """Note a mistake whose place is known; `InputError` as of `blame`."""
        self.mistakes.append(mistake)
        if len(self.mistakes) >= MAX_MISTAKES:
            raise InputError(self.told())

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

    >>> document_of({"jobs": ({"steps": 3},)}).data
    {'jobs': [{'steps': 3}]}
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
