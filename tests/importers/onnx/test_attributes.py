"""Every attribute and input of the recurrent operators: equal to onnxruntime, or refused by a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from lstmsim.importers.files import import_weights
from lstmsim.importers.onnx.file import read_onnx
from tests.cli.runner import call
from tests.importers.onnx.runs import CLOSE, Numbers, ours, theirs

STEPS, WIDTH, HIDDEN = 5, 3, 4
KINDS = {"LSTM": {}, "GRU": {}, "RNN": {}, "lbr0": {"linear_before_reset": 0}, "peepholes": {}}
DIRECTIONS = {"forward": 1, "bidirectional": 2, "reverse": 1}


class Case(Numbers):
    """One recurrent node over frames [steps, 1, width]."""

    def __init__(self, kind: str = "LSTM", direction: str = "forward", steps: int | str = "steps") -> None:
        super().__init__(7)
        self.given = KINDS[kind] | ({"direction": direction} if direction != "forward" else {})
        self.kind = {"peepholes": "LSTM", "lbr0": "GRU"}.get(kind, kind)
        self.directions = DIRECTIONS[direction]
        self.places: dict[int, str] = {}
        self.input("x", steps, "batch", WIDTH)
        if kind == "peepholes":
            self.places[7] = self.weight("P", self.directions, 3 * HIDDEN)

    def outcome(self, folder: Path, **feeds: Any) -> str:
        """Give `equal`, or the sentence that refuses the node; anything else fails."""
        y = self.layer(self.kind, "x", WIDTH, HIDDEN, directions=self.directions, inputs=self.places, **self.given)
        self.nodes[-1].attribute.sort(key=lambda each: each.name)
        model = self.model(y)
        x = np.random.default_rng(5).normal(size=(STEPS, WIDTH)).astype(np.float32)
        outputs = ours(model, x, folder)
        if isinstance(outputs, str):
            assert len(outputs) > 20
            return outputs
        wanted = theirs(model, {"x": x[:, None], **feeds})[:, :, 0].reshape(STEPS, -1)
        np.testing.assert_allclose(outputs, wanted, rtol=0, atol=CLOSE)
        return "equal"

    def states(self, make: Any) -> None:
        """Give the node initial states: `make(name)` for each of its states."""
        for place, name in ((5, "h0"), (6, "c0")):
            if place == 5 or self.kind == "LSTM":
                self.places[place] = make(self, name)


@pytest.mark.halved
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_and_directions(kind: str, direction: str, bias: bool, tmp_path: Path) -> None:
    case = Case(kind, direction)
    if not bias:
        case.places[3] = ""
    outcome = case.outcome(tmp_path)
    assert outcome == "equal" or direction == "reverse"


@pytest.mark.parametrize(
    "given",
    [
        {"clip": 0.4},
        {"input_forget": 1},
        {"activations": ["Sigmoid", "Tanh", "Tanh"]},
        {"activations": ["sigmoid", "tanh", "tanh"]},
        {"activations": ["Sigmoid", "Tanh", "Relu"]},
        {"activations": ["Sigmoid", "Softsign", "Tanh"]},
        {"activations": ["HardSigmoid", "Tanh", "Tanh"]},
        {"activations": ["HardSigmoid", "Tanh", "Tanh"], "activation_alpha": [0.3], "activation_beta": [0.4]},
        {"activations": ["Sigmoid", "LeakyRelu", "Tanh"], "activation_alpha": [0.3]},
        {"activations": ["Sigmoid", "ScaledTanh", "Tanh"], "activation_alpha": [0.5], "activation_beta": [0.4]},
    ],
    ids=str,
)
def test_attributes_of_the_lstm(given: dict[str, Any], tmp_path: Path) -> None:
    case = Case()
    case.given |= given
    outcome = case.outcome(tmp_path)
    usual = "hidden_size" in given or [each.lower() for each in given.get("activations", [])] == [
        "sigmoid",
        *["tanh"] * 2,
    ]
    assert outcome == "equal" or not usual


@pytest.mark.parametrize("kind", ["GRU", "lbr0", "RNN"])
@pytest.mark.parametrize(
    "given", [{"clip": 0.4}, {"activations": ["Relu"]}, {"activations": ["Affine"], "activation_alpha": [0.5]}], ids=str
)
def test_attributes_of_the_others(kind: str, given: dict[str, Any], tmp_path: Path) -> None:
    case = Case(kind)
    first = [] if kind == "RNN" else ["Sigmoid"]
    case.given |= given | ({"activations": [*first, *given["activations"]]} if "activations" in given else {})
    case.outcome(tmp_path)


def stored(case: Case, name: str) -> str:
    return case.weight(name, case.directions, 1, HIDDEN)


def as_attribute(case: Case, name: str) -> str:
    held = helper.make_tensor(
        "", TensorProto.FLOAT, [case.directions, 1, HIDDEN], case.random.normal(size=case.directions * HIDDEN)
    )
    return case.node("Constant", [], name, value=held)


def of_the_batch(case: Case, name: str, *sizes: int) -> str:
    """Make a list of sizes with the batch of x in the middle."""
    shape = case.node("Shape", ["x"], f"{name}_shape", start=1, end=2)
    ends = [case.list(f"{name}_{at}", size) for at, size in enumerate(sizes)]
    return case.node("Concat", [ends[0], shape, ends[1]], f"{name}_sizes", axis=0)


def expanded(case: Case, name: str) -> str:
    return case.node("Expand", [stored(case, f"{name}_own"), of_the_batch(case, name, 1, 1)], name)


def tiled(case: Case, name: str) -> str:
    return case.node("Tile", [stored(case, f"{name}_own"), of_the_batch(case, name, 1, 1)], name)


def filled(case: Case, name: str) -> str:
    value = helper.make_tensor("", TensorProto.FLOAT, [1], [0.25])
    return case.node("ConstantOfShape", [of_the_batch(case, name, case.directions, HIDDEN)], name, value=value)


def of_a_stack(case: Case, name: str) -> str:
    """torch slices the states of one layer from the states of all layers."""
    whole = case.node("Expand", [case.weight(f"{name}_all", 6, 1, HIDDEN), of_the_batch(case, name, 1, 1)], f"{name}_e")
    bounds = [case.list(f"{name}_b{at}", each) for at, each in enumerate((2, 2 + case.directions, 0))]
    return case.node("Slice", [whole, *bounds], name)


def gathered(case: Case, name: str) -> str:
    one = case.node("Gather", [case.weight(f"{name}_all", 3, HIDDEN), case.list(f"{name}_at", 2, 0)], f"{name}_two")
    rows = case.node("Unsqueeze", [one, case.list(f"{name}_axis", 1)], f"{name}_rows")
    return (
        case.node("Split", [rows, case.list(f"{name}_sizes", 2)], name)
        if case.directions == 2
        else _first(case, rows, name)
    )


def _first(case: Case, rows: str, name: str) -> str:
    case.nodes.append(helper.make_node("Split", [rows], [f"{name}_rest", name], num_outputs=2, axis=0))
    return name


def turned(case: Case, name: str) -> str:
    return case.node("Transpose", [case.weight(f"{name}_own", HIDDEN, case.directions, 1)], name, perm=[1, 2, 0])


def of_half_precision(case: Case, name: str) -> str:
    array = case.random.normal(size=(case.directions, 1, HIDDEN)).astype(np.float16)
    return case.node("Cast", [case.store(f"{name}_half", array)], name, to=TensorProto.FLOAT)


def of_double_precision(case: Case, name: str) -> str:
    array = case.random.normal(size=(case.directions, 1, HIDDEN))
    return case.node("Cast", [case.store(f"{name}_double", array)], name, to=TensorProto.FLOAT)


def in_equal_branches(case: Case, name: str) -> str:
    stored(case, f"{name}_own")
    one, other = Numbers(), Numbers()
    one.node("Identity", [f"{name}_own"], "p")
    other.node("Dropout", [f"{name}_own"], "q")
    yes = case.store(f"{name}_yes", np.array(True))
    case.nodes.append(helper.make_node("If", [yes], [name], then_branch=one.proto("p"), else_branch=other.proto("q")))
    return name


def zeros(case: Case, name: str) -> str:
    return case.store(name, np.zeros((case.directions, 1, HIDDEN), np.float32))


def zeros_of_any_shape(case: Case, name: str) -> str:
    """torch writes states like this if it knows no size: the shape goes through Where."""
    sizes = of_the_batch(case, name, case.directions, HIDDEN)
    same = case.node("Where", [case.store(f"{name}_yes", np.array([True])), sizes, sizes], f"{name}_where")
    scalar = case.store(f"{name}_zero", np.zeros((), np.float32))
    return case.node("Expand", [scalar, same], name)


def of_unknown_shape(case: Case, name: str) -> str:
    """Zeros of silero-vad's unused branch: of a shape that the file does not fix, behind an Unsqueeze."""
    return _filled_anyhow(case, name, 0.0)


def a_number_of_unknown_shape(case: Case, name: str) -> str:
    return _filled_anyhow(case, name, 0.25)


def _filled_anyhow(case: Case, name: str, number: float) -> str:
    shape = case.node("Shape", ["x"], f"{name}_shape", start=1, end=2)
    sizes = case.node("Concat", [shape, case.list(f"{name}_units", HIDDEN)], f"{name}_sizes", axis=0)
    same = case.node("Where", [case.store(f"{name}_yes", np.array([True])), sizes, sizes], f"{name}_where")
    value = helper.make_tensor("", TensorProto.FLOAT, [1], [number])
    whole = case.node("ConstantOfShape", [same], f"{name}_whole", value=value)
    return case.node("Unsqueeze", [whole, case.list(f"{name}_axis", 0)], name)


def computed(case: Case, name: str) -> str:
    return case.node("Tanh", [case.node("Neg", [stored(case, f"{name}_own")], f"{name}_less")], name)


CONSTANTS = [
    *(stored, as_attribute, expanded, tiled, filled, of_a_stack, gathered, turned, of_half_precision),
    *(of_double_precision, in_equal_branches, zeros, zeros_of_any_shape),
]
#: Of one direction: a shape that is not known is not known to have two.
SINGLE = [of_unknown_shape, a_number_of_unknown_shape, computed]


@pytest.mark.halved
@pytest.mark.parametrize(
    ("make", "kind", "direction"),
    [
        pytest.param(make, kind, direction, marks=pytest.mark.long if number % 2 == way else ())
        for number, make in enumerate(CONSTANTS)
        for way, (kind, direction) in enumerate(
            (("LSTM", "forward"), ("GRU", "bidirectional"), ("LSTM", "bidirectional"))
        )
    ],
)
def test_constant_states(make: Any, kind: str, direction: str, tmp_path: Path) -> None:
    case = Case(kind, direction)
    case.states(make)
    assert case.outcome(tmp_path) == "equal"


@pytest.mark.parametrize("make", SINGLE)
def test_constant_states_of_one_direction(make: Any, tmp_path: Path) -> None:
    case = Case()
    case.states(make)
    assert case.outcome(tmp_path) == "equal"


@pytest.mark.parametrize("kind", ["RNN", "lbr0", "peepholes"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_constant_states_of_other_cells(kind: str, direction: str, tmp_path: Path) -> None:
    case = Case(kind, direction)
    case.states(stored)
    assert case.outcome(tmp_path) == "equal"


def test_one_state_of_two(tmp_path: Path) -> None:
    case = Case()
    case.places[6] = stored(case, "c0")
    assert case.outcome(tmp_path) == "equal"


def test_the_schedule_computes_with_the_states_of_the_file(tmp_path: Path) -> None:
    """Import and simulate as a user does, with floating-point and with integer numbers."""
    case = Case("LSTM", "bidirectional")
    case.states(of_a_stack)
    assert case.outcome(tmp_path) == "equal"
    (tmp_path / "s.yaml").write_text("chip: column-npu-16k\njobs:\n  - {model: net.yaml, steps: 3}\n")
    assert call("import", str(tmp_path / "a.onnx"), "--out", str(tmp_path / "net.yaml")).exit_code == 0
    for more in ((), ("--set", "precision.weight_bits=12", "--set", "precision.vector_bits=12")):
        result = call("simulate", str(tmp_path / "s.yaml"), "--check-numerics", *more)
        assert result.exit_code == 0, result.output
        assert "equal" in result.output


def test_states_of_a_batch(tmp_path: Path) -> None:
    """Equal rows are taken for every sequence; rows that differ are refused."""
    for scale, sentence in ((0, "equal"), (1, "initial_h differs between the 3 sequences of its batch")):
        case = Case()
        array = np.full((1, 3, HIDDEN), 0.5, np.float32)
        array[0, 1] += scale
        case.states(lambda case, name, array=array: case.store(name, array))
        case.inputs[:] = []
        case.input("x", STEPS, 3, WIDTH)
        outputs = ours(
            case.model(case.layer("LSTM", "x", WIDTH, HIDDEN, inputs=case.places)), np.ones((STEPS, WIDTH)), tmp_path
        )
        assert isinstance(outputs, str) == bool(scale)
        assert not scale or sentence in str(outputs)


@pytest.mark.parametrize("piece", [False, True])
def test_states_that_are_inputs_begin_at_0_and_are_named(piece: bool, tmp_path: Path) -> None:
    case = Case()

    def make(case: Case, name: str) -> str:
        whole = case.input(f"{name}_in", 2 if piece else 1, "batch", HIDDEN)
        bounds = [case.list(f"{name}_b{at}", each) for at, each in enumerate((1, 2, 0))]
        return case.node("Slice", [whole, *bounds], name) if piece else whole

    case.states(make)
    zero = np.zeros((2 if piece else 1, 1, HIDDEN), np.float32)
    assert case.outcome(tmp_path, h0_in=zero, c0_in=zero) == "equal"
    (notes,) = import_notes(tmp_path)
    assert notes == (
        "the states before the first step come from input 'h0_in' and input 'c0_in' of the network: a run begins at 0 "
        "unless its job has `initial`"
    )


def import_notes(folder: Path) -> tuple[str, ...]:
    return import_weights(folder / "a.onnx")[0].notes


def of_an_input(case: Case, name: str) -> str:
    return case.node("Tanh", [case.input(f"{name}_in", case.directions, 1, HIDDEN)], name)


def half_given(case: Case, name: str) -> str:
    case.input(f"{name}_in", 1, 1, 2)
    return case.node("Concat", [f"{name}_in", case.weight(f"{name}_own", 1, 1, HIDDEN - 2)], name, axis=2)


def in_unequal_branches(case: Case, name: str) -> str:
    one, other = Numbers(1), Numbers(2)
    for branch, output in ((one, "p"), (other, "q")):
        held = helper.make_tensor("", TensorProto.FLOAT, [1, 1, HIDDEN], branch.random.normal(size=HIDDEN))
        branch.node("Constant", [], output, value=held)
    case.inputs.append(helper.make_tensor_value_info(f"{name}_which", TensorProto.BOOL, []))
    nodes = {"then_branch": one.proto("p"), "else_branch": other.proto("q")}
    case.nodes.append(helper.make_node("If", [f"{name}_which"], [name], name=f"if_{name}", **nodes))
    return name


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (of_an_input, "model a starts from node Tanh 'node_h0' and node Tanh 'node_c0'"),
        (half_given, "model a starts from input 'h0_in', constants and input 'c0_in'"),
        (
            in_unequal_branches,
            "initial_h is made of constants in a way that cannot be read (a node If): export it with",
        ),
    ],
)
def test_states_that_no_file_holds_are_refused(make: Any, sentence: str, tmp_path: Path) -> None:
    case = Case()
    case.states(make)
    assert sentence in case.outcome(tmp_path)


def test_the_decoder_says_what_it_starts_from(tmp_path: Path) -> None:
    graph = Numbers()
    graph.layer("LSTM", graph.input("x", "n", 1, WIDTH), WIDTH, HIDDEN, name="encoder")
    graph.nodes[-1].output.append("encoder_Yc")
    inputs = {5: "encoder_Yh", 6: "encoder_Yc"}
    graph.layer("LSTM", graph.input("z", "m", 1, WIDTH), WIDTH, HIDDEN, name="decoder", inputs=inputs)
    (tmp_path / "a.onnx").write_bytes(graph.model("decoder_Y").SerializeToString())
    encoder, decoder = read_onnx(tmp_path / "a.onnx").models
    assert encoder.model.states_from == ""
    assert decoder.model.states_from == "the last states of LSTM 'encoder'"
    assert decoder.notes[-1].startswith("begins with the last states of LSTM 'encoder': numbers that no file holds")


@pytest.mark.parametrize(
    ("places", "whole"),
    [
        ({5: "encoder_Yh", 6: "encoder_Yc"}, True),
        ({5: "same_h", 6: "encoder_Yc"}, True),
        ({5: "encoder_Yc", 6: "encoder_Yh"}, False),
        ({5: "encoder_Yh"}, False),
        ({6: "encoder_Yc"}, False),
        ({5: "encoder_Yh", 6: "fixed"}, False),
        ({5: "encoder_Yh", 6: "other_Yc"}, False),
        ({5: "sides_turned", 6: "encoder_Yc"}, False),
        ({5: "units_turned", 6: "encoder_Yc"}, False),
    ],
)
def test_only_last_states_in_their_places_may_come_from_a_job(
    places: dict[int, str], whole: bool, tmp_path: Path
) -> None:
    graph = Numbers()
    for name in ("encoder", "other"):
        frames = graph.input(f"x_{name}", "n", 1, WIDTH)
        graph.layer("LSTM", frames, WIDTH, HIDDEN, name=name, directions=2, direction="bidirectional")
        graph.nodes[-1].output.append(f"{name}_Yc")
    graph.weight("fixed", 2, 1, HIDDEN)
    order = helper.make_node("Constant", [], ["sides"], value_ints=[1, 0])
    units = helper.make_node("Constant", [], ["units"], value_ints=list(reversed(range(HIDDEN))))
    graph.nodes += [order, units, helper.make_node("Identity", ["encoder_Yh"], ["same_h"])]
    graph.nodes.append(helper.make_node("Gather", ["encoder_Yh", "sides"], ["sides_turned"], axis=0))
    graph.nodes.append(helper.make_node("Gather", ["encoder_Yh", "units"], ["units_turned"], axis=2))
    frames = graph.input("z", "m", 1, WIDTH)
    graph.layer("LSTM", frames, WIDTH, HIDDEN, name="decoder", inputs=places, directions=2, direction="bidirectional")
    (tmp_path / "a.onnx").write_bytes(graph.model("decoder_Y").SerializeToString())
    decoder = read_onnx(tmp_path / "a.onnx").models[-1]
    assert decoder.model.states_from.startswith(
        "the last states of LSTM 'encoder'" if 5 in places or 6 in places else ""
    )
    assert decoder.model.states_whole == whole
    assert decoder.model.states_from.endswith(", in part or in another order") == (not whole)


def test_what_a_loop_carries_comes_at_run_time(tmp_path: Path) -> None:
    graph, body = Numbers(), Numbers()
    body.inputs = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, [])]
    body.input("carried", 1, 1, HIDDEN)
    body.layer("GRU", graph.input("x", 1, 1, WIDTH), WIDTH, HIDDEN, inputs={5: "carried"})
    first = graph.weight("first", 1, 1, HIDDEN)
    loop = helper.make_node(
        "Loop", ["", "", first], ["y", "ys"], name="rounds", body=body.proto("go", "rnn_Yh", "rnn_Y")
    )
    graph.nodes.append(loop)
    (tmp_path / "a.onnx").write_bytes(graph.model("ys").SerializeToString())
    (imported,) = read_onnx(tmp_path / "a.onnx").models
    assert imported.model.states_from == "'carried' in body of Loop 'rounds'"


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_batch_first_nodes(kind: str, direction: str, tmp_path: Path) -> None:
    """onnxruntime refuses layout=1, so it runs the same node between transposes."""
    outputs = []
    for layout in (0, 1):
        case = Case(kind, direction)
        case.inputs[:] = []
        frames = case.input("x", "batch", "steps", WIDTH)
        states = {5: case.weight("h0", case.directions, 1, HIDDEN)}
        if kind == "LSTM":
            states[6] = case.weight("c0", case.directions, 1, HIDDEN)
        if layout:
            states = {at: case.node("Transpose", [name], f"{name}_t", perm=[1, 0, 2]) for at, name in states.items()}
        else:
            frames = case.node("Transpose", [frames], "x_t", perm=[1, 0, 2])
        given = {"directions": case.directions, "inputs": states} | ({"layout": 1} if layout else {})
        model = case.model(case.layer(kind, frames, WIDTH, HIDDEN, **given))
        x = np.random.default_rng(5).normal(size=(STEPS, WIDTH)).astype(np.float32)
        outputs.append(ours(model, x, tmp_path))
        if not layout:
            wanted = theirs(model, {"x": x[None]})[:, :, 0].reshape(STEPS, -1)
    for each in outputs:
        np.testing.assert_allclose(each, wanted, rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("steps", "lengths", "outcome"),
    [
        (STEPS, [STEPS], "equal"),
        (STEPS, [3], "has a sequence_lens of 3 for 5 frames, where a run here takes every frame"),
        ("steps", [3], "has a sequence_lens fixed at 3 for any number of frames"),
        ("steps", [STEPS], "has a sequence_lens fixed at 5 for any number of frames"),
    ],
)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_constant_lengths(steps: int | str, lengths: list[int], outcome: str, direction: str, tmp_path: Path) -> None:
    case = Case("LSTM", direction, steps)
    case.places[4] = case.store("lengths", np.array(lengths, np.int32))
    assert outcome in case.outcome(tmp_path)


def test_lengths_are_noted_where_only_shapes_are_read(tmp_path: Path) -> None:
    case = Case(steps=STEPS)
    case.places[4] = case.store("lengths", np.array([3], np.int32))
    assert "read shapes only (--no-weights)" in case.outcome(tmp_path)
    (imported,) = read_onnx(tmp_path / "a.onnx").models
    assert imported.notes == ("LSTM 'rnn' has a sequence_lens of 3 for 5 frames, where a run here takes every frame",)


def test_lengths_that_are_an_input(tmp_path: Path) -> None:
    case = Case("GRU", "bidirectional")
    case.inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]))
    case.places[4] = "lengths"
    assert case.outcome(tmp_path, lengths=np.array([STEPS], np.int32)) == "equal"
    assert import_notes(tmp_path) == (
        "sequence_lens depends on input 'lengths': every sequence is taken at its full length",
    )


@pytest.mark.parametrize("less", [0, 1])
def test_lengths_computed_from_the_shape(less: int, tmp_path: Path) -> None:
    """Lengths of all frames for each sequence restrict nothing; lengths of one step less are a restriction."""
    case = Case("LSTM", "bidirectional")
    count = case.node("Shape", ["x"], "count", start=0, end=1)
    if less:
        count = case.node("Sub", [count, case.list("one", 1)], "fewer")
    repeated = case.node("Expand", [count, case.node("Shape", ["x"], "batch_of_x", start=1, end=2)], "repeated")
    case.places[4] = case.node("Cast", [repeated], "lengths", to=TensorProto.INT32)
    outcome = case.outcome(tmp_path)
    assert outcome == "equal" if not less else "has a sequence_lens that is computed from shapes" in outcome
