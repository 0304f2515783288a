"""Widths and styles of pictures, units that suit, and windows that hold whole time steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.transforms import Bbox

import lstmsim
from lstmsim import Look
from lstmsim.analysis.spans import busy_windows, step_edges, window_edges
from lstmsim.analysis.timeline import Row
from lstmsim.base.errors import InputError
from lstmsim.report.pictures.figures import Picture, drawn
from lstmsim.report.styles import WIDTHS
from lstmsim.studies.simulate.picture import plot
from tests.cli import runner
from tests.timelines import BUSY, busy_machine, periodic, small, timeline_from

STYLES = ("screen", "paper", "slides")
LOOKS = [Look(width, style) for width in (None, *WIDTHS) for style in STYLES]
#: Each width and each style at least once.
USUAL = [Look(width, STYLES[(at + 1) % len(STYLES)]) for at, width in enumerate((None, *WIDTHS))]


@pytest.mark.parametrize(
    "look", [pytest.param(each, marks=() if each in USUAL else pytest.mark.long) for each in LOOKS[1:]], ids=str
)
def test_a_picture_has_its_width_and_nothing_beside_it(look: Look) -> None:
    figure = plot(busy_machine(1, 2, 9, 40), look=look)
    assert look.inches is None or figure.get_size_inches()[0] == look.inches
    assert figure.get_figheight() < 8
    figure.draw_without_rendering()
    inside = Bbox.from_extents(-1, -1, figure.bbox.x1 + 1, figure.bbox.y1 + 1)
    for part in (*figure.axes, *figure.legends):
        box = part.get_tightbbox(figure.canvas.get_renderer())  # type: ignore[attr-defined]
        assert box is not None
        assert inside.contains(box.x0, box.y0)
        assert inside.contains(box.x1, box.y1)
    upper = figure.axes[0].get_tightbbox()
    assert upper is not None
    assert figure.legends[0].get_window_extent().y1 <= upper.y0


def test_a_picture_for_a_paper_has_a_caption_in_place_of_a_title() -> None:
    said = "column-npu-64k: 140 cycles (538 ns), array busy 72.1 %"
    paper, screen = plot(small(), look=Look(style="paper")), plot(small())
    assert (paper.get_suptitle(), paper.caption) == ("", said)
    assert (screen.get_suptitle(), screen.caption) == (said, said)


def test_letters_are_those_of_the_style() -> None:
    sizes, families = {}, {}
    for style in ("screen", "paper", "slides"):
        label = plot(small(), look=Look(style=style)).axes[1].xaxis.label
        sizes[style], families[style] = label.get_fontsize(), label.get_fontfamily()
    assert sizes["slides"] > 1.5 * sizes["screen"]
    assert families["paper"][0] == "STIXGeneral"
    assert families["screen"] == ["DejaVu Sans"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_letters_of_a_paper_stay_letters(suffix: str, tmp_path: Path) -> None:
    """In an SVG they are text; a PDF embeds the font as TrueType (type 42), which journals ask for, not as type 3."""
    path = tmp_path / f"a{suffix}"
    plot(small(), path, look=Look("column", "paper"))
    content = path.read_bytes()
    if suffix == ".svg":
        assert b">time (cycles)</text>" in content
    else:
        assert b"/Type /Font" in content
        assert b"/CIDFontType2" in content
        assert b"/Type3" not in content


def test_every_command_that_draws_has_the_options_and_says_the_caption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lstmsim.save_trace(small(), "t.csv")
    result = runner.call("timeline", "t.csv", "--out", "a.svg", "--width", "column", "--style", "paper")
    assert result.exit_code == 0, result.output
    assert result.stderr == "caption: column-npu-64k: 140 cycles (538 ns), array busy 72.1 %\n"
    assert 'width="252pt"' in Path("a.svg").read_text(encoding="utf-8")
    commands = [
        "simulate",
        "compare",
        "accuracy",
        "load-latency",
        "sparse",
        "gemm",
        "fuse",
        "rtl",
        "sweep",
        "merge",
        "timeline",
    ]
    assert [name for name in commands if "--style" not in runner.call(name, "--help").stdout] == []
    refused = runner.call("simulate", "s.yaml", "--style", "slides")
    assert (refused.exit_code, refused.stderr) == (2, "--style: only with --timeline or --roofline\n")
    refused = runner.call("sweep", "s.yaml", "--out", "x", "--width", "page")
    assert refused.stderr == "--width: belongs to --plot, which is not given\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": "3.5"}, "width: must be column or page, got '3.5'"),
        ({"style": "poster"}, "style: must be screen or paper or slides, got 'poster'"),
    ],
)
def test_other_widths_and_styles_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Look(**given)
    assert str(caught.value) == said


def test_titles_of_narrow_pictures_are_folded() -> None:
    with drawn(look=Look("column")) as figure:
        figure.head(["one two three four five six seven eight nine ten eleven twelve"])
    assert figure.get_suptitle().count("\n") >= 1
    assert isinstance(figure, Picture)
    assert "\n" not in figure.caption


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("width", [None, "column"])
def test_a_periodic_run_draws_a_flat_strip(width: str | None, layers: int) -> None:
    """Windows of 38 cycles on steps of 70 would draw a wave."""
    timeline = periodic(layers=layers)
    figure = plot(timeline, look=Look(width))
    heights = np.array(figure.axes[1].patches[0].get_data().values)  # type: ignore[attr-defined]
    steady = heights[1:-1]
    assert len(steady) > 30
    assert steady == pytest.approx(100 * 31 * layers / 70)
    title = figure.axes[1].get_title(loc="right")
    assert re.fullmatch(r"windows of whole time steps, at least \d+ cycles", title.replace("\n", " "))
    plain = busy_windows(timeline, window_edges(0, timeline.makespan_cycles, 200))[0]
    assert np.ptp(plain[1:-1]) > 0.3, "this run is one that shows it"


def test_windows_on_steps_keep_every_cycle_and_their_least_length() -> None:
    for timeline in (periodic(), periodic(300, 13, 5), busy_machine(2, 2, 9, 400), small()):
        for start, end in ((0, timeline.makespan_cycles), (33, timeline.makespan_cycles - 20)):
            edges, _ = step_edges(timeline, start, end, 50)
            least = window_edges(start, end, 50)
            assert (edges[0], edges[-1]) == (start, end)
            assert (np.diff(edges)[:-1] >= least[1] - least[0]).all()
            assert len(edges) <= len(least)


def test_a_window_is_whole_steps_where_phases_have_different_ones() -> None:
    """70 steps of 70 cycles, then 40 of 110: each phase is flat."""
    first, second = periodic(70, 70, 30), periodic(40, 110, 55)
    later = [(0, start + 4900, end + 4900, BUSY, 1, 0, step) for _, start, end, _, _, _, step in second.spans()]
    timeline = timeline_from([*first.spans(), *later], (Row(0, "array"),), ("a", "b"), 4900 + 4400)
    edges, on_steps = step_edges(timeline, 0, timeline.makespan_cycles, 200)
    busy = busy_windows(timeline, edges)[0]
    assert on_steps
    assert busy[edges[1:] <= 4900] == pytest.approx(30 / 70)
    assert busy[edges[:-1] >= 4900] == pytest.approx(0.5)


def test_steps_that_are_long_are_shown_inside() -> None:
    timeline = periodic(4, 7000, 3000)
    edges, on_steps = step_edges(timeline, 0, timeline.makespan_cycles, 200)
    assert not on_steps
    assert edges.tolist() == window_edges(0, timeline.makespan_cycles, 200).tolist()
    assert set(busy_windows(timeline, edges)[0].tolist()) >= {0.0, 1.0}
