"""Every ONNX network of the public package silero-vad, imported with its weights and compared with onnxruntime.

`make slow` fetches the wheel into the folder `wheels` of its environment, if there is a network.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from lstmsim.files.catalog import find_model
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.onnx.file import read_onnx
from lstmsim.model.numerics.golden import float_arithmetic, run_network

WHEELS = sorted(Path(sys.prefix, "wheels").glob("silero_vad-*.whl"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WHEELS, reason="no wheel of silero-vad: `make slow` fetches it if there is a network"),
]
#: Samples of one step and of the step before that it reads too, by rate.
SAMPLES = {16000: 576, 8000: 288}
UNITS, STEPS = 128, 4
Arrays = Mapping[str, NDArray[np.float32]]


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        assert [each for each in wheel.namelist() if each.endswith(".onnx")] == sorted(
            f"silero_vad/data/{each}.onnx" for each in (*BRANCHED, *PLAIN)
        )
        (folder / f"{name}.onnx").write_bytes(wheel.read(f"silero_vad/data/{name}.onnx"))
    return folder / f"{name}.onnx"


def branch(model: onnx.ModelProto, taken: str) -> onnx.ModelProto:
    """The network with one branch of its only outer `If` in place of both."""
    (at,) = (at for at, node in enumerate(model.graph.node) if node.op_type == "If")
    before, choice = model.graph.node[:at], model.graph.node[at]
    graph = next(each.g for each in choice.attribute if each.name == taken)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:], copy.graph.output[:]
    copy.graph.node.extend([*before, *graph.node])
    copy.graph.output.extend(graph.output)
    return copy


def run(model: onnx.ModelProto, frames: str, feeds: Arrays) -> list[NDArray[np.float32]]:
    """What onnxruntime gives for a value inside a network, and for its outputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.output.insert(0, onnx.ValueInfoProto(name=frames))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
    read = {each.name for each in session.get_inputs()}
    outputs = session.run(None, {name: each for name, each in feeds.items() if name in read})
    return [np.asarray(each) for each in outputs]


def check(single: ImportedModel, model: onnx.ModelProto, frames: str, rate: int) -> None:
    """Run steps of both with the same frames; the network's own output is its next state: h, then c."""
    audio = np.random.default_rng(3).normal(size=(STEPS, 1, SAMPLES[rate])).astype(np.float32)
    state, reads, theirs = np.zeros((2, 1, UNITS), np.float32), [], []
    for each in audio:
        x, _, state = run(model, frames, {"input": each, "state": state, "sr": np.array(rate)})
        reads.append(x.reshape(UNITS))
        theirs.append(state[0, 0])
    assert single.network is not None
    outputs = run_network(float_arithmetic(single.network), single.network.stimulus(np.float64(reads))).output()
    np.testing.assert_allclose(outputs, theirs, rtol=0, atol=1e-5)


#: Networks with the LSTM in two branches, of which one begins at 0 and is never taken: where the frames come from.
BRANCHED = {
    "silero_vad": "If_0_{}__Inline_0__/encoder/3/activation/Relu_output_0",
    "silero_vad_16k_op15": "/model/encoder/3/activation/Relu_output_0",
    "silero_vad_half": "/encoder/3/activation/Relu_output_0",
}
PLAIN = {"silero_vad_16k_sequence", "silero_vad_op18_ifless", "silero_vad_openvino_16k"}


@pytest.mark.parametrize("name", BRANCHED)
def test_the_branch_that_never_runs_is_named(name: str, tmp_path: Path) -> None:
    """Two models for each rate: one begins with the given state, one at 0, which the shape of the state rules out."""
    path = unpacked(name, tmp_path)
    models, model = read_onnx(path, weights=True).models, onnx.load(path)
    rates = {"then_branch": 16000, "else_branch": 8000} if name == "silero_vad" else {"": 16000}
    assert len(models) == 2 * len(rates)
    layers = load_model(find_model("silero-vad-16k")).layers
    for (taken, rate), live, dead in zip(rates.items(), models[::2], models[1::2], strict=True):
        assert (live.model.layers, dead.model.layers) == (layers, layers)
        assert not any("never runs" in note for note in live.notes)
        assert any(f"{dead.nodes[0]} never runs: the file fixes that If" in note for note in dead.notes)
        whole = branch(model, taken) if taken else model
        for each in (live, dead):
            check(each, whole, BRANCHED[name].format(taken), rate)


def test_all_frames_in_one_run(tmp_path: Path) -> None:
    path = unpacked("silero_vad_16k_sequence", tmp_path)
    (single,) = read_onnx(path, weights=True).models
    assert single.model.layers == load_model(find_model("silero-vad-16k")).layers
    audio = np.random.default_rng(3).normal(size=(STEPS, SAMPLES[16000])).astype(np.float32)
    zero = np.zeros((1, 1, UNITS), np.float32)
    model, feeds = onnx.load(path), {"input": audio, "h": zero, "c": zero}
    x, *_ = run(model, "/Transpose_output_0", feeds)
    y, *_ = run(model, "/recurrent/LSTM_output_0", feeds)
    assert single.network is not None
    outputs = run_network(float_arithmetic(single.network), single.network.stimulus(np.float64(x[:, 0]))).output()
    np.testing.assert_allclose(outputs, y.reshape(STEPS, UNITS), rtol=0, atol=1e-5)


def test_the_file_for_openvino(tmp_path: Path) -> None:
    path = unpacked("silero_vad_openvino_16k", tmp_path)
    (single,) = read_onnx(path, weights=True).models
    frames = "F0::If_0_then_branch__Inline_0__/encoder/3/activation/Relu_output_0"
    check(single, onnx.load(path), frames, 16000)


def test_one_step_with_its_operators_written_out(tmp_path: Path) -> None:
    """No LSTM node: one step for each rate, with its states as parts of one input."""
    path = unpacked("silero_vad_op18_ifless", tmp_path)
    models, model = read_onnx(path, weights=True).models, onnx.load(path)
    assert [each.nodes for each in models] == [("1 step of model.decoder.rnn",), ("1 step of model_8k.decoder.rnn",)]
    rates = (("then_branch", "select", 16000), ("else_branch", "select_3", 8000))
    for single, (taken, frames, rate) in zip(models, rates, strict=True):
        assert single.model.layers == load_model(find_model("silero-vad-16k")).layers
        assert "initial c is part of the input 'state'; a run begins at 0" in single.notes
        check(single, branch(model, taken), frames, rate)
