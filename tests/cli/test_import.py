"""`lstmsim import`: a network becomes a model file that a scenario can name."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from click.testing import Result

from lstmsim import load_scenario
from lstmsim.importers.files import read_weights
from lstmsim.importers.tensors import read_safetensors
from lstmsim.model.model import Model
from tests.cli import runner
from tests.importers.weight_files import (
    cell_at,
    keras_file,
    keras_layer,
    keras_model,
    keras_variables,
    safe,
    torch_stream,
    torch_tensors,
    torch_zip,
)

onnx = pytest.importorskip("onnx")


def save(path: str, *hidden: int) -> None:
    """A network with one unconnected LSTM of 4 inputs for each hidden size."""
    from onnx import TensorProto, helper

    nodes, tensors = [], []
    for number, size in enumerate(hidden):
        weights = {f"W{number}": (1, 4 * size, 4), f"R{number}": (1, 4 * size, size)}
        for name, shape in weights.items():
            length = shape[1] * shape[2]
            tensors.append(helper.make_tensor(name, TensorProto.FLOAT, shape, [0.25] * length))
        inputs = ["x", *weights]
        nodes.append(helper.make_node("LSTM", inputs, [f"y{number}"], f"node{number}", hidden_size=size))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("steps", 1, 4))
    outputs = [helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None) for number in range(len(hidden))]
    onnx.save(helper.make_model(helper.make_graph(nodes, "graph", [x], outputs, tensors)), path)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save("speech.onnx", 8)


def nan(begin: int) -> dict[str, Any]:
    """A square matrix of two by two numbers in a header; the place counts numbers."""
    return {"dtype": "F32", "shape": [2, 2], "data_offsets": [4 * begin, 4 * begin + 16]}


def call(*arguments: str) -> Result:
    return runner.call("import", *arguments)


def written(path: str) -> Model:
    return load_scenario({"chip": "column-npu-64k", "jobs": [{"model": f"./{path}", "steps": 2}]}).jobs[0].model


NEXT = "next: lstmsim simulate speech.yaml --chip column-npu-16k --steps 100  # 100 is an example\n"


def test_the_file_that_is_named_can_be_simulated() -> None:
    result = call("speech.onnx")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("wrote speech.yaml and speech.safetensors\n" + NEXT)
    assert runner.call(*shlex.split(NEXT, comments=True)[2:]).exit_code == 0
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
    assert [read_weights(f"part-{number}.safetensors", model).model for number, model in enumerate(models, 1)] == models


def test_an_existing_file_is_kept_unless_forced() -> None:
    Path("speech.yaml").write_text("mine")
    result = call("speech.onnx")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert Path("speech.yaml").read_text() == "mine"
    assert not Path("speech.safetensors").exists()
    assert call("speech.onnx", "--force").exit_code == 0
    assert written("speech.yaml").name == "speech"


def test_existing_weights_are_kept_unless_forced() -> None:
    Path("speech.safetensors").write_text("mine")
    result = call("speech.onnx")
    assert result.exit_code == 2
    assert "--out speech.safetensors: exists already; --force replaces it" in result.stderr
    assert not Path("speech.yaml").exists()
    assert Path("speech.safetensors").read_text() == "mine"
    assert call("speech.onnx", "--no-weights").exit_code == 0
    assert Path("speech.safetensors").read_text() == "mine"
    assert call("speech.onnx", "--force").exit_code == 0
    assert read_weights("speech.safetensors", written("speech.yaml")).model.name == "speech"


def test_the_weights_are_beside_the_model_that_names_them() -> None:
    Path("sub").mkdir()
    assert call("speech.onnx", "--out", "sub/other.yml", "--licence", "MIT").exit_code == 0
    assert "\nweights: other.safetensors\n" in Path("sub/other.yml").read_text()
    network = read_weights("sub/other.safetensors", written("sub/other.yml"))
    assert network.passes[0][0].matrices["o", "h"].tolist() == [[0.25] * 8] * 8
    about = read_safetensors("sub/other.safetensors").metadata
    assert about == {"licence": "MIT", "source": "speech.onnx: LSTM 'node0'"}


def test_shapes_only() -> None:
    result = call("speech.onnx", "--no-weights")
    assert result.stdout.endswith("wrote speech.yaml\n" + NEXT)
    assert "weights" not in Path("speech.yaml").read_text()
    assert sorted(each.name for each in Path.cwd().iterdir()) == ["speech.onnx", "speech.yaml"]


FORMATS = {
    "net.safetensors": lambda: safetensors.numpy.save(torch_tensors("lstm", 4, 3, projection=2)),
    "net.pt": lambda: torch_zip(torch_tensors("lstm", 4, 3, projection=2)),
    "net.pth": lambda: torch_stream(torch_tensors("lstm", 4, 3, projection=2)),
    "net.keras": lambda: keras_file(
        keras_model([keras_layer("LSTM", "own", 4)]), cell_at("layers/lstm", keras_variables("LSTM", 4, 3))
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_a_model_and_its_weights(name: str) -> None:
    Path(name).write_bytes(FORMATS[name]())
    result = call(name, "--out", "m.yaml")
    assert result.exit_code == 0, result.output
    model = written("m.yaml")
    assert [(layer.hidden, layer.input) for layer in model.layers] == [(4, 3)]
    assert read_weights("m.safetensors", model).model == model
    assert call(name, "--out", "n.yaml", "--no-weights").exit_code == 0
    assert written("n.yaml") == model
    assert not Path("n.safetensors").exists()


def test_tensors_that_are_left_out_are_counted() -> None:
    tensors = torch_tensors("lstm", 4, 3)
    own = sum(each.size for each in tensors.values())
    Path("net.pt").write_bytes(torch_zip(tensors | {"head.weight": np.zeros((5, 4), np.float32)}))
    result = call("net.pt")
    assert result.exit_code == 0, result.output
    share = f"{100 * 20 / (20 + own):.1f} %"
    words = f"belongs to no recurrent layer and is left out: 'head.weight', {share} of the numbers in the file"
    assert words in result.stderr
    assert "head.weight" in Path("net.yaml").read_text()


def test_layers_of_keras_that_are_left_out_are_named() -> None:
    dense = {"class_name": "Dense", "config": {"name": "head", "units": 5}}
    content = keras_file(
        keras_model([keras_layer("LSTM", "own", 4), dense]), cell_at("layers/lstm", keras_variables("LSTM", 4, 3))
    )
    Path("net.keras").write_bytes(content)
    result = call("net.keras")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()[2:4]] == [
        ["LSTM", "1", "simulated", "112"],
        ["Dense", "1", "left", "out", "cannot", "tell"],
    ]
    assert "a Keras file does not say how often Dense runs" in result.stderr


def test_a_file_is_not_replaced_by_its_own_weights() -> None:
    Path("net.safetensors").write_bytes(FORMATS["net.safetensors"]())
    before = Path("net.safetensors").read_bytes()
    result = call("net.safetensors", "--out", "net.yaml", "--force")
    assert result.exit_code == 2
    assert "net.safetensors: is also the input; expected another file" in result.stderr
    assert not Path("net.yaml").exists()
    # without --out another name is found
    assert call("net.safetensors").exit_code == 0
    assert sorted(each.name for each in Path().glob("net*")) == [
        "net-model.safetensors",
        "net-model.yaml",
        "net.safetensors",
    ]
    assert Path("net.safetensors").read_bytes() == before


def test_both_files_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("lstmsim.importers.files.write_weights", full)
    assert call("speech.onnx").exit_code == 1
    assert sorted(each.name for each in Path.cwd().iterdir()) == ["speech.onnx"]


HOSTILE = {
    "empty.pt": (b"", "is empty"),
    "evil.pt": (b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00touctR.", "names os.system"),
    "zip.keras": (b"PK\x03\x04" + bytes(99), "damaged or cut off"),
    "nan.safetensors": (
        safe({"weight_ih": nan(0), "weight_hh": nan(4)}, b"\xff" * 32),
        "weight_ih: holds nan at [0, 0]",
    ),
    "long.safetensors": (b"\xff" * 99, "is no safetensors file"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str) -> None:
    content, words = HOSTILE[name]
    Path(name).write_bytes(content)
    before = sorted(Path.cwd().iterdir())
    result = call(name, "--out", "m.yaml", "--cell", "rnn")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert name in result.stderr
    assert words in result.stderr
    assert sorted(Path.cwd().iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["speech.txt"], ".onnx, .safetensors, .keras, .h5, .hdf5, .pt, .jit, .pth, .ckpt, .bin, .pth.tar"),
        (["speech.pt"], "speech.pt: no such file"),
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


def test_the_function_of_an_rnn_is_asked() -> None:
    tensors = {"weight_ih": ("F32", [2, 2], 0), "weight_hh": ("F32", [2, 2], 16)}
    header = {
        name: {"dtype": kind, "shape": shape, "data_offsets": [start, start + 16]}
        for name, (kind, shape, start) in tensors.items()
    }
    Path("net.safetensors").write_bytes(safe(header, bytes(32)))
    result = call("net.safetensors", "--out", "m.yaml")
    assert result.exit_code == 2
    assert "say --cell rnn (tanh, PyTorch's default) or --cell rnn-relu" in result.stderr
    result = call("net.safetensors", "--out", "m.yaml", "--cell", "rnn-relu")
    assert result.exit_code == 0, result.output
    assert "rnn-relu of 2 units over 2 inputs" in result.stdout
    assert "{cell: rnn-relu, hidden: 2, input: 2}" in Path("m.yaml").read_text()
    result = call("speech.onnx", "--out", "o.yaml", "--cell", "rnn")
    assert result.exit_code == 2
    assert "an ONNX file says what its RNNs are" in result.stderr
