"""The small changes that `tools/mutate.py` makes to a C++ file of the native core.

They are found by patterns, not by a parser, and rely on how the core is written: blanks around operators of two
operands and none around those of templates, a statement in a line of its own. A change that does not compile is no
harm: it is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.mutants import Mutant

__all__ = ["mutants"]

#: What stands in no mutant: comments, texts, single characters, lines for the preprocessor, assertions of types.
_SILENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|^[ ]*\#[^\n]*|\bstatic_assert\([^;]*;""", re.S | re.M
)
_OPERATORS: dict[str, tuple[str, str]] = {
    "<": ("comparison", "<="),
    "<=": ("comparison", "<"),
    ">": ("comparison", ">="),
    ">=": ("comparison", ">"),
    "==": ("comparison", "!="),
    "!=": ("comparison", "=="),
    "&&": ("logic", "||"),
    "||": ("logic", "&&"),
    "+": ("arithmetic", "-"),
    "-": ("arithmetic", "+"),
    "*": ("arithmetic", "+"),
    "/": ("arithmetic", "*"),
    "%": ("arithmetic", "/"),
    "&": ("arithmetic", "|"),
    "+=": ("arithmetic", "-="),
    "-=": ("arithmetic", "+="),
}
_OPERATOR = re.compile(r"(?<= )(?:[<>=!]=|&&|\|\||[-+]=|[-+*/%&<>])(?= )")
_CONSTANT = re.compile(r"(?<![\w.])\d+(?![\w.])")
_EXTREME = re.compile(r"\bstd::(min|max)\b")
_NOT = re.compile(r"!(?=[\w(])")
_CONDITION = re.compile(r"\b(if|while) \(")
#: A statement that can be left out: no declaration, which begins with two words.
_STATEMENT = re.compile(
    r"""^[ ]+(?!return\b|throw\b|const\b|else\b|if\b|for\b|while\b|case\b)
    ((?:continue|break|(?:\+\+|--)[^;{}\n]+|[\w:]+(?:[\[.(]|->|\+\+|--|[ ][-+]?=[ ])[^;{}\n]*);)[ ]*$""",
    re.M | re.X,
)


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a source text, in the order of their places.

    source: a C++ file that is written as those of the core are.

    >>> [each.applied("x = y + 2;") for each in mutants("x = y + 2;")]
    ['x = y - 2;', 'x = y + 3;', 'x = y + 1;']
    >>> [each.applied("Slice<T> a;  // 1 < 2") for each in mutants("Slice<T> a;  // 1 < 2")]
    []
    """
    shown = _SILENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    return sorted(_all(source, shown), key=lambda each: (each.start, each.end))


def _all(source: str, shown: str) -> Iterator[Mutant]:
    """The mutants in no order. shown: the text with blanks in place of what is not looked at."""

    def mutant(kind: str, start: int, end: int, after: str) -> Mutant:
        # bytes, as in Python's files
        first, last = (len(source[:place].encode()) for place in (start, end))
        return Mutant(source.count("\n", 0, start) + 1, kind, first, last, source[start:end], after)

    for match in _OPERATOR.finditer(shown):
        kind, after = _OPERATORS[match[0]]
        yield mutant(kind, match.start(), match.end(), after)
    for match in _CONSTANT.finditer(shown):
        for value in (int(match[0]) + 1, int(match[0]) - 1):
            yield mutant("constant", match.start(), match.end(), str(value) if value >= 0 else f"({value})")
    for match in _EXTREME.finditer(shown):
        yield mutant("extreme", match.start(), match.end(), "std::max" if match[1] == "min" else "std::min")
    for match in _NOT.finditer(shown):
        yield mutant("logic", match.start(), match.end(), "")
    for match in _CONDITION.finditer(shown):
        end = _closing(shown, match.end() - 1)
        # a loop that never ends shows nothing
        for word in ("true", "false") if match[1] == "if" else ("false",):
            yield mutant("condition", match.end(), end, word)
    for match in _STATEMENT.finditer(shown):
        yield mutant("statement", match.start(1), match.end(1), ";")


def _closing(text: str, opening: int) -> int:
    """Where the bracket is that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"nothing closes the bracket at {opening}")
