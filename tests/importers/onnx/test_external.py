"""Weights in data files beside an ONNX network are read if that is safe, else refused by a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lstmsim.base.errors import InputError
from lstmsim.base.files import own_ledger
from lstmsim.files.scenario.written import write_model_file
from lstmsim.importers.files import import_weights
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.numerics.weights import Network
from tests.cli import runner
from tests.importers.onnx.graphs import Graph, save
from tests.importers.onnx.test_weights import Filled

DATA = "net.onnx.data"


def network(kind: str = "LSTM") -> onnx.GraphProto:
    graph = Filled(3)
    graph.recurrent(kind, graph.input("x", 5, 1, 3), 3, 4)
    return graph.proto("rnn_Y")


def exported(folder: Path, graph: onnx.GraphProto | None = None, name: str = "net.onnx") -> Path:
    """Write a network as PyTorch's exporter does: the graph, and all weights in one file beside it."""
    model = helper.make_model(graph or network(), opset_imports=[helper.make_opsetid("", 18)])
    path = folder / name
    onnx.save(model, path, save_as_external_data=True, location=DATA, size_threshold=0, convert_attribute=True)
    return path


def edited(path: Path, **fields: Any) -> Path:
    """Change entries of the network's first tensor; None removes an entry."""
    model = onnx.load(path, load_external_data=False)
    tensor = model.graph.initializer[0]
    entries = {each.key: each.value for each in tensor.external_data} | fields
    del tensor.external_data[:]
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(model.SerializeToString())
    return path


def numbers(path: Path) -> Network:
    (imported,) = import_weights(path)
    assert imported.network is not None
    return imported.network


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_weights(path)
    (mistake,) = caught.value.mistakes
    assert mistake.location == str(path)
    assert import_weights(path, weights=False)[0].network is None
    return mistake.sentence


def equal(one: Network, other: Network) -> bool:
    first, second = one.passes[0][0], other.passes[0][0]
    return all(np.array_equal(first.matrices[key], second.matrices[key]) for key in second.matrices) and all(
        np.array_equal(first.biases[key], second.biases[key]) for key in second.biases
    )


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_weights_beside_the_network_are_read(kind: str, tmp_path: Path) -> None:
    inside = numbers(save(network(kind), tmp_path / "inside.onnx"))
    assert equal(numbers(exported(tmp_path, network(kind))), inside)
    # The network may have been renamed, and a link may lead to its folder.
    (tmp_path / "net.onnx").rename(tmp_path / "renamed.onnx")
    (tmp_path / "link").symlink_to(tmp_path)
    assert equal(numbers(tmp_path / "link" / "renamed.onnx"), inside)


def test_a_network_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert import_weights("net.onnx")[0].files == (str(tmp_path / "net.onnx"), DATA)


def test_data_in_a_folder_below(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / DATA).rename(tmp_path / "deep" / DATA)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        next(each for each in tensor.external_data if each.key == "location").value = f"./deep/{DATA}"
    path.write_bytes(model.SerializeToString())
    assert equal(numbers(path), numbers(save(network(), tmp_path / "inside.onnx")))


@pytest.mark.parametrize("where", ["branch", "function", "constant"])
def test_data_of_inner_graphs(where: str, tmp_path: Path) -> None:
    graph, inner = Filled(3), Filled(3)
    x = graph.input("x", 5, 1, 3)
    inner.recurrent("LSTM", x, 3, 4)
    held = {each.name: numpy_helper.to_array(each) for each in inner.tensors}
    functions = []
    if where == "branch":
        body = inner.proto("rnn_Y")
        graph.nodes.append(helper.make_node("If", ["flag"], ["y"], name="by", then_branch=body, else_branch=body))
        graph.tensors.append(numpy_helper.from_array(np.array(True), "flag"))
    else:
        made = [helper.make_node("Constant", [], [each.name], value=each) for each in inner.tensors]
        if where == "function":
            opset = [helper.make_opsetid("", 18)]
            functions = [helper.make_function("local", "body", ["x"], ["rnn_Y"], made + inner.nodes, opset)]
            graph.nodes.append(helper.make_node("body", ["x"], ["y"], name="call", domain="local"))
        else:
            graph.nodes += made + inner.nodes
    path = save(graph.proto(), tmp_path / "net.onnx", functions)
    model = onnx.load(path)
    stored = bytearray(b"before")
    for tensor in tensors(model):
        if tensor.name in held:
            tensor.external_data.add(key="location", value=DATA)
            tensor.external_data.add(key="offset", value=str(len(stored)))
            stored += tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
    (tmp_path / DATA).write_bytes(stored)
    path.write_bytes(model.SerializeToString())
    assert equal(numbers(path), numbers(save(inner.proto(), tmp_path / "inside.onnx")))
    assert import_weights(path, weights=False)[0].files == (str(path), str(tmp_path / DATA))


def tensors(model: onnx.ModelProto) -> list[TensorProto]:
    """List every tensor of a model, in initializers and attributes."""
    graphs, nodes, stored = [model.graph], [node for each in model.functions for node in each.node], []
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            stored += graph.initializer
            nodes += graph.node
            continue
        for attribute in nodes.pop().attribute:
            stored += [attribute.t] if attribute.HasField("t") else []
            graphs += [attribute.g] if attribute.HasField("g") else []
    return stored


def test_only_what_the_recurrent_layers_need_is_read(tmp_path: Path) -> None:
    graph = network()
    graph.initializer.append(numpy_helper.from_array(np.ones((2, 2), np.float32), "other"))
    path = exported(tmp_path, graph)
    model = onnx.load(path, load_external_data=False)
    other = next(each for each in model.graph.initializer if each.name == "other")
    next(each for each in other.external_data if each.key == "location").value = "missing.bin"
    path.write_bytes(model.SerializeToString())
    assert numbers(path).passes


LEAVING = [
    "/etc/hostname",
    "../secret.bin",
    "deep/../../secret.bin",
    "deep\\..\\secret.bin",
    "C:/secret.bin",
    "\\\\host\\a",
]


@pytest.mark.parametrize("location", LEAVING)
def test_paths_that_leave_the_folder(location: str, tmp_path: Path) -> None:
    (tmp_path / "own" / "deep").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(bytes(10_000))
    path = edited(exported(tmp_path / "own"), location=location)
    sentence = refusal(path)
    assert sentence.endswith("leaves the network's folder: never opened")
    assert "'rnn_W'" in sentence


@pytest.mark.parametrize("what", ["file", "folder", "hard"])
def test_links_that_lead_out(what: str, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    path = exported(own)
    (own / DATA).rename(tmp_path / DATA)
    location = DATA
    if what == "file":
        (own / DATA).symlink_to(tmp_path / DATA)
    elif what == "folder":
        (own / "out").symlink_to(tmp_path)
        location = f"out/{DATA}"
    else:
        os.link(tmp_path / DATA, own / DATA)
    sentence = refusal(edited(path, location=location))
    assert "never opened; copy the file itself" in sentence
    assert DATA in sentence


def test_a_link_that_stays_in_the_folder(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / DATA).rename(tmp_path / "blob")
    (tmp_path / DATA).symlink_to("blob")
    assert numbers(path).passes


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_plain_file(what: str, tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / DATA).unlink()
    (os.mkdir if what == "folder" else os.mkfifo)(tmp_path / DATA)
    assert "which is no plain file: never opened" in refusal(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"offset": -4}, "offset is '-4', expected a whole number of bytes"),
        ({"offset": "0x10"}, "offset is '0x10'"),
        ({"offset": 2**63}, "but the file has"),
        ({"offset": "9" * 400}, "offset is '999"),
        ({"offset": 10_000}, "at bytes 10000 to 10192, but the file has"),
        ({"length": 188}, "in 188 bytes, but their shape needs 192"),
        ({"length": 2**62}, "but their shape needs 192"),
        ({"length": "٣"}, "length is '٣'"),
        ({"location": ""}, "no file name"),
        ({"location": None}, "no file name"),
        ({"location": "a\0b"}, "no file name"),
        ({"location": "x" * 5000}, "there is no such file"),
    ],
)
def test_wrong_entries(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    assert words in refusal(edited(exported(tmp_path), **fields))


def test_a_shape_that_the_file_cannot_hold(tmp_path: Path) -> None:
    """The tensor would have 2.6 TB: it is refused before any memory is taken."""
    graph = Graph()
    size = 400_000
    graph.recurrent("LSTM", graph.input("x", 5, 1, size), size, size)
    path = save(graph, tmp_path / "net.onnx")
    (tmp_path / "missing.onnx.data").write_bytes(bytes(1000))
    with pytest.raises(InputError):
        import_weights(path)


def test_the_total_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.importers.onnx.stored.MAX_BYTES", 300)
    assert "more than the 2 GB of weights" in refusal(exported(tmp_path))


def test_a_missing_data_file(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / DATA).unlink()
    sentence = refusal(path)
    assert sentence == (
        "its weights 'rnn_W' are in 'net.onnx.data', but there is no such file next to the network: fetch it too, "
        "export the network as one file (external_data=False), or read shapes only (--no-weights)"
    )


def test_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / DATA).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1000\n")
    assert "Git LFS pointer" in refusal(path)


def test_data_cut_off(tmp_path: Path) -> None:
    path = exported(tmp_path)
    content = (tmp_path / DATA).read_bytes()
    (tmp_path / DATA).write_bytes(content[:100])
    assert "the file has 100: it is cut off or belongs to another network" in refusal(path)


@pytest.mark.parametrize("flags", [[], ["--force"], ["--force", "--no-weights"]])
def test_the_data_is_never_an_output(flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of `net.yaml` would go to net.safetensors, which may be the data file of the network."""
    monkeypatch.chdir(tmp_path)
    exported(tmp_path)
    model = onnx.load("net.onnx", load_external_data=False)
    data = "net.yaml" if "--no-weights" in flags else "net.safetensors"
    for tensor in model.graph.initializer:
        next(each for each in tensor.external_data if each.key == "location").value = data
    Path("net.onnx").write_bytes(model.SerializeToString())
    Path(DATA).rename(data)
    before = Path(data).read_bytes()
    result = runner.call("import", "net.onnx", *flags)
    assert result.exit_code == 2, result.output
    assert f"{data}: is also the input" in result.stderr
    assert Path(data).read_bytes() == before
    assert runner.call("import", "net.onnx", "--out", "other.yaml").exit_code == 0


def test_shapes_need_no_data(tmp_path: Path) -> None:
    path = exported(tmp_path)
    (tmp_path / DATA).unlink()
    assert [layer.hidden for layer in read_onnx(path).models[0].model.layers] == [4]


def test_data_that_was_read_is_not_written_over_from_python(tmp_path: Path) -> None:
    path = exported(tmp_path)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        next(each for each in tensor.external_data if each.key == "location").value = "net.safetensors"
    path.write_bytes(model.SerializeToString())
    (tmp_path / DATA).rename(tmp_path / "net.safetensors")
    with own_ledger():
        (imported,) = import_weights(path)
        with pytest.raises(InputError, match="read"):
            write_model_file(imported.model, tmp_path / "net.yaml", source="a test", network=imported.network)
