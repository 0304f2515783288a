"""The plain kind of YAML, in which nearly all files are written, read without a YAML library: ten times as fast.

A text is of this kind, and is read here as the library reads it, or it is left to the library: printable ASCII; block
mappings and lists, flow ones over any lines, comments; words and numbers without exponents, texts in double quotes
without backslashes, folded texts (`>-`) of one paragraph; every key with a value, and no key twice. JSON is such YAML.
One number, word or text alone is, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.files.yaml.document import Document, Place

_PRINTABLE = re.compile(r"[ -~\n]*")
_NUMBER = r"(-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?)"
#: How words begin that are no numbers, dates or marks.
_FIRST = r"(?:[A-Za-z_]|\.\.?/|[1-9][0-9]*x[1-9])"
#: What a token can be: the group that it has in patterns.
_QUOTED, _DIGITS, _WORD, _MARK = 1, 2, 3, 4
#: A token in brackets, after spaces, ends of lines and comments.
_TOKEN = re.compile(
    rf'(?:[ \n]|(?<=[ \n])#[^\n]*+)*+(?:"([^"\\\n]*)"|{_NUMBER}(?=[ \n,\]}}])'
    rf"|({_FIRST}[\w./+()'-]*(?: [\w./+()'-]+)*)(?= *[\n,\]}}]|:[ \n]| #)|([\[\]{{}},]))",
    re.ASCII,
)
_COLON = re.compile(r'(?<="):| *:(?=[ \n])')
_KEY = re.compile(r"""(?:"([^"\\\n]*)"|([A-Za-z_][\w.'-]*)) *:(?=[ \n])""", re.ASCII)
#: A value on the rest of a line; further words of a text may hold colons that no space follows.
_SCALAR = re.compile(rf'"([^"\\\n]*)"|{_NUMBER}(?![^ \n])|({_FIRST}(?:[^\n:#]|:(?=[^ \n]))*(?<! ))')
_DASH, _SPACES = re.compile(r"- +(?=[^ #\n])"), re.compile(r" *")
_FOLDED = re.compile(r">- *\n( +)(?=[^ \n])")
#: The end of a value's line, lines without content, and the indent of the next line; none behind the last one.
_END = re.compile(r" *+(?:(?<= )#[^\n]*+)?(?:\n *+(?:#[^\n]*+)?(?=\n|\Z))*+(?:\n( *)|\Z)")
_BEGIN = re.compile(r"(?: *+(?:#[^\n]*+)?\n)*+")
_WORDS = {"true": True, "false": False, "null": None}


def plain_document(text: str, name: str) -> Document | None:
    """Read a text as a document; None if it is not of the plain kind."""
    if not _PRINTABLE.fullmatch(text):
        return None
    try:
        return _Reader(text, name).document
    except (KeyError, RecursionError, ValueError):
        return None


class _Reader:
    """A text that is read from `at` on; `depth` is the indent of the line there. `ValueError` if it is not plain."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.at, self.depth, self.document = text, 0, 0, Document(None, name, Path())
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        alone = _SCALAR.fullmatch(text)
        if alone is not None:
            # what an override gives
            kind = alone.lastindex or 0
            self.document.data, self.at = self._scalar(0, (), kind, alone[kind]), len(text)
            return
        self._matched(_BEGIN)
        if text[self.at : self.at + 1] in ("{", "["):
            self.document.data = self._flow((), *self._token())
            self._matched(_END)
        else:
            self.document.data = self._mapping((), 0)
        if self.at < len(text):
            raise ValueError

    def _matched(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError
        self.at = match.end()
        return match

    def _place(self, begin: int, path: DataPath, raw: str | None = None) -> Place:
        line = bisect_right(self.lines, begin)
        return Place(self.document.name, line, begin - self.lines[line - 1] + 1, path, raw)

    def _key(self, built: dict[str, Any], kind: int, key: str, begin: int, path: DataPath) -> str:
        if kind not in (_QUOTED, _WORD) or key in built or len(key) > 1000 or key.lower() in _WORDS:
            raise ValueError
        self.document.keys[*path, key] = self._place(begin, (*path, key))
        return key

    def _scalar(self, begin: int, path: DataPath, kind: int, word: str) -> Any:
        self.document.values[path] = self._place(begin, path, None if kind == _QUOTED else word)
        if kind == _DIGITS:
            return float(word) if "." in word else int(word)
        if kind == _QUOTED or word.lower() not in _WORDS:
            return word
        return _WORDS[word]

    def _token(self) -> tuple[int, str, int]:
        """Read the next token in brackets: its kind, its text, and the index where it begins."""
        match = self._matched(_TOKEN)
        kind = match.lastindex or 0
        return kind, match[kind], match.start(kind) - (kind == _QUOTED)

    def _flow(self, path: DataPath, kind: int, word: str, begin: int) -> Any:
        if kind != _MARK:
            return self._scalar(begin, path, kind, word)
        if word not in "{[":
            raise ValueError
        self.document.values[path] = self._place(begin, path)
        built: dict[Any, Any] = {}
        end, comma = (_MARK, "}" if word == "{" else "]"), (_MARK, ",")
        mark = token = self._token()
        while mark[:2] != end:
            if word == "{":
                key: str | int = self._key(built, *token, path)
                self._matched(_COLON)
                token = self._token()
            else:
                key = len(built)
            built[key] = self._flow((*path, key), *token)
            mark = self._token()
            if mark[:2] == comma:
                token = self._token()
            elif mark[:2] != end:
                raise ValueError
        return built if word == "{" else list(built.values())

    def _end(self) -> None:
        """Go on to the next line with content."""
        indent = self._matched(_END)[1]
        self.depth = -1 if indent is None else len(indent)

    def _mapping(self, path: DataPath, indent: int) -> dict[str, Any]:
        built: dict[str, Any] = {}
        self.document.values[path] = self._place(self.at, path)
        while self.depth == indent:
            begin, match = self.at, self._matched(_KEY)
            kind = _WORD if match[1] is None else _QUOTED
            key = self._key(built, kind, match[match.lastindex or 0], begin, path)
            built[key] = self._value((*path, key), indent)
        return built

    def _list(self, path: DataPath, indent: int) -> list[Any]:
        built: list[Any] = []
        self.document.values[path] = self._place(self.at, path)
        while self.depth == indent:
            column = self._matched(_DASH).end() - self.lines[bisect_right(self.lines, self.at) - 1]
            here = (*path, len(built))
            if _KEY.match(self.text, self.at):
                self.depth = column
                built.append(self._mapping(here, column))
            else:
                built.append(self._value(here, indent))
        return built

    def _value(self, path: DataPath, indent: int) -> Any:
        """Read what stands behind a colon or a dash: on its line, or in the deeper lines below."""
        begin = self._matched(_SPACES).end()
        first = self.text[begin : begin + 1]
        if first in ("\n", "#"):
            self._end()
            first = self.text[self.at : self.at + 1]
            if self.depth <= indent:
                raise ValueError
            if first not in ("{", "["):
                return self._list(path, self.depth) if first == "-" else self._mapping(path, self.depth)
        if first == ">":
            value: Any = self._folded(path, indent)
        elif first in ("{", "["):
            value = self._flow(path, *self._token())
            self._end()
        else:
            match = self._matched(_SCALAR)
            value = self._scalar(begin, path, match.lastindex or 0, match[match.lastindex or 0])
            self._end()
        if self.depth > indent:
            raise ValueError
        return value

    def _folded(self, path: DataPath, indent: int) -> str:
        begin = self.at
        width = len(self._matched(_FOLDED)[1])
        self.document.values[path] = self._place(begin, path)
        self.at -= width + 1
        text = self._matched(re.compile(rf"(?:\n {{{width}}}[^ \n][^\n]*(?<! ))+(?=\n|\Z)"))[0]
        # a deeper line, or one behind an empty one, would go on with the text, even if it looks like a comment
        if width <= indent or re.compile(rf"(?:\n {{0,{width - 1}}}(?=\n))*+\n {{{width}}}").match(self.text, self.at):
            raise ValueError
        self._end()
        return " ".join(line[width:] for line in text[1:].split("\n"))
