"""Damaged files of every format are refused by a sentence, or read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights, read_weights, write_weights
from lstmsim.importers.pytorch import pickled
from lstmsim.importers.pytorch.pickled import MAX_STEPS
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import random_network
from tests.importers.onnx.graphs import save
from tests.importers.onnx.test_weights import Filled
from tests.importers.weight_files import (
    cell_at,
    glob,
    h5,
    keras_file,
    keras_layer,
    keras_model,
    keras_variables,
    safe,
    torch_stream,
    torch_tensors,
    torch_zip,
)
from tests.strategies import examples

MODEL = Model("m", (Layer(cell("gru"), 3, 2),))


def plain_tensors() -> bytes:
    header, content = {}, b""
    for name, array in torch_tensors("gru", 3, 2).items():
        offsets = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        content += array.tobytes()
    return safe(header, content)


def network(folder: Path) -> bytes:
    graph = Filled()
    graph.recurrent("GRU", graph.input("x", 5, 1, 2), 2, 3)
    return save(graph, folder / "whole.onnx").read_bytes()


def inner_h5() -> bytes:
    return h5(cell_at("layers/gru", keras_variables("GRU", 3, 2)))


CONFIG = keras_model([keras_layer("GRU", "own", 3)])
WHOLE = {
    ".safetensors": lambda folder: plain_tensors(),
    ".onnx": network,
    ".keras": lambda folder: keras_file(CONFIG, inner_h5()),
    ".pt": lambda folder: torch_zip(torch_tensors("gru", 3, 2)),
    ".pth": lambda folder: torch_stream(torch_tensors("gru", 3, 2)),
}
CHANGES = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=4)


def damaged(whole: bytes, changes: list[tuple[int, int]], cut: int | None) -> bytes:
    content = bytearray(whole)
    for place, value in changes:
        content[place % len(content)] = value
    return bytes(content if cut is None else content[: cut % len(content)])


def outcome(path: Path, read: Any = import_weights) -> list[Any]:
    """Read a file; the result is empty if a sentence that begins with the file's name refuses it."""
    try:
        models: list[Any] = read(path)
    except InputError as error:
        models, text = [], str(error)
        assert text.startswith(str(path)), text
    return models


@pytest.fixture(scope="module")
def whole(tmp_path_factory: Any) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("w")
    return {suffix: make(folder) for suffix, make in WHOLE.items()}


@pytest.mark.parametrize("suffix", WHOLE)
def test_undamaged_files_are_read(suffix: str, whole: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(whole[suffix])
    (imported,) = import_weights(path)
    assert imported.network is not None
    assert (imported.model.layers, imported.model.name) == (MODEL.layers, "a")


@settings(max_examples=examples(48))
@given(st.sampled_from(sorted(WHOLE)), CHANGES, st.none() | st.integers(0, 2**20), st.booleans())
def test_damaged_files(
    tmp_path_factory: Any, whole: dict[str, bytes], suffix: str, changes: Any, cut: int | None, early: bool
) -> None:
    if early:
        # Headers and pickles are in the first bytes: there, damage does most.
        changes = [(place % 300, value) for place, value in changes]
    path = tmp_path_factory.mktemp("w") / f"a{suffix}"
    path.write_bytes(damaged(whole[suffix], changes, cut))
    models = outcome(path)
    if models:
        assert cut is None
        for each in models:
            for layer in each.network.passes if each.network else ():
                assert all(np.isfinite(array).all() for one in layer for array in one.matrices.values())


@settings(max_examples=examples(30))
@example([(1, 92)], None)
@given(CHANGES, st.none() | st.integers(0, 2**20))
def test_damage_inside_a_whole_zip(tmp_path_factory: Any, changes: Any, cut: int | None) -> None:
    """The damage above never gets past the checksums of a zip file, so here its members themselves are damaged."""
    path = tmp_path_factory.mktemp("w") / "a.pt"
    arrays = torch_tensors("gru", 3, 2)
    pickled = torch_stream(arrays)
    start = pickled.index(b"\x80\x02c")
    body = pickled[start + 2 : pickled.index(b".\x80\x02]", start)]
    for content in (
        torch_zip(arrays, damaged(body, changes, cut)),
        keras_file(damaged(json.dumps(CONFIG).encode(), changes, cut), inner_h5()),
    ):
        path = path.with_suffix(".pt" if content[30:37] == b"archive" else ".keras")
        path.write_bytes(content)
        outcome(path)


@settings(max_examples=examples(24))
@given(CHANGES, st.none() | st.integers(0, 2**20))
def test_damaged_weights_of_a_model(tmp_path_factory: Any, changes: Any, cut: int | None) -> None:
    path = tmp_path_factory.mktemp("w") / "m.safetensors"
    write_weights(random_network(MODEL, seed=1), path)
    path.write_bytes(damaged(path.read_bytes(), [(place % 600, value) for place, value in changes], cut))
    outcome(path, lambda path: [read_weights(path, MODEL)])


@settings(max_examples=examples(24))
@given(st.sampled_from(sorted(WHOLE)), st.binary(max_size=200))
def test_random_bytes(tmp_path_factory: Any, suffix: str, content: bytes) -> None:
    path = tmp_path_factory.mktemp("w") / f"a{suffix}"
    marks = {".keras": b"PK\x03\x04", ".pt": b"\x80\x02", ".pth": b"PK\x03\x04"}
    for start in (b"", marks.get(suffix, b"")):
        path.write_bytes(start + content)
        with pytest.raises(InputError):
            import_weights(path)


def test_pipes_folders_and_large_files(tmp_path: Path) -> None:
    for suffix in WHOLE:
        path = tmp_path / f"a{suffix}"
        with pytest.raises(InputError, match="no such file"):
            import_weights(path)
        path.mkdir()
        with pytest.raises(InputError, match="folder"):
            import_weights(path)
        path.rmdir()
        os.mkfifo(path)
        with pytest.raises(InputError, match="device or a pipe"):
            import_weights(path)
        path.unlink()
        with path.open("wb") as file:
            file.truncate(2**31)
        with pytest.raises(InputError, match="more than the 2 GB"):
            import_weights(path)
        path.unlink()


def test_bombs_of_opcodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_STEPS == 500_000
    monkeypatch.setattr(pickled, "MAX_STEPS", most := 50_000)
    # Each list holds the list before it twice.
    double = b"(]q\x00" + b"".join(b"]q%c(h%ch%ce" % (at, at - 1, at - 1) for at in range(1, 200)) + b"t"
    ordered = glob("collections", "OrderedDict") + b"q\x00"
    copies = b"(" + ordered + b"](" + b"K\x01K\x02\x86" * 1000 + b"eq\x01" + b"h\x00h\x01\x85R" * 1000 + b"t"
    for body, sentence in (
        (b"N0" * most, "more than 50000 opcodes"),
        (copies, "copies the same lists over and over"),
        (double, "no recurrent layer"),
        (b"]q\x00h\x00a", "no recurrent layer"),
        (b"(" * 20_000 + b"t" * 20_000, "no recurrent layer"),
    ):
        path = tmp_path / "a.pt"
        path.write_bytes(torch_zip({}, body))
        with pytest.raises(InputError, match=sentence):
            import_weights(path)


def test_thousands_of_layers_and_modules(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    one = {"dtype": "F32", "shape": [0, 1], "data_offsets": [0, 0]}
    for names, sentence in (
        ([f"{part}_l{at}" for at in range(300) for part in ("weight_ih", "weight_hh")], "and 280 more like these"),
        ([f"m{at}.weight_hh" for at in range(2000)], "holds 2000 recurrent modules"),
    ):
        path.write_bytes(safe(dict.fromkeys(names, one)))
        with pytest.raises(InputError, match=sentence):
            import_weights(path)
