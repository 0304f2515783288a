"""Which recurrent nodes become one stack: nothing between two of its nodes may change a number, a step or an order.

Frames and units have equal sizes, so that a transpose of both fits. Every stack is compared with onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from lstmsim.importers.onnx.file import read_onnx
from tests.importers.onnx.runs import CLOSE, Numbers, ours, theirs

#: Frames, and units of each direction: equal, so that a transpose of both fits.
SIZE = 4

Between = Callable[["Two", str], str]


class Two(Numbers):
    """Two recurrent nodes with operations between them."""

    def __init__(self, sizes: tuple[int | str, int | str] = (SIZE, 1)) -> None:
        super().__init__(3)
        self.input("x", *sizes, 3)
        self.made = 0

    def then(self, kind: str, value: str, *inputs: str | list[int], **attributes: object) -> str:
        """Add the next operation; its further inputs are names or lists of whole numbers."""
        self.made += 1
        name = f"v{self.made}"
        given = [self.list(f"{name}_{at}", *each) if isinstance(each, list) else each for at, each in enumerate(inputs)]
        return self.node(kind, [value, *given], name, **attributes)

    def two(
        self, between: Between, directions: int = 1, width: int | None = None, second: str = "GRU", **given: int
    ) -> None:
        first = self.layer("LSTM", "x", 3, SIZE, name="a", directions=directions)
        units = SIZE * directions if width is None else width
        self.layer(second, between(self, first), units, 5, name="b", **given)


def squeezed(two: Two, y: str) -> str:
    return two.then("Squeeze", y, [1])


def both(two: Two, y: str) -> str:
    """Put the two directions side by side as torch does."""
    return two.then("Reshape", two.then("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, -1])


def joined(two: Two, x: np.ndarray, folder: Path) -> bool:
    """Say whether the two nodes became one stack; a stack must compute what onnxruntime does."""
    model = two.model("b_Y")
    outputs = ours(model, x, folder)
    if isinstance(outputs, str):
        return False
    wanted = theirs(model, {"x": x[:, None]})
    np.testing.assert_allclose(outputs, wanted[:, :, 0].reshape(len(x), -1), rtol=0, atol=CLOSE)
    return True


def frames() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(SIZE, 3)).astype(np.float32)


def notes(two: Two, folder: Path) -> str:
    (folder / "a.onnx").write_bytes(two.model("b_Y").SerializeToString())
    return " ".join(note for model in read_onnx(folder / "a.onnx").models for note in model.notes)


def flattened_dynamically(two: Two, y: str) -> str:
    """Compute the shape of both directions as torch's dynamo exporter does."""
    turned = two.then("Transpose", y, perm=[0, 2, 1, 3])
    shape = two.then("Shape", turned)
    time, batch, sides, units = (two.then("Slice", shape, [at], [at + 1]) for at in range(4))
    width = two.then("Reshape", two.then("Mul", sides, units), [-1])
    return two.then("Reshape", turned, two.then("Concat", time, batch, width, axis=0))


def of_shape_of_x(two: Two, y: str) -> str:
    sizes = two.then("Shape", "x")
    time, batch = (two.then("Unsqueeze", two.then("Gather", sizes, _scalar(two, at)), [0]) for at in range(2))
    shape = two.then("Concat", time, batch, two.list("width", SIZE), axis=0)
    return two.then("Reshape", squeezed(two, y), shape)


def _scalar(two: Two, number: int) -> str:
    return two.node("Constant", [], f"n{number}_{two.made}", value_int=number)


def halves_together(two: Two, y: str) -> str:
    two.nodes.append(helper.make_node("Split", [y], ["fore", "back"], axis=1, num_outputs=2))
    sides = [two.then("Squeeze", name, [1]) for name in ("fore", "back")]
    return two.then("Concat", *sides, axis=2)


def in_branches(two: Two, y: str) -> str:
    one, other = Numbers(), Numbers()
    one.node("Squeeze", [y, one.list("one", 1)], "p")
    other.node("Reshape", [y, other.list("kept", 0, -1, SIZE)], "q")
    yes = two.store("yes", np.array(True))
    two.nodes.append(helper.make_node("If", [yes], ["w"], then_branch=one.proto("p"), else_branch=other.proto("q")))
    return "w"


NOTHING: dict[str, Between] = {
    "squeeze": squeezed,
    "identity": lambda two, y: two.then("Identity", squeezed(two, y)),
    "dropout": lambda two, y: two.then("Dropout", squeezed(two, y)),
    "double and back": lambda two, y: two.then("Cast", two.then("Cast", squeezed(two, y), to=11), to=1),
    "there and back": lambda two, y: two.then(
        "Transpose", two.then("Transpose", squeezed(two, y), perm=[1, 0, 2]), perm=[1, 0, 2]
    ),
    "round and round": lambda two, y: two.then(
        "Transpose", two.then("Transpose", squeezed(two, y), perm=[1, 2, 0]), perm=[2, 0, 1]
    ),
    "everything": lambda two, y: two.then("Slice", squeezed(two, y), [0], [2**63 - 1], [0], [1]),
    "same shape": lambda two, y: two.then("Reshape", squeezed(two, y), [0, 0, SIZE]),
    "new axis": lambda two, y: two.then("Squeeze", two.then("Unsqueeze", squeezed(two, y), [2]), [2]),
    "concat of one": lambda two, y: two.then("Concat", squeezed(two, y), axis=0),
    "shape of x": of_shape_of_x,
    "branches": in_branches,
    "squeezed batch": lambda two, y: two.then("Unsqueeze", two.then("Squeeze", y, [1, 2]), [1]),
}


@pytest.mark.halved
@pytest.mark.parametrize(
    "sizes", [(SIZE, 1), pytest.param(("steps", 1), marks=pytest.mark.long), ("steps", "batch")], ids=str
)
@pytest.mark.parametrize("what", NOTHING)
def test_operations_that_change_nothing_join(what: str, sizes: tuple[int | str, int | str], tmp_path: Path) -> None:
    two = Two(sizes)
    two.two(NOTHING[what])
    assert joined(two, frames(), tmp_path)
    assert notes(two, tmp_path) == ""


DIRECTIONS: dict[str, Between] = {"both": both, "dynamic": flattened_dynamically, "halves": halves_together}


@pytest.mark.parametrize("sizes", [(SIZE, 1), ("steps", "batch")], ids=str)
@pytest.mark.parametrize("what", DIRECTIONS)
def test_both_directions_side_by_side_join(what: str, sizes: tuple[int | str, int | str], tmp_path: Path) -> None:
    two = Two(sizes)
    two.two(DIRECTIONS[what], directions=2)
    assert joined(two, frames(), tmp_path)


def test_a_pair_of_batch_first_nodes_joins(tmp_path: Path) -> None:
    """onnxruntime refuses layout=1, so the same nodes with the time first are the oracle."""
    x, outputs = frames(), []
    for layout in (0, 1):
        two = Two()
        two.inputs[:] = []
        two.input("x", *((1, "steps") if layout else ("steps", 1)), 3)
        first = two.layer("LSTM", "x", 3, SIZE, name="a", directions=2, **({"layout": 1} if layout else {}))
        sides = first if layout else two.then("Transpose", first, perm=[0, 2, 1, 3])
        flat = two.then("Reshape", sides, [0, 0, -1])
        two.layer("GRU", flat, 2 * SIZE, 5, name="b", **({"layout": 1} if layout else {}))
        outputs.append(ours(two.model("b_Y"), x, tmp_path))
        if not layout:
            wanted = theirs(two.model("b_Y"), {"x": x[:, None]})[:, 0, 0]
    for each in outputs:
        np.testing.assert_allclose(each, wanted, rtol=0, atol=CLOSE)


def roll(two: Two, y: str) -> str:
    flat = squeezed(two, y)
    parts = [two.then("Slice", flat, [start], [end], [0]) for start, end in ((1, 2**40), (0, 1))]
    return two.then("Concat", *parts, axis=0)


def residual(two: Two, y: str) -> str:
    flat = squeezed(two, y)
    return two.then("Add", flat, two.then("Relu", flat))


def other_branches(two: Two, y: str) -> str:
    one, other = Numbers(), Numbers()
    one.node("Squeeze", [y, one.list("one", 1)], "p")
    flat = other.node("Squeeze", [y, other.list("one", 1)], "r")
    other.node("Transpose", [flat], "q", perm=[2, 1, 0])
    yes = two.store("yes", np.array(True))
    two.nodes.append(
        helper.make_node("If", [yes], ["w"], name="w", then_branch=one.proto("p"), else_branch=other.proto("q"))
    )
    return "w"


#: The operation between two nodes, and its words in the note.
SOMETHING: dict[str, tuple[Between, str]] = {
    "part": (
        lambda two, y: two.then("Slice", squeezed(two, y), [1], [2**40], [0]),
        "Slice 'node_v2', which takes a part",
    ),
    "flip": (lambda two, y: two.then("Slice", squeezed(two, y), [-1], [-(2**40)], [0], [-1]), "Slice 'node_v2'"),
    "stride": (lambda two, y: two.then("Slice", squeezed(two, y), [0], [2**40], [0], [2]), "Slice 'node_v2'"),
    "other units": (lambda two, y: two.then("Slice", squeezed(two, y), [-1], [-(2**40)], [2], [-1]), "Slice 'node_v2'"),
    "order": (lambda two, y: two.then("Gather", squeezed(two, y), [1, 0, 3, 2], axis=0), "Gather 'node_v2'"),
    "square": (
        lambda two, y: two.then("Transpose", squeezed(two, y), perm=[2, 1, 0]),
        "operations that put its axes in another order",
    ),
    "roll": (roll, "Slice 'node_v2'"),
    "residual": (residual, "Add 'node_v3', which computes"),
    "relu": (lambda two, y: two.then("Relu", squeezed(two, y)), "Relu 'node_v2', which computes"),
    "half": (
        lambda two, y: two.then("Cast", two.then("Cast", squeezed(two, y), to=TensorProto.FLOAT16), to=1),
        "Cast 'node_v2', which rounds",
    ),
    "branches": (other_branches, "If 'w', whose parts differ"),
    "last state": (lambda two, y: f"{y}h", "the last state of LSTM 'a'"),
    "reversed steps": (
        lambda two, y: two.then("ReverseSequence", squeezed(two, y), [SIZE], batch_axis=1, time_axis=0),
        "ReverseSequence 'node_v2', which computes",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SOMETHING)
@pytest.mark.parametrize("sizes", [(SIZE, 1), ("steps", "batch")], ids=str)
def test_operations_that_change_something_do_not_join(
    what: str, sizes: tuple[int | str, int | str], tmp_path: Path
) -> None:
    between, sentence = SOMETHING[what]
    two = Two(sizes)
    two.two(between)
    said = notes(two, tmp_path)
    assert sentence in said
    assert "GRU 'b' reads " in said
    assert said.count("a model of its own") == 1
    assert not joined(two, frames(), tmp_path)


def sides_exchanged(two: Two, y: str) -> str:
    return two.then("Slice", two.then("Transpose", y, perm=[0, 2, 1, 3]), [-1], [-(2**40)], [2], [-1])


#: The wrong ways to put [steps, directions, batch, units] into [steps, batch, directions x units].
WRONG: dict[str, Between] = {
    "not transposed": lambda two, y: two.then("Reshape", y, [SIZE, -1, 2 * SIZE]),
    "units first": lambda two, y: two.then("Reshape", two.then("Transpose", y, perm=[0, 2, 3, 1]), [0, 0, -1]),
    "backward first": lambda two, y: two.then("Reshape", sides_exchanged(two, y), [0, 0, -1]),
    "steps with directions": lambda two, y: two.then(
        "Reshape", two.then("Transpose", y, perm=[1, 2, 0, 3]), [SIZE, 1, -1]
    ),
}


@pytest.mark.parametrize("sizes", [(SIZE, 1), ("steps", "batch")], ids=str)
@pytest.mark.parametrize("what", WRONG)
def test_directions_in_another_order_do_not_join(what: str, sizes: tuple[int | str, int | str], tmp_path: Path) -> None:
    two = Two(sizes)
    two.two(WRONG[what], directions=2)
    # With one sequence, [steps, directions, 1, units] needs no transpose.
    harmless = what == "not transposed" and sizes[1] == 1
    assert joined(two, frames(), tmp_path) == harmless


@pytest.mark.parametrize("reshaped", [True, False])
def test_pyramids_do_not_join(reshaped: bool, tmp_path: Path) -> None:
    """Two steps side by side: every second step is gone."""

    def pyramid(two: Two, y: str) -> str:
        flat = squeezed(two, y)
        if reshaped:
            turned = two.then("Reshape", two.then("Transpose", flat, perm=[1, 0, 2]), [0, SIZE // 2, 2 * SIZE])
            return two.then("Transpose", turned, perm=[1, 0, 2])
        parts = [two.then("Slice", flat, [start], [2**40], [0], [2]) for start in (0, 1)]
        return two.then("Concat", *parts, axis=2)

    two = Two((SIZE, "batch"))
    two.two(pyramid, width=2 * SIZE)
    assert not joined(two, frames(), tmp_path)


def test_a_batch_of_as_many_sequences_as_steps_is_no_time(tmp_path: Path) -> None:
    two = Two((SIZE, SIZE))
    two.two(lambda two, y: two.then("Transpose", squeezed(two, y), perm=[1, 0, 2]))
    assert "operations that put its axes in another order" in notes(two, tmp_path)


@pytest.mark.parametrize("training", [False, True])
def test_dropout_counts_where_it_drops(training: bool, tmp_path: Path) -> None:
    two = Two()
    ratio, mode = two.store("ratio", np.float32(0.5)), two.store("mode", np.array(training))
    two.two(lambda two, y: two.then("Dropout", squeezed(two, y), ratio, mode))
    (tmp_path / "a.onnx").write_bytes(two.model("b_Y").SerializeToString())
    assert len(read_onnx(tmp_path / "a.onnx").models) == (2 if training else 1)


def test_half_precision_between_layers_that_have_it_joins(tmp_path: Path) -> None:
    two = Two()
    two.two(lambda two, y: two.then("Cast", two.then("Cast", squeezed(two, y), to=1), to=TensorProto.FLOAT16))
    for tensor in two.tensors:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    (tmp_path / "a.onnx").write_bytes(two.model("b_Y").SerializeToString())
    assert len(read_onnx(tmp_path / "a.onnx").models) == 1


def test_a_layer_inside_a_loop_is_no_layer_above_one_outside(tmp_path: Path) -> None:
    two, body = Two(), Numbers()
    flat = squeezed(two, two.layer("LSTM", "x", 3, SIZE, name="a"))
    body.inputs = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, [])]
    body.layer("GRU", flat, SIZE, 5, name="b")
    two.nodes.append(helper.make_node("Loop", ["", ""], ["y"], name="rounds", body=body.proto("go", "b_Y")))
    (tmp_path / "a.onnx").write_bytes(two.model("y").SerializeToString())
    _, second = read_onnx(tmp_path / "a.onnx").models
    assert "reads LSTM 'a' from outside its loop: a model of its own" in " ".join(second.notes)


def test_states_of_each_layer_of_a_stack(tmp_path: Path) -> None:
    """torch writes h0 of two bidirectional layers as one tensor that is sliced."""
    two = Two(("steps", "batch"))
    whole = {name: two.weight(name, 4, 1, SIZE) for name in ("h0", "c0")}
    parts = [
        {5 + at: two.then("Slice", name, [2 * layer], [2 * layer + 2], [0]) for at, name in enumerate(whole)}
        for layer in (0, 1)
    ]
    first = two.layer("LSTM", "x", 3, SIZE, name="a", directions=2, inputs=parts[0])
    two.layer("LSTM", both(two, first), 2 * SIZE, SIZE, name="b", directions=2, inputs=parts[1])
    assert joined(two, frames(), tmp_path)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (lambda two: two.then("Transpose", two.then("Transpose", "x", perm=[1, 0, 2]), perm=[1, 0, 2]), None),
        (lambda two: two.then("Slice", "x", [-1], [-(2**40)], [0], [-1]), "Slice 'node_v1'"),
        (lambda two: two.then("Relu", "x"), "Relu 'node_v1'"),
        (lambda two: two.then("Reshape", "x", [SIZE, 1, 3]), "Reshape 'node_v1'"),
    ],
)
def test_what_is_done_to_the_frames_before_the_first_layer_is_said(
    before: Callable[[Two], str], said: str | None, tmp_path: Path
) -> None:
    two = Two(("steps", "batch"))
    two.layer("LSTM", before(two), 3, SIZE, name="b")
    note = f"LSTM 'b' reads what {said} gives: a run takes that as its frames" if said else ""
    assert notes(two, tmp_path) == note


def test_long_chains_of_computed_shapes_end(tmp_path: Path) -> None:
    """Sizes that are squared again and again, and shapes of shapes: numbers and recursion must have an end."""
    two = Two(("steps", "batch"))
    value = squeezed(two, two.layer("LSTM", "x", 3, SIZE, name="a"))
    size = two.then("Slice", two.then("Shape", value), [0], [1])
    for _ in range(120):
        size = two.then("Mul", size, size)
    value = two.then("Reshape", value, two.then("Concat", size, two.list("rest", -1, SIZE), axis=0))
    for _ in range(150):
        value = two.then("Reshape", two.then("Unsqueeze", value, [0]), two.then("Shape", value))
    two.layer("GRU", value, SIZE, 5, name="b")
    (tmp_path / "a.onnx").write_bytes(two.model("b_Y").SerializeToString())
    assert len(read_onnx(tmp_path / "a.onnx").models) == 2
