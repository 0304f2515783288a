"""The pictures of a page: looks as elsewhere, nothing lost, nothing outside the frame."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lstmsim.analysis.spans import ROW_LIMIT, Spans, busy_windows, spans_of, use_over_time, window_edges
from lstmsim.analysis.stall_words import NAMED
from lstmsim.analysis.timeline import Row, Timeline, window
from lstmsim.report.html.markup import Markup, Scale, Section, round_ticks, steps
from lstmsim.report.page.frame import page
from lstmsim.report.pictures.figures import grey
from lstmsim.studies.simulate.page import looks
from lstmsim.studies.simulate.page import timeline as section
from lstmsim.studies.simulate.page.explorer import explorer
from lstmsim.studies.simulate.page.page import report_page
from lstmsim.studies.simulate.page.sections import accounts_section, latency_section
from lstmsim.studies.simulate.page.timeline import timeline_sections
from lstmsim.studies.simulate.picture import view_of
from tests.studies.simulate.reading import Reader
from tests.studies.simulate.runs import SCENARIOS, run
from tests.timelines import BUSY, busy_machine, periodic, timeline_from


def sections(timeline: Timeline) -> list[Section]:
    return timeline_sections(timeline, use_over_time(timeline))


def test_every_class_of_a_look_has_a_rule_and_every_rule_its_hatch() -> None:
    style, drawn = looks.look_rules(), looks.patterns()
    for number in range(looks.LOOKS):
        assert f".{looks.job_class(number)}{{fill:" in style
    for name in NAMED:
        assert f".{looks.state_class(name)}{{fill:" in style
    assert set(re.findall(r"url\(#([\w-]+)\)", style)) == set(re.findall(r'id="([\w-]+)"', drawn))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as in WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_light_and_dark(dark: bool) -> None:
    style = page("t", Markup(""), [])
    pairs = re.findall(r"--([\w-]+):light-dark\((#[0-9A-F]{6}),(#[0-9A-F]{6})\)", style)
    colours = {name: pair[dark] for name, *pair in pairs}
    for ink in ("ink", "muted", "accent", "mark"):
        for ground in ("page", "card"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert (grey(colours["page"]) < 0.5) == dark


def shares_drawn(content: str, spans: Spans, cycles: int) -> None:
    """Holds that the columns of each row have the area of its spans."""
    outlines = re.findall(r'<path d="([^"]*)"[^>]*><title>([^<]*)</title>', content)
    width = section._RIGHT - section._LEFT
    for number, row in enumerate(spans.rows):
        mine = spans.row == number
        share = (spans.end - spans.start)[mine].sum() / cycles
        drawn = sum(area(path) for path, title in outlines if title.startswith(f"{row.name},"))
        # Heights are drawn in tenths of a unit: half a tenth at most is lost or gained.
        assert drawn / (width * section._height(row)) == pytest.approx(share, abs=0.06 / section._height(row))


@pytest.mark.parametrize("name", ["one job", "row", "many cores"])
def test_spans_are_fractions_of_time_that_add_up(name: str) -> None:
    timeline = run(name).timeline
    spans = spans_of(timeline)
    content = sections(timeline)[0].content
    assert f"{len(spans):,} spans: each column shows fractions" in content
    shares_drawn(content, spans, timeline.makespan_cycles)
    view = view_of(timeline, None, None, None)
    assert spans.rows == view.rows
    assert len(spans) == len(view)
    for column in ("row", "start", "end", "state", "job"):
        np.testing.assert_array_equal(getattr(spans, column), getattr(view, column))
    for row in spans.rows:
        assert f">{row.name}<" in content


def test_a_window_is_drawn_as_one_and_says_so() -> None:
    """Spans fill the width, axes begin at the window, and shares are those of its cycles."""
    whole = run("many cores").timeline
    middle = whole.makespan_cycles // 2
    part = window(whole, middle, middle + 50)
    said = f"cycles {middle:,} to {middle + 50:,} of {whole.makespan_cycles:,}"
    shown, use = (each.content for each in sections(part))
    assert f"A window: {said}." in shown
    assert f"rows over {said}" in shown
    shares_drawn(shown, spans_of(part), 50)
    lefts = [float(each) for each in re.findall(r'd="M([\d.]+) ', shown)]
    assert min(lefts) == section._LEFT
    rows = [row.kind == "array" for row in part.rows]
    busy = np.array(rows)[part.row] & (part.state == BUSY)
    share = 100 * (part.end - part.start)[busy].sum() / (50 * sum(rows))
    assert f"{share:.1f} % over {said}" in use
    assert said not in "".join(each.content for each in sections(whole))


@pytest.mark.parametrize("layers", [1, 2])
def test_a_periodic_run_has_a_flat_strip(layers: int) -> None:
    """Windows of 32 cycles on steps of 70 would draw a wave, on paper and in the strip of the scripts."""
    timeline = periodic(layers=layers)
    use = use_over_time(timeline)
    assert use.on_steps
    assert use.share[1:-1] == pytest.approx(31 * layers / 70)
    edges, shares = explorer(timeline, use, {})["use"]
    assert edges == use.edges.tolist()
    assert set(shares[1:-1]) == {round(1000 * 31 * layers / 70)}
    _, drawn = (each.content for each in sections(timeline))
    outline = re.search(r'<path d="([^"]*)" class="area"', drawn)
    assert outline is not None
    tops = re.findall(r"M[\d.]+ ([\d.]+)H", outline[1])
    assert 1 <= len(tops) <= 3, "columns of one height join"
    assert f"window of at least {use.window_cycles} cycles, of whole time steps where they are short, in which" in drawn
    plain = busy_windows(timeline, window_edges(0, timeline.makespan_cycles, 240))[0]
    assert np.ptp(plain[1:-1]) > 0.3, "this run is one that shows it"


def area(path: str) -> float:
    """The area of an outline that `steps` made."""
    boxes = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H([\d.]+)z", path)
    assert "".join(f"M{a} {b}H{c}V{d}H{e}z" for a, b, c, d, e in boxes) == path
    return sum((float(c) - float(a)) * (float(d) - float(b)) for a, b, c, d, e in boxes)


@pytest.mark.slow
def test_many_spans_take_no_more_room() -> None:
    timeline = busy_machine(cores=2, threads=2, spans=20_000)
    content = sections(timeline)[0].content
    assert len(content) < 350_000
    shares_drawn(content, spans_of(timeline), timeline.makespan_cycles)


def test_work_of_very_many_jobs_has_one_look() -> None:
    each_its_own = replace(run("thousand jobs").timeline, groups=())
    content = sections(each_its_own)[0].content
    assert "Work of all 1,000 jobs has one colour" in content
    assert set(re.findall(r'class="(j\d+)"', content)) == {"j0"}


def test_requests_have_the_colour_of_their_entry() -> None:
    timeline = run("thousand jobs").timeline
    names = sorted(set(timeline.groups))
    assert len(names) < 9 < len(timeline.jobs)
    content = sections(timeline)[0].content
    assert "has one colour" not in content
    assert len(set(re.findall(r'class="(j\d+)"', content))) == len(names)
    for name in names:
        assert f" {name} ({timeline.groups.count(name):,} requests)<" in content


def test_rows_that_do_not_fit_are_named() -> None:
    rows = tuple(Row(core, kind) for core in range(100) for kind in ("array", "tail"))
    timeline = timeline_from([(0, 0, 5, BUSY, 0, 0, 0)], rows, ("a",), 10)
    content = sections(timeline)[0].content
    assert "Not shown: 100 tail rows." in content
    assert content.count("core ") >= 100
    rows = tuple(Row(core, "array") for core in range(ROW_LIMIT + 7))
    assert "Not shown: 7 more array rows." in sections(replace(timeline, rows=rows))[0].content


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_drawn_outside_its_frame(name: str) -> None:
    result = run(name)
    contents = [each.content for each in sections(result.timeline)]
    contents += [accounts_section(result.report).content, latency_section(result.report).content]
    for content in contents:
        for frame, inside in re.findall(r'<svg viewBox="0 0 ([\d. ]+)" role="img"[^>]*>(.*?)</svg>', content, re.S):
            width, height = map(float, frame.split())
            reader = Reader(inside)
            for tag, values in reader.tags:
                low = {
                    key: float(values[key]) for key in ("x", "y", "cx", "cy", "x1", "y1", "x2", "y2") if key in values
                }
                assert all(value >= -0.01 for value in low.values()), (tag, values)
                if tag == "rect":
                    assert float(values["x"]) + float(values["width"]) <= width + 0.01
                    assert float(values["y"]) + float(values["height"]) <= height + 0.01
                for key, value in low.items():
                    assert value <= (width if "x" in key else height), (tag, values)


def test_bars_of_a_core_fill_it_whole() -> None:
    report = run("four cores").report
    content = accounts_section(report).content
    figures = content.split("<figcaption>")[1:]
    for text in figures:
        bars: dict[str, float] = {}
        for width, core in re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)"[^>]*><title>(core \d+),', text):
            bars[core] = bars.get(core, 0) + float(width)
        assert len(bars) == 4
        assert all(total == pytest.approx(406, abs=0.1) for total in bars.values())


@pytest.mark.parametrize("name", ["four cores", "many cores", "thousand jobs"])
def test_every_job_is_in_the_picture_of_latencies(name: str) -> None:
    report = run(name).report
    content = latency_section(report).content
    dots = content.count("<circle")
    columns = [int(each.replace(",", "")) for each in re.findall(r"<title>([\d,]+) jobs? from", content)]
    assert dots + sum(columns) == len(report.jobs)
    assert not (dots and columns)


def test_equal_figures_share_a_line() -> None:
    report = run("one job").report
    content = latency_section(replace(report, jobs=report.jobs * 20)).content
    assert content.count('class="mark') == 1
    assert "mean, p50, p95, max" in content


@pytest.mark.parametrize(
    ("jobs", "drawn", "columns"),
    [(3, False, ["mean", "p50", "max"]), (20, True, ["mean", "p50", "p95", "max"]), (100, True, None)],
)
def test_a_percentile_needs_a_job_beyond_it(jobs: int, drawn: bool, columns: list[str] | None) -> None:
    report = run("one job").report
    content = latency_section(replace(report, jobs=report.jobs * jobs)).content
    assert ("<svg" in content) == drawn
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', content)
    assert heads == ["latency in ms", "jobs", *(columns or ["mean", "p50", "p95", "p99", "max"])]


@pytest.mark.parametrize(("name", "tile"), [("one job", "latency, max"), ("thousand jobs", "latency, p99")])
def test_the_tile_of_latency_is_one_that_there_are_enough_jobs_for(name: str, tile: str) -> None:
    assert re.findall(r"<dt>(latency, \w+)</dt>", report_page(run(name))) == [tile]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 7546), (2.53, 3.34), (0, 0.0289), (0, 3e9), (5, 5), (1e-7, 3e-7)]
)
def test_ticks_are_round_few_and_within(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert all(low - 1e-9 * high <= tick <= high * (1 + 1e-9) for tick in ticks)
    assert 1 <= len(ticks) <= 11
    assert len(ticks) >= 3 or low == high
    gaps = [after - before for before, after in pairwise(ticks)]
    assert all(gap == pytest.approx(gaps[0]) for gap in gaps)


def test_steps_join_what_is_equal_and_leave_out_what_is_empty() -> None:
    scale = Scale(0, 4, 0, 40)
    edges = [scale(each) for each in range(5)]
    assert steps(edges, [1, 1, 5, 2], [5, 5, 5, 5]) == "M0 1H20V5H0zM30 2H40V5H30z"
    assert steps([0.0], [], []) == ""
