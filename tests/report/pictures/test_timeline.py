"""The timeline picture by its parts: what is drawn where, in which look, and that nothing is lost."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

import lstmsim
from lstmsim.analysis.spans import ROW_LIMIT, covered_cycles, window_edges
from lstmsim.analysis.stall_words import NAMED
from lstmsim.analysis.timeline import STATES, Row, window
from lstmsim.base.errors import InputError
from lstmsim.report.pictures.figures import grey, job_style
from lstmsim.report.styles import JOB_STYLES
from lstmsim.studies.simulate import picture
from lstmsim.studies.simulate.picture import plot, stacked_fractions, view_of
from tests.timelines import BUSY, busy_machine, small, timeline_from, timelines

HAZARD = STATES.index("hazard")
#: The looks of everything but work.
STYLES = {name: NAMED[name].style for name in STATES if name != "busy"}


def bars(figure: Figure) -> dict[tuple[str, str], float]:
    """Total length in cycles by fill and hatch."""
    lengths_of: dict[tuple[str, str], float] = {}
    for collection in figure.axes[0].collections:
        look = (to_hex(collection.get_facecolor()[0]).upper(), collection.get_hatch() or "")
        lengths = [np.ptp(path.vertices[:, 0]) for path in collection.get_paths()]
        lengths_of[look] = lengths_of.get(look, 0) + sum(lengths)
    return lengths_of


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_colour_is_the_job_and_hatching_the_cause():
    timeline = small(memory=True)
    lengths = timeline.end - timeline.start
    drawn = bars(plot(timeline))
    for job in range(2):
        mine = (timeline.state == BUSY) & (timeline.job == job)
        assert drawn[job_style(job).fill, ""] == lengths[mine].sum()
    for name, style in STYLES.items():
        if style.hatch:
            assert drawn[style.fill, style.hatch] == lengths[timeline.state == STATES.index(name)].sum()


def lab(colour: str) -> NDArray[np.float64]:
    """A colour of sRGB in CIE L*a*b*, where distances are those that the eye sees."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / to_xyz.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_cause_has_a_hatch_and_a_light_tint_of_its_own():
    causes = [style for name, style in STYLES.items() if name not in ("idle", "ready")]
    assert len({style.hatch for style in causes}) == len(causes)
    assert all(grey(style.fill) > 0.7 for style in causes)
    # where spans are too short for a hatch, tints alone tell causes and jobs apart
    fills = [[style.fill for name, style in STYLES.items() if name != "idle"]]
    fills += [[NAMED[name].dark[0] for name in STYLES if name != "idle" and NAMED[name].dark]]
    for looks, least in zip(fills, (10, 8), strict=True):
        for one, other in itertools.combinations(looks, 2):
            assert np.linalg.norm(lab(one) - lab(other)) > least, (one, other)
        for one, job in itertools.product(looks, JOB_STYLES):
            assert np.linalg.norm(lab(one) - lab(job.fill)) > 15, (one, job)


def test_a_short_wait_looks_like_a_long_one():
    """Of two waits for one cause, one is below a pixel; both rows show it in one look."""
    spans = [(0, 0, 5, HAZARD, -1, -1, -1), (0, 5, 90_000, BUSY, 0, 0, 0), (1, 0, 80_000, HAZARD, 0, 0, 0)]
    figure = plot(timeline_from(spans, (Row(0, "array"), Row(0, "thread")), ("a",), 90_000))
    style = STYLES["hazard"]
    drawn = {look: length for look, length in bars(figure).items() if look[0] == style.fill}
    assert drawn == {(style.fill, style.hatch): 80_005}


def test_eight_jobs_can_be_told_apart_in_grey():
    looks = [job_style(number) for number in range(8)]
    assert len({look.fill for look in looks}) == 8
    for one, other in itertools.combinations(looks, 2):
        assert abs(grey(one.fill) - grey(other.fill)) > 0.1 or one.hatch != other.hatch
    waits = [style for name, style in STYLES.items() if name != "idle"]
    for look, wait in itertools.product(looks, waits):
        assert grey(wait.fill) - grey(look.fill) > 0.1 or look.hatch != wait.hatch


def test_axes_are_in_cycles_and_in_time():
    figure = plot(small())
    upper, lower = figure.axes[:2]
    assert lower.get_xlabel() == "time (cycles)"
    assert lower.get_xlim() == (0, 140)
    (micro,) = upper.child_axes
    figure.draw_without_rendering()
    assert micro.get_xlabel() == "time (ns at 260 MHz)"
    assert micro.get_xlim() == pytest.approx((0, 1000 * 140 / 260))
    assert [label.get_text() for label in upper.get_yticklabels()] == [row.name for row in small().rows]


def test_the_title_has_chip_makespan_and_utilization():
    title = plot(small()).get_suptitle()
    assert title == "column-npu-64k: 140 cycles (538 ns), array busy 72.1 %"


def test_a_job_is_named_on_its_work_where_that_fits():
    labels = [text.get_text() for text in plot(small()).axes[0].texts]
    assert sorted(labels) == ["lstm-512 #0", "lstm-512 #0", "lstm-512 #1", "lstm-512 #1"]
    assert len(plot(busy_machine(spans=5000)).axes[0].texts) == 0


@given(timelines())
@settings(max_examples=10, deadline=None)
def test_windows_keep_every_cycle(timeline):
    for count in (1, 3, 200):
        edges = window_edges(0, timeline.makespan_cycles, count)
        assert len(edges) - 1 <= count
        assert len(set(np.diff(edges)[:-1].tolist())) <= 1
        for row in range(len(timeline.rows)):
            mine = timeline.row == row
            covered = covered_cycles(timeline.start[mine], timeline.end[mine], edges)
            assert covered.sum() == (timeline.end - timeline.start)[mine].sum()
            assert (covered >= 0).all()
            assert (covered <= np.diff(edges)).all()


def test_windows_agree_with_counting_cycle_by_cycle():
    timeline = busy_machine(1, 2, 3, 40)
    busy = np.zeros(timeline.makespan_cycles, dtype=int)
    mine = (timeline.row == 0) & (timeline.state == BUSY)
    for start, end in zip(timeline.start[mine], timeline.end[mine], strict=True):
        busy[start:end] = 1
    edges = window_edges(5, timeline.makespan_cycles - 3, 17)
    counted = [busy[low:high].sum() for low, high in itertools.pairwise(edges)]
    assert covered_cycles(timeline.start[mine], timeline.end[mine], edges).tolist() == counted


def test_above_the_limit_columns_show_fractions_and_the_picture_says_so(monkeypatch):
    timeline = busy_machine(1, 2, 3, 60)
    spans = len(view_of(timeline, None, None, None))
    monkeypatch.setattr(picture, "SPAN_LIMIT", spans)
    exact = plot(timeline)
    monkeypatch.setattr(picture, "SPAN_LIMIT", spans - 1)
    binned = plot(timeline)
    assert "fractions" not in exact.get_suptitle()
    assert f"{spans:,} spans: each column shows fractions of its time" in binned.get_suptitle()
    assert len(binned.axes[0].texts) == 0


def test_fractions_add_up_to_the_spans():
    timeline = busy_machine(2, 2, 3, 200)
    view = view_of(timeline, 100, 2500, None)
    edges = window_edges(100, 2500, 77)
    for row, stack in enumerate(stacked_fractions(view, edges)):
        total = sum((part * np.diff(edges)).sum() for part in stack.values())
        mine = view.row == row
        assert total == pytest.approx((view.end - view.start)[mine].sum())
        assert (sum(stack.values()) <= 1 + 1e-9).all()


@pytest.mark.slow
def test_many_jobs_share_a_short_legend():
    figure = plot(busy_machine(1, 2, 1000, 2000))
    assert any(text.startswith("+ ") and "more" in text for text in legend_texts(figure))
    assert len(legend_texts(figure)) < 20


@pytest.mark.slow
def test_many_rows_stay_on_a_page():
    figure = plot(busy_machine(1, 64, 64, 100))
    assert figure.get_size_inches()[1] < 14
    assert len(figure.axes[0].get_yticks()) == 66
    crowd = plot(busy_machine(16, 16, 32, 20))
    assert len(crowd.axes[0].get_yticks()) <= ROW_LIMIT
    assert "not shown: 256 thread rows" in crowd.get_suptitle()


def test_a_window_and_cores_are_cut_out():
    timeline = busy_machine(3, 2, 4, 60)
    figure = plot(timeline, start=100, end=200, cores=[2, 0])
    upper, lower = figure.axes[:2]
    assert lower.get_xlim() == (100, 200)
    assert {label.get_text().split()[1] for label in upper.get_yticklabels()} == {"0", "2"}
    assert "cycles 100 to 200 of" in figure.get_suptitle()
    for collection in upper.collections:
        for path in collection.get_paths():
            assert path.vertices[:, 0].min() >= 100
            assert path.vertices[:, 0].max() <= 200


@pytest.mark.parametrize(
    ("choice", "place"),
    [
        ({"start": -1}, "start"),
        ({"start": 140}, "start"),
        ({"start": 50, "end": 50}, "end"),
        ({"end": 0}, "end"),
        ({"cores": [7]}, "cores"),
        ({"cores": []}, "cores"),
    ],
)
def test_a_window_or_core_that_is_not_there_is_refused(choice, place):
    with pytest.raises(InputError) as caught:
        plot(small(), **choice)
    assert [mistake.location for mistake in caught.value.mistakes] == [place]


def test_a_window_is_drawn_as_one():
    """Its data fill the axis, and its busy share is that of its own cycles: 10 + 36 + 5 of 70."""
    figure = plot(window(small(), 30, 100))
    assert figure.axes[1].get_xlim() == (30, 100)
    assert figure.get_suptitle() == (
        "column-npu-64k: window of cycles 30 to 100 of 140 cycles (538 ns), array busy 72.9 % of the window"
    )
    assert figure.get_suptitle() == plot(small(), start=30, end=100).get_suptitle()
    with pytest.raises(InputError, match="must be a cycle of the timeline, 30 to 99, got 10"):
        plot(window(small(), 30, 100), start=10)


def test_more_requests_than_colours_have_those_of_their_entries():
    """Two entries of ten requests each; a legend of twenty names would tell nothing."""
    jobs = [{"name": name, "model": "lstm-256", "steps": 2, "count": 10} for name in ("voice", "ads")]
    scenario = {"chip": "column-npu-16k", "jobs": jobs}
    timeline = lstmsim.trace(scenario)
    assert timeline.jobs[:2] == ("voice #1", "voice #2")
    figure = plot(timeline)
    assert legend_texts(figure)[:2] == ["voice (10 requests)", "ads (10 requests)"]
    work = {look for look in bars(figure) if look[0] in {style.fill for style in JOB_STYLES}}
    assert work == {(JOB_STYLES[0].fill, ""), (JOB_STYLES[1].fill, "")}
    assert {text.get_text() for text in figure.axes[0].texts} <= set(timeline.jobs), "spans bear the request's name"
    few = lstmsim.trace(scenario, overrides=["jobs.0.count=4", "jobs.1.count=4"])
    assert few.groups == ()
    assert legend_texts(plot(few))[:2] == ["voice #1", "voice #2"]


def test_long_times_are_written_out():
    """No powers of ten, in a unit of which there are some, and commas in every number of four digits and more."""
    figure = plot(timeline_from([(0, 0, 16_541_800, BUSY, 0, 0, 0)], (Row(0, "array"),), ("a",), 16_541_800))
    figure.draw_without_rendering()
    (micro,) = figure.axes[0].child_axes
    assert (micro.get_xlabel(), figure.axes[1].get_xlabel()) == ("time (ms at 260 MHz)", "time (kcycles)")
    assert "10" in [each.get_text() for each in micro.get_xticklabels()]
    assert "10,000" in [each.get_text() for each in figure.axes[1].get_xticklabels()]
    assert "16,541,800 cycles (63.6 ms)" in figure.get_suptitle()
    assert figure.axes[1].get_title(loc="right") == "windows of 82,709 cycles"


def test_an_end_after_the_end_shows_all():
    assert plot(small(), end=10**9).axes[1].get_xlim() == (0, 140)


@pytest.mark.parametrize("suffix", [".svg", *(pytest.param(each, marks=pytest.mark.long) for each in (".png", ".pdf"))])
def test_pictures_are_equal_byte_for_byte(tmp_path, suffix):
    for name in ("one", "two"):
        plot(small(), tmp_path / (name + suffix))
    first = (tmp_path / f"one{suffix}").read_bytes()
    assert first == (tmp_path / f"two{suffix}").read_bytes()
    assert len(first) > 5000


def test_text_in_an_svg_stays_text(tmp_path):
    plot(small(), tmp_path / "a.svg")
    assert "time (cycles)</text>" in (tmp_path / "a.svg").read_text()


def test_other_suffixes_are_refused_before_any_work(tmp_path):
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        plot(small(), tmp_path / "a.bmp")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are(tmp_path):
    names = ("$x^2", "_hidden", "a\nb", "漢字", "$\\frac{", "x" * 500, "")
    spans = [(0, 10 * job, 10 * job + 10, BUSY, job, 0, 0) for job in range(len(names))]
    figure = plot(timeline_from(spans, (Row(0, "array"),), names, 70, chip=" ".join(names)), tmp_path / "a.png")
    for text, name in zip(legend_texts(figure), names, strict=False):
        assert text.startswith(name[:5].replace("\n", " "))
    assert len(legend_texts(figure)) >= len(names)


@pytest.mark.slow
def test_the_picture_leaves_the_users_settings_alone(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        plot(small(), tmp_path / "a.png")
        assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_the_legend_lies_outside_and_hides_no_row():
    figure = plot(busy_machine(2, 2, 9, 40))
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert all(legend.x0 >= axes.get_window_extent().x1 for axes in figure.axes[:2])
    assert legend.x1 <= figure.bbox.x1 + 1
    assert all(isinstance(handle, Patch) for handle in figure.legends[0].get_patches())


@pytest.mark.slow
@given(timelines())
@settings(max_examples=3, deadline=None)
def test_any_timeline_can_be_drawn(timeline):
    with tempfile.TemporaryDirectory() as folder:
        figure = plot(timeline, Path(folder, "a.png"))
    assert len(figure.axes[0].get_yticks()) == len(timeline.rows)
