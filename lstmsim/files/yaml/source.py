"""YAML 1.2 files as plain data, with the line and column of every key and value.

Only plain values are built (text, numbers, true, false, nothing, lists, mappings): no tag of a file can name code.
Files are YAML 1.2: `010` is ten, `no` is text. JSON is YAML, so `.json` files are read in the same way; large ones
twenty times as fast, if both readers take their text alike: plain ASCII, texts without backslashes, numbers without
exponents, no key twice.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import note_read
from lstmsim.base.wording import nearest_file, show
from lstmsim.files.yaml.document import Document, Place

_PLAIN = re.compile(r"[ -~\n]*")
_TOKEN = re.compile(
    r'[ \n]*(?:"([^"\\\n]*)"|(-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?)(?=[ \n,\]}])'
    r"|(true|false|null)(?=[ \n,\]}])|([\[\]{},:]))"
)
_TEXT, _NUMBER, _WORD, _MARK = 1, 2, 3, 4
_WORDS = {"true": True, "false": False, "null": None}
#: The longest key that YAML takes on one line.
_MAX_KEY = 1000


def json_document(text: str, name: str) -> Document | None:
    """Read JSON text as a document; None if the text is not of the plain kind."""
    if text[:1] not in ("{", "[") or not _PLAIN.fullmatch(text):
        return None
    try:
        return _plain_json(text, name)
    except (RecursionError, ValueError):
        return None


def _plain_json(text: str, name: str) -> Document:
    """Read JSON text as a document; `ValueError` if it is not of the plain kind."""
    document, lines, at = Document(None, name, Path()), [0, *(match.end() for match in re.finditer("\n", text))], 0

    def token() -> tuple[int, str, int]:
        """Read the next token: its kind, its text, and the index where it begins; `ValueError` if there is none."""
        nonlocal at
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError
        at, kind = match.end(), match.lastindex or 0
        return kind, match[kind], match.start(kind) - (kind == _TEXT)

    def place(begin: int, path: DataPath, raw: str | None = None) -> Place:
        line = bisect_right(lines, begin)
        return Place(name, line, begin - lines[line - 1] + 1, path, raw)

    def members(end: str, read: Callable[[int, str, int], None]) -> None:
        """Read the members between a bracket and its end."""
        first = token()
        last = first[:2] == (_MARK, end)
        while not last:
            read(*first)
            mark = token()[:2]
            last = mark == (_MARK, end)
            if not last and mark != (_MARK, ","):
                raise ValueError
            first = first if last else token()

    def mapping(path: DataPath) -> dict[str, Any]:
        built: dict[str, Any] = {}

        def member(kind: int, key: str, begin: int) -> None:
            if kind != _TEXT or key in built or len(key) > _MAX_KEY or token()[:2] != (_MARK, ":"):
                raise ValueError
            document.keys[*path, key] = place(begin, (*path, key))
            built[key] = value((*path, key), *token())

        members("}", member)
        return built

    def sequence(path: DataPath) -> list[Any]:
        built: list[Any] = []
        members("]", lambda *first: built.append(value((*path, len(built)), *first)))
        return built

    def value(path: DataPath, kind: int, word: str, begin: int) -> Any:
        document.values[path] = place(begin, path, word if kind in (_NUMBER, _WORD) else None)
        if kind == _NUMBER:
            return float(word) if "." in word else int(word)
        if kind != _MARK:
            return word if kind == _TEXT else _WORDS[word]
        if word not in "{[":
            raise ValueError
        return mapping(path) if word == "{" else sequence(path)

    document.data = value((), *token())
    if text[at:].strip(" \n"):
        raise ValueError
    return document


MAX_BYTES = 10_000_000
#: Letters from which on a text is worth a short cut.
_LARGE = 20_000
#: Most values that aliases may add to a document; a scenario needs a handful.
MAX_ALIASED = 10_000

_TAG = "tag:yaml.org,2002:"
#: `timestamp` and `value` are no types of YAML 1.2's core schema: such a word is text.
_TEXT_TAGS = (f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value")
_BOOLEANS = {"true": True, "false": False}


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a YAML or JSON file that holds one document, whose top is a mapping.

    path: the file.
    `InputError`, with place, if the file cannot be read. Duplicate keys are only noted in the document's `mistakes`, so
    that the caller can add further mistakes.
    """
    name = os.fspath(path)
    text = _read_text(Path(name), name)
    document = copied((_kept if len(text) < _LARGE else _kept_large)(text, name))
    document.folder = Path(name).parent
    if document.data is None:
        raise InputError(Mistake(name, "is empty, expected a mapping of keys to values"))
    if not isinstance(document.data, dict):
        document.blame((), f"must be a mapping of keys to values, got {show(document.data, document.raw(()))}")
        raise InputError(document.mistakes)
    return document


def copied(document: Document) -> Document:
    """Copy a document, so that the copy can be changed."""
    own = replace(document, data=copied_data(document.data), values=dict(document.values))
    own.keys, own.mistakes = dict(document.keys), list(document.mistakes)
    return own


def copied_data(data: Any) -> Any:
    """Copy plain data."""
    if isinstance(data, dict):
        return {key: copied_data(each) for key, each in data.items()}
    return [copied_data(each) for each in data] if isinstance(data, list) else data


def _read_text(path: Path, name: str) -> str:
    try:
        if not name:
            raise InputError("the name of a file is expected, got an empty one")
        if path.is_dir():
            raise InputError(Mistake(name, "is a folder, expected a file"))
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        siblings: list[str] = []
        if path.parent.is_dir() and os.access(path.parent, os.R_OK):
            siblings = [str(each) for each in path.parent.iterdir() if each.suffix in {".yaml", ".yml", ".json"}]
        raise InputError(f"no file called {name!r}{nearest_file(str(path), siblings)}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {name!r}: {reason}") from None
    note_read(name)
    if len(content) > MAX_BYTES:
        raise InputError(Mistake(name, f"is larger than {MAX_BYTES // 1_000_000} MB"))
    if b"\0" in content:
        raise InputError(Mistake(name, "is a binary file (or UTF-16), expected YAML or JSON text in UTF-8"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        sentence = f"byte 0x{content[error.start]:02x} is not UTF-8, expected YAML or JSON text in UTF-8"
        raise InputError(Mistake(f"{name}:{line}:{column}", sentence)) from None


def parse_document(text: str, name: str) -> Document:
    """Read YAML text as a document; `InputError` if it is no YAML, holds several documents, or grows too large."""
    short_cut = json_document(text, name) if len(text) >= _LARGE else None
    if short_cut is not None:
        return short_cut
    document = Document(None, name, Path())
    head = re.split(r"^---", text[:1000], maxsplit=1, flags=re.MULTILINE)[0]
    match = re.search(r"^%YAML\s+(\S+)", head, flags=re.MULTILINE)
    if match and match[1] != "1.2":
        line = head.count("\n", 0, match.start()) + 1
        raise InputError(Mistake(f"{name}:{line}:1", f"must be YAML 1.2, got {show(match[1])}"))
    try:
        node = _compose(text)
        if node is not None:
            document.data = _Builder(document).build(node, ())
    except RecursionError:
        raise InputError(Mistake(name, "is nested too deeply")) from None
    except InputError as error:
        raise InputError([*document.mistakes, *error.mistakes]) from None
    except MarkedYAMLError as error:
        _refuse_json(text, name)
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else name
        raise InputError(Mistake(place, _problem(error))) from None
    return document


#: Keeps the documents of small texts: who simulates much in one process names the same chips and models again and
#: again, and parsing takes longer than the simulation.
_kept = lru_cache(maxsize=256)(parse_document)
#: Keeps the document of a large text until the next one: a command may read its scenario more than once.
_kept_large = lru_cache(maxsize=1)(parse_document)


def _compose(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return YAML(typ="safe", pure=True).compose(text)
    except (MarkedYAMLError, RecursionError):
        raise
    except YAMLError as error:
        raise MarkedYAMLError(problem=str(error).splitlines()[0]) from None
    except Exception as error:
        # On some broken input the scanner lets its own exceptions out (ValueError of chr(), UnicodeEncodeError ...).
        raise MarkedYAMLError(problem=str(error)) from None


def _problem(error: MarkedYAMLError) -> str:
    if error.context and "single document" in error.context:
        return "a second document starts here, expected only one"
    words = " ".join(str(part) for part in (error.context, error.problem) if part)
    return f"not valid YAML: {' '.join(words.split())}"


def _refuse_json(text: str, name: str) -> None:
    """Report a mistake in a JSON file in the words of JSON, if the file is no JSON either."""
    if not name.lower().endswith(".json"):
        return
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{name}:{error.lineno}:{error.colno}"
        raise InputError(Mistake(place, f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}")) from None
    except (ValueError, RecursionError):
        return


class _Builder:
    """The builder of plain data from a tree of nodes; it notes the place of each key and value."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen: set[int] = set()
        self.open: set[int] = set()
        self.aliased = 0

    def build(self, node: Any, path: DataPath) -> Any:
        raw = node.value if isinstance(node, ScalarNode) and node.style is None else None
        self.document.values[path] = self._place(node, path, raw)
        if id(node) in self.open:
            raise InputError(Mistake(self.document.place(path), "an alias that holds itself has no end"))
        self.aliased += id(node) in self.seen
        if self.aliased > MAX_ALIASED:
            text = f"aliases expand to more than {MAX_ALIASED} values"
            raise InputError(Mistake(self.document.place(path), text))
        self.seen.add(id(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        expected = "map" if isinstance(node, MappingNode) else "seq"
        if node.tag != f"{_TAG}{expected}":
            self._refuse_tag(node, path)
        self.open.add(id(node))
        built = self._mapping(node, path) if isinstance(node, MappingNode) else self._list(node, path)
        self.open.discard(id(node))
        return built

    def _place(self, node: Any, path: DataPath, raw: str | None = None) -> Place:
        mark = node.start_mark
        return Place(self.document.name, mark.line + 1, mark.column + 1, path, raw)

    def _list(self, node: SequenceNode, path: DataPath) -> list[Any]:
        return [self.build(child, (*path, index)) for index, child in enumerate(node.value)]

    def _mapping(self, node: MappingNode, path: DataPath) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key in built:
                first = self.document.keys[*path, key]
                place = self._place(key_node, (*path, key))
                self.document.mistakes.append(Mistake(place.text(), f"duplicate key, first given on line {first.line}"))
                continue
            self.document.keys[*path, key] = self._place(key_node, (*path, key))
            built[key] = self.build(value_node, (*path, key))
        return built

    def _key(self, node: Any, path: DataPath) -> str:
        place = self._place(node, path).text()
        if not isinstance(node, ScalarNode):
            raise InputError(Mistake(place, "a key must be one word of text"))
        if node.tag == f"{_TAG}merge":
            raise InputError(Mistake(place, "YAML 1.2 has no merge key '<<': write the keys out"))
        if node.tag not in _TEXT_TAGS:
            raise InputError(Mistake(place, f"a key must be text, got {show(None, node.value)}"))
        return str(node.value)

    def _scalar(self, node: ScalarNode, path: DataPath) -> str | int | float | bool | None:
        text = str(node.value)
        if node.tag in _TEXT_TAGS:
            return text
        try:
            if node.tag == f"{_TAG}null":
                return None
            if node.tag == f"{_TAG}bool":
                return _BOOLEANS[text.lower()]
            if node.tag == f"{_TAG}int":
                digits = text.replace("_", "")
                return int(digits, 0 if digits.lstrip("+-")[1:2] in {"x", "o", "b"} else 10)
            if node.tag == f"{_TAG}float":
                word = text.replace("_", "").lower()
                if word.lstrip("+-") in {".inf", ".nan"}:
                    return math.nan if word.endswith("nan") else math.copysign(math.inf, -1 if word[0] == "-" else 1)
                return float(word)
        except (KeyError, ValueError):
            text = show(text)
            raise InputError(Mistake(self.document.place(path), f"cannot be read as a value, got {text}")) from None
        self._refuse_tag(node, path)

    def _refuse_tag(self, node: Any, path: DataPath) -> NoReturn:
        tag = str(node.tag).replace(_TAG, "!!")
        raise InputError(Mistake(self.document.place(path), f"tag {show(tag)} is not allowed, only plain values are"))
