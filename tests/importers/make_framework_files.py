"""Makes `tests/data/frameworks.zip`: networks saved by PyTorch and Keras themselves, with what they compute.

Run once with each framework installed, into one folder, then pack the folder:

    KERAS_BACKEND=torch python make_framework_files.py keras3 FOLDER    (keras 3.15, torch 2.13; or numpy)
    python make_framework_files.py keras2 FOLDER                        (tf_keras 2.21)
    python make_framework_files.py torch FOLDER                         (torch 2.13)
    python make_framework_files.py pack FOLDER

Every network NAME.SUFFIX has its frames and outputs in NAME.npz: `x`, and `y_LAYER` for each layer looked at.
"""

from __future__ import annotations

import argparse
import collections
import functools
import pathlib
import sys
import warnings
import zipfile
from typing import Any

import numpy as np

STEPS, WIDTH = 5, 3


def frames(*shape: int) -> np.ndarray:
    """Frames that are the same in every run."""
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def keras_files(prefix: str, folder: pathlib.Path) -> None:
    """Whole models as .h5 and .keras, and weights alone."""
    if prefix == "keras2":
        import tensorflow as tf
        import tf_keras as keras

        constant: Any = tf.constant
    else:
        import keras

        constant = keras.ops.convert_to_tensor
    layers = keras.layers

    def save(name: str, model: Any, outputs: dict[str, Any], kinds: tuple[str, ...] = ("h5", "keras")) -> None:
        for at, layer in enumerate(model.layers):
            drawn = [np.random.default_rng([at, n]).normal(0, 0.5, w.shape) for n, w in enumerate(layer.get_weights())]
            layer.set_weights(drawn)
        for kind in kinds:
            (model.save if kind in ("h5", "keras") else model.save_weights)(folder / f"{prefix}-{name}.{kind}")
        inputs = [frames(1, *each.shape[1:]) for each in model.inputs]
        computed = keras.Model(model.inputs, list(outputs.values())).predict(inputs, verbose=0)
        computed = computed if isinstance(computed, list) else [computed]
        arrays = {f"x{at}": each[0] for at, each in enumerate(inputs)}
        arrays |= {f"y_{key}": each[0] for key, each in zip(outputs, computed, strict=True)}
        kind = ".weights" if kinds[0] == "weights.h5" else ""
        np.savez(folder / f"{prefix}-{name}{kind}.npz", **arrays)

    def chain(name: str, *inner: Any, kinds: tuple[str, ...] = ("h5", "keras")) -> None:
        model = keras.Sequential([layers.Input((STEPS, WIDTH)), *inner])
        outputs = {each.name: each.output for each in model.layers if not isinstance(each, keras.Sequential)}
        save(name, model, outputs, kinds)

    def lstm(units: int, **options: Any) -> Any:
        return layers.LSTM(units, return_sequences=True, **options)

    both = layers.Bidirectional(lstm(2), name="c")
    linear = layers.Activation("linear")
    chain("stack", lstm(3, name="a"), layers.Dropout(0.5), layers.GRU(4, return_sequences=True, name="b"), linear, both)
    old = layers.GRU(3, return_sequences=True, reset_after=False, use_bias=False, name="b")
    relu = keras.Sequential([layers.Input((STEPS, 3)), layers.SimpleRNN(3, activation="relu", name="d")], name="inner")
    chain(
        "apart",
        lstm(3, name="a"),
        layers.Dense(3, name="e"),
        old,
        layers.MaxPooling1D(1, name="f"),
        lstm(3, name="c"),
        relu,
    )
    chain("back", lstm(3, name="a"), layers.GRU(3, return_sequences=True, go_backwards=True, name="b"))
    chain("sum", layers.Bidirectional(lstm(2), merge_mode="sum", name="a"))
    cells = [layers.LSTMCell(4), layers.GRUCell(2, use_bias=False), layers.LSTMCell(3, activation="softsign")]
    one = layers.RNN(layers.LSTMCell(3), return_sequences=True, name="b")
    two = layers.Bidirectional(layers.RNN(layers.SimpleRNNCell(2), return_sequences=True), name="c")
    chain("cells", layers.RNN(cells, return_sequences=True, name="a"), one, two)
    simple = layers.SimpleRNN(2, activation="linear", return_sequences=True, name="c")
    rates = layers.GRU(3, activation="elu", recurrent_activation="hard_sigmoid", return_sequences=True, name="b")
    chain("functions", lstm(3, activation="relu", recurrent_activation="softplus", name="a"), rates, simple)
    chain("hard", lstm(2, recurrent_activation="hard_sigmoid", name="a"))
    chain(
        "alone",
        lstm(3, name="a"),
        layers.Bidirectional(layers.GRU(2, return_sequences=True), name="b"),
        kinds=("weights.h5",),
    )
    if prefix == "keras2":
        # Named .h5 alone, Keras 2 writes its older layout.
        model = keras.Sequential([layers.Input((STEPS, WIDTH)), lstm(3, name="a")])
        model.save_weights(folder / "keras2-older.h5")
        x = frames(1, STEPS, WIDTH)
        np.savez(folder / "keras2-older.npz", x0=x[0], y_a=model.predict(x, verbose=0)[0])
    own, other, state = layers.Input((STEPS, WIDTH)), layers.Input((STEPS, 2)), layers.Input((3,))
    sequence, h, c = layers.LSTM(3, return_sequences=True, return_state=True, name="a")(own)
    decoder = lstm(3, name="b")(other, initial_state=[h, c])
    given = layers.GRU(3, return_sequences=True, name="c")(other, initial_state=state)
    fixed = [constant(np.array([values], np.float32)) for values in ([0.1, -0.2], [0.3, 0.4], [0.5, -0.6], [0.7, 0.8])]
    apart = layers.Bidirectional(lstm(2), name="d")(sequence, initial_state=fixed)
    outputs = {"a": sequence, "b": decoder, "c": given, "d": apart}
    save("states", keras.Model([own, other, state], [decoder, given, apart]), outputs)


def torch_files(folder: pathlib.Path) -> None:
    """State dictionaries, checkpoints, whole modules, TorchScript."""
    import torch
    from torch import nn
    from torch.nn import utils
    from torch.nn.utils import parametrizations, prune

    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    x = torch.tensor(frames(STEPS, 1, WIDTH))

    def expected(name: str, module: Any) -> None:
        with torch.no_grad():
            y = module.eval()(x)
        y = y[0] if isinstance(y, tuple) else y
        np.savez(folder / f"torch-{name}.npz", x0=x[:, 0].numpy(), y=y[:, 0].numpy())

    def state(name: str, module: Any) -> None:
        expected(name, module)
        torch.save(module.state_dict(), folder / f"torch-{name}.pt")

    relu = nn.RNN(WIDTH, 3, num_layers=2, nonlinearity="relu").eval()
    state("relu", relu)
    torch.save(relu, folder / "torch-relu-whole.pt")
    torch.save(relu, folder / "torch-relu-old.bin", _use_new_zipfile_serialization=False)
    torch.jit.script(relu).save(folder / "torch-relu-script.pt")
    torch.jit.trace(relu, x).save(folder / "torch-relu-trace.pt")
    for at, how in enumerate((0, 1, None)):
        for word, norm in (("old", utils.weight_norm), ("new", parametrizations.weight_norm)):
            module = norm(norm(nn.LSTM(WIDTH, 3), "weight_hh_l0", dim=how), "weight_ih_l0", dim=how)
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.mul_(1.3).add_(0.05)
            state(f"norm-{word}-{at}", module)
    for word, spectral in (("old", utils.spectral_norm), ("new", parametrizations.spectral_norm)):
        module = spectral(nn.GRU(WIDTH, 3, bidirectional=True), "weight_hh_l0_reverse")
        module(x)
        state(f"spectral-{word}", module)
    state("pruned", prune.random_unstructured(nn.GRU(WIDTH, 3), "weight_hh_l0", 0.4))
    state("orthogonal", parametrizations.orthogonal(nn.LSTM(WIDTH, 3), "weight_hh_l0"))
    layer = nn.LSTM(WIDTH, 4, proj_size=2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(x)[0].sum().backward()
    optimizer.step()
    expected("lightning", layer)
    hyper = {"args": argparse.Namespace(a=1, where=pathlib.PurePosixPath("/x")), "f": functools.partial(torch.relu)}
    hyper |= {"np": np.arange(3), "set": {1, 2}, "slice": slice(1, 2), "key": {(1, 2): 3}, "kind": torch.float32}
    hyper |= {"layer": nn.ReLU(), "opt": torch.optim.Adam, "more": collections.defaultdict(list, {"a": [1]})}
    weights = {f"model.lstm.{name}": tensor for name, tensor in layer.state_dict().items()}
    whole = {"state_dict": weights, "hyper_parameters": hyper, "optimizer_states": [optimizer.state_dict()]}
    torch.save(whole, folder / "torch-lightning.ckpt")
    packed = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.LSTM(WIDTH, 3)), {nn.LSTM})
    torch.save(packed.state_dict(), folder / "torch-packed.pt")
    torch.jit.script(packed).save(folder / "torch-packed-script.pt")


def pack(folder: pathlib.Path) -> None:
    """One zip file of everything in the folder."""
    target = pathlib.Path(__file__).parent.parent / "data" / "frameworks.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.iterdir()):
            archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    what, where = sys.argv[1], pathlib.Path(sys.argv[2])
    where.mkdir(exist_ok=True)
    if what == "pack":
        pack(where)
    elif what == "torch":
        torch_files(where)
    else:
        keras_files(what, where)
