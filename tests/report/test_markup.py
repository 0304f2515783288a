"""Axes, ticks and outlines of pages: every place and number is the one that was computed by hand."""

from __future__ import annotations

import json
import re

import pytest

from lstmsim.report.document import Document, grid
from lstmsim.report.html.markup import Scale, area, bottom_axis, element, level_lines, number_text, percent, round_ticks
from lstmsim.report.page import frame
from lstmsim.report.page.frame import linked, result_page

ACROSS, UP = Scale(0, 10, 50, 150), Scale(0, 4, 100, 0)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 80, [0, 10, 20, 30, 40, 50, 60, 70, 80]),
        (0, 81, [0, 20, 40, 60, 80]),
        (0, 0.03, [0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03]),
        (0.1, 0.35, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]),
        (2.53, 3.34, [2.6, 2.8, 3, 3.2]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_multiples_of_1_2_or_5(low: float, high: float, ticks: list[float]) -> None:
    assert round_ticks(low, high) == ticks


def test_ticks_of_what_is_counted_are_whole() -> None:
    assert round_ticks(0, 3, whole=True) == [0, 1, 2, 3]
    assert round_ticks(0, 3) == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert round_ticks(0, 30, most=3, whole=True) == [0, 10, 20, 30]


def numbers(markup: str) -> list[tuple[float, float, str]]:
    """Place and text of each number and name."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)', markup)
    return [(float(x), float(y), text) for x, y, text in found]


def lines(markup: str) -> list[tuple[str, ...]]:
    return re.findall(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', markup)


def test_numbers_stand_where_their_values_are() -> None:
    below = bottom_axis(ACROSS, 20, "time", [0, 2.5, 5], unit=" s")
    assert numbers(below) == [(50, 35, "0 s"), (75, 35, "2.5 s"), (100, 35, "5 s"), (150, 49, "time")]
    assert lines(below) == [("50", "20", "150", "20"), *((at, "20", at, "24") for at in ("50", "75", "100"))]
    above = bottom_axis(ACROSS, 40, "time", [10], above=True)
    assert numbers(above) == [(150, 33, "10"), (150, 20, "time")]
    assert lines(above)[1:] == [("150", "40", "150", "36")]
    assert numbers(bottom_axis(ACROSS, 20, "", [])) == []
    level = level_lines(ACROSS, UP, [1, 2.3456789], "%")
    assert numbers(level) == [(44, 79, "1%"), (44, 45.36, "2.34568%")]
    assert lines(level) == [("50", "75", "150", "75"), ("50", "41.36", "150", "41.36")]
    assert ">12,345<" in bottom_axis(Scale(0, 20_000, 0, 100), 0, "", [12_345])


def test_an_area_begins_at_zero_and_ends_at_its_levels() -> None:
    assert area(ACROSS, UP, [0, 5, 10], [1, 2]) == element(
        "path", d="M50 75H100V100H50zM100 50H150V100H100z", class_="area"
    )
    assert area(ACROSS, UP, [0, 5, 10], [0, 2]) == element("path", d="M100 50H150V100H100z", class_="area")


def test_coordinates_and_shares_are_short() -> None:
    assert [number_text(each) for each in (10, 2.5, 1 / 3, 100.0, 0)] == ["10", "2.5", "0.33", "100", "0"]
    assert [percent(1, 4), percent(0, 4), percent(4, 0)] == ["25.0 %", "–", "–"]


def test_only_numbers_of_an_answer_lead_to_the_rows() -> None:
    said = linked("p99 of 3 jobs: 1,423 cycles, 2.5 ms, 7-bit, v1.2", frame._NUMBER, "rows")
    assert re.findall(r'<a href="#rows">([^<]*)</a>', said) == ["3", "1,423", "2.5"]
    assert "<a" not in linked("3 jobs", frame._NUMBER, "")


def held(page: str) -> dict[str, object]:
    """The rows that a page holds for its scripts."""
    found = re.search(r'id="data-rows">(.*?)</script>', page)
    assert found is not None
    rows = json.loads(found[1])
    assert isinstance(rows, dict)
    return rows


def test_a_page_holds_what_can_be_drawn_and_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "MOST_ROWS", 3)
    records = [{"a": 1, "b": float("inf")}, {"a": 2.5, "b": -float("inf"), "c": (1, 2)}, {"a": "x"}, {"a": 4}]
    page = result_page(
        Document.of("4 rows.", grid(["a"], [[1]])), "T", records=records, axes=("a", "none", "c", "line")
    )
    rows = held(page)
    assert rows["columns"] == ["a", "b", "c"]
    assert rows["values"] == [[1, 2.5, "x"], [None, None, None], [None, "[1, 2]", None]]
    assert rows["axes"] == ["a", None, "c"]
    assert rows["line"] is True
    assert rows["baseline"] is None
    assert "The page has the first 3 of 4 rows." in page
    full = result_page(Document.of("3 rows."), "T", records=records[:3], axes=("a", "b", "line"))
    assert "The page has the first" not in full
    # the third name is a colour, whatever it is called
    assert held(full)["line"] is False
