"""`lstmsim accuracy`: what it prints and writes, what it refuses."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.importers.files import write_weights
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Network, random_network
from tests.cli.runner import both, call

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "lstm", "hidden": 6, "input": 5}]}
SILERO = {"model": "silero-vad-16k", "steps": 4, "inputs": "silero-speech.safetensors"}


def scenario(folder: Path, **job: object) -> str:
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": CHIP, "jobs": [{"model": MODEL, "steps": 3, **job}]}))
    return str(path)


def report(*arguments: str) -> dict[str, Any]:
    result = call("accuracy", *arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    return data


def refused(*arguments: str) -> str:
    result = call("accuracy", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert not result.stdout
    return result.stderr


def test_equal_jobs_are_shown_once(tmp_path: Path) -> None:
    path = scenario(tmp_path, **SILERO, count=3)
    shown = call("accuracy", path)
    assert shown.exit_code == 0
    assert shown.stdout.count("silero-speech.safetensors") == 1
    assert "(and 2 equal)" in shown.stdout
    assert "8-bit weights (a scale per row)" in shown.stdout
    assert "WORDS" not in shown.stdout
    data = report(path)
    assert data["schema"] == "lstmsim/accuracy/1"
    assert data["words"] is None
    assert data["precision"]["vector_bits"] == 8
    (job,) = data["jobs"]
    assert job["jobs"] == ["silero-vad-16k #1", "silero-vad-16k #2", "silero-vad-16k #3"]
    steps = job["steps"]
    assert [len(own) for own in steps.values()] == [4, 4, 4]
    assert job["max_error"] == max(steps["max_error"]) == steps["max_error"][job["worst_step"]]
    assert job["rms_error"] ** 2 == pytest.approx(np.mean(np.square(steps["rms_error"])))


def test_every_step_on_demand(tmp_path: Path) -> None:
    path = scenario(tmp_path, **SILERO)
    steps = report(path)["jobs"][0]["steps"]
    shown = call("accuracy", path, "--steps").stdout
    rows = [line.split() for line in shown.partition("STEPS of silero-vad-16k")[2].splitlines()[2:6]]
    for number, row in enumerate(rows):
        assert int(row[0]) == number
        assert [float(each) for each in row[1:]] == [
            pytest.approx(steps["max_error"][number], rel=0.01),
            pytest.approx(steps["rms_error"][number], rel=0.01),
            pytest.approx(steps["sqnr_db"][number], abs=0.06),
        ]
    assert len(rows) == 4
    assert "STEPS" not in call("accuracy", path).stdout


def test_without_an_error_there_is_no_ratio(tmp_path: Path) -> None:
    model = Model("m", (Layer(cell("lstm"), 6, 5),))
    own = random_network(model, seed=1).passes[0][0]
    zero = replace(own, matrices={key: 0 * each for key, each in own.matrices.items()}, biases={})
    write_weights(Network(model, ((zero,),)), tmp_path / "w.safetensors")
    path = scenario(tmp_path, model={**MODEL, "weights": "w.safetensors"})
    (job,) = report(path)["jobs"]
    assert job["sqnr_db"] is None
    assert job["steps"]["sqnr_db"] == [None] * 3
    assert job["max_error"] == 0
    row = next(line for line in call("accuracy", path).stdout.splitlines() if "random, seed 0" in line)
    assert row.split()[-3:] == ["-", "0", "0"]


def test_widths_are_a_table_and_a_part_of_the_json(tmp_path: Path) -> None:
    path = scenario(tmp_path, steps=20)
    arguments = (path, "--random-weights", "7", "--bits", "5:7")
    data = report(*arguments)
    assert [each["bits"] for each in data["bits"]] == [5, 6, 7]
    assert [each["precision"]["weight_bits"] for each in data["bits"]] == [5, 6, 7]
    sqnr = [each["jobs"][0]["sqnr_db"] for each in data["bits"]]
    assert sqnr[2] > sqnr[0] + 6
    assert "steps" not in data["bits"][0]["jobs"][0]
    (alone,) = report(path, "--random-weights", "7", "--set", "precision.weight_bits=6", "--set",
                      "precision.vector_bits=6")["jobs"]  # fmt: skip
    assert alone["sqnr_db"] == sqnr[1]
    shown = call("accuracy", *arguments).stdout
    table = shown.partition("BITS")[2].splitlines()
    assert table[1].split()[-3:] == ["5", "6", "7"]
    assert table[2].split()[-3:] == [f"{each:.1f}" for each in sqnr]
    assert "weights of some jobs are random, seed 7" in shown
    assert "overflowed the accumulator" not in shown


def test_overflow_at_a_width_is_said(tmp_path: Path) -> None:
    arguments = ("--random-weights", "7", "--bits", "4:8", "--set", "precision.accumulator_bits=14")
    shown = call("accuracy", scenario(tmp_path, steps=20), *arguments).stdout
    assert "sums overflowed the accumulator of 14 bits at 8\n" in shown


@pytest.mark.slow
def test_words_of_g2p(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("cat", "example", "pocket", "bicycle", "favorite", "enough", "thousand", "language", "young")
    monkeypatch.setattr("lstmsim.studies.accuracy.study.read_words", lambda: words)
    path = scenario(tmp_path, model="g2p-en-decoder")
    fine = call("accuracy", path, "--set", "precision.weight_bits=14", "--set", "precision.vector_bits=14").stdout
    assert "WORDS: 9 of 9 (100.0 %)" in fine
    coarse = ("--set", "precision.weight_bits=2", "--set", "precision.vector_bits=2")
    shown, data = both("accuracy", path, *coarse, "--bits", "2:3")
    changed = data["words"]["changed"]
    assert data["words"]["words"] == 9
    assert data["words"]["unchanged"] == pytest.approx(1 - len(changed) / 9)
    assert len(changed) > 5
    assert all(each["float64"] != each["fixed"] for each in changed)
    assert data["bits"][0]["words"] == data["words"]
    assert f"WORDS: {9 - len(changed)} of 9" in shown
    assert shown.count(" -> ") == 5
    assert f"... and {len(changed) - 5} more" in shown
    line = next(line for line in shown.splitlines() if line.startswith("words unchanged, %"))
    assert line.split()[-2] == f"{100 * data['words']['unchanged']:.1f}"


@pytest.mark.slow
def test_a_plot_has_its_numbers_beside_it(tmp_path: Path) -> None:
    path = scenario(tmp_path, steps=5, count=2)
    files = [str(tmp_path / name) for name in ("a.json", "a.png", "a.csv")]
    done = call("accuracy", path, "--random-weights", "1", "--plot", files[1], "--json", files[0])
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [f"wrote {name}" for name in files]
    assert Path(files[1]).read_bytes().startswith(b"\x89PNG")
    widths = json.loads(Path(files[0]).read_text())["bits"]
    with open(files[2], newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [int(row[0]) for row in rows[1:]] == list(range(4, 13)) == [each["bits"] for each in widths]
    for row, each in zip(rows[1:], widths, strict=True):
        assert [float(value) for value in row[1:]] == pytest.approx([job["sqnr_db"] for job in each["jobs"]], rel=1e-5)
    call("accuracy", path, "--random-weights", "1", "--plot", files[1], "--bits", "6:7")
    assert len(Path(files[2]).read_text().splitlines()) == 3


@pytest.mark.parametrize("bits", ["4-12", "12:4", "1:8", "4:17", ":", "a:b", "4", "-4:8", "４:８", "4:8:9", "", "4: 8"])
def test_wrong_widths_get_a_sentence(tmp_path: Path, bits: str) -> None:
    stderr = refused(scenario(tmp_path), f"--bits={bits}")
    expected = "expected LOW:HIGH with 2 <= LOW <= HIGH <= 16, like 4:12"
    assert stderr.splitlines()[-1] == f"Error: Invalid value for '--bits': {expected}; got {bits}"


def test_models_without_weights_are_named(tmp_path: Path) -> None:
    assert refused(scenario(tmp_path)).endswith("has no weights; --random-weights 0 draws some\n")


def test_outputs_are_looked_at_first(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    assert "expected a file name that ends in .png" in refused(path, "--plot", str(tmp_path / "a.bmp"))
    both = refused(path, "--plot", str(tmp_path / "a.png"), "--json", str(tmp_path / "a.csv"))
    assert "is also the output of --json" in both
    assert "there is no folder" in refused(path, "--plot", str(tmp_path / "gone" / "a.png"))
    assert {each.name for each in tmp_path.iterdir()} == {"s.json"}


def test_as_functions(tmp_path: Path) -> None:
    data = {"chip": CHIP, "jobs": [{"model": MODEL, "steps": 3}]}
    answer = lstmsim.accuracy(data, random_weights=3, bits=[9, 6])
    assert set(answer.by_bits) == {6, 9}
    lstmsim.plot_accuracy(answer, tmp_path / "a.svg")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["bits", "6", "9"]
    with pytest.raises(lstmsim.InputError, match="nothing to draw"):
        lstmsim.plot_accuracy(lstmsim.accuracy(data, random_weights=3))


def test_a_chip_that_does_not_compute_in_fixed_point_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for chip, said in (("v100", "a parallel device computes with floating point, not fixed point"), (CHIP, "")):
        path.write_text(json.dumps({"chip": chip, "jobs": [SILERO]}))
        assert report(str(path))["other_numbers"] == said
        assert ("of the networks alone: " in call("accuracy", str(path)).stdout) == bool(said)
