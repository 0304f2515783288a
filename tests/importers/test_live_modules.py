"""Modules and models in memory: stand-ins with the methods that PyTorch and Keras have; PyTorch if installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.importers.files import read_weights
from lstmsim.importers.pytorch import modules
from lstmsim.importers.pytorch.pickled import Thing, _Global
from tests.importers.test_weights_keras import keras_pass, output
from tests.importers.test_weights_pytorch import torch_run
from tests.importers.weight_files import keras_both, keras_layer, keras_model, keras_variables, torch_tensors

X = np.random.default_rng(3).normal(size=(4, 2))


class Tensor:
    """The methods of torch.Tensor that are asked for."""

    def __init__(self, array: np.ndarray, kind: str = "float32") -> None:
        self.array, self.dtype, self.shape = array, f"torch.{kind}", array.shape

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def numpy(self) -> np.ndarray:
        assert self.dtype != "torch.bfloat16", "NumPy has no such numbers"
        return self.array


class RNN:
    """A module with a function."""

    __module__, mode = "torch.nn.modules.rnn", "RNN_RELU"


class Mine:
    """A module of a user's own."""


def module(tensors: dict[str, np.ndarray], kind: str = "float32", **modules: Any) -> Any:
    state = {name: Tensor(array, kind) for name, array in tensors.items()} | {"version": 3}
    return SimpleNamespace(state_dict=lambda: state, named_modules=lambda: list(modules.items()))


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_the_numbers_of_a_module(kind: str) -> None:
    tensors = torch_tensors("gru", 3, 2, 2, both=True)
    (imported,) = lstmsim.from_torch(module(tensors, kind), name="speech")
    assert (imported.model.name, imported.source) == ("speech", "speech: its recurrent layers")
    np.testing.assert_allclose(output(imported, X), torch_run(tensors, "gru", 2, True, X), rtol=0, atol=1e-6)
    assert bool(imported.notes) == (kind == "bfloat16")


def test_modules_in_a_module() -> None:
    tensors = {f"dec.{name}": array for name, array in torch_tensors("rnn", 3, 2).items()}
    tensors |= {f"enc.{name}": array for name, array in torch_tensors("lstm", 3, 2).items()}
    models = lstmsim.from_torch(module(tensors, dec=RNN(), enc=Mine()), name="speech")
    assert [each.model.name for each in models] == ["speech-dec", "speech-enc"]
    assert [each.model.layers[0].cell.name for each in models] == ["rnn-relu", "lstm"]
    sentence = "not PyTorch's own: the equations of torch.nn are taken for it"
    assert [any(sentence in note for note in each.notes) for each in models] == [False, True]
    assert all(any("each stands alone and begins at 0" in note for note in each.notes) for each in models)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (7, "from_torch: expected a PyTorch module (with state_dict and named_modules), got a value of type int"),
        (Mine, "got the class Mine"),
        (module({"fc.weight": np.ones((2, 2))}), "network: holds no recurrent layer by PyTorch's names"),
        (module(torch_tensors("rnn", 3, 2)), "network: is an RNN, whose function is not in the file"),
        (module({"a._packed_weight_ih": np.ones(2)}), "network: holds a quantised recurrent layer"),
        (module({"weight_ih_l0": np.full((4, 1), np.nan), "weight_hh_l0": np.ones((4, 1))}), "weight_ih_l0: holds nan"),
        (module({"weight_ih_l0": np.ones((4, 1)), "weight_hh_l0": np.ones((4, 1))}, "int8"), "holds torch.int8"),
    ],
)
def test_modules_that_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        lstmsim.from_torch(given)
    assert sentence in str(caught.value)


class Meta(Tensor):
    """A tensor of the device "meta"."""

    device = "meta"

    def cpu(self) -> Tensor:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


class Lazy:
    """A parameter of a lazy module."""

    @property
    def shape(self) -> tuple[int, ...]:
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer.")


def test_tensors_without_numbers() -> None:
    tensors = torch_tensors("lstm", 3, 2)
    state = {name: Meta(array) for name, array in tensors.items()}
    with pytest.raises(InputError) as caught:
        lstmsim.from_torch(SimpleNamespace(state_dict=lambda: state, named_modules=list))
    sentence = "weight_ih_l0: is a tensor on device 'meta' whose numbers cannot be read (NotImplementedError)"
    assert sentence in str(caught.value)
    ready: dict[str, Any] = {name: Tensor(array) for name, array in tensors.items()} | {"fc.weight": Lazy()}
    assert len(lstmsim.from_torch(SimpleNamespace(state_dict=lambda: ready, named_modules=list))) == 1


def layer(name: str, *variables: np.ndarray, **more: Any) -> Any:
    return SimpleNamespace(name=name, get_weights=lambda: list(variables), **more)


class Sequential:
    """A Keras model."""

    name = "speech"

    def __init__(self, entries: list[dict[str, Any]], layers: list[Any]) -> None:
        self.entries, self.layers = entries, layers

    def get_config(self) -> dict[str, Any]:
        return {**keras_model(self.entries)["config"], "made_by": Mine}


def test_the_numbers_of_a_keras_model() -> None:
    first, *both = (keras_variables("GRU", 3, width, seed) for seed, width in enumerate((2, 3, 3)))
    inner = keras_model([keras_layer("GRU", "low", 3)])
    inner["config"]["name"] = "inner"
    entries = [keras_layer("GRU", "low", 3), keras_both(keras_layer("GRU", "own", 3), "two"), inner]
    deep = keras_variables("GRU", 3, 6, 9)
    layers = [layer("low", *first), layer("two", *both[0], *both[1]), layer("inner", layers=[layer("low", *deep)])]
    models = lstmsim.from_keras(Sequential(entries, layers))
    assert [each.model.name for each in models] == ["speech-low", "speech-low-2"]
    assert models[0].nodes == ("low", "two")
    below = keras_pass("GRU", first, X)
    sides = [keras_pass("GRU", both[0], below), keras_pass("GRU", both[1], below[::-1])[::-1]]
    np.testing.assert_allclose(output(models[0], X), np.concatenate(sides, axis=1), rtol=0, atol=1e-6)
    assert models[1].model.layers[0].input == 6


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (7, "from_keras: expected a Keras model (with get_config and layers), got a value of type int"),
        (Sequential, "got the class Sequential"),
        (Sequential([keras_layer("GRU", "a", 3)], []), "speech: layer 'a': has 0 arrays of weights, expected 3"),
        (SimpleNamespace(get_config=dict, layers=[], name="m"), "m: does not say which layers it has"),
    ],
)
def test_keras_models_that_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        lstmsim.from_keras(given)
    assert sentence in str(caught.value)


def test_what_is_found_can_be_saved_and_simulated(tmp_path: Path) -> None:
    (imported,) = lstmsim.from_torch(module(torch_tensors("gru", 3, 2)), name="speech")
    path = lstmsim.save_model(imported, tmp_path / "speech.yaml", licence="MIT")
    scenario = lstmsim.load_scenario({"chip": "column-npu-64k", "jobs": [{"model": path, "steps": 4}]})
    job = scenario.jobs[0]
    assert (job.name, job.model) == ("speech", imported.model)
    assert imported.network is not None
    again = read_weights(job.model.weights, job.model)
    np.testing.assert_array_equal(
        again.passes[0][0].matrices["r", "x"], imported.network.passes[0][0].matrices["r", "x"]
    )
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"speech\.yaml: exists already; force=True replaces it"):
        lstmsim.save_model(imported, path)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before
    other = tmp_path / "other.yaml"
    other.write_text("old")
    assert lstmsim.save_model(imported, other, licence="MIT", force=True) == str(other)
    assert other.read_text() == Path(path).read_text().replace("speech.safetensors", "other.safetensors")
    with pytest.raises(InputError, match=r"expected a file name that ends in .yaml or .yml"):
        lstmsim.save_model(imported, tmp_path / "speech.onnx")


def test_pytorch_itself() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    net = torch.nn.RNN(2, 3, num_layers=2, nonlinearity="relu", bidirectional=True)
    (imported,) = lstmsim.from_torch(net)
    with torch.no_grad():
        wanted = net(torch.tensor(X[:, None], dtype=torch.float32))[0][:, 0].numpy()
    np.testing.assert_allclose(output(imported, X), wanted, rtol=0, atol=1e-6)


def test_a_module_whose_state_is_in_two_parts() -> None:
    """A class with slots is kept as its dictionary and its slots; either may be missing."""
    state = {"_parameters": {}, "_modules": {}}
    for states in ([state], [({"_parameters": {}}, {"_modules": {}})], [(None, state)]):
        assert modules._attributes(Thing(_Global("a", "B"), states=states)) == state
