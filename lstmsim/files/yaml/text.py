"""Plain data as YAML 1.2 that reads back as the same data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

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
    """Write a plain value on one line, in quotes where YAML could read a text as another value.

    >>> scalar_text("a: b"), scalar_text("no"), scalar_text(None)
    ('"a: b"', '"no"', 'null')
    """
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
