"""`lstmsim simulate --outputs`: the numbers that the simulated machine computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.importers.files import write_weights
from lstmsim.importers.tensors import read_safetensors, write_safetensors
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus, random_network
from tests.cli.runner import call

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
NETWORK = Model("m", (Layer(cell("gru"), 6, 5, bidirectional=True),))
MODEL = {"name": "m", "layers": [{"cell": "gru", "hidden": 6, "input": 5, "bidirectional": True}]}
FRAMES = np.random.default_rng(1).standard_normal((7, 5))


def scenario(folder: Path, *others: dict[str, Any], **more: object) -> str:
    write_weights(random_network(NETWORK, seed=4), folder / "w.safetensors")
    np.save(folder / "x.npy", FRAMES)
    job = {"name": "a", "model": {**MODEL, "weights": "w.safetensors"}, "steps": 4, "inputs": "x.npy"}
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": CHIP, "jobs": [job, *({**job, **each} for each in others)], **more}))
    return str(path)


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    file = read_safetensors(path)
    assert {each.kind for each in file.tensors.values()} <= {"F64"}
    return {name: each.read().reshape(each.shape) for name, each in file.tensors.items()}, dict(file.metadata)


def refused(*arguments: str) -> str:
    result = call("simulate", *arguments)
    assert result.exit_code == 2, result.output
    assert not result.stdout
    return result.stderr


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_without_a_precision_they_are_those_of_the_network(tmp_path: Path, engine: str) -> None:
    out = tmp_path / "h.safetensors"
    shown = call("simulate", scenario(tmp_path, {"name": "b", "steps": 7}), "--outputs", str(out), "--engine", engine)
    assert shown.exit_code == 0, shown.output
    assert f"wrote {out}" in shown.stderr
    tensors, texts = read(out)
    network = random_network(NETWORK, seed=4)
    for name, steps in (("a", 4), ("b", 7)):
        expected = run_network(float_arithmetic(network), Stimulus(FRAMES[:steps])).output()
        assert tensors[name].shape == (steps, 12)
        # only the order of additions differs
        assert np.abs(tensors[name] - expected).max() < 1e-14
    assert (texts["lstmsim"], texts["scenario"], "precision" in texts) == (lstmsim.__version__, "s", False)
    assert "float64" in texts["numbers"]
    (origin,) = json.loads(texts["jobs"])
    assert (origin["weights"], origin["inputs"], origin["begins_with"]) == ("w.safetensors", "x.npy", "0")


def test_with_a_precision_they_are_its_numbers_as_the_check_has_them(tmp_path: Path) -> None:
    out = tmp_path / "h.safetensors"
    path = scenario(tmp_path, precision={"vector_bits": 5})
    assert call("simulate", path, "--outputs", str(out)).exit_code == 0
    tensors, texts = read(out)
    assert len(np.unique(tensors["a"][:, :6])) <= 31, "five bits, symmetric, in each direction"
    assert json.loads(texts["precision"])["vector_bits"] == 5
    assert "fixed-point" in texts["numbers"]
    checks = lstmsim.check_numerics(lstmsim.run(path))
    assert np.array_equal(checks[0].fixed, tensors["a"])
    again = tmp_path / "again.safetensors"
    assert call("simulate", path, "--outputs", str(again), "--check-numerics").exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    # an override that reaches into `precision` asks for it too
    plain, bits = tmp_path / "plain", "precision.vector_bits=5"
    plain.mkdir()
    assert call("simulate", scenario(plain), "--outputs", str(again), "--set", bits).exit_code == 0
    assert again.read_bytes() == out.read_bytes()


def test_the_width_of_a_memory_asks_for_no_fixed_point(tmp_path: Path) -> None:
    path = scenario(tmp_path, chip={**CHIP, "cores": [{**CHIP["cores"][0], "weight_kib": 9, "weight_bits": 4}]})  # type: ignore[index]
    computed = lstmsim.outputs(lstmsim.run(path))
    assert not computed.fixed


TAKERS = ["outputs", "check_numerics", "serving", "explain", "save_report"]


@pytest.mark.parametrize("name", TAKERS)
def test_what_takes_a_run_takes_a_scenario_too(name: str, tmp_path: Path) -> None:
    function, path = getattr(lstmsim, name), scenario(tmp_path)
    page = tmp_path / "page.html"
    texts = set()
    for given in (lstmsim.run(path), path, Path(path), lstmsim.load_scenario(path)):
        shown = function(given, *([page] if name == "save_report" else []))
        texts.add(page.read_text(encoding="utf-8") if name == "save_report" else str(shown))
    assert len(texts) == 1


@pytest.mark.parametrize("name", TAKERS)
def test_what_is_neither_a_run_nor_a_scenario_is_refused(name: str, tmp_path: Path) -> None:
    function = getattr(lstmsim, name)
    more = [tmp_path / "report.html"] if name == "save_report" else []
    with pytest.raises(lstmsim.InputError) as caught:
        function(5, *more)
    text = f"{name}: expects a Run, as lstmsim.run gives it, or a scenario; got a value of type int"
    assert str(caught.value) == text
    with pytest.raises(lstmsim.InputError, match=r"no/such\.yaml"):
        function("no/such.yaml", *more)
    assert not list(tmp_path.iterdir())


def test_jobs_that_were_rejected_have_no_tensor(tmp_path: Path) -> None:
    out = tmp_path / "h.safetensors"
    others = [{"name": "b"}, {"name": "c"}, {"name": "late", "queue_limit": 0}]
    shown = call("simulate", scenario(tmp_path, *others), "--outputs", str(out))
    assert f"rejected, without a tensor in {out}: late" in shown.stderr
    tensors, texts = read(out)
    assert set(tensors) == {"a", "b", "c"}
    assert json.loads(texts["rejected"])["count"] == 1


def test_random_numbers_only_when_asked_for(tmp_path: Path) -> None:
    path, out = tmp_path / "s.json", str(tmp_path / "h.safetensors")
    path.write_text(json.dumps({"chip": CHIP, "jobs": [{"model": MODEL, "steps": 2, "count": 2}]}))
    assert "has no weights; --random-weights 0 draws some" in refused(str(path), "--outputs", out)
    assert not Path(out).exists()
    assert call("simulate", str(path), "--outputs", out, "--random-weights", "5").exit_code == 0
    (first, second) = json.loads(read(Path(out))[1]["jobs"])
    assert (first["weights"], first["inputs"], second["inputs"]) == (
        "random, seed 5",
        "random, seed 0",
        "random, seed 1",
    )


@pytest.mark.parametrize("name", ["w.safetensors", "x.safetensors", "states.safetensors", "calibration.safetensors"])
def test_no_input_is_written_over(tmp_path: Path, name: str) -> None:
    write_safetensors(tmp_path / "x.safetensors", {"x": FRAMES})
    write_safetensors(tmp_path / "calibration.safetensors", {"x": FRAMES})
    write_safetensors(tmp_path / "states.safetensors", {"layers.0.backward.initial.h": np.ones(6)})
    more = {"name": "b", "inputs": "x.safetensors", "initial": {"file": "states.safetensors"}}
    path = scenario(tmp_path, more, precision={"calibration": {"m": "calibration.safetensors"}})
    before = (tmp_path / name).read_bytes()
    assert "is also the input; expected another file" in refused(path, "--outputs", str(tmp_path / name))
    assert (tmp_path / name).read_bytes() == before
    assert call("simulate", path, "--outputs", str(tmp_path / "h.safetensors")).exit_code == 0


def test_what_cannot_be_written_is_said_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = scenario(tmp_path), str(tmp_path / "h.safetensors")
    assert "expected a file name that ends in .safetensors" in refused(path, "--outputs", str(tmp_path / "h.npy"))
    monkeypatch.setattr("lstmsim.analysis.replay.MOST_BYTES", 300)
    assert (
        "outputs: those of all layers would be 0.0 GB, at most 3e-07 GB are kept: take fewer steps or jobs"
        in refused(path, "--outputs", out)
    )
    monkeypatch.setattr("lstmsim.analysis.replay.MOST_BYTES", 10**9)
    assert "has a name that no tensor" in refused(scenario(tmp_path, {"name": "__metadata__"}), "--outputs", out)
    monkeypatch.setattr("lstmsim.analysis.replay.MAX_HEADER", 2**20 + 100)
    assert "1 jobs are too many for one safetensors file" in refused(scenario(tmp_path), "--outputs", out)
    row = {"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 1}]}
    (tmp_path / "row.json").write_text(json.dumps(row))
    assert "a chip of kind 'row-npu' has no structural model" in refused(str(tmp_path / "row.json"), "--outputs", out)
    assert not Path(out).exists()


def test_a_decoder_in_a_file(tmp_path: Path) -> None:
    out = tmp_path / "h.safetensors"
    path = scenario(tmp_path, {"name": "b", "initial": "a"})
    assert call("simulate", path, "--outputs", str(out)).exit_code == 0
    tensors, texts = read(out)
    assert not np.array_equal(tensors["a"], tensors["b"])
    assert {each["begins_with"] for each in json.loads(texts["jobs"])} == {"0", "the last states of a"}
