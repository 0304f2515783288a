"""The small changes that `tools/mutate.py` makes to a Python file, read off its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "function_of", "mutants"]

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


@dataclass(frozen=True)
class Mutant:
    """One change of a source text.

    line: where it is, from 1.
    kind: comparison, constant, arithmetic, condition or logic; in C++ also extreme or statement.
    start, end: the bytes of the text (UTF-8) that are replaced.
    before, after: what stands there, and what takes its place.
    """

    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The source text with the change.

        source: the text in which the mutant was found.

        >>> mutants("a < 5")[0].applied("a < 5")
        'a <= 5'
        """
        content = source.encode()
        return (content[: self.start] + self.after.encode() + content[self.end :]).decode()


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a source text, in the order of their places.

    source: a Python module.

    >>> [each.applied("x = y + 2") for each in mutants("x = y + 2")]
    ['x = y - 2', 'x = y + 3', 'x = y + 1']
    """
    finder = _Finder(source)
    return sorted(finder.below(ast.parse(source)), key=lambda each: (each.start, each.end))


class _Finder:
    """Finds mutants in a tree, by the places that its nodes have in the text."""

    def __init__(self, source: str) -> None:
        self.content = source.encode()
        self.lines = [0, *(match.end() for match in re.finditer(b"\n", self.content))]

    def below(self, node: ast.AST) -> Iterator[Mutant]:
        """Mutants of a node and of all that it is made of."""
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") or isinstance(node, ast.JoinedStr):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.below(child)

    def _own(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for one, operator, two in zip(operands, node.ops, node.comparators, strict=False):
                yield self._between("comparison", one, two, *_COMPARISONS[type(operator)])
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            if not any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in (node.left, node.right)):
                yield self._between("arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for one, two in zip(node.values, node.values[1:], strict=False):
                yield self._between("logic", one, two, *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = self._start(node)
            yield Mutant(node.lineno, "logic", start, start + len("not"), "not", "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and type(node.value) is not bool:
            for value in [node.value + 1] + [node.value - 1] * isinstance(node.value, int):
                yield self._instead("constant", node, repr(value) if value >= 0 else f"({value!r})")
        elif isinstance(node, ast.If | ast.IfExp) and not _is_typing(node.test):
            yield from (self._instead("condition", node.test, word) for word in ("True", "False"))
        elif isinstance(node, ast.comprehension):
            yield from (self._instead("condition", each, "True") for each in node.ifs)

    def _between(self, kind: str, one: ast.expr, two: ast.expr, before: str, after: str) -> Mutant:
        """The operator `before` between two operands becomes `after`."""
        begin, end = self._end(one), self._start(two)
        pattern = rb"\s+".join(re.escape(word.encode()) for word in before.split())
        match = re.search(pattern, self.content[begin:end])
        assert match is not None, f"line {one.end_lineno}: no {before} between operands"
        line = self.content.count(b"\n", 0, begin + match.start()) + 1
        return Mutant(line, kind, begin + match.start(), begin + match.end(), match[0].decode(), after)

    def _instead(self, kind: str, node: ast.expr, after: str) -> Mutant:
        start, end = self._start(node), self._end(node)
        return Mutant(node.lineno, kind, start, end, self.content[start:end].decode(), after)

    def _start(self, node: ast.expr) -> int:
        return self.place(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.end_lineno, node.end_col_offset)

    def place(self, line: int, column: int) -> int:
        """The byte at which a line (from 1) and column (in bytes, from 0) stand."""
        return self.lines[line - 1] + column


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_typing(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"


def function_of(source: str, mutant: Mutant) -> tuple[int, int] | None:
    """First and last line of the innermost function that holds a mutant in its body; None where it runs on import."""
    finder = _Finder(source)
    innermost = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = finder.place(node.body[0].lineno, 0)
            last = finder.place(node.end_lineno or 0, node.end_col_offset or 0)
            if first <= mutant.start < last:
                # from outside to inside, as `walk` goes
                innermost = (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or 0)
    return innermost
