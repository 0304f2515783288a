"""Small expressions over named numbers: parsed into Python's syntax tree, then computed by rules of this module.

No code of an expression is ever run. Known are numbers, names, `+ - * / // % **`, comparisons (also chained),
`and or not`, `A if C else B`, `min`, `max` and parentheses. Length, depth and the size of every number on the way are
bounded.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

Number = int | float | bool
Values = Mapping[str, Any]
_Rule = Callable[[Values], Any]

MAX_LENGTH = 500
#: Deeper nesting than anybody writes; the parser itself stays far from its own limit.
_MAX_DEPTH = 30
_MAX_BITS = 256
_MAX_FLOAT = 1e60

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
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


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; its text is the sentence for the user."""


@dataclass(frozen=True)
class Expression:
    """An expression that has been read.

    text: as it was written.
    names: the names in it, in order.
    rule: computes it from the names' values.
    """

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
            raise ExpressionError(f"{self.text}: a number becomes too large") from None
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
            constant = _writable(value) if isinstance(value, str) else _bounded(value)
            return lambda values: constant
        case ast.Name(id=name):
            if name in _FUNCTIONS:
                raise ExpressionError(f"{name} is a function: write {name}(..., ...)")
            names[name] = None
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            negated = inner(operand)
            return lambda values: not negated(values)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            positive, change = inner(operand), operator.neg if isinstance(sign, ast.USub) else operator.pos
            return lambda values: change(positive(values))
        case ast.BinOp(op=op) if type(op) in _BINARY:
            return _operations(node, inner)
        case ast.BoolOp(op=op, values=parts):
            return _logic(isinstance(op, ast.And), [inner(each) for each in parts])
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(each) in _COMPARED for each in ops):
            return _chain([_COMPARED[type(each)] for each in ops], [inner(each) for each in (left, *others)])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, yes, no = inner(test), inner(body), inner(orelse)
            return lambda values: yes(values) if asked(values) else no(values)
        case ast.Call():
            return _call(node, inner)
    _refuse(node)


def _call(node: ast.Call, inner: Callable[[ast.expr], _Rule]) -> _Rule:
    if not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
        raise ExpressionError("only min(...) and max(...) can be called")
    name = node.func.id
    if node.keywords or len(node.args) < 2 or any(isinstance(each, ast.Starred) for each in node.args):
        raise ExpressionError(f"{name} needs two numbers or more: {name}(a, b)")
    function, parts = _FUNCTIONS[name], [inner(each) for each in node.args]
    return lambda values: function(*(part(values) for part in parts))


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
        for (symbol, function), right in steps:
            value = _applied(symbol, function, value, right(values))
        return value

    return rule


def _applied(symbol: str, function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    # Text would be multiplied, repeated and formatted by the same signs.
    if isinstance(a, str) or isinstance(b, str):
        raise TypeError(symbol)
    if symbol == "**":
        _check_power(a, b)
    return _bounded(function(a, b))


def _check_power(base: Any, exponent: Any) -> None:
    """Refuse a power before it is computed: it could fill the memory."""
    if isinstance(exponent, int) and isinstance(base, int) and exponent >= 0:
        if abs(base) > 1 and exponent * abs(base).bit_length() > 2 * _MAX_BITS:
            raise ExpressionError("a number becomes too large")
    elif base < 0 and not float(exponent).is_integer():
        raise ExpressionError("a root of a negative number is no number")


def _writable(text: str) -> str:
    """Text that a table can hold."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ExpressionError(f"half of a letter (a lone surrogate) in {text!r}")
    return text


def _bounded(value: Any) -> Any:
    """The number itself; `ExpressionError` if it is too large."""
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise ExpressionError("a number becomes too large")
    elif not abs(value) <= _MAX_FLOAT:
        raise ExpressionError("a number becomes too large")
    return value


def _logic(is_and: bool, parts: list[_Rule]) -> _Rule:
    if is_and:
        return lambda values: all(part(values) for part in parts)
    return lambda values: any(part(values) for part in parts)


def _chain(tests: list[Callable[[Any, Any], bool]], parts: list[_Rule]) -> _Rule:
    """Comparisons one after another, as in `a < b < c`."""

    def rule(values: Values) -> bool:
        left = parts[0](values)
        for test, part in zip(tests, parts[1:], strict=True):
            right = part(values)
            if not test(left, right):
                return False
            left = right
        return True

    return rule


def _refuse(node: ast.expr) -> NoReturn:
    """Raise `ExpressionError` with words for what is not allowed."""
    words = {
        ast.Attribute: "an attribute (a.b)",
        ast.Subscript: "an index (a[b])",
        ast.Lambda: "a function",
        ast.NamedExpr: "an assignment",
        ast.JoinedStr: "a formatted text",
        ast.BinOp: "this operator",
        ast.Compare: "this comparison",
        ast.UnaryOp: "this operator",
    }
    what = words.get(type(node), f"{type(node).__name__.lower()!r}")
    raise ExpressionError(f"{what} is not allowed; known are {_KNOWN}")
