"""All of YAML 1.2, by the YAML library: what is not of the plain kind, and the sentences on what is no YAML."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.files.yaml.document import Document, Place

#: Most values that aliases may add to a document; a scenario needs a handful.
MAX_ALIASED = 10_000

_TAG = "tag:yaml.org,2002:"
#: `timestamp` and `value` are no types of YAML 1.2's core schema: such a word is text.
_TEXT_TAGS = (f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value")
_BOOLEANS = {"true": True, "false": False}


def full_document(text: str, name: str) -> Document:
    """Read YAML text as a document; `InputError` if it is no YAML, holds several documents, or grows too large."""
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
