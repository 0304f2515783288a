"""Bars of ways to do the same: their lengths are the numbers, what was not simulated has none, names are texts."""

from __future__ import annotations

from itertools import count

import pytest

from lstmsim.report.pictures.bars import plot
from lstmsim.report.styles import Look


def test_a_bar_for_each_way_with_its_cycles() -> None:
    picture = plot([("a$b$", 300), ("other", None), ("mine", 120)], "mine", "A title")
    (axes,) = picture.axes
    assert [each.get_width() for each in axes.patches] == [300, 0, 120]
    assert [each.get_text() for each in axes.texts] == ["300", "not simulated", "120"]
    assert [each.get_text() for each in axes.get_yticklabels()] == ["a$b$", "other", "mine"]
    colours = [each.get_facecolor() for each in axes.patches]
    assert colours[0] == colours[1] != colours[2]
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_many_ways_are_cut_with_a_count_and_paper_has_no_title() -> None:
    names = count()
    picture = plot([(f"way {next(names)}", 7) for _ in range(30)], "way 0", "A title", Look("column", "paper"))
    (axes,) = picture.axes
    assert len(axes.patches) == 24
    assert axes.get_xlabel() == "cycles; 6 more ways are in the table"
    assert picture.caption == "A title"
    assert picture._suptitle is None
    assert picture.get_size_inches()[0] == 3.5


def test_as_many_ways_as_are_drawn_leave_none_for_the_table() -> None:
    (axes,) = plot([(f"way {number}", 7) for number in range(24)], "way 0").axes
    assert axes.get_xlabel() == "cycles"
    # numbers stand beside the longest bar, inside of the picture
    assert axes.get_xlim() == (0, pytest.approx(1.14 * 7))
    (none,) = plot([("a", None)], "a").axes
    assert none.get_xlim() == (0, pytest.approx(1.14))
