"""The roofline of a run: its points are sums of the run, its roofs those of the machine, with units."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import Look
from lstmsim.machines.registry import target_of
from lstmsim.studies.simulate.roofline import _at_work, plot_roofline, points_of
from tests.cli import runner

pytestmark = pytest.mark.needs_core

DEEP = {"layers": [{"cell": "lstm", "hidden": 256, "input": 256}, {"cell": "gru", "hidden": 512, "input": 256}]}
JOBS = [{"name": "one", "model": "lstm-256", "steps": 3}, {"name": "deep", "model": DEEP, "steps": 4}]
STREAMING = {
    "kind": "column-npu",
    "frequency_mhz": 260,
    "memory": {"gb_per_s": 100},
    "cores": [{"npe": 16384, "ep": 16, "vp": 1024, "threads": 2, "weight_kib": 1600}],
}


def run(chip: Any, jobs: list[dict[str, Any]] = JOBS) -> lstmsim.Run:
    return lstmsim.run({"chip": chip, "jobs": jobs})


def test_points_have_all_work_and_no_cycle_twice() -> None:
    result = run("column-npu-16k")
    points = points_of(result)
    assert [(each.name, each.layer) for each in points] == [("one", 0), ("deep", 0), ("deep", 1)]
    assert sum(each.macs for each in points) == sum(job.macs for job in result.scenario.jobs)
    timeline = result.timeline
    threads = np.array([row.kind == "thread" for row in timeline.rows])[timeline.row]
    for job, layer, cycles in _at_work(timeline):
        mine = threads & (timeline.job == job) & (timeline.layer == layer)
        counted = np.zeros(timeline.makespan_cycles, dtype=bool)
        for start, end in zip(timeline.start[mine], timeline.end[mine], strict=True):
            counted[start:end] = True
        assert cycles == counted.sum()


def test_streamed_layers_lie_on_the_roof_of_the_memory() -> None:
    """Their weights come once in each time step, and nothing else limits them; those that stay are above."""
    result = run(STREAMING, [JOBS[1]])
    rate = target_of("column-npu").memory_rate(result.scenario.chip)
    assert rate is not None
    assert (rate.bytes_per_cycle, rate.weight_bytes) == (pytest.approx(100e9 / 260e6), 1.0)
    points = points_of(result)
    whole = sum(each.macs for each in points) / sum(each.cycles for each in points)
    assert whole == pytest.approx(rate.bytes_per_cycle, rel=0.05)
    kept = points_of(run(STREAMING, [JOBS[0]]))[0]
    assert kept.macs / kept.cycles > 5 * rate.bytes_per_cycle


@pytest.mark.parametrize(
    ("chip", "kind", "rate"),
    [
        # V100: 32 partitions, a sector of 32 bytes in 2 cycles; EPYC: 4 memories, 64 bytes in 4 cycles
        ("v100", "parallel-device", Fraction(32 * 32, 2)),
        ("epyc-7742", "multicore", Fraction(4 * 64, 4)),
        ("column-npu-16k", "column-npu", None),
        ("brainwave-s10", "row-npu", None),
    ],
)
def test_roofs_are_those_of_the_machine(chip: str, kind: str, rate: Fraction | None) -> None:
    known = target_of(kind).memory_rate(lstmsim.load_chip(chip))
    assert (None if known is None else known.bytes_per_cycle) == rate


@pytest.mark.slow
def test_a_picture_says_what_is_not_known(tmp_path: Path) -> None:
    figure = plot_roofline(run("brainwave-s10"), tmp_path / "a.svg", look=Look("column", "paper"))
    assert figure.caption == "brainwave-s10: peak 48.0 TOPS, no memory roof"
    assert figure.legends[0].get_texts()[-1].get_text() == "roof (the weights are on the chip)"
    assert figure.axes[0].get_xlabel() == "multiply-accumulates for each weight that is read"
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["jobs"], row["layer"], row["macs_per_byte"]) for row in rows] == [
        ("one", "0", ""),
        ("deep", "0", ""),
        ("deep", "1", ""),
    ]
    edge = plot_roofline(run("edge", [{"model": "lstm-256", "steps": 1}]))
    first, roof = edge.legends[0].get_texts()
    assert first.get_text().endswith(", the whole job")
    assert roof.get_text() == "roof (slope: each weight is read once in a time step)"
    assert edge.axes[0].get_xlabel().endswith("for each byte of weights that is read")


def test_points_at_one_place_lie_on_each_other_as_rings() -> None:
    """The same job on three cores: three marks in one place, each larger than the next, which lies on it."""
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 1024, "ep": 8, "count": 3}]}
    figure = plot_roofline(run(chip, [{"name": name, "model": "lstm-256", "steps": 2} for name in "abc"]))
    marks = [each for each in figure.axes[0].get_lines() if each.get_marker() != "None"]
    assert len({(*each.get_xdata(), *each.get_ydata()) for each in marks}) == 1
    sizes = [each.get_markersize() for each in marks]
    assert len(sizes) == 3
    assert sizes[0] > sizes[1] > sizes[2]


def test_the_command_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text("chip: column-npu-16k\njobs: [{model: lstm-256, steps: 3}]\n", encoding="utf-8")
    result = runner.call("simulate", "s.yaml", "--roofline", "r.png")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[-2:] == ["wrote r.png", "wrote r.csv"]
