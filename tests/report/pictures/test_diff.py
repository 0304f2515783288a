"""The picture of a diff: colours are jobs, signs are shades, names of bars are whole."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

import lstmsim
from lstmsim.report.styles import JOB_STYLES

pytestmark = pytest.mark.needs_core

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}, {"model": "gru-512", "steps": 2}]}


def test_no_bar_of_the_waterfall_has_a_jobs_colour_and_no_name_is_cut() -> None:
    figure = lstmsim.plot_diff(lstmsim.diff(SCENARIO, overrides=["chip.cores.0.ep=8"]))
    waterfall = figure.axes[0]
    colours = {to_hex(bar.get_facecolor()).upper() for bar in waterfall.patches}
    assert len(colours) == 3
    assert not colours & {style.fill for style in JOB_STYLES}
    names = [label.get_text() for label in waterfall.get_yticklabels()]
    assert "array busy, for the issue before on the same unit" in names


@pytest.mark.slow
def test_where_nothing_differs_the_axis_has_no_zeros_with_a_sign() -> None:
    waterfall = lstmsim.plot_diff(lstmsim.diff(SCENARIO, overrides=["chip.cores.0.threads=3"])).axes[0]
    waterfall.figure.draw_without_rendering()
    assert {label.get_text() for label in waterfall.get_xticklabels()} <= {"-1", "0", "+1"}
