"""Numbers and names for people: nothing reads as something else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lstmsim
from lstmsim.base.units import rank_below, tops
from lstmsim.report.figures_text import cut, percent, short_name, three_digits
from tests.strategies import CHARACTERS

PACKAGE = Path(lstmsim.__file__).parent


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_share_reads_as_nothing_only_where_there_is_none(part: int, whole: int) -> None:
    text = percent(part, whole)
    assert (text == "0.0 %") == (part == 0)
    if text not in ("0.0 %", "<0.1 %"):
        assert abs(float(text.removesuffix(" %")) - 100 * part / whole) <= 0.05 * (1 + 1e-9)


def test_a_share_that_rounds_to_a_tenth_of_a_percent_is_one() -> None:
    assert [percent(part, 100_000) for part in (49, 50, 51)] == ["<0.1 %", "0.1 %", "0.1 %"]
    assert percent(45, 100_000) == "<0.1 %"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123456, "0.0123"), (99.94, "99.9"), (100.4, "100"), (-1234.6, "-1,235")]
)
def test_three_digits_and_all_before_the_point(value: float, text: str) -> None:
    assert three_digits(value) == text


@given(st.text(CHARACTERS), st.integers(4, 40))
def test_names_fit_and_can_be_printed(name: str, length: int) -> None:
    shown = short_name(name, length)
    assert shown.isprintable()
    assert len(shown) == min(len(name), length)
    assert len(cut(name, length)) == min(len(name), length)
    assert short_name(name[:length], length) == "".join(each if each.isprintable() else "?" for each in name[:length])


@given(st.integers(1, 10**6), st.floats(0.001, 99.999))
def test_ranks_are_those_of_linear_interpolation(count: int, percentile: float) -> None:
    rank, rest, whole = rank_below(count, percentile)
    assert 0 <= rank <= count - 1
    assert 0 <= rest < whole
    assert rank + rest / whole == pytest.approx((count - 1) * percentile / 100, abs=1e-3)


def test_a_chip_at_its_peak_has_the_tops_of_its_multipliers() -> None:
    assert tops(64_000 * 1000, 1000, 250.0) == tops(64_000, 1, 250.0) == 32.0
    assert tops(0, 0, 250.0) == 0.0


def test_shares_and_tops_are_worked_out_in_one_place() -> None:
    """No other module has a percent of its own that says `<0.1 %`, or the factor from operations to TOPS."""
    texts = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        parsed = ast.walk(ast.parse(source)) if "<0.1 %" in source else ()
        strings = [node.value for node in parsed if isinstance(node, ast.Constant)]
        home = path.relative_to(PACKAGE).as_posix()
        if "<0.1 %" in strings or "frequency_mhz / 1e6" in source or "makespan / 1e6" in source:
            texts[home] = True
    # a change that may be a loss has another rule; bytes a second are no operations
    assert set(texts) == {"report/figures_text.py", "analysis/explanations/text.py", "studies/fit/fit.py"}
