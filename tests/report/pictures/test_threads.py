"""The picture of what threads of a product do over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lstmsim
from lstmsim.studies.gemm.picture import LOOKS, activities

pytestmark = pytest.mark.needs_core


@pytest.mark.parametrize("caches", ["warm", "cold"])
def test_every_cycle_of_every_thread_has_one_name(caches: str) -> None:
    report = lstmsim.run_gemm(8, 64, 512, threads=8, caches=caches, relief="sub", baselines=False, numbers=False)
    figures = report.figures
    spans = activities(report.timeline, figures.finish)
    covered = np.zeros((8, figures.makespan), dtype=np.int64)
    lengths = {}
    for name, table in spans.items():
        for thread, start, end in table.tolist():
            covered[thread, start:end] += 1
        lengths[name] = int((table[:, 2] - table[:, 1]).sum())
    assert (covered == 1).all()
    assert lengths["waits for a piece of C"] == figures.waits["contention"]
    last = max(figures.finish)
    assert lengths["is in the barrier"] == 8 * (figures.makespan - last)
    assert lengths["has done its part"] == sum(last - each for each in figures.finish)
    # lines of the last step are waited for in the picture, and not among the waits
    assert (lengths["waits for memory"] > 0) == (caches == "cold")
    assert lengths["waits for memory"] >= figures.waits["memory"]


@pytest.mark.slow
def test_threads_without_work_and_pictures_without_lines_of_memory_are_drawn(tmp_path: Path) -> None:
    report = lstmsim.run_gemm(1, 1, 1, threads=5, baselines=False)
    figure = lstmsim.plot_threads(report, tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    assert "no line of memory" in text
    assert "1 x 1 x 1 (M x N x K) by MN 1x5x1 on epyc-7742, warm caches" in text
    used = [each.get_text() for each in figure.legends[0].get_texts()]
    assert used == [each for each in LOOKS if each in ("works on a step", "has done its part", "is in the barrier")]
    assert lstmsim.plot_threads(report)._repr_png_().startswith(b"\x89PNG")
    lstmsim.plot_threads(report, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text
