"""The accuracy picture by its parts, and the numbers beside it."""

from __future__ import annotations

import csv
from math import inf, nan
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from lstmsim.base.errors import InputError
from lstmsim.studies.accuracy.picture import plot

BITS = (4, 5, 6)
CURVES = [("a", [10.0, 17.0, 22.0]), ("b", [8.0, inf, nan])]


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_lines_are_the_jobs_and_one_is_the_slope() -> None:
    upper, lower = plot(BITS, CURVES, [0.5, 0.9, 1.0]).axes
    first, second, slope = upper.get_lines()
    assert list(first.get_xdata()) == list(BITS)
    assert list(first.get_ydata()) == CURVES[0][1]
    assert np.isfinite(second.get_ydata()).tolist() == [True, False, False]
    assert np.diff(slope.get_ydata()).tolist() == pytest.approx([6.02, 6.02])
    assert slope.get_marker() in ("None", None, "")
    (share,) = lower.get_lines()
    assert list(share.get_ydata()) == [50, 90, 100]
    assert [text.get_text() for text in lower.texts] == ["50.0", "90.0", "100.0"]
    assert "%" in lower.get_ylabel()
    assert lower.get_xlabel() == "width of weights and vectors (bits)"


def test_without_words_there_is_one_panel_and_one_width_has_no_slope() -> None:
    (upper,) = plot([8], [("a", [20.0])]).axes
    assert len(upper.get_lines()) == 1
    assert upper.get_xlabel() == "width of weights and vectors (bits)"


def test_jobs_differ_in_more_than_colour() -> None:
    curves = [(f"job {number}", [1.0 * number, 2.0 * number]) for number in range(24)]
    figure = plot([4, 5], curves)
    lines = figure.axes[0].get_lines()[:24]
    looks = {(line.get_marker(), line.get_linestyle()) for line in lines}
    assert len(looks) == 24
    texts = legend_texts(figure)
    assert len(texts) == 17
    assert texts[15].endswith("and 8 more")
    assert texts[16].startswith("slope")


def test_numbers_stand_beside_the_picture(tmp_path: Path) -> None:
    plot(BITS, CURVES, [0.5, 0.9, 1.0], tmp_path / "a.svg")
    assert {each.name for each in tmp_path.iterdir()} == {"a.svg", "a.csv"}
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["bits"] for row in rows] == ["4", "5", "6"]
    assert [float(row["a sqnr_db"]) for row in rows] == CURVES[0][1]
    assert [row["b sqnr_db"] for row in rows] == ["8", "", ""]
    assert [float(row["words_unchanged"]) for row in rows] == [0.5, 0.9, 1.0]
    plot(BITS, CURVES, path=tmp_path / "b.svg")
    assert "words" not in (tmp_path / "b.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".pdf", *(pytest.param(each, marks=pytest.mark.long) for each in (".png", ".svg"))])
def test_pictures_are_equal_byte_for_byte(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "two"):
        plot(BITS, CURVES, [0.5, 0.9, 1.0], tmp_path / (name + suffix))
    first = (tmp_path / f"one{suffix}").read_bytes()
    assert first == (tmp_path / f"two{suffix}").read_bytes()
    assert len(first) > 5000


def test_other_suffixes_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        plot(BITS, CURVES, path=tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    names = ("$x^2", "_hidden", "a\nb", "漢字", "$\\frac{", "x" * 500, "")
    figure = plot(BITS, [(name, [1.0, 2.0, 3.0]) for name in names], path=tmp_path / "a.png", title=" ".join(names))
    for text, name in zip(legend_texts(figure), names, strict=False):
        assert text.startswith(name[:5].replace("\n", " "))
        assert len(text) <= 30
    assert len(legend_texts(figure)) > len(names)


def test_without_any_finite_number_it_is_still_a_picture() -> None:
    figure = plot(BITS, [("a", [inf, inf, inf])])
    assert legend_texts(figure) == ["a"]


def test_the_picture_leaves_the_users_settings_alone(tmp_path: Path) -> None:
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        plot(BITS, CURVES, path=tmp_path / "a.png")
        assert dict(matplotlib.rcParams) == before
