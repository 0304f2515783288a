"""Jobs as a table that the host writes: other jobs of the same models run on the same Verilog."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.column.rtl.planning import design
from lstmsim.studies.fit.needs import table_stored
from lstmsim.studies.fit.request import fit
from lstmsim.studies.rtl.result import RtlReport
from lstmsim.studies.rtl.run import run_rtl, slow_words
from lstmsim.studies.shared.loading import load_scenario
from tests.studies.rtl.needed import needs_icarus, needs_verilator
from tests.studies.rtl.test_lint import said

#: Two kinds of cells; the second model keeps all steps of a layer, and reads it in both directions.
MODELS: list[dict[str, Any]] = [
    {"name": "a", "layers": [{"cell": "lstm", "input": 3, "hidden": 4}]},
    {
        "name": "b",
        "layers": [
            {"cell": "gru", "input": 2, "hidden": 3, "bidirectional": True},
            {"cell": "gru", "input": 6, "hidden": 2, "reverse": True},
        ],
    },
]
CAPACITY = {"most_jobs": 5, "most_steps": 6, "random_weights": 1}
#: Model, steps, arrival, cycles between frames.
FIRST = [(0, 4, 0, 0), (1, 3, 10, 0), (0, 2, 30, 0)]
#: More jobs, longer and shorter ones, posted in another order.
SECOND = [(0, 1, 40, 0), (1, 6, 0, 0), (1, 1, 5, 0), (0, 6, 0, 25), (1, 5, 41, 9)]


def run_jobs(folder: Path, jobs: list[tuple[int, int, int, int]], **options: Any) -> RtlReport:
    rows = []
    for number, (model, steps, arrival, interval) in enumerate(jobs):
        job = {"name": f"j{number}", "model": MODELS[model], "steps": steps, "arrival": arrival}
        rows.append(job | ({"frame_interval": interval} if interval else {}))
    core = {"npe": 8, "ep": 2, "vp": 4, "tail_width": 2, "threads": 2, "accumulator_banks": 2}
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 100, "cores": [core]}
    # without a file of frames the formats follow the inputs of all jobs
    models = [MODELS[each] for each in sorted({each for each, *_ in jobs})]
    files = {model["name"]: f"{model['name']}.npy" for model in models}
    folder.mkdir(exist_ok=True)
    for model in models:
        size = model["layers"][0]["input"]
        np.save(folder / files[model["name"]], np.random.default_rng(0).uniform(-1, 1, (8, size)))
    scenario = {"name": "s", "chip": chip, "precision": {"calibration": files}, "jobs": rows}
    (folder / "scenario.yaml").write_text(json.dumps(scenario))
    return run_rtl(folder / "scenario.yaml", folder / "design", **{**CAPACITY, **options})


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the design of the first scenario."""
    folder = tmp_path_factory.mktemp("first")
    run_jobs(folder, FIRST)
    return folder / "design"


@pytest.mark.slow
@needs_icarus
def test_other_jobs_run_on_the_verilog_of_the_first(first: Path, tmp_path: Path) -> None:
    run_jobs(tmp_path, SECOND, netlist_of=first)
    design = tmp_path / "design"
    assert (design / "data/jobs.hex").read_text() != (first / "data/jobs.hex").read_text()
    # what is synthesized is that of the first design; the testbench has the sizes and the arrivals of the second
    for file in first.glob("rtl/*"):
        if file.name != "npu_config.vh":
            shutil.copyfile(file, design / "rtl" / file.name)
    report = run_jobs(tmp_path, SECOND, verify=True)
    assert report.verified is not None
    assert report.verified.equal, report.to_text()


@pytest.mark.slow
@needs_verilator
def test_verilator_warns_of_nothing(first: Path) -> None:
    files = sorted(str(each.relative_to(first)) for each in first.glob("rtl/*.v"))
    words = ["verilator", "--lint-only", "-Wall", "sim/lint.vlt", "-Irtl", "--top-module", "npu_top", *files]
    assert said(words, first) == ""


@pytest.mark.slow
@needs_icarus
def test_a_wrong_table_is_seen(first: Path, tmp_path: Path) -> None:
    run_jobs(tmp_path, SECOND)
    shutil.copyfile(first / "data/jobs.hex", tmp_path / "design/data/jobs.hex")
    report = run_jobs(tmp_path, SECOND, verify=True)
    assert report.verified is not None
    assert not report.verified.equal


@pytest.mark.parametrize(
    ("jobs", "options", "text"),
    [
        ([(0, 1, 0, 0)] * 4 + SECOND[1:3], {}, "6 jobs do not fit a table of 5"),
        ([(0, 7, 0, 0), *SECOND], {"most_jobs": 6}, "7 steps do not fit a table of jobs of up to 6"),
        ([(0, 1, 0, 0)], {}, "is another one than this scenario needs"),
        (FIRST, {"most_steps": 7}, "is another one than this scenario needs"),
        (FIRST, {"most_jobs": None}, "only with most_jobs"),
        (FIRST, {"most_jobs": 256, "most_steps": 65536}, "256 jobs of 65,536 steps, the frames of core 0 need"),
    ],
)
def test_what_does_not_fit_is_refused(
    first: Path, tmp_path: Path, jobs: list[tuple[int, int, int, int]], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        run_jobs(tmp_path, jobs, netlist_of=first, **options)
    assert not (tmp_path / "design").exists()


def test_verilog_that_only_the_other_design_has_is_refused(first: Path, tmp_path: Path) -> None:
    for name in ("own.v", "own.vh"):
        (first / "rtl" / name).write_text("module own;\nendmodule\n")
    try:
        with pytest.raises(InputError) as caught:
            run_jobs(tmp_path, SECOND, netlist_of=first)
    finally:
        for name in ("own.v", "own.vh"):
            (first / "rtl" / name).unlink()
    text = str(caught.value)
    assert all(f"rtl/{name} is none of the files that this scenario needs" in text for name in ("own.v", "own.vh"))
    assert "npu_config" not in text
    assert not (tmp_path / "design").exists()


CORE = {"npe": 8, "ep": 2, "vp": 4, "tail_width": 2, "threads": 2}
CHIP = {"kind": "column-npu", "name": "c", "frequency_mhz": 100, "cores": [CORE]}


def asked(**keys: Any) -> dict[str, Any]:
    return {"chip": CHIP, "jobs": [{"model": each, "steps": 3, **keys} for each in MODELS]}


def test_fit_counts_the_table_and_the_memories_that_grow_with_it() -> None:
    (own,) = fit(asked(), "ecp5-85", most_jobs=5, most_steps=6)
    assert own.table is not None
    assert own.parts[-1].name == "table of jobs"
    assert own.parts[-1].registers > 0
    assert own.table.registers is not None
    assert own.table.registers >= own.parts[-1].registers
    assert "jobs as a table that the host writes: up to 5 jobs of up to 6 steps" in own.to_text()
    assert own.to_dict()["parts"][-1]["name"] == "table of jobs"
    # the same words as those of the plan: all steps of the lower layer, frames of the widest model for all jobs
    loaded = load_scenario(asked(), ())
    planned = design(loaded, loaded.precision, None, (5, 6)).cores[0]
    stored = table_stored(loaded, (5, 6))
    assert stored.frames == {"a": 30}
    assert planned.frame_words == 30 * 2


@pytest.mark.parametrize(
    ("scenario", "options", "text"),
    [
        (asked(), {"most_steps": 6}, "most_steps: only with most_jobs"),
        (asked(), {"most_jobs": 1}, "2 jobs do not fit a table of 1"),
        (asked(), {"most_jobs": 4, "most_steps": 2}, "3 steps do not fit a table of jobs of up to 2"),
        ({"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 2}]}, {"most_jobs": 4}, "as RTL; machines"),
    ],
)
def test_fit_refuses_what_no_table_takes(scenario: dict[str, Any], options: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text):
        fit(scenario, "ecp5-85", **options)


def test_a_large_table_takes_icarus_long() -> None:
    loaded = load_scenario(asked(), ())
    assert slow_words(loaded, "icarus") == ""
    assert "with a table of 256 jobs take icarus some" in slow_words(loaded, "icarus", (256, 64))
