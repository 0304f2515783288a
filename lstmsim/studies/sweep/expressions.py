"""Small expressions over named numbers: parsed into Python's syntax tree, then computed by rules of this module.

No code of an expression is ever run. Length, depth and the size of every number on the way are bounded.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
_Rule = Callable[[Values], Any]

MAX_LENGTH = 500
#: Deeper nesting than anybody writes; the parser itself stays far from its own limit.
_MAX_DEPTH = 30
_MAX_BITS = 256
_MAX_FLOAT = 1e60

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max}
_KNOWN = "numbers, names, + - * / // % **, comparisons, and, or, not, if else, min, max and parentheses"
_TOO_LARGE = "a number becomes too large"
#: Words for what is not allowed.
_REFUSED: dict[type[ast.expr], str] = {
    ast.Attribute: "an attribute (a.b)",
    ast.Subscript: "an index (a[b])",
    ast.Lambda: "a function",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted text",
    ast.BinOp: "this operator",
    ast.Compare: "this comparison",
    ast.UnaryOp: "this operator",
}


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; its text is the sentence for the user."""


@dataclass(frozen=True)
class Expression:
    """An expression that has been read: its text, the names in it in order, and what computes it from their values."""

    text: str
    names: tuple[str, ...]
    rule: _Rule

    def __call__(self, values: Values) -> Any:
        """Compute its value; `ExpressionError` if it has none (division by zero, text in a sum, a number too large).

        >>> parse("min(ep, 4) * vp <= 64")({"ep": 8, "vp": 16})
        True
        """
        try:
            return self.rule(values)
        except ZeroDivisionError:
            raise ExpressionError(f"{self.text}: divides by zero") from None
        except TypeError:
            raise ExpressionError(f"{self.text}: only numbers can be added, multiplied and ordered") from None
        except OverflowError:
            raise ExpressionError(f"{self.text}: {_TOO_LARGE}") from None
        except ExpressionError as error:
            raise ExpressionError(f"{self.text}: {error}") from None


def parse(text: str) -> Expression:
    """Read an expression; `ExpressionError` for everything that is not known."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"must hold at most {MAX_LENGTH} letters, got {len(text)}")
    try:
        with warnings.catch_warnings():
            # Python warns of `1 is 1`, `0x1for x` and the like; such expressions are refused anyway.
            warnings.simplefilter("ignore")
            body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"is no expression ({reason}); known are {_KNOWN}") from None
    names: dict[str, None] = {}
    rule = _compile(body, names, 0)
    return Expression(text.strip(), tuple(names), rule)


def _compile(node: ast.expr, names: dict[str, None], depth: int) -> _Rule:
    """The node as a function of the names' values."""
    if depth > _MAX_DEPTH:
        raise ExpressionError(f"is nested more than {_MAX_DEPTH} deep")

    def inner(child: ast.expr) -> _Rule:
        return _compile(child, names, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ExpressionError(f"half of a letter (a lone surrogate) in {value!r}")
            constant = value if isinstance(value, str) else _bounded(value)
            return lambda values: constant
        case ast.Name(id=name):
            if name in _FUNCTIONS:
                raise ExpressionError(f"{name} is a function: write {name}(..., ...)")
            names[name] = None
            return lambda values: values[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            change, part = _UNARY[type(op)], inner(operand)
            return lambda values: change(part(values))
        case ast.BinOp(op=op) if type(op) in _BINARY:
            return _operations(node, inner)
        case ast.BoolOp(op=op, values=operands):
            decide, parts = all if isinstance(op, ast.And) else any, [inner(each) for each in operands]
            return lambda values: decide(part(values) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(each) in _COMPARED for each in ops):
            tests, parts = [_COMPARED[type(each)] for each in ops], [inner(each) for each in (left, *others)]
            return lambda values: _chained(tests, (part(values) for part in parts))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, yes, no = inner(test), inner(body), inner(orelse)
            return lambda values: yes(values) if asked(values) else no(values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if name in _FUNCTIONS:
            if keywords or len(arguments) < 2 or any(isinstance(each, ast.Starred) for each in arguments):
                raise ExpressionError(f"{name} needs two numbers or more: {name}(a, b)")
            function, parts = _FUNCTIONS[name], [inner(each) for each in arguments]
            return lambda values: function(*(part(values) for part in parts))
        case ast.Call():
            raise ExpressionError("only min(...) and max(...) can be called")
    what = _REFUSED.get(type(node), f"{type(node).__name__.lower()!r}")
    raise ExpressionError(f"{what} is not allowed; known are {_KNOWN}")


def _operations(node: ast.BinOp, inner: Callable[[ast.expr], _Rule]) -> _Rule:
    """`a + b - c`: one operation after another, from the left, and no deeper than its deepest part."""
    chain: list[ast.BinOp] = []
    first: ast.expr = node
    while isinstance(first, ast.BinOp) and type(first.op) in _BINARY:
        chain.insert(0, first)
        first = first.left
    start = inner(first)
    steps = [(_BINARY[type(each.op)], inner(each.right)) for each in chain]

    def rule(values: Values) -> Any:
        value = start(values)
        for function, right in steps:
            value = _applied(function, value, right(values))
        return value

    return rule


def _applied(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    # Text would be multiplied, repeated and formatted by the same signs.
    if isinstance(a, str) or isinstance(b, str):
        raise TypeError(function)
    if function is operator.pow:
        # A power is refused before it is computed: it could fill the memory.
        if isinstance(b, int) and isinstance(a, int) and b >= 0:
            if abs(a) > 1 and b * abs(a).bit_length() > 2 * _MAX_BITS:
                raise ExpressionError(_TOO_LARGE)
        elif a < 0 and not float(b).is_integer():
            raise ExpressionError("a root of a negative number is no number")
    return _bounded(function(a, b))


def _bounded(value: Any) -> Any:
    """The number itself; `ExpressionError` if it is too large."""
    large = value.bit_length() > _MAX_BITS if isinstance(value, int) else not abs(value) <= _MAX_FLOAT
    if large:
        raise ExpressionError(_TOO_LARGE)
    return value


def _chained(tests: Sequence[Callable[[Any, Any], bool]], values: Iterator[Any]) -> bool:
    """Comparisons one after another, as in `a < b < c`; what comes after a false one is not computed."""
    left = next(values)
    for test in tests:
        right = next(values)
        if not test(left, right):
            return False
        left = right
    return True
