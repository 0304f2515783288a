"""`lstmsim import`: a network becomes a model file that a scenario can name."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from lstmsim.api import load_scenario
from lstmsim.workload.model import Model
from tests.cli import runner

onnx = pytest.importorskip("onnx")


def save(path: str, *hidden: int) -> None:
    """A network with one unconnected LSTM of 4 inputs for each hidden size."""
    from onnx import TensorProto, helper

    nodes, tensors = [], []
    for number, size in enumerate(hidden):
        weights = {f"W{number}": (1, 4 * size, 4), f"R{number}": (1, 4 * size, size)}
        for name, shape in weights.items():
            length = shape[1] * shape[2]
            tensors.append(helper.make_tensor(name, TensorProto.FLOAT, shape, [0.0] * length))
        inputs = ["x", *weights]
        nodes.append(helper.make_node("LSTM", inputs, [f"y{number}"], f"node{number}", hidden_size=size))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("steps", 1, 4))
    outputs = [helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None) for number in range(len(hidden))]
    onnx.save(helper.make_model(helper.make_graph(nodes, "graph", [x], outputs, tensors)), path)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save("speech.onnx", 8)


def call(*arguments: str) -> Result:
    return runner.call("import", *arguments)


def written(path: str) -> Model:
    return load_scenario({"chip": "column-npu-64k", "jobs": [{"model": f"./{path}", "steps": 2}]}).jobs[0].model


def test_the_file_that_is_named_can_be_simulated() -> None:
    result = call("speech.onnx")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("wrote speech.yaml\n")
    assert "node0" in result.stdout
    model = written("speech.yaml")
    assert (model.name, [(layer.hidden, layer.input) for layer in model.layers]) == ("speech", [(8, 4)])


def test_name_and_file_as_asked_for() -> None:
    assert call("speech.onnx", "--name", "yes: no", "--out", "other.yml").exit_code == 0
    assert written("other.yml").name == "yes: no"


def test_the_licence_is_kept() -> None:
    assert call("speech.onnx", "--licence", "MIT").exit_code == 0
    assert "\nlicence: MIT\n" in Path("speech.yaml").read_text()


def test_several_models_are_several_files() -> None:
    save("speech.onnx", 8, 16)
    result = call("speech.onnx", "--out", "part.yaml", "--name", "part")
    assert result.exit_code == 0, result.stderr
    models = [written(f"part-{number}.yaml") for number in (1, 2)]
    assert [(model.name, model.layers[0].hidden) for model in models] == [("part-1", 8), ("part-2", 16)]


def test_an_existing_file_is_kept_unless_forced() -> None:
    Path("speech.yaml").write_text("mine")
    result = call("speech.onnx")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert Path("speech.yaml").read_text() == "mine"
    assert call("speech.onnx", "--force").exit_code == 0
    assert written("speech.yaml").name == "speech"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["speech.pt"], ".onnx"),
        (["missing.onnx"], "missing.onnx"),
        (["speech.onnx", "--out", "speech.txt"], ".yaml"),
        (["speech.onnx", "--out", "no/speech.yaml"], "no folder"),
        (["speech.onnx", "--name", " "], "--name"),
        (["broken.onnx"], "broken.onnx"),
    ],
)
def test_refused(arguments: list[str], words: str) -> None:
    Path("broken.onnx").write_bytes(b"\x00" + b"not a network" * 9)
    before = sorted(Path.cwd().iterdir())
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(Path.cwd().iterdir()) == before
