"""The networks and inputs that come with lstmsim, read for the tests of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lstmsim.files.catalog import find_model
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.files.yaml.source import read_document
from lstmsim.importers.files import read_weights
from lstmsim.importers.tensors import Safetensors, read_safetensors
from lstmsim.model.numerics.weights import Network

NAMES = ("g2p-en-decoder", "g2p-en-encoder", "resemblyzer", "silero-vad-16k")
INPUTS = find_model("silero-vad-16k").parent / "inputs"


def weights_path(name: str) -> Path:
    path = find_model(name)
    return path.parent / read_document(path).data["weights"]


@cache
def tensors(path: Path) -> Safetensors:
    return read_safetensors(path)


def array(path: Path, name: str) -> NDArray[np.float64]:
    stored = tensors(path).tensors[name]
    return stored.read().reshape(stored.shape).astype(np.float64)


def real_network(name: str) -> Network:
    """Read a network from its model file and the weight file that this names."""
    model = load_model(name)
    return read_weights(model.weights, model)


def real_input(name: str) -> NDArray[np.float64]:
    return array(INPUTS / f"{name}.safetensors", "x")
