"""One calibration for all jobs of a network, on their own frames or on a file, and its lines in the reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.numbers import read_frames
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import FixedArithmetic, fixed_arithmetic
from lstmsim.model.numerics.jobs import JobData, fixed_numbers, judged_frames, run_jobs
from lstmsim.model.numerics.weights import Stimulus, random_network, random_stimulus
from tests.cli.runner import call

MODEL = Model("m", (Layer(cell("lstm"), 6, 5),))
NETWORK = random_network(MODEL, seed=1)
QUIET, LOUD = (Stimulus(factor * random_stimulus(MODEL, 9, seed=2).x) for factor in (0.1, 3.0))


def data(*stimuli: Stimulus, **more: Any) -> dict[int, JobData]:
    return {index: JobData(NETWORK, each, "w", "x", **more) for index, each in enumerate(stimuli)}


def one(numbers: Any) -> FixedArithmetic:
    own = numbers.arithmetic[0][0]
    assert isinstance(own, FixedArithmetic)
    return own


def test_jobs_of_a_network_share_formats_and_weights_but_no_counters() -> None:
    quiet, loud = fixed_numbers(data(QUIET, LOUD), Precision(accumulator_bits=13)).values()
    assert one(quiet).formats is one(loud).formats
    assert one(quiet).matrix("i", "x") is one(loud).matrix("i", "x")
    # the formats hold what all jobs reach
    both = fixed_arithmetic(NETWORK, [QUIET, LOUD], Precision())[0][0]
    assert float(one(quiet).x.scale) == float(both.x.scale)
    run_jobs({0: quiet, 1: loud})
    assert sum(one(loud).overflowed.values()) > 0
    assert one(loud).overflowed is not one(quiet).overflowed
    assert sum(one(quiet).overflowed.values()) < sum(one(loud).overflowed.values())


def test_a_calibration_set_decides_alone() -> None:
    frames = random_stimulus(MODEL, 200, seed=9).x
    (own,) = fixed_numbers(data(LOUD, calibration=frames), Precision()).values()
    assert float(one(own).x.scale) == pytest.approx(np.abs(frames).max() / 127)
    run_jobs({0: own})
    assert one(own).saturated["x"] > 0, "louder than all that was calibrated on"


def test_judged_frames_are_counted() -> None:
    frames = np.concatenate([LOUD.x, QUIET.x[:4]])
    assert judged_frames(data(QUIET, LOUD, QUIET, calibration=frames).values()) == [4, 9, 4]
    assert judged_frames(data(QUIET).values()) == [9]


CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
SILERO = {"model": "silero-vad-16k", "steps": 60, "inputs": "silero-speech.safetensors"}


@pytest.mark.slow
def test_accuracy_says_what_it_calibrated_on(tmp_path: Path) -> None:
    base = {"chip": "column-npu-16k", "jobs": [SILERO]}
    own = lstmsim.accuracy(base)
    shown = " ".join(own.to_text().split())
    assert "silero-vad-16k: formats calibrated on the frames that are judged: optimistic; give precision.calib" in shown
    frames = _speech()
    np.save(tmp_path / "other.npy", frames[60:])
    np.save(tmp_path / "all.npy", frames)
    np.save(tmp_path / "silence.npy", frames[:15])
    ratios = {}
    for name in ("other", "all", "silence"):
        report = lstmsim.accuracy({**base, "precision": {"calibration": str(tmp_path / f"{name}.npy")}})
        ratios[name] = report.given.jobs[0].accuracy.sqnr_db
        text = " ".join(report.to_text().split())
        assert f"formats calibrated on {name}.npy ({len(np.load(tmp_path / f'{name}.npy'))} frames)" in text
        assert ("optimistic" in text) == (name != "other")
    every = lstmsim.accuracy({**base, "precision": {"calibration": str(tmp_path / "all.npy")}}).to_text()
    assert "which has 60 of the 60 judged frames: optimistic" in " ".join(every.split())
    # a quarter of a second says little about the rest
    assert ratios["silence"] < own.given.jobs[0].accuracy.sqnr_db - 10


def _speech() -> np.ndarray:
    return read_frames(input_files()["silero-speech.safetensors"], None, 128)


def files(folder: Path, calibration: object, **more: object) -> str:
    for width in (5, 7):
        np.save(folder / f"c{width}.npy", np.random.default_rng(width).standard_normal((20, width)))
    jobs = [
        {"name": f"j{width}", "model": {"name": f"m{width}", "layers": [{"cell": "gru", "hidden": 4, "input": width}]}}
        for width in (5, 7)
    ]
    jobs = [{**job, "steps": 3, **more} for job in jobs]
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": CHIP, "jobs": jobs, "precision": {"calibration": calibration}}))
    return str(path)


def test_a_file_for_each_model(tmp_path: Path) -> None:
    path = files(tmp_path, {"m5": "c5.npy", "m7": "c7.npy"})
    arguments = ("--check-numerics", "--random-weights", "1")
    result = call("simulate", path, *arguments)
    assert result.exit_code == 0, result.output
    assert "m5: formats calibrated on c5.npy (20 frames)" in result.stdout
    assert "m7: formats calibrated on c7.npy (20 frames)" in result.stdout
    report = json.loads(call("accuracy", path, "--random-weights", "1", "--json", "-").stdout)
    assert [job["calibrated_on"] for job in report["jobs"]] == ["c5.npy", "c7.npy"]
    assert [job["calibrated_on_judged_frames"] for job in report["jobs"]] == [0, 0]
    only = call("simulate", files(tmp_path, {"m5": "c5.npy"}), *arguments).stdout
    assert "m7: formats calibrated on the frames that are judged: optimistic" in only


@pytest.mark.parametrize(
    ("calibration", "sentence"),
    [
        ("c5.npy", "c5.npy: has frames of shape [20, 5], expected [1 or more steps, 7 inputs] for model m7; models of"),
        ({"m6": "c5.npy"}, "precision.calibration.m6: no job has a model called 'm6'; there are: m5, m7"),
        ("c5.txt", "precision.calibration: must be the path of a file that ends in .safetensors or .npy or .csv"),
        ({}, "must be a mapping of at least 1 entry, got 0"),
        (5, "precision.calibration: must be text, got 5"),
        ("gone.npy", "gone.npy: no such file"),
    ],
)
def test_mistakes(tmp_path: Path, calibration: object, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        lstmsim.check_numerics(lstmsim.run(files(tmp_path, calibration)), random_weights=1)
    assert sentence in str(caught.value)


def test_a_file_of_one_model_serves_all_of_its_jobs(tmp_path: Path) -> None:
    path = files(tmp_path, {"m5": "c5.npy"}, count=3)
    report = lstmsim.accuracy(path, random_weights=1)
    assert [job.case.calibrated_on for job in report.given.jobs] == ["c5.npy"] * 3 + [""] * 3
