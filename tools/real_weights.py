"""Rebuild `models/weights` and `models/inputs` from the packages that the networks were published in.

    python -m pip download --no-deps --dest FOLDER silero-vad==6.2.3 g2p-en==2.1.0 Resemblyzer==0.1.4
    python -m pip download --no-deps --no-binary :all: --dest FOLDER pocketsphinx==5.1.1
    python tools/real_weights.py FOLDER

The packages are read as data: nothing of them is imported, unpickled or run. Every file taken from them is checked
against its SHA-256, so the weights are the same everywhere, and the inputs but for rounding. The README.md of the two
folders say what is what.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickletools
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from speech_features import mel_frames, recording, silero_frames  # type: ignore[import-not-found]

MODELS = Path(__file__).resolve().parents[1] / "models"

#: Name here: archive, file in it, SHA-256 of that file.
SOURCES = {
    "silero": (
        "silero_vad-6.2.3-py3-none-any.whl",
        "silero_vad/data/silero_vad_16k.safetensors",
        "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
    ),
    "silero licence": (
        "silero_vad-6.2.3-py3-none-any.whl",
        "silero_vad-6.2.3.dist-info/licenses/LICENSE",
        "2e63e9a38b6e8fc0c7bc37ce174caca1862870856c6daf5697cfb785e925520b",
    ),
    "g2p": (
        "g2p_en-2.1.0-py3-none-any.whl",
        "g2p_en/checkpoint20.npz",
        "b8af35e4596d8dd5836dfd3fe9b2ba4f97b9c311efe8879544cbcfcbd566d8c6",
    ),
    "g2p licence": (
        "g2p_en-2.1.0-py3-none-any.whl",
        "g2p_en-2.1.0.dist-info/LICENSE.txt",
        "b40930bbcf80744c86c46a12bc9da056641d722716c378f5659b9e555ef833e1",
    ),
    "resemblyzer": (
        "Resemblyzer-0.1.4-py3-none-any.whl",
        "resemblyzer/pretrained.pt",
        "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
    ),
    "resemblyzer licence": (
        "Resemblyzer-0.1.4-py3-none-any.whl",
        "Resemblyzer-0.1.4.dist-info/LICENSE",
        "835cbdc5bdc6c60fae874e544e7d5ba648d77d25ec72e4c2efc26b5fde0862c3",
    ),
    "austen 0870": (
        "pocketsphinx-5.1.1.tar.gz",
        "pocketsphinx-5.1.1/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav",
        "b0557cf95c974d930577e58e46b7f068c432a6e3afcc286563d88922b2a5315c",
    ),
    "austen 0930": (
        "pocketsphinx-5.1.1.tar.gz",
        "pocketsphinx-5.1.1/test/data/librivox/sense_and_sensibility_01_austen_64kb-0930.wav",
        "954adbf0b56ac8a148cbe77b39ca18d76b5f2a1e1f405565bd786ce3e68a68b7",
    ),
    "go forward": (
        "pocketsphinx-5.1.1.tar.gz",
        "pocketsphinx-5.1.1/test/data/goforward.raw",
        "f15c60ec54059d8b66e410d0064945a0b0a04ea56e1ddca1958e493c0cf70e71",
    ),
    "sound licence": (
        "pocketsphinx-5.1.1.tar.gz",
        "pocketsphinx-5.1.1/LICENSE",
        "1c3b5c5529d7360c927aa034eea28010c59558c1f67fb722d8d8b5d69cb98a23",
    ),
}


def source(folder: Path, name: str) -> bytes:
    """One file out of a downloaded archive; stops if it is not the one expected."""
    archive, member, expected = SOURCES[name]
    path = folder / archive
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; see the top of this script")
    if archive.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(member)
    else:
        with tarfile.open(path) as sdist:
            file = sdist.extractfile(member)
            assert file is not None
            content = file.read()
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise SystemExit(f"{archive}: {member} has SHA-256 {digest}, expected {expected}")
    return content


# --- file formats --------------------------------------------------------------------------------------------------


def safetensors_of(content: bytes) -> dict[str, np.ndarray]:
    """The float32 tensors of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    data = content[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in json.loads(content[8 : 8 + length]).items()
        if name != "__metadata__"
    }


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray], **notes: str) -> None:
    """A safetensors file, float32, with notes as its `__metadata__`; the header is padded to 8 bytes."""
    header: dict[str, Any] = {"__metadata__": notes}
    blocks = []
    position = 0
    for name, tensor in tensors.items():
        block = np.ascontiguousarray(tensor, "<f4").tobytes()
        end = position + len(block)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [position, end]}
        blocks.append(block)
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *blocks]))
    print(f"{path.relative_to(MODELS.parent)}: {path.stat().st_size} bytes")


_LITERALS = {"BININT", "BININT1", "BININT2", "BINUNICODE", "LONG1", "BINFLOAT"}
_FRESH: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
}
_FRESH |= {"NEWTRUE": lambda: True, "NEWFALSE": lambda: False}


def inert_pickle(stream: io.BytesIO, storages: dict[str, str]) -> Any:
    """One pickle as plain data: a call stays its name and arguments. Notes the type of each storage it meets."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    for operation, argument, _ in pickletools.genops(stream):
        name = operation.name
        if name in _LITERALS or name == "GLOBAL":
            stack.append(argument)
        elif name in _FRESH:
            stack.append(_FRESH[name]())
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[int(argument or 0)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument or 0)])
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            stack[-int(name[-1]) :] = [tuple(stack[-int(name[-1]) :])]
        elif name == "REDUCE":
            function, arguments = stack[-2:]
            stack[-2:] = [{} if function == "collections OrderedDict" else (function, arguments)]
        elif name == "BINPERSID":
            _, kind, key, *_rest = stack[-1]
            storages[key] = kind
            stack[-1] = key
        elif name == "SETITEM":
            key, value = stack[-2:]
            del stack[-2:]
            stack[-1][key] = value
        elif name == "SETITEMS":
            items = since_mark()
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name in ("APPEND", "APPENDS"):
            items = since_mark() if name == "APPENDS" else [stack.pop()]
            stack[-1].extend(items)
        elif name == "BUILD":
            stack.pop()
        elif name == "STOP":
            return stack.pop()
        elif name != "PROTO":
            raise SystemExit(f"pickle operation {name} is not among those of a tensor file")
    return None


def old_torch_of(content: bytes) -> dict[str, np.ndarray]:
    """The tensors under `model_state` in a file of PyTorch before 1.6: five pickles, then raw storages."""
    stream = io.BytesIO(content)
    storages: dict[str, str] = {}
    _magic, _version, _system, tree, keys = (inert_pickle(stream, storages) for _ in range(5))
    sizes = {"torch FloatStorage": 4, "torch LongStorage": 8, "torch DoubleStorage": 8}
    data = {}
    for key in keys:
        count = int.from_bytes(stream.read(8), "little")
        data[key] = stream.read(count * sizes[storages[key]])
    tensors = {}
    for name, (function, (key, offset, shape, stride, *_)) in tree["model_state"].items():
        assert function == "torch._utils _rebuild_tensor_v2"
        assert storages[key] == "torch FloatStorage"
        flat = np.frombuffer(data[key], "<f4")[offset:]
        tensors[name] = np.lib.stride_tricks.as_strided(flat, shape, [4 * each for each in stride])
    return tensors


# --- weights in the layout of lstmsim ------------------------------------------------------------------------------


def lstm_layer(prefix: str, w_ih: np.ndarray, w_hh: np.ndarray, b_ih: np.ndarray, b_hh: np.ndarray) -> dict[str, Any]:
    """A layer whose rows are the gates i, f, g, o, one after the other; the two biases are added."""
    parts: dict[str, Any] = {}
    for gate, x, h in zip("ifgo", np.split(w_ih, 4), np.split(w_hh, 4), strict=True):
        parts |= {f"{prefix}.matrix.{gate}.x": x, f"{prefix}.matrix.{gate}.h": h}
    biases = zip("ifgo", np.split(b_ih + b_hh, 4), strict=True)
    return parts | {f"{prefix}.bias.{gate}": bias for gate, bias in biases}


def gru_layer(prefix: str, w_ih: np.ndarray, w_hh: np.ndarray, b_ih: np.ndarray, b_hh: np.ndarray) -> dict[str, Any]:
    """A layer whose rows are r, z, n; the candidate's two halves stay apart, for the reset gate scales only one."""
    (xr, xz, nx), (hr, hz, nh) = np.split(w_ih, 3), np.split(w_hh, 3)
    matrices = {"r.x": xr, "r.h": hr, "z.x": xz, "z.h": hz, "nx.x": nx, "nh.h": nh}
    (xr, xz, nx), (hr, hz, nh) = np.split(b_ih, 3), np.split(b_hh, 3)
    biases = {"r": xr + hr, "z": xz + hz, "nx": nx, "nh": nh}
    parts = {f"{prefix}.matrix.{name}": each for name, each in matrices.items()}
    return parts | {f"{prefix}.bias.{name}": each for name, each in biases.items()}


# --- all of it -----------------------------------------------------------------------------------------------------


def write_silero(folder: Path, weights: Path, inputs: Path) -> None:
    """The detector's LSTM and last convolution; a sentence between silence and noise as loud as the voice."""
    tensors = safetensors_of(source(folder, "silero"))
    cell = (tensors[f"lstm_cell.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    output = {"output.weight": tensors["final_conv.weight"][:, :, 0], "output.bias": tensors["final_conv.bias"]}
    path = weights / "silero-vad-16k.safetensors"
    write_safetensors(path, lstm_layer("layers.0.forward", *cell) | output, source="silero-vad 6.2.3, MIT")
    (weights / "silero-vad-16k.LICENSE").write_bytes(source(folder, "silero licence"))
    voice = recording(source(folder, "austen 0930"))
    voice = voice[: len(voice) // 512 * 512]
    random = np.random.default_rng(1)
    silence = [random.standard_normal(24 * 512) * 1e-4 for _ in range(2)]
    noise = random.standard_normal(24 * 512) * np.sqrt(np.mean(np.square(voice)))
    sound = np.concatenate([silence[0], voice, silence[1], noise])
    speech = f"24:{24 + len(voice) // 512}"
    x = silero_frames(tensors, sound)
    write_safetensors(inputs / "silero-speech.safetensors", {"x": x}, speech=speech)


def write_g2p(folder: Path, weights: Path) -> None:
    """Encoder and decoder of the speller, each with its embedding; the decoder with its output layer."""
    with np.load(io.BytesIO(source(folder, "g2p")), allow_pickle=False) as archive:
        tensors = dict(archive)
    for name, tag in (("encoder", "enc"), ("decoder", "dec")):
        cell = (tensors[f"{tag}_{part}"] for part in ("w_ih", "w_hh", "b_ih", "b_hh"))
        parts = gru_layer("layers.0.forward", *cell) | {"embedding": tensors[f"{tag}_emb"]}
        if name == "decoder":
            parts |= {"output.weight": tensors["fc_w"], "output.bias": tensors["fc_b"]}
        write_safetensors(weights / f"g2p-en-{name}.safetensors", parts, source="g2p-en 2.1.0, Apache-2.0")
        (weights / f"g2p-en-{name}.LICENSE").write_bytes(source(folder, "g2p licence"))


def write_resemblyzer(folder: Path, weights: Path, inputs: Path) -> None:
    """The three LSTM layers and the linear layer; 1.6 s each of two sentences of one voice and one of another."""
    tensors = old_torch_of(source(folder, "resemblyzer"))
    parts = {"output.weight": tensors["linear.weight"], "output.bias": tensors["linear.bias"]}
    for layer in range(3):
        cell = (tensors[f"lstm.{name}_l{layer}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        parts |= lstm_layer(f"layers.{layer}.forward", *cell)
    write_safetensors(weights / "resemblyzer.safetensors", parts, source="Resemblyzer 0.1.4, Apache-2.0")
    (weights / "resemblyzer.LICENSE").write_bytes(source(folder, "resemblyzer licence"))
    sounds = {"speech": "austen 0870", "same-voice": "austen 0930", "other-voice": "go forward"}
    for name, sound in sounds.items():
        samples = recording(source(folder, sound))
        x = mel_frames(samples)[40:200]
        write_safetensors(inputs / f"resemblyzer-{name}.safetensors", {"x": x})


def main(folder: Path) -> None:
    """Write everything."""
    weights, inputs = MODELS / "weights", MODELS / "inputs"
    write_silero(folder, weights, inputs)
    write_g2p(folder, weights)
    write_resemblyzer(folder, weights, inputs)
    (inputs / "speech.LICENSE").write_bytes(source(folder, "sound licence"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
