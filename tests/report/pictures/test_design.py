"""The front of a design: as in the picture of a sweep, labels are words and a quantity has one axis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lstmsim
from lstmsim.studies.design.report import FORMS
from lstmsim.studies.sweep.picture import plot_sweep

pytestmark = pytest.mark.needs_core

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
SIZES = {"chip.cores.0.npe": [256, 1024, 4096], "chip.cores.0.ep": [16]}


@pytest.mark.slow
def test_a_front_has_the_axes_of_a_sweeps_and_logarithms_where_values_lie_far_apart(tmp_path: Path) -> None:
    found = lstmsim.design(SCENARIO, "none", axes=SIZES, minimise=["p99_ms", "npe"], jobs=1)
    panel = lstmsim.plot_design(found).axes[0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("multipliers (NPE)", "p99 latency (ms)")
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.xaxis.get_major_formatter()(20_000, 0) == "20,000"
    assert FORMS.axes is not None
    assert FORMS.axes(found) == ("npe", "p99_ms")
    (step,) = (line for line in panel.get_lines() if len(line.get_xdata()) == len(found.best))
    assert sorted(zip(step.get_xdata(), step.get_ydata(), strict=True)) == sorted(
        (each.objective[1], each.objective[0]) for each in found.best
    )
    axes = {"npe": {"path": "chip.cores.0.npe", "values": [256, 1024, 4096]}}
    objectives = {"minimise": ["latency_ms_p99", "npe"]}
    swept = lstmsim.sweep({"scenario": SCENARIO, "axes": axes, "objectives": objectives}, tmp_path, jobs=1)
    other = plot_sweep(swept, kind="pareto").axes[0]
    labels = [each.removesuffix(", less is better") for each in (other.get_xlabel(), other.get_ylabel())]
    assert labels == [panel.get_xlabel(), panel.get_ylabel()]


def test_the_line_of_the_bounds_stays_below_the_bounds_that_are_not_kept() -> None:
    found = lstmsim.design(SCENARIO, "none", axes={"chip.cores.0.ep": [16]}, jobs=1)
    thinned = replace(found, bounded=True, bounds=((1.0, 10.0), (5.0, 20.0), (8.0, 90.0)))
    panel = lstmsim.plot_design(thinned).axes[0]
    (line,) = (each for each in panel.get_lines() if "bound" in str(each.get_label()))
    # a straight line would be at 43 at place 6, whose bound may be 20
    assert line.get_drawstyle() == "steps-post"
