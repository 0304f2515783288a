"""Expressions: the same values as Python's for everything known, a sentence for everything else."""

from __future__ import annotations

import operator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.studies.sweep.expressions import MAX_LENGTH, ExpressionError, parse

VALUES = {"ep": 8, "vp": 64, "npe": 65536, "share": 0.5, "cell": "lstm", "none": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ep * vp <= npe", True),
        ("ep * vp > npe or not ep % 3 == 0", True),
        ("1 < ep <= 8 < vp", True),
        ("1 < ep < 8 < vp", False),
        ("min(4 * ep, npe // vp, 9) + max(1, 2)", 11),
        ("-(2 ** 3) + +1", -7),
        ("vp / ep * share", 4.0),
        ("ep if cell == 'lstm' else vp", 8),
        ("cell != 'gru' and npe // ep ** 2 == 1024", True),
        ("2 ** -1", 0.5),
        ("7 // 2 - 7 % 4", 0),
        ("+".join(["ep"] * 100), 800),
        ("1000" + " - ep // 2 * 3" * 33, 1000 - 33 * 12),
        ("True and 0x10 == 16", True),
    ],
)
def test_known_things_have_pythons_values(text: str, value: object) -> None:
    assert parse(text)(VALUES) == value


NUMBER = st.integers(-1000, 1000) | st.floats(-1e3, 1e3, allow_nan=False)
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, ">=": operator.ge}


@settings(derandomize=True, max_examples=60, deadline=None)
@given(a=NUMBER, b=NUMBER, c=NUMBER, first=st.sampled_from(sorted(SIGNS)), second=st.sampled_from(["+", "-", "*"]))
def test_names_stand_for_their_values(a: float, b: float, c: float, first: str, second: str) -> None:
    value = parse(f"a {first} (b {second} c)")({"a": a, "b": b, "c": c})
    assert value == SIGNS[first](a, SIGNS[second](b, c))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os').system('true')", "only min"),
        ("open('x')", "only min"),
        ("ep.real", "an attribute"),
        ("ep.__class__.__bases__", "an attribute"),
        ("[1][0]", "an index"),
        ("[1, 2]", "not allowed"),
        ("(1, 2)", "not allowed"),
        ("{}", "not allowed"),
        ("lambda: 1", "a function"),
        ("(x := 1)", "an assignment"),
        ("f'{ep}'", "a formatted text"),
        ("[x for x in y]", "not allowed"),
        ("ep is 1", "this comparison"),
        ("ep in vp", "this comparison"),
        ("ep << 100", "this operator"),
        ("ep @ vp", "this operator"),
        ("~ep", "this operator"),
        ("1j", "not allowed"),
        ("b'a'", "not allowed"),
        ("...", "not allowed"),
        ("min(ep)", "two numbers"),
        ("min(ep, vp, key=ep)", "two numbers"),
        ("min(*ep, vp)", "two numbers"),
        ("min", "is a function"),
        ("", "is no expression"),
        ("ep <=", "is no expression"),
        ("a = 1", "is no expression"),
        ("1; 2", "is no expression"),
        ("ep\0", "is no expression"),
        ("(" * 240 + "1" + ")" * 240, "is no expression"),
        ("-" * 100 + "1", "nested"),
        ("1+(" * 40 + "1" + ")" * 40, "nested"),
        ("2**" * 40 + "1", "nested"),
        ("cell == '\\ud800'", "half of a letter"),
        ("cell == '\ud800'", "is no expression"),
        ("9" * 400, "too large"),
        ("1e999", "too large"),
        ("1" * (MAX_LENGTH + 1), "at most"),
        ("await ep", "not allowed"),
        ("abs(ep)", r"only min\(\.\.\.\) and max\(\.\.\.\) can be called"),
    ],
)
def test_everything_else_is_refused_with_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9 ** 9 ** 9 ** 9", "too large"),
        ("2 ** npe", "too large"),
        ("npe ** npe", "too large"),
        ("(-npe) ** npe", "too large"),
        ("1.5 ** npe", "too large"),
        ("npe ** 20 * npe ** 20 * npe ** 20", "too large"),
        ("(0 - ep) ** share", "root of a negative"),
        ("ep // (vp - 64)", "divides by zero"),
        ("ep % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("cell * 1000", "only numbers"),
        ("cell % 3", "only numbers"),
        ("cell + 'a'", "only numbers"),
        ("cell < 3", "only numbers"),
        ("-cell", "only numbers"),
        ("none + 1", "only numbers"),
        ("min(cell, 3)", "only numbers"),
    ],
)
def test_what_cannot_be_computed_says_so(text: str, words: str) -> None:
    expression = parse(text)
    with pytest.raises(ExpressionError, match=words):
        expression(VALUES)


@pytest.mark.slow
@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.text(alphabet="ep vx0123456789.+-*/%()<>=!,&|~^@[]{}'\"\\:;_ifelsnotmradx\n\t", max_size=40))
def test_no_text_gets_through_with_another_error(text: str) -> None:
    with suppress(ExpressionError):
        expression = parse(text)
        expression(dict.fromkeys(expression.names, 3))
