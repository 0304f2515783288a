"""The files of g2p-en that come with lstmsim: two networks, their embeddings, and the layer behind the decoder."""

from __future__ import annotations

from pathlib import Path

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError
from lstmsim.files.catalog import find_model
from lstmsim.importers.files import canonical_network
from lstmsim.importers.safetensors import read_safetensors
from lstmsim.importers.tensors import floats
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network
from lstmsim.studies.accuracy.g2p import GRAPHEMES, PHONEMES, G2p

__all__ = ["read_g2p"]

_UNITS = 256


def read_g2p(folder: Path | None = None) -> G2p:
    """Read the speller from `g2p-en-encoder.safetensors` and `g2p-en-decoder.safetensors`.

    folder: where the two files are; None: the files that come with lstmsim.

    `InputError` names the file and every tensor that is wrong.

    >>> read_g2p().phonemes.shape
    (74, 256)
    """
    folder = folder or find_model("g2p-en-encoder").parent / "weights"
    encoder, around_encoder = _part(folder, "encoder", {"embedding": (len(GRAPHEMES), _UNITS)})
    shapes = {
        "embedding": (len(PHONEMES), _UNITS),
        "output.weight": (len(PHONEMES), _UNITS),
        "output.bias": (len(PHONEMES),),
    }
    decoder, around = _part(folder, "decoder", shapes)
    return G2p(
        encoder,
        decoder,
        around_encoder["embedding"],
        around["embedding"],
        around["output.weight"],
        around["output.bias"],
    )


def _part(folder: Path, name: str, shapes: dict[str, tuple[int, ...]]) -> tuple[Network, dict[str, Floats]]:
    """One network, and the tensors beside it in its file."""
    path = folder / f"g2p-en-{name}.safetensors"
    tensors = read_safetensors(path).tensors
    model = Model(f"g2p-en-{name}", (Layer(cell("gru"), _UNITS, _UNITS),), weights=str(path))
    missing = [key for key in shapes if key not in tensors]
    try:
        if missing:
            raise InputError(f"lacks the tensor {', '.join(missing)}")
        return canonical_network(tensors, model), floats(tensors, shapes)
    except InputError as error:
        raise placed(error, str(path)) from None
