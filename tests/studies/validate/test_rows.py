"""Rows and groups, and their failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.studies.validate.rows import ClaimRow, Group, Judgement, Row, Validation, Verdict

ROW = Row("g", "a", "latency", "cycles", published=200, simulated=200, band=0.0, source="a paper")


def group(*rows: Row, promised: int | None = None) -> Group:
    return Group("g", "Some chip", "some-chip", rows, len(rows) if promised is None else promised)


@pytest.mark.parametrize(
    ("simulated", "band", "ok"),
    [(200, 0.0, True), (201, 0.0, False), (210, 0.05, True), (190, 0.05, True), (211, 0.05, False), (189, 0.05, False)],
)
def test_the_band_is_the_largest_relative_error(simulated: float, band: float, ok: bool) -> None:
    row = replace(ROW, simulated=simulated, band=band)
    assert row.ok is ok
    assert row.error == pytest.approx(simulated / 200 - 1)
    assert row.exact is (simulated == 200)


def test_a_group_counts_and_names_its_worst() -> None:
    rows = [replace(ROW, name=name, simulated=s, band=0.05) for name, s in (("a", 200), ("b", 192), ("c", 208))]
    whole = group(*rows)
    assert (whole.exact, whole.within, whole.band) == (1, 3, 0.05)
    assert whole.worst == rows[1]
    assert group(ROW).worst is None
    assert not whole.failures


def test_mean_and_worst_are_errors_and_a_factor_names_the_ratios_too() -> None:
    rows = [replace(ROW, name=name, unit="ms", simulated=s, factor=3.0) for name, s in (("low", 80), ("high", 360))]
    whole = group(*rows)
    assert whole.worst == rows[1], "a ratio of 0.4 is further from 1, an error of +80 % is larger"
    assert whole.mean_error == pytest.approx(0.7)
    assert whole.result == (
        "2 of 2 within a factor of 3; mean error 70.00 %, worst high, +80.00 %; "
        "simulated / published 0.40 to 1.80, geometric mean 0.85"
    )


@pytest.mark.parametrize(
    ("nulls", "noise", "verdict"),
    [
        ((0.3, -0.1), 0.0, "more accurate than the simulator: not evidence of size dependence"),
        ((0.9, -0.9), 0.25, "not better by more than the noise (why): not evidence of size dependence"),
        ((0.9, -0.9), 0.1, "better by more than the noise of 10.0 %: evidence of size dependence"),
    ],
)
def test_a_null_model_is_judged_by_the_same_words(nulls: tuple[float, float], noise: float, verdict: str) -> None:
    judgement = Judgement((0.6, -0.8), nulls, False, noise, "why", null_fitted=True)
    assert f"mean error {50 * sum(map(abs, nulls)):.2f} %, worst {100 * max(nulls):.2f} %; " in judgement.sentence
    assert judgement.sentence.endswith(verdict)
    assert "fitted to these rows" in judgement.sentence


def test_failures_say_row_figures_and_promise() -> None:
    wrong = replace(ROW, simulated=202)
    far = replace(ROW, quantity="throughput", unit="TOPS", published=2.0, simulated=1.5, band=0.05)
    assert group(ROW, wrong, far).failures == (
        "g: a: latency published 200 cycles, simulated 202 (+1 %); expected the same figure",
        "g: a: throughput published 2 TOPS, simulated 1.5 (-25 %); expected at most 5 % of error",
    )


def test_lost_rows_are_a_failure() -> None:
    (sentence,) = group(ROW, promised=2).failures
    assert sentence == "g: 1 rows, expected 2: published rows are missing"
    assert group(promised=1).failures
    assert group(promised=1).worst is None


@pytest.mark.parametrize("verdict", ["holds", "fails", "not judged", "not simulated"])
def test_only_failed_claims_are_failures(verdict: Verdict) -> None:
    claim = ClaimRow("key", "topic", "a claim: 2 x", "a condition", "3 x", verdict, "a paper")
    expected = ("key: a claim: 2 x: 3 x",) if verdict == "fails" else ()
    assert Validation("fast", (), (claim,)).failures == expected
    assert Validation("fast", (group(ROW),), (claim,)).failures == expected
