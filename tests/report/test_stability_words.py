"""By how much assumptions are moved, and what is said of conclusions that flip."""

from __future__ import annotations

import pytest

from lstmsim.report.document import Document
from lstmsim.report.renderings import text
from lstmsim.report.stability import Assumption, Flip, Stability, percents


def assumption(*values: float, whole: bool = True, low: float | None = None, high: float | None = None) -> Assumption:
    return Assumption("column-npu", "cores.latency.add", values, "cycles", whole, low, high)


def test_percents_end_with_the_end() -> None:
    assert percents(0.03) == [0.01, 0.02, 0.03]
    assert percents(-0.025) == [-0.01, -0.02, -0.025]
    assert percents(0.005) == [0.005]


def test_a_whole_number_is_moved_in_steps_of_one() -> None:
    eight = assumption(8)
    assert eight.levels(0.5) == [1 / 8, 2 / 8, 3 / 8, 4 / 8]
    assert eight.levels(-0.5) == [-1 / 8, -2 / 8, -3 / 8, -4 / 8]
    assert assumption(8, high=10).levels(0.5) == [1 / 8, 2 / 8]
    assert [eight.at(8, share) for share in eight.levels(0.5)] == [9, 10, 11, 12]


@pytest.mark.parametrize("each", [assumption(8, 9), assumption(8.0, whole=False), assumption(0)])
def test_all_else_is_moved_in_steps_of_a_percent(each: Assumption) -> None:
    assert each.levels(0.02) == [0.01, 0.02]


def test_values_keep_their_bounds_and_halves_go_outwards() -> None:
    assert [assumption(3, low=2, high=4).at(3, share) for share in (-0.9, -0.1, 0.1, 0.9)] == [2, 3, 3, 4]
    assert [assumption(5).at(5, share) for share in (-0.1, 0.1)] == [4, 6]
    assert assumption(2.5, whole=False).at(2.5, 0.1) == pytest.approx(2.75)
    assert [assumption(0, 4).moves(0.5), assumption(0).moves(0.5), assumption(1).moves(0.2)] == [True, False, False]


def test_a_moved_value_is_said_with_what_it_was() -> None:
    assert assumption(2000).words(0.5) == "column-npu latency.add is 3,000 cycles (assumed: 2,000)"
    assert assumption(8, 20).words(-0.25) == "column-npu latency.add is -25 %"


def flip(question: str, share: float, *keys: str, at: str = "x") -> Flip:
    return Flip(question, "a", "b", keys or ("k",), share, at)


def said(*flips: Flip, questions: int = 2, refused: tuple[str, ...] = ()) -> Stability:
    conclusions = {f"q{number}": "a" for number in range(questions)}
    return Stability(0.5, (assumption(8),), ("k0",), conclusions, flips, refused, "3 of 9 were asked again")


START = "STABILITY: 1 assumption (latencies, bandwidths) 50 % lower and higher, singly and together; "


def test_the_headline_counts_questions_and_not_flips() -> None:
    assert said().headline == f"{START}2 conclusions, none flips"
    assert said(flip("q0", 0.1), flip("q0", -0.1)).headline == f"{START}2 conclusions, of which 1 flips"
    assert said(flip("q0", 0.1), flip("q1", 0.1)).headline == f"{START}2 conclusions, of which 2 flip"
    unsure = said(refused=("k +50 %: no chip",))
    assert unsure.headline == f"{START}2 conclusions, none flips, as far as it could be asked"


def test_the_sentence_names_the_least_change_of_one_key_first() -> None:
    flips = (
        flip("q0", 0.01, "k", "l", at="all together"),
        flip("q0", 0.4, at="far"),
        flip("q0", -0.2, at="near"),
        flip("q1", 0.3, "k", "l", at="both"),
    )
    expected = f"{START}2 conclusions, of which 2 flip; q0 (a) is b where near; q1 (a) is b where both"
    assert said(*flips).sentence == expected
    many = said(*(flip(f"q{number}", 0.1) for number in range(6)), questions=6).sentence
    assert many.count(" is b where ") == 4
    assert many.endswith("; and 2 more")
    assert not said(*(flip(f"q{number}", 0.1) for number in range(4)), questions=4).sentence.endswith("more")


def lines(stability: Stability) -> list[str]:
    shown = text(Document.of("", stability.section)).split("\n")
    return [each for each in shown if each.startswith("* ")]


def test_the_section_has_each_flip_up_to_a_bound() -> None:
    rest = ["* not moved, for they are 0, at a bound, or move by less than half of 1: k0", "* 3 of 9 were asked again"]
    assert lines(said(flip("q0", 0.1))) == ["* q0: a, but b where x", *rest]
    assert lines(said(refused=("k +50 %: no chip",))) == ["* not asked: k +50 %: no chip", *rest]
    many = lines(said(*(flip("q0", 0.1) for _ in range(13))))
    assert many == ["* q0: a, but b where x"] * 12 + ["* ... and 1 more flips", *rest]
    assert len(lines(said(*(flip("q0", 0.1) for _ in range(12))))) == 14
