"""Pictures of sweeps: which kind is drawn, what is in the picture, and its numbers beside it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lstmsim.base.errors import InputError
from lstmsim.studies.sweep import evaluate, picture
from lstmsim.studies.sweep.bulk import Bulk
from lstmsim.studies.sweep.picture import plot
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store
from tests.studies.sweep.specs import HIDDEN, SCENARIO, rows, spec

EP = {"path": "chip.cores.0.ep", "from": 2, "to": 16, "factor": 2}
VP = {"path": "chip.cores.0.vp", "values": [8, 16, 32]}


def drawn(
    folder: Path, axes: dict[str, Any], name: str = "a.svg", **others: Any
) -> tuple[Figure, list[dict[str, str]]]:
    run_sweep(spec(axes=axes, constraints=[], **others), folder, jobs=1)
    with Store(folder / "sweep.sqlite", create=False) as store:
        figure = plot(store, folder / name)
    with open((folder / name).with_suffix(".csv"), encoding="utf-8", newline="") as file:
        return figure, list(csv.DictReader(file))


def notes(figure: Figure) -> list[str]:
    """What the legend says."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_heat_map_has_a_number_a_hatch_or_nothing_in_each_cell_and_outlines_the_best(tmp_path: Path) -> None:
    # The zip covers only a part of the grid.
    axes = {"e": {**EP, "from": 4}, "v": {**VP, "values": [64, 16, 32]}}
    figure, numbers = drawn(tmp_path, axes, combine="zip")
    panel, _ = figure.axes
    done = [row for row in numbers if row["status"] == "done"]
    assert sorted(text.get_text() for text in panel.texts) == sorted(f"{int(row['makespan_cycles']):,}" for row in done)
    boxes = [each for each in panel.patches if isinstance(each, Rectangle)]
    hatched = [each for each in boxes if each.get_hatch()]
    assert len(hatched) == len(numbers) - len(done) == 1
    (best,) = [each for each in boxes if not each.get_hatch()]
    (row,) = [row for row in done if row["best"] == "1"]
    assert int(row["makespan_cycles"]) == min(int(each["makespan_cycles"]) for each in done)
    eps, vps = ([tick.get_text() for tick in ticks] for ticks in (panel.get_xticklabels(), panel.get_yticklabels()))
    assert (eps, vps) == (["4", "8", "16"], ["16", "32", "64"])
    assert (eps[round(best.get_x() + 0.5)], vps[round(best.get_y() + 0.5)]) == (row["ep"], row["vp"])


@pytest.mark.slow
def test_other_axes_make_a_map_each_up_to_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MAX_PANELS", 5)
    hidden = {"path": HIDDEN, "from": 8, "to": 8 + 5}
    axes = {"h": hidden, "ep": {**EP, "values": [4, 8]}, "vp": {**VP, "values": [8, 16]}}
    for key in ("from", "to", "factor"):
        del axes["ep"][key]
    figure, numbers = drawn(tmp_path, axes)
    assert len([panel for panel in figure.axes if panel.get_visible() and panel.get_title()]) == 5
    assert "maps not drawn: 1" in notes(figure)
    assert len(numbers) == 5 * 4


@pytest.mark.slow
def test_points_that_have_no_place_on_a_map_are_counted(tmp_path: Path) -> None:
    axes = {"ep": {**EP, "from": 4}, "vp": {**VP, "values": [16, None, 32]}}
    figure, numbers = drawn(tmp_path, axes)
    assert "3 points whose ep or vp is no number are not drawn" in notes(figure)
    assert {row["vp"] for row in numbers} == {"16", "32"}
    whole, _ = drawn(tmp_path / "whole", {"ep": {**EP, "from": 4}, "vp": VP})
    assert "not drawn" not in str(notes(whole))
    # Without any point that has a place there is no map.
    _, front = drawn(tmp_path / "none", {"ep": {**EP, "from": 4}, "vp": {**VP, "values": [None, "x"]}})
    assert [(row["point"], row["pareto"]) for row in front if row["pareto"] == "1"]


def test_an_axis_of_array_sizes_gives_utilization_curves(tmp_path: Path) -> None:
    axes = {
        "npe": {"path": "chip.cores.0.npe", "from": 256, "to": 1024, "factor": 2},
        "h": {"path": HIDDEN, "values": [16, 32]},
    }
    figure, numbers = drawn(tmp_path, axes)
    lines = figure.axes[0].get_lines()
    assert [list(line.get_xdata()) for line in lines] == [[256, 512, 1024]] * 2
    shown = [float(value) for line in lines for value in line.get_ydata()]
    assert shown == pytest.approx([100 * float(row["utilization"]) for row in numbers])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["h 16", "h 32"]


def test_many_curves_look_different_and_those_without_a_name_are_counted(tmp_path: Path) -> None:
    axes = {
        "npe": {"path": "chip.cores.0.npe", "values": [256, 512]},
        "h": {"path": HIDDEN, "from": 8, "to": 25, "step": 1},
    }
    figure, numbers = drawn(tmp_path, axes)
    assert len({row["h"] for row in numbers}) == 18
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*(f"h {hidden}" for hidden in range(8, 16)), "and 10 more (in the CSV)"]
    lines = figure.axes[0].get_lines()
    looks = [(line.get_color(), line.get_marker(), str(line._dash_pattern)) for line in lines]
    assert len({look[:2] for look in looks}) == len({look[::2] for look in looks}) == 18
    handles = figure.legends[0].get_lines()
    assert [(each.get_color(), each.get_marker(), str(each._dash_pattern)) for each in handles[:8]] == looks[:8]


def test_too_many_curves_become_the_best_of_each_size(tmp_path: Path) -> None:
    axes = {
        "npe": {"path": "chip.cores.0.npe", "values": [256, 512]},
        "ep": EP,
        "vp": VP,
        "threads": {"path": "chip.cores.0.threads", "values": [1, 2]},
    }
    run_sweep(spec(axes=axes, constraints=["ep * vp <= npe"]), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        figure = plot(store, tmp_path / "a.svg", kind="utilization")
    assert notes(figure) == ["threads 1", "threads 2", "the best of all ep and vp", "other points"]
    every = [row for row in rows(tmp_path) if row["status"] == "done"]
    curves = [line for line in figure.axes[0].get_lines() if line.get_linestyle() != "None"]
    for line, threads in zip(curves, "12", strict=True):
        for size, share in zip(line.get_xdata(), line.get_ydata(), strict=True):
            own = [row for row in every if (row["npe"], row["threads"]) == (str(size), threads)]
            assert share == 100 * max(float(row["utilization"]) for row in own)
    drawn = sum(len(line.get_xdata()) for line in figure.axes[0].get_lines() if line.get_linestyle() == "None")
    assert drawn == len(every) > 30


@pytest.mark.slow
def test_a_wide_map_fits_a_screen(tmp_path: Path) -> None:
    """At 150 dots an inch, as files have them."""
    axes = {"ep": {**EP, "values": [*range(1, 41)]}, "vp": VP}
    for key in ("from", "to", "factor"):
        del axes["ep"][key]
    figure, _ = drawn(tmp_path, axes)
    assert 150 * figure.get_size_inches()[0] <= 1800


@pytest.mark.slow
def test_maps_share_their_colours_and_mark_the_best_of_all(tmp_path: Path) -> None:
    axes = {"npe": {"path": "chip.cores.0.npe", "values": [256, 512]}, "ep": EP, "vp": VP}
    scenario = {**SCENARIO, "name": "two sizes"}
    run_sweep(spec(axes=axes, constraints=[], scenario=scenario, objectives=OBJECTIVES), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        figure = plot(store, tmp_path / "map.svg", kind="heatmap")
    with open(tmp_path / "map.csv", encoding="utf-8", newline="") as file:
        numbers = list(csv.DictReader(file))
    *maps, bar = figure.axes
    cycles = [int(row["makespan_cycles"]) for row in numbers if row["status"] == "done"]
    scales = {(image.norm.vmin, image.norm.vmax) for panel in maps for image in panel.get_images()}
    assert scales == {(min(cycles), max(cycles))}
    ticks = [tick.get_text() for tick in bar.get_yticklabels()]
    assert (ticks[0], ticks[-1], bar.get_ylabel()) == (f"{min(cycles):,}", f"{max(cycles):,}", "cycles")
    best = [row for row in numbers if row["best_of_all"] == "1"]
    assert {int(row["makespan_cycles"]) for row in best} == {min(cycles)}
    framed = [each for panel in maps for each in panel.patches if not each.get_hatch() and each.get_linewidth() > 3]
    assert len(framed) == len(best)
    first, second = figure.get_suptitle().splitlines()
    assert first == "two sizes: makespan (cycles)"
    near = "at most 5 % more than the best of a map"
    assert notes(figure) == ["the best of a map", "the best of all", near, "infeasible"]
    setting = ", ".join(f"{name} {best[0][name]}" for name in axes)
    assert second.startswith(f"best: {min(cycles):,} cycles with {setting}")


def test_what_is_best_of_another_work_is_no_best(tmp_path: Path) -> None:
    """The smaller network always takes fewer cycles: each has a best point of its own."""
    axes = {"h": {"path": HIDDEN, "values": [8, 48]}, "ep": {**EP, "from": 4}, "vp": VP}
    figure, numbers = drawn(tmp_path, axes)
    assert {row["h"] for row in numbers if row["best_of_all"] == "1"} == {"8", "48"}
    assert "the best of all with the same h" in notes(figure)


def test_maps_that_do_not_fit_say_so(tmp_path: Path) -> None:
    axes = {"npe": {"path": "chip.cores.0.npe", "values": [256, 2**20]}, "ep": {**EP, "values": [4, 8]}, "vp": VP}
    for key in ("from", "to", "factor"):
        del axes["ep"][key]
    run_sweep(spec(axes=axes, constraints=[], device="stratix-10-gx-2800"), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        figure = plot(store, kind="heatmap")
    *maps, _ = figure.axes
    bracketed = {panel.get_title(): {text.get_text()[0] == "(" for text in panel.texts} for panel in maps}
    assert bracketed == {"npe 256": {False}, "npe 1048576": {True}}
    assert "6 of 12 points fit stratix-10-gx-2800, 6 do not (in brackets)" in notes(figure)


OBJECTIVES = {"minimise": ["makespan_cycles", "pes_used"], "maximise": ["utilization", "ep"]}


def joined(figure: Figure) -> set[tuple[float, float]]:
    lines = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-" and len(line.get_xdata())]
    return {(x, y) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


@pytest.mark.slow
def test_anything_else_gives_the_front_of_the_first_two_objectives(tmp_path: Path) -> None:
    # A VP that follows from EP spans no map.
    vp = {"path": "chip.cores.0.vp", "expression": "min(32, 256 // ep)"}
    axes = {"ep": {**EP, "from": 1}, "h": {"path": HIDDEN, "values": [16, 32]}, "vp": vp}
    figure, numbers = drawn(tmp_path, axes)
    assert list(numbers[0]) == ["point", "h", "npe", "latency_ms_mean", "front", "knee", "pareto"]
    figure, numbers = drawn(tmp_path, axes, objectives=OBJECTIVES)
    points = [(row["h"], int(row["pes_used"]), int(row["makespan_cycles"])) for row in numbers]
    best = {
        (x, y)
        for group, x, y in points
        if not any((g, a <= x, b <= y) == (group, True, True) and (a, b) != (x, y) for g, a, b in points)
    }
    assert joined(figure) == best != {point[1:] for point in points}
    assert {(int(row["pes_used"]), int(row["makespan_cycles"])) for row in numbers if row["front"] == "1"} == best
    # With the third objective more points are on the table's front than on the picture's.
    assert sum(row["pareto"] == "1" for row in numbers) > sum(row["front"] == "1" for row in numbers)
    assert figure.axes[0].get_title().endswith("makespan (cycles) and multipliers that the array uses")
    said = notes(figure)
    assert said[2:4] == ["no point beats these in both", "other points"]
    assert said[-1] == "the front of these two alone; not drawn: maximise utilization, ep"


def test_two_objectives_can_be_chosen_and_the_kind(tmp_path: Path) -> None:
    axes = {"ep": EP, "vp": VP, "npe": {"path": "chip.cores.0.npe", "values": [512, 1024]}}
    run_sweep(spec(axes=axes, constraints=[], objectives=OBJECTIVES), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        figure = plot(store, objectives=["utilization", "pes_used"])
        panel = figure.axes[0]
        labels = ("utilization (1: all), more is better", "multipliers that the array uses, less is better")
        assert (panel.get_xlabel(), panel.get_ylabel()) == labels
        assert "the best of a map" in notes(plot(store, kind="heatmap"))
        assert plot(store, kind="utilization").axes[0].get_ylabel() == "utilization (%)"
        assert plot(store).axes[0].get_xlabel() == labels[1]
        for names, sentence in [
            (["tops", "pes_used"], "--plot-objectives: no objective called 'tops'"),
            (["utilisation", "pes_used"], "did you mean 'utilization'"),
            (["pes_used"], "--plot-objectives: expected two objectives, got 1"),
        ]:
            with pytest.raises(InputError, match=sentence):
                plot(store, objectives=names)
    run_sweep(spec(axes={"h": {"path": HIDDEN, "values": [8]}}, constraints=[]), tmp_path / "h", jobs=1)
    with Store(tmp_path / "h" / "sweep.sqlite", create=False) as store:
        for kind in ("heatmap", "utilization"):
            with pytest.raises(InputError, match=f"--plot-kind {kind}: needs .*; this sweep varies h"):
                plot(store, kind=kind)


DSP = {"minimise": ["makespan_cycles", "dsp"]}


def faces(figure: Figure, numbers: list[dict[str, str]]) -> dict[str, set[str]]:
    """By the face of its mark (`#FFFFFF` is hollow), the numbers of the points that have it."""
    place = {(float(row["dsp"]), float(row["makespan_cycles"])): row["point"] for row in numbers}
    found: dict[str, set[str]] = {}
    for line in figure.axes[0].get_lines():
        if line.get_linestyle() == "None" and line.get_markersize() < 12:
            points = {place[at] for at in zip(line.get_xdata(), line.get_ydata(), strict=True)}
            found.setdefault("hollow" if line.get_markerfacecolor() == "#FFFFFF" else "filled", set()).update(points)
    return found


@pytest.mark.parametrize(
    ("vps", "sentence"),
    [
        ([32, 2**16], "2 of 4 points fit stratix-10-gx-2800, 2 do not (hollow)"),
        ([2**15, 2**16], "none of 4 points fits stratix-10-gx-2800 (hollow)"),
        ([16, 32], "all 4 points fit stratix-10-gx-2800"),
    ],
)
def test_every_point_that_does_not_fit_is_hollow_also_off_the_front(
    tmp_path: Path, vps: list[int], sentence: str
) -> None:
    axes = {
        "npe": {"path": "chip.cores.0.npe", "values": [16 * vp for vp in vps]},
        "vp": {**VP, "values": vps},
        "lag": {"path": "chip.cores.0.latency.multiply", "values": [1, 9]},
    }
    text = spec(axes=axes, constraints=["npe == 16 * vp"], device="stratix-10-gx-2800", objectives=DSP)
    run_sweep(text, tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        figure = plot(store, tmp_path / "a.svg", kind="pareto")
        use = plot(store, kind="utilization")
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as file:
        numbers = list(csv.DictReader(file))
    large = {row["point"] for row in rows(tmp_path) if row["fits"] == "false"}
    assert faces(figure, numbers).get("hollow", set()) == large
    assert faces(figure, numbers).get("filled", set()) == {row["point"] for row in numbers} - large
    assert {row["point"] for row in numbers if row["front"] == "0"} & (large or faces(figure, numbers)["filled"])
    assert notes(figure)[-1] == sentence
    assert notes(use)[-1] == sentence.removesuffix(" (hollow)")


def test_points_without_a_number_are_counted_on_the_picture_and_one_objective_is_enough(tmp_path: Path) -> None:
    chips = {"chip": {"path": "chip", "values": ["column-npu-16k", "intel-npu-rtl"]}}
    figure, numbers = drawn(tmp_path, chips, objectives={"minimise": ["banks"]})
    assert "1 point without a number there is not drawn" in notes(figure)
    assert [(row["point"], row["banks"], row["front"]) for row in numbers] == [("0", "4", "1")]


@pytest.mark.slow
def test_equal_tables_give_equal_pictures_and_nothing_to_draw_is_said(tmp_path: Path) -> None:
    axes = {"ep": EP, "vp": VP}
    drawn(tmp_path / "a", axes)
    drawn(tmp_path / "b", axes)
    assert (tmp_path / "a" / "a.svg").read_bytes() == (tmp_path / "b" / "a.svg").read_bytes()
    with pytest.raises(InputError, match="no point could be simulated"):
        drawn(tmp_path / "c", {"ep": {**EP, "from": 100, "to": 200}})
    with pytest.raises(InputError, match="not a picture's name"):
        drawn(tmp_path / "a", axes, "a.gif")


def test_of_points_at_one_place_one_that_fits_is_seen_and_numbered(tmp_path: Path) -> None:
    axes = {"npe": {"path": "chip.cores.0.npe", "values": [2**17, 1024]}, "vp": {**VP, "values": [32]}}
    # Multipliers that no tile uses take blocks and no cycles: both points lie at one place.
    objectives = {"minimise": ["makespan_cycles", "pes_used"]}
    run_sweep(spec(axes=axes, constraints=[], device="stratix-10-gx-2800", objectives=objectives), tmp_path, jobs=1)
    assert [row["fits"] for row in rows(tmp_path)] == ["false", "true"]
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        panel = plot(store, kind="pareto").axes[0]
    marks = [line for line in panel.get_lines() if line.get_linestyle() == "None" and len(line.get_xdata())]
    assert len({(*line.get_xdata(), *line.get_ydata()) for line in marks}) == 1
    assert sorted(marks, key=lambda line: line.get_zorder())[-1].get_markerfacecolor() != "#FFFFFF"
    assert [text.get_text() for text in panel.texts] == ["1 and 1 equal"]


@pytest.mark.slow
def test_many_sizes_are_written_out_and_failed_points_have_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = evaluate.simulated

    def failing(chip: Any, jobs: Any) -> Any:
        if chip.cores[0].npe == 1536:
            raise MemoryError
        return simulate(chip, jobs)

    monkeypatch.setattr(Bulk, "possible", False)
    monkeypatch.setattr(evaluate, "simulated", failing)
    axes = {
        "npe": {"path": "chip.cores.0.npe", "from": 512, "to": 8192, "step": 512},
        "vp": {**VP, "values": [8, 16]},
        "ep": {"path": "chip.cores.0.ep", "values": [4]},
    }
    run_sweep(spec(axes=axes, constraints=["npe < 8192"]), tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        use, maps = plot(store, kind="utilization"), plot(store, kind="heatmap")
    use.draw_without_rendering()
    written = [text.get_text() for text in use.axes[0].get_xticklabels()]
    assert {"1,024", "2,048", "4,096"} <= set(written)
    assert {"failed", "infeasible"} <= set(notes(maps))
