"""lstmsim's own layout of weight files, for any cell: tensors called by layer, direction and the cell's own names.

`layers.{n}.{forward|backward}.matrix.{sum}.{vector}` [units, width], `.bias.{sum}` and `.parameter.{name}` [units].
If the network itself fixes the states before the first step, they are `.initial.{state}` [units].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import nearest, show
from lstmsim.importers.weights.tensors import Stored, floats, shape_text
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.weights import Floats, Network, PassWeights, States, expected_shapes

__all__ = ["canonical_network", "canonical_shapes", "canonical_states", "canonical_tensors", "is_canonical"]

_DIRECTIONS = ("forward", "backward")
_NAME = re.compile(r"layers\.\d+\.(forward|backward)\.(matrix|bias|parameter|initial)\.")
#: (layer, direction, key as in `expected_shapes`)
_Place = tuple[int, int, tuple[str, ...]]


def is_canonical(names: Iterable[str]) -> bool:
    """Say whether any tensor's name has the form of this layout.

    >>> is_canonical(["layers.0.forward.bias.i"]), is_canonical(["lstm.weight_ih_l0"])
    (True, False)
    """
    return any(_NAME.match(name) for name in names)


def _places(model: Model) -> dict[str, tuple[_Place, tuple[int, ...]]]:
    return {
        f"layers.{number}.{_DIRECTIONS[direction]}.{'.'.join(key)}": ((number, direction, key), shape)
        for number, layer in enumerate(model.layers)
        for direction in range(layer.directions)
        for key, shape in {**expected_shapes(layer), **_state_shapes(layer)}.items()
    }


def _state_shapes(layer: Layer) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {("initial", name): (layer.width(name),) for name in layer.cell.states}


def canonical_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Give the name and shape of every tensor that a model's file can hold.

    A bias or an initial state that the file leaves out is 0.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> canonical_shapes(Model("m", (Layer(cell("rnn"), 3, 2),)))["layers.0.forward.matrix.a.x"]
    (3, 2)
    """
    return {name: shape for name, (_, shape) in _places(model).items()}


def canonical_tensors(network: Network) -> dict[str, Floats]:
    """Give a network's numbers under the names of this layout."""
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
    return tensors


def canonical_network(tensors: Mapping[str, Stored], model: Model) -> Network:
    """Build a network from the tensors of a file.

    tensors: name to tensor. A name that does not begin with `layers.` stands beside the network (an embedding, a layer
        behind the network) and is left alone.
    model: the shapes.

    One `InputError` for all tensors that are missing, wrong or unknown.
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
        mistakes.append(Mistake(show(name), f"belongs to nothing in model {show(model.name)}{hint}"))
    arrays: dict[str, Floats] = {}
    try:
        arrays = floats(tensors, {name: shape for name, (_, shape) in places.items()})
    except InputError as error:
        mistakes = [*error.mistakes, *mistakes]
    if mistakes:
        raise InputError(mistakes)
    parts: dict[tuple[int, int], dict[tuple[str, ...], Floats]] = {}
    for name, ((number, direction, key), _) in places.items():
        if name in arrays:
            parts.setdefault((number, direction), {})[key] = arrays[name]
    sides = [[(number, side) for side in range(layer.directions)] for number, layer in enumerate(model.layers)]
    initial = {
        side: {key[1]: each for key, each in arrays.items() if key[0] == "initial"} for side, arrays in parts.items()
    }
    given = {side: states for side, states in initial.items() if states}
    return Network(model, tuple(tuple(_pass(parts[side]) for side in both) for both in sides), given)


def canonical_states(tensors: Mapping[str, Stored], model: Model) -> States:
    """Read the initial states in a file that holds nothing else.

    tensors: name to tensor.
    model: the shapes.

    `InputError` with every tensor that is wrong or unknown.

    >>> from lstmsim.model.cells import cell
    >>> canonical_states({}, Model("m", (Layer(cell("rnn"), 3, 2),)))
    Traceback (most recent call last):
    lstmsim.InputError: holds no initial state: expected names like layers.0.forward.initial.h
    """
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
    arrays: dict[str, Floats] = {}
    try:
        arrays = floats(tensors, {name: shape for name, (_, shape) in places.items()})
    except InputError as error:
        mistakes = [*error.mistakes, *mistakes]
    if mistakes:
        raise InputError(mistakes)
    states: dict[tuple[int, int], dict[str, Floats]] = {}
    for name, array in arrays.items():
        layer, direction, key = places[name][0]
        states.setdefault((layer, direction), {})[key[1]] = array
    return states


def _pass(arrays: Mapping[tuple[str, ...], Floats]) -> PassWeights:
    return PassWeights(
        {(key[1], key[2]): each for key, each in arrays.items() if key[0] == "matrix"},
        {key[1]: each for key, each in arrays.items() if key[0] == "bias"},
        {key[1]: each for key, each in arrays.items() if key[0] == "parameter"},
    )
