"""PyTorch's names and gate orders, against the formulas of its documentation on the stacked matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as library
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights, read_weights
from lstmsim.importers.imported import ImportedModel
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Stimulus
from tests.importers.weight_files import sigmoid, torch_tensors


def torch_pass(tensors: dict[str, np.ndarray], kind: str, suffix: str, x: np.ndarray) -> np.ndarray:
    """Run one layer in one direction by the equations on the pages of torch.nn.LSTM, GRU and RNN."""
    part = {
        name: tensors.get(f"{name}_{suffix}", np.zeros(1)) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    projection = tensors.get(f"weight_hr_{suffix}")
    h = np.zeros(part["weight_hh"].shape[1])
    c = np.zeros(len(part["weight_hh"]) // 4)
    out = []
    for frame in x:
        own = part["weight_ih"] @ frame + part["bias_ih"]
        other = part["weight_hh"] @ h + part["bias_hh"]
        if kind == "lstm":
            i, f, g, o = np.split(own + other, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            h = h if projection is None else projection @ h
        elif kind == "gru":
            (r, z, n), (hr, hz, hn) = np.split(own, 3), np.split(other, 3)
            z = sigmoid(z + hz)
            h = (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h
        else:
            h = np.tanh(own + other)
        out.append(h)
    return np.array(out)


def torch_run(tensors: dict[str, np.ndarray], kind: str, layers: int, both: bool, x: np.ndarray) -> np.ndarray:
    for layer in range(layers):
        parts = [torch_pass(tensors, kind, f"l{layer}", x)]
        if both:
            parts.append(torch_pass(tensors, kind, f"l{layer}_reverse", x[::-1])[::-1])
        x = np.concatenate(parts, axis=1)
    return x


def output(model: ImportedModel, x: np.ndarray) -> np.ndarray:
    assert model.network is not None
    return run_network(float_arithmetic(model.network), Stimulus(x)).output()


@given(
    st.sampled_from(["lstm", "gru", "rnn", "projection"]),
    st.integers(1, 7),
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
def test_the_numbers_are_those_of_pytorch(
    tmp_path_factory: Any, kind: str, hidden: int, width: int, layers: int, both: bool, bias: bool
) -> None:
    projection = max(1, hidden - 1) if kind == "projection" else None
    kind = "lstm" if projection else kind
    tensors = torch_tensors(kind, hidden, width, layers, both=both, bias=bias, projection=projection)
    path = tmp_path_factory.mktemp("w") / "a.safetensors"
    library.save_file({f"net.rnn.{name}": array for name, array in tensors.items()}, path)
    function = "rnn" if kind == "rnn" else None
    (model,) = import_weights(path, cell=function)
    x = np.random.default_rng(5).normal(size=(4, width))
    wide = {name: array.astype(np.float64) for name, array in tensors.items()}
    np.testing.assert_allclose(output(model, x), torch_run(wide, kind, layers, both, x), rtol=0, atol=2e-6)
    shapes = import_weights(path, weights=False, cell=function)[0]
    assert (shapes.network, shapes.model) == (None, model.model)


def test_several_modules_and_cells(tmp_path: Path) -> None:
    path = tmp_path / "speech.safetensors"
    one = {name.removesuffix("_l0"): array for name, array in torch_tensors("lstm", 4, 3).items()}
    tensors = {"fc.weight": np.ones((2, 2)), **{f"dec.cell.{name}": array for name, array in one.items()}}
    library.save_file(tensors | {f"enc.{name}": array for name, array in torch_tensors("gru", 2, 5).items()}, path)
    models = import_weights(path)
    assert [each.model.name for each in models] == ["speech-dec.cell", "speech-enc"]
    assert [[layer.cell.name for layer in each.model.layers] for each in models] == [["lstm"], ["gru"]]
    assert models[0].nodes == ("dec.cell.weight_ih",)
    assert models[1].source == "speech.safetensors: 'enc'"


def test_the_function_of_an_rnn_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    library.save_file(torch_tensors("rnn", 2, 5), path)
    with pytest.raises(InputError, match=r"an RNN, whose function is not in the file: say --cell rnn \(tanh"):
        import_weights(path)
    assert [import_weights(path, cell=name)[0].model.layers[0].cell.name for name in ("rnn", "rnn-relu")] == [
        "rnn",
        "rnn-relu",
    ]
    with pytest.raises(InputError, match="--cell: expected rnn or rnn-relu, got 'lstm'"):
        import_weights(path, cell="lstm")


def test_weights_with_pytorchs_names_are_read_for_the_models_own_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    library.save_file(torch_tensors("rnn", 2, 5) | {"b.weight_ih": shape(9, 4), "b.weight_hh": shape(9, 3)}, path)
    for name in ("rnn", "rnn-relu"):
        model = Model("m", (Layer(cell(name), 2, 5),))
        assert read_weights(path, model).model == model


def test_other_tensors_of_a_module_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {f"enc.{name}": array for name, array in torch_tensors("lstm", 2, 5).items()}
    library.save_file(tensors | {"enc.norm.weight": shape(2), "fc.weight": shape(2)}, path)
    (model,) = import_weights(path)
    assert model.notes[:1] == (
        "'enc' has other tensors too ('enc.norm.weight'): it may compute something else than torch.nn's layer",
    )


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"g": [[10.0], [0.5]], "v": [[3.0, 4.0], [0.0, 2.0]]}, [[6.0, 8.0], [0.0, 0.5]]),
        ({"g": [[10.0, 1.0]], "v": [[3.0, 2.0], [4.0, 0.0]]}, [[6.0, 1.0], [8.0, 0.0]]),
        ({"g": 10.0, "v": [[3.0, 0.0], [0.0, 4.0]]}, [[6.0, 0.0], [0.0, 8.0]]),
        ({"orig": [[2.0, 0.0], [0.0, 4.0]], "u": [0.0, 1.0], "v": [0.0, 1.0]}, [[0.5, 0.0], [0.0, 1.0]]),
        ({"orig": [[2.0, 3.0], [5.0, 4.0]], "mask": [[1.0, 0.0], [0.0, 1.0]]}, [[2.0, 0.0], [0.0, 4.0]]),
        ({"raw": [[1.0, 2.0], [3.0, 4.0]]}, [[1.0, 2.0], [3.0, 4.0]]),
    ],
)
def test_weights_in_parts(parts: dict[str, Any], wanted: Any, tmp_path: Path) -> None:
    """An RNN whose input weights are kept in parts."""
    stored = {f"weight_ih_l0_{name}": np.array(value, np.float32) for name, value in parts.items()}
    tensors = stored | {"weight_hh_l0": shape(2, 2)}
    library.save_file(tensors, tmp_path / "a.safetensors")
    (model,) = import_weights(tmp_path / "a.safetensors", cell="rnn")
    assert model.network is not None
    np.testing.assert_allclose(model.network.passes[0][0].matrices["a", "x"], wanted, rtol=1e-6)


def test_weights_in_parts_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    library.save_file({"weight_ih_l0_g": shape(3, 1), "weight_ih_l0_v": shape(2, 2), "weight_hh_l0": shape(2, 2)}, path)
    with pytest.raises(InputError, match=r"made of tensors of shapes \[3, 1\] and \[2, 2\], which do not fit"):
        import_weights(path, cell="rnn")
    library.save_file({"weight_ih_l0_g": shape(2, 1), "weight_ih_l0": shape(2, 2), "weight_hh_l0": shape(2, 2)}, path)
    with pytest.raises(InputError, match=r"weight_ih_l0.: is made of 'weight_ih_l0_g' in a way that is not known"):
        import_weights(path, cell="rnn")


def shape(*sizes: int) -> np.ndarray:
    return np.ones(sizes, np.float32)


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"weight_hh_l0": None}, ["layer 0: has no tensor weight_hh"]),
        ({"weight_ih_l0": shape(9)}, ["'weight_ih_l0': has shape [9], expected rows and columns"]),
        ({"weight_ih_l0": shape(10, 4)}, ["4 (LSTM), 3 (GRU) or 1 (RNN) times as many rows", "10 rows and 3 hidden"]),
        ({"weight_ih_l0": shape(6, 4)}, ["the layer has 6 rows and 3 hidden units"]),
        ({"weight_hh_l0": shape(12, 0)}, ["a size of 0, must be between 1 and"]),
        ({"weight_hh_l0": shape(11, 3)}, ["weight_hh_l0: has shape [11, 3], expected [12, 3]"]),
        ({"bias_hh_l0": shape(13)}, ["bias_hh_l0: has shape [13], expected [12]"]),
        ({"bias_hh_l0": None}, ["bias_hh_l0: is missing, expected shape [12]"]),
        ({"weight_hr_l0": shape(2, 3)}, ["weight_hh_l0: has shape [12, 3], expected [12, 2]"]),
        (
            {"weight_ih_l0_reverse": shape(12, 4)},
            ["weight_hh_l0_reverse: is missing", "bias_ih_l0_reverse: is missing"],
        ),
        (
            {"weight_ih_l2": shape(12, 4)},
            ["layer 1: has no tensor weight_ih_l1", "layer 2: has no tensor weight_hh_l2"],
        ),
        ({"weight_ih_l1": shape(12, 4), "weight_hh_l1": shape(12, 3)}, ["layers.1.input: must be 3"]),
        ({"weight_ih": shape(12, 4)}, ["are both weight_ih of layer 0"]),
        ({"weight_ih_l999999": shape(12, 4)}, ["states 1000000 layers"]),
        ({"bias_ih_l0": np.full(12, np.nan)}, ["bias_ih_l0: holds nan at [0], expected finite numbers"]),
    ],
)
def test_refused(changes: dict[str, Any], sentences: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {**torch_tensors("lstm", 3, 4), **changes}
    library.save_file({name: array for name, array in tensors.items() if array is not None}, path)
    with pytest.raises(InputError) as caught:
        import_weights(path)
    for sentence in sentences:
        assert sentence in str(caught.value)


def test_nothing_recurrent(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    library.save_file({f"fc{number}.weight": shape(1) for number in range(8)}, path)
    with pytest.raises(InputError, match=r"holds no recurrent layer by PyTorch's names: .* and 3 more"):
        import_weights(path)
