"""The worked examples of docs/timing.md at their true size, and the demo of the README: cycles alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import lstmsim
from lstmsim.model.scenario import Scenario
from tests.studies.rtl.needed import long_run, needs_icarus

DEMO = Path(__file__).parents[3] / "experiments" / "scenarios" / "demo.yaml"


def scenario(model: str, jobs: int = 1, steps: int = 20, **core: int) -> dict[str, object]:
    cores = [{"npe": 65536, "ep": 32, "vp": 2048, **core}]
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}
    return {"chip": chip, "jobs": [{"name": f"j{n}", "model": model, "steps": steps} for n in range(jobs)]}


def compared(source: Scenario | dict[str, object] | Path, folder: Path) -> int:
    report = lstmsim.run_rtl(source, folder / "out", verify=True, timing_only=True)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()
    return report.run.trace.makespan_cycles


@pytest.mark.slow
@needs_icarus
def test_two_threads(tmp_path: Path) -> None:
    assert compared(scenario("lstm-512", jobs=2, threads=2), tmp_path) == 1471


@long_run
@needs_icarus
@pytest.mark.parametrize(
    ("given", "cycles"),
    [
        (scenario("lstm-512"), 1423),
        (scenario("lstm-1024"), 2735),
        (scenario("lstm-1024", ep=16, vp=4096), 2628),
        (scenario("gru-512"), 1583),
    ],
)
def test_worked_examples(given: dict[str, object], cycles: int, tmp_path: Path) -> None:
    assert compared(given, tmp_path) == cycles


@long_run
@needs_icarus
def test_a_cell_with_two_products(tmp_path: Path) -> None:
    layer = {"cell": "gru-lbr0", "hidden": 512, "input": 512}
    given = scenario("")
    given["jobs"] = [{"model": {"name": "m", "layers": [layer]}, "steps": 20}]
    assert compared(given, tmp_path) == 2343


@long_run
@needs_icarus
def test_the_demo(tmp_path: Path) -> None:
    compared(DEMO, tmp_path)
