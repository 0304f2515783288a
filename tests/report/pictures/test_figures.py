"""What all pictures share: colours that differ, greys of a printer, units of axes, and the room that numbers have."""

from __future__ import annotations

import pytest

from lstmsim.report.pictures.figures import (
    drawn,
    grey,
    job_style,
    line_look,
    set_cycles,
    set_time,
    short,
    ticks,
    unit_of,
)
from lstmsim.report.styles import GROUP_HATCHES, JOB_STYLES, WIDTHS, Look


def test_eight_curves_differ_in_colour_and_in_marker() -> None:
    looks = [line_look(number) for number in range(8)]
    assert len({each["color"] for each in looks}) == len({each["marker"] for each in looks}) == 8
    assert looks[0]["color"] == "#0072B2"
    # yellow on white comes last
    assert looks[7]["color"] == "#F0E442"


def test_jobs_get_hatches_where_colours_are_used_up() -> None:
    assert [job_style(number) for number in range(8)] == list(JOB_STYLES)
    assert {job_style(9).hatch, job_style(17).hatch, job_style(25).hatch} == set(GROUP_HATCHES[1:])
    assert (job_style(15).fill, job_style(15).ink) == (JOB_STYLES[7].fill, JOB_STYLES[7].ink)
    assert job_style(32) == job_style(0)


@pytest.mark.parametrize(
    ("colour", "lightness"),
    [
        ("#FFFFFF", 1.0),
        ("#000000", 0.0),
        ("#FF0000", 0.299),
        ("#00FF00", 0.587),
        ("#0000FF", 0.114),
        ("#336699", 0.363),
    ],
)
def test_greys_are_those_of_bt_601(colour: str, lightness: float) -> None:
    assert grey(colour) == pytest.approx(lightness, abs=1e-3)


def test_an_axis_has_the_unit_that_suits_its_span() -> None:
    # two of a unit at least
    assert [unit_of(each) for each in (2e6, 1.9e6, 2e3, 1.9e3, 2, 1.9)] == [
        *((1e6, "s"), (1e3, "ms")),
        *((1e3, "ms"), (1.0, "µs")),
        *((1.0, "µs"), (1e-3, "ns")),
    ]


@pytest.mark.parametrize(
    ("end", "label", "at", "said"),
    [
        (19_999, "time (cycles)", 12_000, "12,000"),
        (20_000, "time (kcycles)", 12_500, "12.5"),
        (20_000_000, "time (Mcycles)", 2_500_000, "2.5"),
    ],
)
def test_cycles_are_written_in_their_unit(end: int, label: str, at: int, said: str) -> None:
    with drawn() as figure:
        axes = figure.subplots()
        set_cycles(axes, 0, end)
    assert axes.get_xlabel() == label
    assert axes.xaxis.get_major_formatter()(at, 0) == said
    assert axes.get_xlim() == (0, end)


def test_time_stands_above_its_cycles() -> None:
    with drawn() as figure:
        axes = figure.subplots()
        set_time(axes, axes, 1_000, 11_000, 250)
    (above,) = axes.child_axes
    figure.canvas.draw()
    # 10,000 cycles of 4 ns
    assert above.get_xlabel() == "time (µs at 250 MHz)"
    assert above.get_xlim() == pytest.approx((4, 44))
    assert above.xaxis.get_major_formatter()(1234.5, 0) == "1,234.5"


@pytest.mark.parametrize(("inches", "most"), [(1, 3), (4, 6), (10, 10)])
def test_a_wider_picture_has_more_numbers(inches: float, most: int) -> None:
    with drawn(size=(inches, 3)) as figure:
        assert ticks(figure.subplots())["nbins"] == most


def test_a_legend_below_has_as_many_columns_as_fit() -> None:
    columns = {}
    for width in WIDTHS:
        with drawn(look=Look(width)) as figure:
            axes = figure.subplots()
            lines = [axes.plot([0, 1], [0, number])[0] for number in range(4)]
            before = figure.get_size_inches()[1]
            figure.name(lines, ["a name of many letters", "_b", "$c$", "d"], below=True)
        (box,) = figure.legends
        assert [each.get_text() for each in box.get_texts()] == ["a name of many letters", "_b", "$c$", "d"]
        # a line of it has more than its letters
        rows = -(-4 // box._ncols)
        assert figure.get_size_inches()[1] - before == pytest.approx(1.4 * (8 * rows + 6) / 72)
        columns[width] = box._ncols
    assert columns["column"] < columns["page"] <= 4


def test_texts_of_pictures_are_one_line() -> None:
    assert [short("a\nb"), short("a" * 26), short("a" * 27)] == ["a b", "a" * 26, "a" * 25 + "…"]
