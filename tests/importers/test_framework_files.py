"""Files that PyTorch and Keras wrote themselves (`make_framework_files.py`): the same outputs, or a sentence."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from lstmsim.importers.imported import ImportedModel
from lstmsim.model.numerics.golden import float_arithmetic, run_network

CORPUS = Path(__file__).parent.parent / "data" / "frameworks.zip"


@cache
def member(name: str) -> bytes:
    with zipfile.ZipFile(CORPUS) as archive:
        return archive.read(name)


@cache
def arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(member(name))) as archive:
        return dict(archive)


def imported(name: str, folder: Path, cell: str | None = None) -> list[ImportedModel]:
    path = folder / name
    path.write_bytes(member(name))
    return import_weights(path, cell=cell)


def output(model: ImportedModel, x: np.ndarray) -> np.ndarray:
    assert model.network is not None
    return run_network(float_arithmetic(model.network), model.network.stimulus(x.astype(np.float64))).output()


def check(model: ImportedModel, x: np.ndarray, y: np.ndarray) -> None:
    np.testing.assert_allclose(output(model, x), y, rtol=0, atol=1e-6)


KERAS = [f"{version}-{{}}.{kind}" for version in ("keras2", "keras3") for kind in ("h5", "keras")]


@pytest.mark.parametrize("pattern", KERAS)
def test_a_stack_of_keras_is_one_model(pattern: str, tmp_path: Path) -> None:
    name = pattern.format("stack")
    (model,) = imported(name, tmp_path)
    data = arrays(f"{name.split('.')[0]}.npz")
    assert (model.nodes, model.notes) == (("a", "b", "c"), ())
    check(model, data["x0"], data["y_c"])


@pytest.mark.parametrize("pattern", KERAS)
def test_what_changes_the_sequence_keeps_layers_of_keras_apart(pattern: str, tmp_path: Path) -> None:
    name = pattern.format("apart")
    models = imported(name, tmp_path)
    data = arrays(f"{name.split('.')[0]}.npz")
    assert [each.nodes for each in models] == [("a",), ("b",), ("c",), ("d",)]
    assert [each.model.layers[0].cell.name for each in models] == ["lstm", "gru-lbr0", "lstm", "rnn-relu"]
    for each, source in zip(models, ("x0", "y_e", "y_f"), strict=False):
        check(each, data[source], data[f"y_{each.nodes[0]}"])


@pytest.mark.parametrize("pattern", KERAS)
def test_initial_states_of_keras(pattern: str, tmp_path: Path) -> None:
    name = pattern.format("states")
    models = {each.nodes[0]: each for each in imported(name, tmp_path)}
    data = arrays(f"{name.split('.')[0]}.npz")
    assert [each.nodes for each in models.values()] == [("a", "d"), ("b",), ("c",)]
    # Constants are part of the network, in both directions; another reader of the states of 'a' separates nothing.
    check(models["a"], data["x0"], data["y_d"])
    assert models["a"].network is not None
    assert sorted(models["a"].network.initial) == [(1, 0), (1, 1)]
    # A decoder's states come from the encoder; states that are inputs begin at 0, and a note says so.
    assert models["b"].model.states_from == "the last states of layer 'a', in part or in another order"
    assert "the states of layer 'c' are inputs of the model" in models["c"].notes[0]
    assert [models[each].model.states_from for each in "ac"] == ["", ""]


@pytest.mark.parametrize("pattern", KERAS)
def test_layers_of_keras_that_go_backward(pattern: str, tmp_path: Path) -> None:
    name = pattern.format("back")
    (model,) = imported(name, tmp_path)
    data = arrays(f"{name.split('.')[0]}.npz")
    assert [layer.reverse for layer in model.model.layers] == [False, True]
    check(model, data["x0"], data["y_b"][::-1])
    assert "in Keras the last step is first" in model.notes[0]


@pytest.mark.parametrize("pattern", KERAS)
def test_directions_that_keras_adds_stand_side_by_side(pattern: str, tmp_path: Path) -> None:
    name = pattern.format("sum")
    (model,) = imported(name, tmp_path)
    data = arrays(f"{name.split('.')[0]}.npz")
    both = output(model, data["x0"])
    np.testing.assert_allclose(both[:, :2] + both[:, 2:], data["y_a"], rtol=0, atol=1e-6)
    assert model.notes == ("layer 'a' joins its directions by 'sum'; here they are concatenated",)


@pytest.mark.parametrize("pattern", KERAS)
def test_hard_sigmoid_has_the_slope_of_its_keras(pattern: str, tmp_path: Path) -> None:
    """0.2 in Keras 2, 1/6 in Keras 3."""
    name = pattern.format("hard")
    (model,) = imported(name, tmp_path)
    own = model.model.layers[0].cell.name
    assert own == f"lstm-hardsigmoid{'' if name.startswith('keras2') else '_0.16666667_0.5'}-tanh-tanh"
    data = arrays(f"{name.split('.')[0]}.npz")
    check(model, data["x0"], data["y_a"])


@pytest.mark.parametrize("kind", ["h5", "keras"])
@pytest.mark.parametrize(
    ("name", "nodes", "cells"),
    [
        ("cells", ("a/lstm_cell", "a/gru_cell", "a/lstm_cell_1", "b", "c"), "lstm gru lstm-sigmoid-softsign-softsign"),
        ("functions", ("a", "b", "c"), "lstm-softplus-relu-relu gru-hardsigmoid_0.16666667_0.5-elu rnn-linear"),
    ],
)
def test_cells_and_activations_of_keras(
    kind: str, name: str, nodes: tuple[str, ...], cells: str, tmp_path: Path
) -> None:
    (model,) = imported(f"keras3-{name}.{kind}", tmp_path)
    assert (model.nodes, model.notes) == (nodes, ())
    assert " ".join(layer.cell.name for layer in model.model.layers).startswith(cells)
    data = arrays(f"keras3-{name}.npz")
    check(model, data["x0"], data["y_c"])
    assert model.operators is not None
    assert model.operators.known == sum(layer.macs_per_step for layer in model.model.layers)


@pytest.mark.parametrize("name", ["keras2-alone.weights.h5", "keras3-alone.weights.h5", "keras2-older.h5"])
def test_weights_of_keras_without_their_model(name: str, tmp_path: Path) -> None:
    models = {each.model.layers[0].cell.name: each for each in imported(name, tmp_path)}
    data = arrays(f"{name.removesuffix('.h5')}.npz")
    check(models["lstm"], data["x0"], data["y_a"])
    if "gru" in models:
        check(models["gru"], data["y_a"], data["y_b"])
    assert all("weights only: activations tanh and sigmoid are taken" in each.notes[0] for each in models.values())


@pytest.mark.parametrize("suffix", ["-whole.pt", "-script.pt", "-trace.pt", ".pt", "-old.bin"])
def test_the_function_of_an_rnn(suffix: str, tmp_path: Path) -> None:
    """A module names its function; a state dictionary does not, so the user has to say it."""
    name, data = f"torch-relu{suffix}", arrays("torch-relu.npz")
    if suffix == ".pt":
        with pytest.raises(InputError, match="an RNN, whose function is not in the file: say --cell rnn"):
            imported(name, tmp_path)
        (tanh,) = imported(name, tmp_path, "rnn")
        assert np.abs(output(tanh, data["x0"]) - data["y"]).max() > 0.1
    else:
        with pytest.raises(InputError, match="of cell rnn-relu by the file, --cell rnn says something else"):
            imported(name, tmp_path, "rnn")
    (model,) = imported(name, tmp_path, "rnn-relu" if suffix == ".pt" else None)
    assert [layer.cell.name for layer in model.model.layers] == ["rnn-relu", "rnn-relu"]
    check(model, data["x0"], data["y"])


NORMS = [f"norm-{word}-{at}" for word in ("old", "new") for at in range(3)]


@pytest.mark.parametrize("name", [*NORMS, "spectral-old", "spectral-new", "pruned"])
def test_weights_that_pytorch_keeps_in_parts(name: str, tmp_path: Path) -> None:
    (model,) = imported(f"torch-{name}.pt", tmp_path)
    data = arrays(f"torch-{name}.npz")
    check(model, data["x0"], data["y"])


def test_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    (model,) = imported("torch-lightning.ckpt", tmp_path)
    data = arrays("torch-lightning.npz")
    assert model.model.layers[0].cell.name == "lstm-projection"
    check(model, data["x0"], data["y"])


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name in ("torch-packed.pt", "torch-packed-script.pt"):
        with pytest.raises(InputError, match="a quantised recurrent layer, whose packed weights cannot be read"):
            imported(name, tmp_path)
    with pytest.raises(InputError, match=r"weight_hh_l0.: is made of .*original.* in a way that is not known here"):
        imported("torch-orthogonal.pt", tmp_path)
    with pytest.raises(InputError, match="is for an RNN whose function the file does not hold, but there is none"):
        imported("torch-pruned.pt", tmp_path, "rnn")
