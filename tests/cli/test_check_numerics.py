"""`lstmsim simulate --check-numerics`: what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.errors import ReplayError
from lstmsim.importers.files import write_weights
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import random_network
from tests.cli.runner import call

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "lstm", "hidden": 6, "input": 5}]}


def scenario(folder: Path, **job: object) -> str:
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": CHIP, "jobs": [{"model": MODEL, "steps": 3, **job}]}))
    return str(path)


def test_real_weights_are_found_equal_and_reported(tmp_path: Path) -> None:
    path = scenario(tmp_path, model="silero-vad-16k", inputs="silero-speech.safetensors", count=2)
    (tmp_path / "s.json").write_text(Path(path).read_text().replace(json.dumps(CHIP), '"column-npu-16k"'))
    shown = call("simulate", path, "--check-numerics")
    assert shown.exit_code == 0
    assert "NUMBERS: every tile" in shown.stdout
    assert "silero-speech.safetensors" in shown.stdout
    report = json.loads(call("simulate", path, "--check-numerics", "--json", "-").stdout)
    assert [each["job"] for each in report["numerics"]] == ["silero-vad-16k #1", "silero-vad-16k #2"]
    first = report["numerics"][0]
    assert first["fixed_point_equal"] is True
    assert first["outputs"] == 3 * 128
    assert first["float_error"] < 1e-9
    assert first["sqnr_db"] > 10
    assert "numerics" not in json.loads(call("simulate", path, "--json", "-").stdout)


def test_random_weights_and_engines_and_widths(tmp_path: Path) -> None:
    path = scenario(tmp_path, count=3)
    results = []
    for engine in ("fast", "reference"):
        arguments = ("--check-numerics", "--random-weights", "7", "--engine", engine, "--json", "-")
        results.append(json.loads(call("simulate", path, *arguments).stdout)["numerics"])
    assert results[0] == results[1]
    assert len({each["sqnr_db"] for each in results[0]}) == 3, "each job has an input of its own"
    wider = ("--set", "precision.weight_bits=16", "--set", "precision.vector_bits=16")
    better = call("simulate", path, "--check-numerics", "--random-weights", "7", "--json", "-", *wider)
    assert json.loads(better.stdout)["numerics"][0]["sqnr_db"] > results[0][0]["sqnr_db"] + 6


def test_split_and_preempted_jobs_are_executed_and_others_that_were_rejected_are_counted(tmp_path: Path) -> None:
    core = {**CHIP["cores"][0], "threads": 1}  # type: ignore[index]
    jobs = [
        {"name": "both", "model": MODEL, "steps": 3, "split": "rows"},
        {"name": "slow", "model": MODEL, "steps": 9, "arrival": 1, "core": 0},
        {"name": "soon", "model": MODEL, "steps": 2, "arrival": 500, "core": 0, "priority": 1},
        {"name": "gone", "model": MODEL, "steps": 2, "arrival": 501, "core": 0, "queue_limit": 0},
    ]
    path = tmp_path / "s.json"
    rules = {"dispatch": "priority", "preemption": True}
    path.write_text(json.dumps({"chip": {**CHIP, "cores": [core, core]}, "jobs": jobs, **rules}))
    shown = call("simulate", str(path), "--check-numerics", "--random-weights", "0")
    assert shown.exit_code == 0
    assert "1 job rejected, with nothing to compute" in shown.stdout
    report = json.loads(call("simulate", str(path), "--check-numerics", "--random-weights", "0", "--json", "-").stdout)
    assert [each["job"] for each in report["numerics"]] == ["both", "slow", "soon"]
    assert "preempted" in shown.stdout or "paused" in shown.stdout


def test_jobs_whose_weights_come_from_a_memory_are_executed(tmp_path: Path) -> None:
    core = {**CHIP["cores"][0], "weight_kib": 1}  # type: ignore[index]
    large = {"layers": [{"cell": "lstm", "hidden": 16, "input": 5}]}
    jobs = [{"model": large, "steps": 3}, {"name": "small", "model": MODEL, "steps": 2}]
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"chip": {**CHIP, "cores": [core], "memory": {"gb_per_s": 1}}, "jobs": jobs}))
    shown = call("simulate", str(path), "--check-numerics", "--random-weights", "0")
    assert shown.exit_code == 0
    assert "threads wait for weights that are streamed" in shown.stdout
    assert shown.stdout.count(" equal  ") == 2


def refused(*arguments: str) -> str:
    result = call("simulate", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert not result.stdout
    return result.stderr


def test_models_without_weights_are_named(tmp_path: Path) -> None:
    assert "has no weights; --random-weights 0 draws some" in refused(scenario(tmp_path), "--check-numerics")
    assert "only with --check-numerics" in refused(scenario(tmp_path), "--random-weights", "1")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[:-10], "w.safetensors"),
        (lambda content: b"\x80\x02cos\nsystem\n." + content, "w.safetensors"),
        (lambda content: content.replace(b"layers.0", b"layers.7"), "is missing, expected shape [6, 5]"),
        (lambda content: content.replace(b'"shape":[6,5]', b'"shape":[5,6]'), "has shape [5, 6], expected [6, 5]"),
        (lambda content: content[:-8] + np.array([np.nan]).tobytes(), "holds nan at"),
    ],
)
def test_damaged_weights_get_a_sentence(tmp_path: Path, damage: object, sentence: str) -> None:
    model = Model("m", (Layer(cell("lstm"), 6, 5),))
    path = tmp_path / "w.safetensors"
    write_weights(random_network(model, seed=1), path)
    named = scenario(tmp_path, model={**MODEL, "weights": "w.safetensors"})
    assert call("simulate", named, "--check-numerics").exit_code == 0
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert sentence in refused(named, "--check-numerics")


def test_missing_files_are_named(tmp_path: Path) -> None:
    assert "gone.safetensors: no such file" in refused(
        scenario(tmp_path, model={**MODEL, "weights": "gone.safetensors"}), "--check-numerics"
    )
    named = scenario(tmp_path, inputs="gone.csv")
    assert "gone.csv: no such file" in refused(named, "--check-numerics", "--random-weights", "0")


def test_a_schedule_that_is_wrong_is_not_the_users_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise ReplayError("job a: the tile of layer 0 reads element 3 too early")

    monkeypatch.setattr("lstmsim.analysis.replay.check_numerics", wrong)
    result = call("simulate", scenario(tmp_path), "--check-numerics", "--random-weights", "0")
    assert result.exit_code == 1
    assert result.stderr == "Error: job a: the tile of layer 0 reads element 3 too early\n"
