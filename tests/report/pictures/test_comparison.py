"""Bars of a comparison: which height, which are hatched, what is beside them."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.container import BarContainer

from lstmsim.base.errors import InputError
from lstmsim.studies.compare.picture import MAX_BARS
from lstmsim.studies.compare.picture import plot_comparison as plot
from lstmsim.studies.compare.result import Comparison, Entry, Latencies, Machine, Workload
from lstmsim.traffic.intervals import Interval


def comparison(rows: int = 3, spread: float = 2.0) -> Comparison:
    """Two simulated machines and a published one without utilization; `spread`: largest / smallest TOPS, roughly."""
    machines = (
        Machine("first", False, 100, 250.0, 0.05),
        Machine("second", False, 100, 250.0, 0.05),
        Machine("paper", True, None, None),
    )
    entries = []
    for row in range(rows):
        low = 1.0 + 0.1 * row
        entries.append(
            (
                Entry(10, 0.1, tops=low, utilization=0.5),
                Entry(reason="cannot") if row == 1 else Entry(20, 0.2, tops=low * spread, utilization=0.25),
                Entry(ms=0.3, tops=low * 1.5),
            )
        )
    workloads = tuple(Workload(f"task-{'abc'[row % 3]}-{row}", 1, 5) for row in range(rows))
    return Comparison("s", "fast", True, machines, workloads, tuple(entries))


def heights(container: BarContainer) -> list[float]:
    return [float(bar.get_height()) for bar in container]


def test_bars_are_the_numbers_and_published_ones_are_hatched() -> None:
    compared = comparison()
    figure = plot(compared)
    upper, lower = figure.axes
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("TOPS", "utilization (%)")
    bars = [each for each in upper.containers if isinstance(each, BarContainer)]
    assert heights(bars[0]) == pytest.approx([1.0, 1.1, 1.2])
    assert heights(bars[1]) == pytest.approx([2.0, 0.0, 2.4])
    assert heights(bars[2]) == pytest.approx([1.5, 1.65, 1.8])
    assert [{bool(bar.get_hatch()) for bar in each} for each in bars] == [{False}, {False}, {True}]
    shares = [each for each in lower.containers if isinstance(each, BarContainer)]
    assert heights(shares[0]) == [50.0, 50.0, 50.0]
    assert heights(shares[2]) == [0.0, 0.0, 0.0]
    # Numbers stand above the bars, a dash where there is no number.
    assert [text.get_text() for text in upper.texts] == ["1", "1.1", "1.2", "2", "–", "2.4", "1.5", "1.65", "1.8"]
    assert [text.get_text() for text in lower.texts][-3:] == ["–"] * 3


def test_bars_do_not_overlap_and_groups_stay_apart() -> None:
    upper = plot(comparison()).axes[0]
    spans = sorted(
        (bar.get_x(), bar.get_x() + bar.get_width())
        for each in upper.containers
        if isinstance(each, BarContainer)
        for bar in each
    )
    for (_, end), (start, _) in pairwise(spans):
        assert end <= start


def test_names_and_legend() -> None:
    figure = plot(comparison())
    lower = figure.axes[1]
    # The common beginning of all names is written once, below.
    assert [tick.get_text() for tick in lower.get_xticklabels()] == ["a-0", "b-1", "c-2"]
    assert lower.get_xlabel() == "task-..."
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["first", "second", "paper (published)"]
    wide, narrow = "elements of 4 bytes", "blocked floating point, 2 to 5 bits"
    machines = [
        replace(each, precision=name) for each, name in zip(comparison().machines, (wide, narrow, "FP16"), strict=True)
    ]
    named = plot(replace(comparison(), machines=tuple(machines)))
    assert [text.get_text() for text in named.legends[0].get_texts()] == [
        "first (elements of 4 bytes)",
        "second",
        "paper (published, FP16)",
    ]
    alone = plot(comparison(rows=1)).axes[1]
    assert [tick.get_text() for tick in alone.get_xticklabels()] == ["task-a-0"]
    assert alone.get_xlabel() == ""


def test_the_axis_is_logarithmic_only_where_values_differ_much() -> None:
    assert plot(comparison(spread=2.0)).axes[0].get_yscale() == "linear"
    wide = plot(comparison(spread=100.0)).axes[0]
    assert wide.get_yscale() == "log"
    low, high = wide.get_ylim()
    assert 0 < low < 1.0
    assert high > 120


def test_bars_of_values_that_differ_much_are_ratios_around_one() -> None:
    """A logarithmic axis has no zero, so a bar from its lower end would have an arbitrary length."""
    for spread, ratio in ((100.0, 100.0), (0.01, 0.01)):
        panel = plot(comparison(spread=spread)).axes[0]
        bars = [each for each in panel.containers if isinstance(each, BarContainer)]
        assert {bar.get_y() for each in bars for bar in each} == {1.0}
        assert [1 + each for each in heights(bars[0])] == [1.0, 1.0, 1.0]
        assert [1 + each for each in heights(bars[1])] == pytest.approx([ratio, 1.0, ratio])
        assert [1 + each for each in heights(bars[2])] == pytest.approx([1.5] * 3)
        assert panel.get_ylabel() == "TOPS, ratio to first\n(numbers: TOPS)"
        # numbers are TOPS, and lie on no bar
        assert [text.get_text() for text in panel.texts][:3] == ["1", "1.1", "1.2"]
        assert all(text.xy[1] >= 1 for text in panel.texts if text.get_text() != "–")


def test_latencies_are_drawn_where_jobs_come_over_time() -> None:
    entries = []
    for mean, half, verdict in ((2.0, 0.5, "settled"), (3.0, None, "unstable")):
        percentiles = {50: Interval(mean, half), 95: Interval(2 * mean, half), 99: Interval(3 * mean)}
        own = Latencies(200, frozenset(), None, Interval(mean, half), percentiles, 0.5, 0.5, verdict, 90.0)
        entries.append(Entry(10, 100.0, tops=1.0, utilization=0.25, latencies=own))
    machines = (Machine("first", False, 100, 250.0), Machine("second", False, 100, 250.0))
    compared = Comparison("s", "fast", False, machines, (Workload("s", 200, 5),), (tuple(entries),), "open")
    figure = plot(compared)
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("latency (ms)", "utilization (%)")
    first, second = (each for each in left.containers if isinstance(each, BarContainer))
    assert heights(first) == [2.0, 2.0, 4.0, 6.0]
    assert heights(second) == [3.0, 3.0, 6.0, 9.0]
    # Intervals are whiskers; where an interval is missing, the name of the group says so.
    whiskers = [each for each in left.containers if not isinstance(each, BarContainer)]
    assert len(whiskers) == 3
    labels = [tick.get_text() for tick in left.get_xticklabels()]
    assert labels == [*(f"{name}\n(some: too few)" for name in ("mean", "p50", "p95")), "p99\n(too few)"]
    # numbers stand above the whiskers
    assert [text.xy[1] for text in left.texts] == [2.5, 2.5, 4.5, 6.0, 3.0, 3.0, 6.0, 9.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second (unstable)"]
    assert [heights(each)[0] for each in right.containers if isinstance(each, BarContainer)] == [25.0, 25.0]


@pytest.mark.slow
def test_numbers_are_written_beside_and_equal_comparisons_give_equal_bytes(tmp_path: Path) -> None:
    compared = comparison()
    for name in ("a.svg", "b.svg"):
        plot(compared, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert [row["tops"] for row in rows[:3]] == ["1.0", "2.0", "1.5"]
    plot(compared, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a picture's name"):
        plot(comparison(), tmp_path / "a.gif")
    many = comparison(rows=MAX_BARS // 3 + 1)
    with pytest.raises(InputError, match=f"at most {MAX_BARS} can be drawn"):
        plot(many, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
