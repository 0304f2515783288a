"""Weights of a model are written and read back; wrong weights are refused with every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as library
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.importers.files import canonical_shapes, import_weights, read_weights, write_weights
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Network, random_network
from tests.importers.weight_files import torch_tensors

GRU = Model("m", (Layer(cell("gru"), 3, 2, True), Layer(cell("gru"), 2, 6)))


def same(first: Network, second: Network) -> bool:
    """Check that two networks have equal numbers under equal names; a bias that is left out is 0."""
    for one, two in zip(first.passes, second.passes, strict=True):
        for left, right in zip(one, two, strict=True):
            for a, b in (
                (left.matrices, right.matrices),
                (left.biases, right.biases),
                (left.parameters, right.parameters),
            ):
                if a.keys() != b.keys() or not all(np.array_equal(a[key], b[key]) for key in a):
                    return False
    return first.initial.keys() == second.initial.keys() and all(
        states.keys() == second.initial[key].keys()
        and all(np.array_equal(states[name], second.initial[key][name]) for name in states)
        for key, states in first.initial.items()
    )


@given(st.sampled_from(sorted(CELLS)), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_any_cell_comes_back_as_it_was(tmp_path_factory: Any, name: str, hidden: int, width: int, both: bool) -> None:
    own = cell(name)
    projection = 2 if own.projected else None
    layer = Layer(own, hidden, width, both and own.recurrent, projection)
    passes = random_network(Model("m", (layer,)), seed=hidden).passes
    states = {state: np.full(layer.width(state), 0.5) for state in own.states}
    network = Network(Model("m", (layer,)), passes, {(0, layer.directions - 1): states})
    path = tmp_path_factory.mktemp("w") / "m.safetensors"
    write_weights(network, path, {"source": "s"})
    assert same(read_weights(path, network.model), network)


def saved(path: Path, model: Model, **changes: Any) -> Path:
    """Write a file of a model's weights; changes: name (dots as __) -> array, or None to leave it out."""
    arrays = {name: np.ones(shape, np.float32) for name, shape in canonical_shapes(model).items()}
    for name, array in changes.items():
        if array is None:
            del arrays[name.replace("__", ".")]
        else:
            arrays[name.replace("__", ".")] = array
    library.save_file(arrays, path)
    return path


def refusal(path: Path, model: Model = GRU) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_weights(path, model)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(str(path)) for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_every_mistake_is_named_in_one_go(tmp_path: Path) -> None:
    bad = np.ones((3, 3), np.float32)
    bad[1, 2] = np.nan
    changes: dict[str, Any] = {
        "layers__0__forward__matrix__r__x": np.ones((2, 3), np.float32),
        "layers__0__backward__matrix__r__h": bad,
        "layers__0__backward__matrix__z__h": np.full((3, 3), np.inf, np.float32),
        "layers__1__forward__matrix__nx__x": None,
        "layers__1__forward__matrix__nx__q": np.ones(1, np.float32),
        "layers__1__forward__bias__r": np.full(2, 1e13),
        "layers__1__forward__bias__z": np.ones(2, np.int32),
    }
    assert refusal(saved(tmp_path / "a.safetensors", GRU, **changes)) == [
        "layers.0.forward.matrix.r.x: has shape [2, 3], expected [3, 2]",
        "layers.0.backward.matrix.r.h: holds nan at [1, 2], expected finite numbers",
        "layers.0.backward.matrix.z.h: holds inf at [0, 0], expected finite numbers",
        "layers.1.forward.bias.r: holds numbers above 1e12, expected weights",
        "layers.1.forward.bias.z: holds I32, expected F64, F32, F16 or BF16",
        "layers.1.forward.matrix.nx.x: is missing, expected shape [2, 6]",
        "'layers.1.forward.matrix.nx.q': belongs to no weight of model 'm'; did you mean "
        "'layers.1.forward.matrix.nx.x'?",
    ]


def test_biases_may_be_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.safetensors", GRU, layers__0__forward__bias__r=None)
    assert "r" not in read_weights(path, GRU).passes[0][0].biases


def test_a_thousand_unknown_tensors(tmp_path: Path) -> None:
    more = {f"layers__0__forward__matrix__r__{number}": np.ones(1, np.float32) for number in range(1000)}
    assert refusal(saved(tmp_path / "a.safetensors", GRU, **more))[-1] == "and 980 more like these"


def test_pytorch_names_fit_a_model(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = torch_tensors("gru", 3, 2, both=True)
    library.save_file({f"enc.{name}": array for name, array in tensors.items()}, path)
    model = Model("m", GRU.layers[:1])
    network = read_weights(path, model)
    imported = import_weights(path)[0].network
    assert imported is not None
    assert same(network, imported)
    wide = refusal(path, Model("m", (Layer(cell("gru"), 3, 4, True),)))
    assert wide[0] == "enc.weight_ih_l0: has shape [9, 2], expected [9, 4]"
    assert "'enc.weight_ih_l0_reverse': belongs to no weight of model" in " ".join(
        refusal(path, Model("m", (Layer(cell("gru"), 3, 2),)))
    )
    text = "the layout of PyTorch has no names for cell mingru: those need lstmsim's own (layers.0.forward.matrix...)"
    assert refusal(path, Model("m", (Layer(cell("mingru"), 3, 2),))) == [text]


def test_the_module_that_fits_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    parts = {"enc": torch_tensors("gru", 3, 2), "dec": torch_tensors("gru", 4, 2), "top": torch_tensors("gru", 4, 2)}
    library.save_file({f"{part}.{name}": each for part, own in parts.items() for name, each in own.items()}, path)
    network = read_weights(path, Model("m", (Layer(cell("gru"), 3, 2),)))
    np.testing.assert_array_equal(network.passes[0][0].matrices["r", "x"], parts["enc"]["weight_ih_l0"][:3])
    assert "several of which have the shapes" in refusal(path, Model("m", (Layer(cell("gru"), 4, 2),)))[0]
    assert "none of which has those" in refusal(path, Model("m", (Layer(cell("gru"), 5, 2),)))[0]


def test_a_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    library.save_file({"fc.weight": np.ones(3)}, path)
    assert "holds no tensor of model 'm': expected names like layers.0.forward.matrix.r.x" in refusal(path)[0]


def test_half_and_double(tmp_path: Path) -> None:
    tensors = torch_tensors("rnn", 3, 2)
    for kind, wanted in (("float16", "float32"), ("float64", "float64")):
        path = tmp_path / f"{kind}.safetensors"
        library.save_file({name: array.astype(kind) for name, array in tensors.items()}, path)
        network = read_weights(path, Model("m", (Layer(cell("rnn"), 3, 2),)))
        assert network.passes[0][0].matrices["a", "x"].dtype == wanted
        again = tmp_path / f"{kind}-again.safetensors"
        write_weights(network, again)
        assert same(read_weights(again, network.model), network)
