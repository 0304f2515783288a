"""The picture of load-latency curves: no invented numbers, no ticks on top of each other, names beside curves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from lstmsim.report.styles import Look
from lstmsim.studies.serve.curves import CDF, Estimate, LoadLatency, Machine, Measured, Point
from lstmsim.studies.serve.picture import plot_load_latency as plot


def curves(stable: int, *, machines: int = 2, decades: float = 1.0, misses: int = 0) -> LoadLatency:
    """Curves of four points, `stable` of them stable; the distribution spans `decades`."""
    made = tuple(Machine(f"policy {each}", "chip", "fcfs", False, "least-loaded") for each in range(machines))
    points = []
    for machine in made:
        for place in range(4):
            verdict = "settled" if place < stable else "unstable"
            values = {each: Estimate(5e-4 * 10 ** (decades * each / 99.9), 1e-5) for each in CDF}
            known = (values[50.0], values) if place < stable else (None, {})
            measured = Measured(verdict, 0.3, 100, 0, misses, 1000.0, 1000.0, *known)
            points.append(Point(machine, 0.3 + 0.2 * place, 1000.0, measured))
    return LoadLatency("s", made, 1000.0, 1000.0, {}, True, tuple(points))


def words(panel: Axes) -> list[str]:
    return [each.get_text().strip() for each in panel.texts]


def test_all_unstable_has_words_and_no_latencies() -> None:
    figure = plot(curves(0))
    figure.draw_without_rendering()
    main, _, in_time = figure.axes
    for panel in figure.axes:
        assert "unstable at every load" in words(panel)
        assert list(panel.get_yticks()) == []
    assert in_time.get_xlim() == main.get_xlim() == pytest.approx((0.27, 0.93))
    assert main.get_position().width > 0.4
    assert {"policy 0", "policy 1"} < set(words(main))


@pytest.mark.parametrize(
    "decades", [0.05, 5.0, *(pytest.param(each, marks=pytest.mark.long) for each in (0.5, 1, 2, 3))]
)
def test_ticks_of_the_distribution_stand_apart(decades: float) -> None:
    figure = plot(curves(4, decades=decades))
    figure.draw_without_rendering()
    panel = figure.axes[1]
    low, high = panel.get_xlim()
    shown = [tick.label1 for tick in panel.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = sorted((each.get_window_extent() for each in shown if each.get_text()), key=lambda each: each.x0)
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.slow
def test_names_stand_beside_the_last_stable_point() -> None:
    figure = plot(curves(1, machines=6))
    figure.draw_without_rendering()
    main = figure.axes[0]
    names = [each for each in main.texts if each.get_text().startswith("policy")]
    assert len(names) == 6
    assert all(each.get_window_extent().x0 < main.transAxes.transform((0.2, 0))[0] for each in names)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["screen", "slides"])
def test_names_of_curves_that_end_together_do_not_touch(style: str) -> None:
    figure = plot(curves(4, machines=3), look=Look("column", style))
    figure.draw_without_rendering()
    main = figure.axes[0]
    # of the words alone, without their arrows
    boxes = [Text.get_window_extent(each) for each in main.texts if each.get_text().startswith("policy")]
    assert len(boxes) == 3
    apart = [above.y0 - below.y1 for below, above in pairwise(sorted(boxes, key=lambda each: each.y0))]
    # a point or more
    assert min(apart) > figure.dpi / 72


@pytest.mark.parametrize(("misses", "floor"), [(0, 99), (3, 95), (15, 80), (70, 0)])
def test_the_share_in_time_ends_at_all(misses: int, floor: int) -> None:
    assert plot(curves(4, misses=misses)).axes[2].get_ylim() == (floor, 100)
