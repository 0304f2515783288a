"""Runs of a network by onnxruntime, and by lstmsim after import, model file, scenario and golden model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.numbers import job_data
from lstmsim.files.scenario.scenario_file import load_model, load_scenario
from lstmsim.files.scenario.written import write_model_file
from lstmsim.importers.files import import_weights
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.scenario import Scenario
from tests.importers.onnx.graphs import Graph

#: Tolerance between float32 of onnxruntime and float64 here.
CLOSE = 1e-6


class Numbers(Graph):
    """A graph whose weights have values, drawn one after another."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)

    def weight(self, name: str, *dims: int) -> str:
        return self.store(name, self.random.uniform(-0.7, 0.7, dims).astype(np.float32))

    def store(self, name: str, array: np.ndarray) -> str:
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def list(self, name: str, *numbers: int) -> str:
        return self.store(name, np.array(numbers, np.int64))

    def layer(self, kind: str, frames: str, width: int, hidden: int, **others: object) -> str:
        """Add a recurrent node with values for all its weights."""
        return self.recurrent(kind, frames, width, hidden, **others)  # type: ignore[arg-type]

    def model(self, output: str, functions: tuple[onnx.FunctionProto, ...] = ()) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "g", self.inputs, infos, initializer=self.tensors)
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
        return helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=9)


def theirs(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Run a network with onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0], np.float64)


@cache
def _scenario() -> Scenario:
    return load_scenario({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]})


def ours(model: onnx.ModelProto, x: np.ndarray, folder: Path) -> np.ndarray | str:
    """Import a network, run it through its own files: outputs [steps, outputs], or the sentence that refuses it."""
    (folder / "a.onnx").write_bytes(model.SerializeToString())
    try:
        models = import_weights(folder / "a.onnx")
        if len(models) > 1:
            return f"{len(models)} models: {' '.join(note for each in models for note in each.notes)}"
        if models[0].network is None:
            return "; ".join(models[0].notes)
        # A run never writes a file that it has read.
        folder = Path(mkdtemp(dir=folder))
        write_model_file(models[0].model, folder / "m.yaml", source="a test", network=models[0].network)
        np.save(folder / "x.npy", x)
        model_here = load_model(folder / "m.yaml")
        job = replace(_scenario().jobs[0], model=model_here, steps=len(x), inputs=str(folder / "x.npy"))
        data = job_data(replace(_scenario(), jobs=(job,)))[0]
    except InputError as error:
        return str(error)
    return run_network(float_arithmetic(data.network), data.stimulus).output()
