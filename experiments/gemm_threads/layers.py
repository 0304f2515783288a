"""LSTM layers on one thread of a real machine: what lstmsim predicts, and what ONNX Runtime and numpy's BLAS take.

A layer is one `LSTM` node with drawn weights, run by ONNX Runtime with one thread on 20 frames; the simulated job has
`weights: warm`. numpy multiplies the product of a time step alone, and packs B in each call. Everything is cycles of a
time step. `layers_zen3.csv` has what the machine of `zen3-2core.yaml` took; `this_machine.py` measures again.

A third column explains what the model leaves out. A micro-kernel keeps `mr` rows of C in registers, so a batch of b
rows passes ceil(b / mr) times over the weights, and in each pass the loads of the weights cost as much as they do for
one row: passes * (measured at batch 1 - ideal) + b * ideal, where ideal is the multiplications of one row at the full
rate. No number in it is fitted to the batches that it explains.

Assumptions: those of docs/multicore.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import lstmsim
from experiments.gemm_threads.machine_at_hand import least_ns
from experiments.gemm_threads.measured import HERE, Row, predicted, summed_up

__all__ = ["ABOUT", "LAYERS", "Layer", "available", "measured", "recorded", "table", "version"]

#: Hidden units and batch of each layer; as many inputs as hidden units.
LAYERS: Sequence[tuple[int, int]] = (
    *((128, 1), (256, 1), (512, 1), (768, 1), (1024, 1), (1536, 1)),
    *((128, 8), (256, 8), (512, 8), (768, 8), (1024, 8), (256, 32), (512, 32)),
)
SMALL = ((32, 1), (32, 8))
STEPS = 20
ABOUT = (
    "Cycles of a time step on one thread, weights in the caches, predicted and measured: ONNX Runtime 1.31.1 (an LSTM "
    "layer) and OpenBLAS 0.3.31 through numpy (the product of the step, B packed in each call) on two cores of a "
    "virtual machine with Zen 3 (zen3-2core.yaml), least CPU time. The gain of a batch is too large in the model: "
    "products of few rows are too fast in it. `by passes` explains most of the difference: a micro-kernel keeps 6 rows "
    "in registers, so 8 rows pass twice over the weights, and each pass costs the loads that one row costs besides its "
    "multiplications; the model lets loads and multiplications overlap, and a second pass costs nothing where its "
    "lines are in L1. No number of this column is fitted to batches. Weights of "
    "hidden 1,024 fill the last-level cache, those of 1,536 exceed it."
)


class Layer(NamedTuple):
    """A layer, with cycles of a time step.

    hidden, batch: its size.
    predicted, measured: of the simulated job, and of ONNX Runtime.
    product, blas: predicted for the product alone, B packed in each call; what numpy's BLAS took.
    """

    hidden: int
    batch: int
    predicted: int
    measured: int
    product: int
    blas: int


def available() -> bool:
    """Whether ONNX and ONNX Runtime are installed."""
    return bool(find_spec("onnx") and find_spec("onnxruntime"))


def version() -> str:
    """The ONNX Runtime that is measured."""
    import onnxruntime  # type: ignore[import-untyped]

    return f"ONNX Runtime {onnxruntime.__version__}"


def _session(hidden: int, batch: int) -> Callable[[], object]:
    """A run of one LSTM layer on drawn numbers, with one thread."""
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return (draw.random(shape, dtype=np.float32) - 0.5) / np.float32(hidden) ** 0.5

    shapes = {"W": (1, 4 * hidden, hidden), "R": (1, 4 * hidden, hidden), "B": (1, 8 * hidden)}
    frames, outputs = [STEPS, batch, hidden], [STEPS, 1, batch, hidden]
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["X", *shapes], ["Y"], hidden_size=hidden)],
        "layer",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, frames)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, outputs)],
        [numpy_helper.from_array(drawn(*shape), name) for name, shape in shapes.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = drawn(*frames)
    return lambda: session.run(None, {"X": x})


def _predicted(chip: Any, hidden: int, batch: int) -> int:
    """Cycles of a time step of the simulated job."""
    model = lstmsim.Model(f"lstm-{hidden}", layers=[lstmsim.Layer("lstm", hidden=hidden, input=hidden)])
    job = lstmsim.Job(model=model, steps=STEPS, batch=batch, threads=1, weights="warm")
    return round(lstmsim.simulate(lstmsim.Scenario(chip=chip, jobs=[job])).makespan_cycles / STEPS)


def measured(chip: Any, layers: Sequence[tuple[int, int]], seconds: float) -> list[Layer]:
    """Layers on the machine at hand.

    chip: the machine as lstmsim has it.
    layers: hidden units and batch of each.
    seconds: CPU time of each measurement.
    """
    import numpy as np

    draw = np.random.default_rng(0)
    rows = []
    for hidden, batch in layers:
        a, b = (draw.random(size, dtype=np.float32) for size in ((batch, 2 * hidden), (2 * hidden, 4 * hidden)))
        c = np.empty((batch, 4 * hidden), dtype=np.float32)
        # not the quickest of all: the clock of CPU time may come out short once in a thousand runs
        of_layer, of_blas = (
            times[len(times) // 10] * chip.frequency_mhz / 1000
            for times in (
                least_ns(_session(hidden, batch), seconds),
                least_ns(lambda a=a, b=b, c=c: np.matmul(a, b, out=c), seconds),  # type: ignore[misc]
            )
        )
        rows.append(_layer(chip, hidden, batch, max(1, round(of_layer / STEPS)), max(1, round(of_blas))))
    return rows


def recorded() -> tuple[Any, list[Layer]]:
    """The machine of `layers_zen3.csv`, and its layers."""
    chip = lstmsim.load_chip(HERE / "zen3-2core.yaml")
    lines = (HERE / "layers_zen3.csv").read_text(encoding="utf-8").splitlines()
    names = ("hidden", "batch", "onnxruntime_least", "numpy_least")
    read = csv.DictReader(line for line in lines if not line.startswith("#"))
    return chip, [_layer(chip, *(int(row[name]) for name in names)) for row in read]


def _layer(chip: Any, hidden: int, batch: int, measured: int, blas: int) -> Layer:
    product = predicted(chip, batch, 4 * hidden, 2 * hidden)
    return Layer(hidden, batch, _predicted(chip, hidden, batch), measured, product, blas)


def by_passes(chip: Any, layer: Layer, alone: Layer) -> int:
    """Cycles of a batch from those of one sequence: a pass over the weights for each `mr` rows.

    alone: the same layer at a batch of 1.
    """
    core = chip.cores[0]
    ideal = 8 * layer.hidden**2 // core.macs_per_cycle
    return -(-layer.batch // core.mr) * (alone.measured - ideal) + layer.batch * ideal


def table(chip: Any, layers: Sequence[Layer]) -> list[str]:
    """A row for each layer, then how far predictions are off beside the null model, as Markdown.

    chip: the machine.
    """
    alone = {layer.hidden: layer for layer in layers if layer.batch == 1}
    heads = ["layer", "batch", "predicted", "ONNX Runtime", "ratio", "by passes", "gain of the batch", "measured gain"]
    heads += ["product", "numpy", "ratio"]
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for layer in layers:
        one = alone[layer.hidden]
        cells = [f"lstm-{layer.hidden}", f"{layer.batch}", f"{layer.predicted:,}", f"{layer.measured:,}"]
        cells += [f"{layer.predicted / layer.measured:.2f}"]
        if layer.batch > 1:
            cells += [f"{by_passes(chip, layer, one):,}", f"{layer.batch * one.predicted / layer.predicted:.1f}"]
            cells += [f"{layer.batch * one.measured / layer.measured:.1f}"]
        else:
            cells += [""] * 3
        cells += [f"{layer.product:,}", f"{layer.blas:,}", f"{layer.product / layer.blas:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *_summaries(chip, layers)]


def _summaries(chip: Any, layers: Sequence[Layer]) -> list[str]:
    """How far predictions are off, beside bytes of weights over the bandwidth of the last-level cache."""

    def of(name: str, pairs: Sequence[tuple[int, int]]) -> str:
        spread = summed_up([Row(1, 1, 1, *pair, pair[1], 1) for pair in pairs])
        return (
            f"{name}: {spread.low:.2f} to {spread.high:.2f}, geometric mean {spread.mean:.2f}, rank correlation "
            f"(Spearman) {spread.rank:.3f}"
        )

    per_line = chip.cores[0].llc_cycles_per_line
    null = [(8 * layer.hidden**2 * 4 // chip.line * per_line, layer.measured) for layer in layers]
    return [
        "Predicted / measured:",
        "",
        of("* ONNX Runtime", [(layer.predicted, layer.measured) for layer in layers]),
        of("* numpy", [(layer.product, layer.blas) for layer in layers]),
        of("* null model of ONNX Runtime, bytes of weights over the bandwidth of the last-level cache", null),
    ]
