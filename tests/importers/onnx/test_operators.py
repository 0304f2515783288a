"""The table of operators: outcomes, and counts against sums by hand and numbers of positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from lstmsim.importers.imported import OperatorTable
from lstmsim.importers.onnx.file import read_onnx
from tests.cli import runner
from tests.importers.onnx.graphs import Graph, branches, save
from tests.importers.onnx.test_weights import Filled

LSTM_MACS = 4 * 8 * (6 + 8)


def speech(graph: Graph, frames: str = "time", units: int = 10) -> Graph:
    """Two convolutions, the first with a stride of 2, an LSTM, a product at each step."""
    x = graph.input("x", "batch", 5, frames)
    y = graph.node("Conv", [x, graph.weight("k1", 6, 5, 3)], "c1", strides=[2], pads=[1, 1])
    y = graph.node("Relu", [y], "r")
    y = graph.node("Conv", [y, graph.weight("k2", 6, 3, 3)], "c2", group=2, pads=[1, 1])
    y = graph.recurrent("LSTM", graph.node("Transpose", [y], "t", perm=[2, 0, 1]), 6, 8)
    axes = graph.node("Constant", [], "axes", value_ints=[1])
    y = graph.node("MatMul", [graph.node("Squeeze", [y, axes], "s"), graph.weight("m", 8, units)], "product")
    graph.node("Softmax", [graph.node("Add", [y, graph.weight("b", units)], "sum")], "out")
    return graph


def table(graph: Graph, folder: Path, **more: object) -> OperatorTable:
    return read_onnx(save(graph.proto("out"), folder / "a.onnx"), **more).operators  # type: ignore[arg-type]


def by_kind(operators: OperatorTable) -> dict[str, tuple[str, int, int | None]]:
    return {each.kind: (each.outcome, each.count, each.macs) for each in operators.groups}


def test_every_operator_has_an_outcome(tmp_path: Path) -> None:
    operators = table(speech(Graph()), tmp_path)
    steps = 500
    assert by_kind(operators) == {
        "Conv": ("left out", 2, steps * (6 * 5 * 3 + 6 * 3 * 3)),
        "Relu": ("left out", 1, 0),
        "Transpose": ("folded", 1, 0),
        "LSTM": ("simulated", 1, steps * LSTM_MACS),
        "Constant": ("folded", 1, 0),
        "Squeeze": ("folded", 1, 0),
        "MatMul": ("left out", 1, steps * 80),
        "Add": ("left out", 1, 0),
        "Softmax": ("left out", 1, 0),
    }
    assert operators.steps == steps
    share = (144 + 80) / (144 + 80 + LSTM_MACS)
    assert operators.left_out == pytest.approx(share)
    assert operators.between == pytest.approx((share, share))
    assert operators.warning() == "warning: 33.3 % of the multiply-accumulates are left out: 2 Conv and 1 MatMul"
    assert operators.assumed == "'batch' = 1 and 'time' = 1,000, which the file leaves open"


def test_the_table_as_text(tmp_path: Path) -> None:
    assert table(speech(Graph()), tmp_path).lines() == [
        "operator                      nodes  became     MACs per step   share",
        "LSTM                              1  simulated            448  66.7 %",
        "Constant, Squeeze, Transpose      3  folded                 0",
        "Conv                              2  left out             144  21.4 %",
        "MatMul                            1  left out              80  11.9 %",
        "Add, Relu, Softmax                3  left out               0",
        "counted for 'batch' = 1 and 'time' = 1,000, which the file leaves open",
        "--heads makes dense layers of MatMul 'node_product'",
    ]


def test_a_run_of_fixed_size_assumes_nothing(tmp_path: Path) -> None:
    graph = Graph()
    y = graph.recurrent("GRU", graph.input("x", 7, 3, 6), 6, 8)
    graph.node("Relu", [y], "out")
    operators = table(graph, tmp_path)
    assert (operators.assumed, operators.steps, operators.left_out, operators.warning()) == ("", 21, 0.0, None)
    assert by_kind(operators)["GRU"] == ("simulated", 1, 21 * 3 * 8 * 14)


def attended(graph: Graph, frames: int | str) -> Graph:
    """Compare every step with every other step."""
    x = graph.input("x", frames, 1, 6)
    axes = graph.node("Constant", [], "axes", value_ints=[1])
    y = graph.node("Squeeze", [graph.recurrent("LSTM", x, 6, 8), axes], "y")
    turned = graph.node("Transpose", [y], "turned", perm=[1, 2, 0])
    rows = graph.node("Transpose", [y], "rows", perm=[1, 0, 2])
    graph.node("MatMul", [rows, turned], "out")
    return graph


def test_shares_that_depend_on_the_length(tmp_path: Path) -> None:
    operators = table(attended(Graph(), "time"), tmp_path)
    shares = [8 * length / (8 * length + LSTM_MACS) for length in (100, 10_000)]
    assert operators.between == pytest.approx(tuple(shares))
    assert "64.1 % to 99.4 % (by the length of the run)" in str(operators.warning())
    assert by_kind(table(attended(Graph(), 50), tmp_path))["MatMul"][2] == 50 * 50 * 8


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "macs"),
    [
        ("Gemm", [(7, 5), (5, 9)], {}, 7 * 5 * 9),
        ("Gemm", [(5, 7), (9, 5)], {"transA": 1, "transB": 1}, 7 * 5 * 9),
        ("MatMul", [(2, 1, 7, 5), (3, 5, 9)], {}, 2 * 3 * 7 * 5 * 9),
        ("MatMul", [(7, 5), (5,)], {}, 35),
        ("Conv", [(2, 4, 9, 9), (8, 2, 3, 3)], {"group": 2, "strides": [2, 2]}, 2 * 8 * 4 * 4 * 2 * 9),
        ("Conv", [(1, 4, 10), (8, 4, 3)], {"dilations": [2], "auto_pad": "SAME_UPPER"}, 10 * 8 * 12),
        ("ConvTranspose", [(1, 4, 10), (4, 8, 3)], {"strides": [2]}, 10 * 4 * 8 * 3),
        ("Einsum", [(2, 7, 5), (5, 9)], {"equation": "bij, jk -> bik"}, 2 * 7 * 5 * 9),
        ("Relu", [(7, 5)], {}, 0),
        ("Einsum", [(2, 7, 5), (5, 9), (9, 2)], {"equation": "bij,jk,kl->bil"}, None),
        ("DFT", [(1, 8, 1)], {}, None),
    ],
)
def test_counts_of_products(
    kind: str, shapes: list[tuple[int, ...]], attributes: dict[str, object], macs: int | None, tmp_path: Path
) -> None:
    graph = Graph()
    graph.recurrent("LSTM", graph.input("x", 7, 1, 6), 6, 8)
    inputs = [graph.input(f"i{number}", *shape) for number, shape in enumerate(shapes)]
    graph.node(kind, inputs, "out", **attributes)
    operators = table(graph, tmp_path)
    assert by_kind(operators)[kind] == ("left out", 1, macs)
    if macs is None:
        assert operators.left_out is None
        assert str(operators.warning()).startswith(
            "warning: cannot tell what share of the multiply-accumulates is left out: "
        )
        assert f"{kind} 'node_out'" in str(operators.warning())


def test_an_operator_of_somebody_else_cannot_be_counted(tmp_path: Path) -> None:
    graph = Graph()
    y = graph.recurrent("LSTM", graph.input("x", 7, 1, 6), 6, 8)
    graph.nodes.append(helper.make_node("Magic", [y], ["out"], name="magic", domain="my.own"))
    operators = table(graph, tmp_path)
    assert "Magic 'magic' belongs to 'my.own', whose operators are not known here" in str(operators.warning())
    assert "cannot tell what share" in operators.summary()


def test_what_cannot_be_told_does_not_hide_what_can(tmp_path: Path) -> None:
    graph = speech(Graph())
    graph.nodes.append(helper.make_node("Magic", ["out"], ["magic"], name="magic", domain="my.own"))
    assert str(table(graph, tmp_path).warning()).startswith("warning: at least 33.3 % of the multiply-accumulates")


def test_functions_are_counted_at_each_call_and_constants_never(tmp_path: Path) -> None:
    graph = Graph()
    y = graph.recurrent("LSTM", graph.input("x", 7, 1, 6), 6, 8)
    product = helper.make_function(
        "local",
        "twice",
        ["a", "b"],
        ["c"],
        [helper.make_node("MatMul", ["a", "b"], ["c"])],
        [helper.make_opsetid("", 18)],
    )
    graph.weight("m", 8, 8)
    one = helper.make_node("MatMul", ["m", "m"], ["mm"], name="once")
    graph.nodes += [one, helper.make_node("twice", [y, "mm"], ["t"], domain="local")]
    graph.nodes.append(helper.make_node("twice", ["t", "m"], ["out"], domain="local"))
    operators = read_onnx(save(graph.proto("out"), tmp_path / "a.onnx", [product])).operators
    groups = {(each.kind, each.outcome): (each.count, each.macs) for each in operators.groups}
    assert groups["MatMul", "folded"] == (1, 0)
    assert groups["MatMul", "left out"] == (2, 2 * 7 * 64)
    assert "twice" not in operators.summary()


def test_both_branches_are_counted_and_that_is_said(tmp_path: Path) -> None:
    graph = Graph()
    branches("LSTM", (8, 8), graph, graph.input("x", 7, 1, 6), 6)
    operators = table(graph, tmp_path)
    assert by_kind(operators)["LSTM"] == ("simulated", 2, 2 * 7 * LSTM_MACS)
    assert operators.lines()[-1] == "both branches of 1 If are counted, of which one runs"


def test_products_in_a_loop_cannot_be_told(tmp_path: Path) -> None:
    inner, graph = Graph(), Graph()
    y = graph.recurrent("LSTM", graph.input("x", 7, 1, 6), 6, 8)
    inner.node("MatMul", [y, graph.weight("m", 8, 8)], "inside")
    body = inner.proto("inside")
    for name, kind in (("turn", onnx.TensorProto.INT64), ("go_in", onnx.TensorProto.BOOL)):
        body.input.append(helper.make_tensor_value_info(name, kind, []))
    body.node.append(helper.make_node("Identity", ["go_in"], ["go"]))
    body.output.insert(0, helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []))
    graph.nodes.append(helper.make_node("Loop", ["turns", ""], ["out"], name="again", body=body))
    graph.tensors.append(numpy_helper.from_array(np.array(3), "turns"))
    warning = str(table(graph, tmp_path).warning())
    assert (
        "MatMul 'node_inside' in body of Loop 'again' runs in Loop 'again', whose turns the file does not fix"
        in warning
    )


def test_a_length_that_the_exporter_built_in(tmp_path: Path) -> None:
    """Add a fixed time behind the last layer as PyTorch's dynamo exporter writes it."""
    graph = Graph()
    y = graph.recurrent("LSTM", graph.input("x", "time", "batch", 6), 6, 8)
    sizes = graph.node("Constant", [], "sizes", value_ints=[12, -1, 8])
    y = graph.node("Reshape", [graph.node("Transpose", [y], "t", perm=[0, 2, 1, 3]), sizes], "r")
    graph.node("MatMul", [y, graph.weight("m", 8, 10)], "out")
    proto = graph.proto()
    proto.output.append(helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, (12, "batch", 10)))
    operators = read_onnx(save(proto, tmp_path / "a.onnx")).operators
    assert operators.assumed == "'batch' = 1 and 'time' = 12, which the file leaves open"
    assert operators.left_out == pytest.approx(80 / (80 + LSTM_MACS))


def test_the_command_shows_warns_and_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(speech(Filled()).proto("out"), Path("a.onnx"))
    result = runner.call("import", "a.onnx")
    assert result.exit_code == 0, result.output
    assert "  Conv                              2  left out             144  21.4 %\n" in result.stdout
    assert "warning: 33.3 % of the multiply-accumulates are left out: 2 Conv and 1 MatMul" in result.stderr
    kept = Path("a.yaml").read_text()
    assert "# Operators: simulated 1 LSTM; folded 3 that only move or prepare numbers; left out 2 Conv, 1 Relu" in kept


def test_no_warning_below_a_tenth(tmp_path: Path) -> None:
    graph = Graph()
    y = graph.recurrent("LSTM", graph.input("x", "n", 1, 6), 6, 8)
    graph.node("MatMul", [y, graph.weight("m", 8, 6)], "out")
    operators = table(graph, tmp_path)
    assert operators.left_out == pytest.approx(48 / (48 + LSTM_MACS))
    assert operators.warning() is None


@pytest.mark.parametrize(("length", "times"), [(6, 6), ("chunks", 1000)])
def test_a_layer_that_runs_once_for_each_frame_of_another_is_named(
    length: int | str, times: int, tmp_path: Path
) -> None:
    """A DPRNN: one layer along the frames of each chunk, one along the chunks."""
    graph = Graph()
    x = graph.input("x", length, 5, 8)
    for name, perm in (("inner", [1, 0, 2]), ("outer", [1, 0, 2])):
        frames = graph.node("Transpose", [x], f"{name}_frames", perm=perm)
        graph.recurrent("LSTM", frames, 8, 8, name=name)
        axes = graph.node("Constant", [], f"{name}_axes", value_ints=[1])
        x = graph.node("Squeeze", [f"{name}_Y", axes], f"{name}_out")
    operators = read_onnx(save(graph.proto(x), tmp_path / "a.onnx")).operators
    assert operators.notes == (
        f"LSTM 'inner' runs {times:,} times over 5 frames each in such a run: a job here is one of these",
        f"LSTM 'outer' runs 5 times over {times:,} frames each in such a run: a job here is one of these",
    )
    assert by_kind(operators)["LSTM"] == ("simulated", 2, 2 * 5 * times * 4 * 8 * 16)
