"""Weights in files: lstmsim's own layout is written and read; a file of another framework goes to its reader.

The layout serves any cell: `layers.{n}.{forward|backward}.matrix.{sum}.{vector}` [units, width], `.bias.{sum}` and
`.parameter.{name}` [units]. States before the first step that the network itself fixes are `.initial.{state}` [units].
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import listed, nearest, show
from lstmsim.importers.imported import ImportedModel
from lstmsim.importers.pytorch.names import Group, groups, import_groups, layers_of, network_of, whole_weights
from lstmsim.importers.tensors import Stored, floats, read_safetensors, shape_text, write_safetensors
from lstmsim.model.model import Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights, States, expected_shapes

_DIRECTIONS = ("forward", "backward")
_NAME = re.compile(r"layers\.\d+\.(forward|backward)\.(matrix|bias|parameter|initial)\.")
#: (layer, direction, key as in `expected_shapes`)
_Place = tuple[int, int, tuple[str, ...]]
#: Endings of the files that can be imported.
SUFFIXES = (".onnx", ".safetensors", ".keras", ".h5", ".hdf5", ".pt", ".jit", ".pth", ".ckpt", ".bin", ".pth.tar")
#: The cells that an RNN can be if its file does not hold its function.
RNN_CELLS = ("rnn", "rnn-relu")


def _places(model: Model) -> dict[str, tuple[_Place, tuple[int, ...]]]:
    places = {}
    for number, layer in enumerate(model.layers):
        states = {("initial", name): (layer.width(name),) for name in layer.cell.states}
        for direction in range(layer.directions):
            for key, shape in (*expected_shapes(layer).items(), *states.items()):
                name = f"layers.{number}.{_DIRECTIONS[direction]}.{'.'.join(key)}"
                places[name] = ((number, direction, key), shape)
    return places


def canonical_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Give the name and shape of every tensor that a model's file can hold."""
    return {name: shape for name, (_, shape) in _places(model).items()}


def wrong_shape(path: str, model: Model) -> str:
    """Say which tensor of a file in lstmsim's layout has another shape than a model needs; empty if there is none."""
    try:
        tensors = read_safetensors(path, numbers=False).tensors
    except InputError:  # `read_weights` will name what is wrong
        return ""
    for name, shape in canonical_shapes(model).items():
        if name in tensors and tensors[name].shape != shape:
            return f"{name} has shape {shape_text(tensors[name].shape)}, expected {shape_text(shape)}"
    return ""


def canonical_network(tensors: Mapping[str, Stored], model: Model) -> Network:
    """Build a network from the tensors of a file; one `InputError` for all that are missing, wrong or unknown.

    A name that does not begin with `layers.` is no part of the network (an embedding, say) and is left alone.
    """
    places = _places(model)
    mistakes = [
        Mistake(name, f"is missing, expected shape {shape_text(shape)}")
        for name, ((_, _, key), shape) in places.items()
        if name not in tensors and key[0] not in ("bias", "initial")
    ]
    unknown = [name for name in tensors if name not in places and name.startswith("layers.")]
    for count, name in enumerate(unknown):
        # A search for near misses among thousands of names takes long; a few show the pattern.
        hint = nearest(name, places) if count < 5 else ""
        mistakes.append(Mistake(show(name), f"belongs to no weight of model {show(model.name)}{hint}"))
    parts = _arrays(tensors, places, mistakes)
    sides = [[(number, side) for side in range(layer.directions)] for number, layer in enumerate(model.layers)]
    initial = {
        side: {key[1]: each for key, each in arrays.items() if key[0] == "initial"} for side, arrays in parts.items()
    }
    given = {side: states for side, states in initial.items() if states}
    return Network(model, tuple(tuple(_pass(parts[side]) for side in both) for both in sides), given)


def _arrays(
    tensors: Mapping[str, Stored], places: Mapping[str, tuple[_Place, tuple[int, ...]]], mistakes: list[Mistake]
) -> dict[tuple[int, int], dict[tuple[str, ...], Floats]]:
    """Arrays by layer and direction, then by key; one `InputError` for `mistakes` and all wrong tensors."""
    try:
        arrays = floats(tensors, {name: shape for name, (_, shape) in places.items()})
    except InputError as error:
        raise InputError([*error.mistakes, *mistakes]) from None
    refuse(mistakes)
    parts: dict[tuple[int, int], dict[tuple[str, ...], Floats]] = {}
    for name, ((number, direction, key), _) in places.items():
        if name in arrays:
            parts.setdefault((number, direction), {})[key] = arrays[name]
    return parts


def _pass(arrays: Mapping[tuple[str, ...], Floats]) -> PassWeights:
    return PassWeights(
        {(key[1], key[2]): each for key, each in arrays.items() if key[0] == "matrix"},
        {key[1]: each for key, each in arrays.items() if key[0] == "bias"},
        {key[1]: each for key, each in arrays.items() if key[0] == "parameter"},
    )


def write_weights(network: Network, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write a network's numbers as safetensors in lstmsim's layout, float64 as F64 and all others as F32.

    metadata: texts on the file (source, licence).
    """
    tensors = {}
    for name, ((layer, direction, (part, *key)), _) in _places(network.model).items():
        weights = network.passes[layer][direction]
        array: Floats | None
        if part == "matrix":
            array = weights.matrices[key[0], key[1]]
        elif part == "initial":
            array = network.initial.get((layer, direction), {}).get(key[0])
        else:
            array = (weights.biases if part == "bias" else weights.parameters).get(key[0])
        if array is not None:
            tensors[name] = array
    write_safetensors(path, tensors, metadata)


def read_weights(path: str | os.PathLike[str], model: Model) -> Network:
    """Read a model's numbers from a safetensors file in lstmsim's layout or with PyTorch's names.

    `InputError` with every tensor that is missing, unknown, of the wrong shape or not finite.
    """
    name = os.fspath(path)
    tensors = read_safetensors(name).tensors
    try:
        if any(_NAME.match(each) for each in tensors):
            return canonical_network(tensors, model)
        tensors = whole_weights(tensors)
        modules = groups(tensors)
        if modules:
            return network_of(tensors, _fitting(tensors, modules, model), model)
        some = next(iter(canonical_shapes(model)))
        raise InputError(
            f"holds no tensor of model {show(model.name)}: expected names like {some} or PyTorch's weight_ih_l0; "
            f"it has {listed([show(each) for each in list(tensors)[:3]], 'and')}"
        )
    except InputError as error:
        raise placed(error, name) from None


def read_states(path: str | os.PathLike[str], model: Model) -> States:
    """Read the states before the first step from a safetensors file with tensors like `layers.0.forward.initial.h`.

    `InputError` with every tensor that is unknown, of the wrong shape or not finite.
    """
    name = os.fspath(path)
    tensors = read_safetensors(name).tensors
    try:
        # read the initial states in a file that holds nothing else
        places = {name: place for name, place in _places(model).items() if place[0][2][0] == "initial"}
        if not tensors:
            raise InputError(f"holds no initial state: expected names like {next(iter(places))}")
        unknown = [name for name in tensors if name not in places]
        # a search for near misses among thousands of names takes long; a few show the pattern
        mistakes = [
            Mistake(show(name), f"is no initial state of model {show(model.name)}{nearest(name, places)}")
            for name in unknown[:5]
        ]
        if len(unknown) > 5:
            mistakes.append(Mistake("", f"{len(unknown) - 5} more tensors are no initial states of this model"))
        parts = _arrays(tensors, places, mistakes)
        return {side: {key[1]: array for key, array in arrays.items()} for side, arrays in parts.items()}
    except InputError as error:
        raise placed(error, name) from None


def _fitting(tensors: Mapping[str, Stored], modules: list[Group], model: Model) -> Group:
    """The only module of a file, or the only module whose shapes are those of the model."""
    if len(modules) == 1:
        return modules[0]
    fitting, same = [], show(model.name)
    function = next((layer.cell.name for layer in model.layers if layer.cell.name in RNN_CELLS), "rnn")
    for group in modules:
        try:
            fitting += [group] if layers_of(tensors, group, function) == model.layers else []
        except InputError:
            continue
    if len(fitting) == 1:
        return fitting[0]
    how = f"several of which have the shapes of model {same}" if fitting else f"none of which has those of model {same}"
    titles = listed([show(group.title) for group in fitting or modules][:8], "and")
    raise InputError(
        f"holds {len(modules)} recurrent modules, {how}: {titles}; lstmsim import writes one file for each"
    )


def import_weights(
    path: str | os.PathLike[str], *, weights: bool = True, heads: bool = False, cell: str | None = None
) -> list[ImportedModel]:
    """Import every recurrent model in a file of another framework. Nothing in a file is ever executed.

    path: the file; its suffix is one of `SUFFIXES` and tells the format.
    weights: False reads shapes only.
    heads: whether plain products after the last recurrent layer become `dense` layers; only ONNX files say what such
        a product reads.
    cell: `rnn` (tanh) or `rnn-relu`, the cell of an RNN if the file does not hold its function.

    >>> import_weights("speech.txt")
    Traceback (most recent call last):
    lstmsim.InputError: speech.txt: expected a file name that ends in .onnx, .safetensors, .keras, .h5, .hdf5, \
.pt, .jit, .pth, .ckpt, .bin or .pth.tar
    """
    name = os.fspath(path)
    if not name.lower().endswith(SUFFIXES):
        raise InputError(Mistake(name, f"expected a file name that ends in {listed(SUFFIXES)}"))
    if cell is not None and cell not in RNN_CELLS:
        raise InputError(Mistake("--cell", f"expected {listed(RNN_CELLS)}, got {show(cell)}"))
    models = _imported(name, os.path.splitext(name)[1].lower(), weights, heads, cell)
    return [replace(each, files=(os.path.abspath(name), *each.files)) for each in models]


def _imported(name: str, suffix: str, weights: bool, heads: bool, cell: str | None) -> list[ImportedModel]:
    if suffix == ".onnx":
        from lstmsim.importers.onnx.file import read_onnx

        if cell is not None:
            raise InputError(Mistake(name, f"an ONNX file says what its RNNs are; leave out --cell {cell}"))
        return list(read_onnx(name, weights=weights, heads=heads).models)
    if heads:
        raise InputError(
            Mistake(name, f"heads can be taken from .onnx only: {suffix} does not say what a product reads")
        )
    if suffix == ".safetensors":
        tensors = read_safetensors(name).tensors
        if any(_NAME.match(each) for each in tensors):
            model = f"{os.path.splitext(name)[0]}.yaml"
            raise InputError(
                Mistake(name, f"holds the weights of a model file of lstmsim, like {model}: use that file")
            )
        try:
            return import_groups(tensors, name, weights=weights, cell=cell)
        except InputError as error:
            raise placed(error, name) from None
    if suffix in (".keras", ".h5", ".hdf5"):
        from lstmsim.importers.keras.files import import_keras

        return import_keras(name, weights=weights, cell=cell)
    from lstmsim.importers.pytorch.modules import import_pytorch

    return import_pytorch(name, weights=weights, cell=cell)
