"""The instructions of a job on a row-wise NPU, before they are timed: blocks of chains and loads that repeat.

A chain begins with a matrix-vector product or with a vector that is read from the register file. It passes the two
multi-function units, each with at most an addition and a multiplication by another vector. Then its result is written
back. The chains of `dense`, `rnn`, `gru-lbr0` and `lstm` and their order are from the Intel NPU's compiler
(intel/fpga-npu, compiler/npu_layers.py). The compiler has no `gru`, whose reset gate comes after the product: its
chains are an assumption. Biases and activations are part of the multi-function units' work and take no time.

A recurrent layer is three blocks: the first x is loaded; all steps but the last, each of which loads the next x
between its two parts; the last step, whose h leaves the machine if no layer is above. A batch that does not fit at
once is worked on in rounds. A stack of dense layers is one block: layer by layer, each layer for all rounds. That
compiler keeps only the last h of a layer. So stacks of recurrent layers, both directions, and `layer_order: step` are
an assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lstmsim.model.model import Layer, Model


@dataclass(frozen=True)
class Product:
    """A matrix of `rows` x `columns` times the vector named `vector`."""

    vector: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Chain:
    """One chain of elements that go through the vector pipe."""

    label: str  # name for people
    size: int  # how many elements
    product: Product | None = None  # the product that gives the elements; None if they are read
    read: str = ""  # vector of the register file that gives the elements, if there is no product
    # first, second: vectors that the first and the second multi-function unit combine the elements with
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()  # names of the result; empty if it only leaves the machine
    matrix: bool = False  # whether the result is also written to the matrix-vector unit
    output: bool = False  # whether the result leaves the machine


@dataclass(frozen=True)
class Load:
    """A vector that comes from outside."""

    writes: str  # its name
    size: int  # how many elements
    matrix: bool = True  # whether it is for the matrix-vector unit; else it is for the register file
    frame: bool = True  # whether it is an input frame
    ahead: int = 0  # how many steps the frame is after the step that is worked on


@dataclass(frozen=True)
class CellProgram:
    """The chains of a step. Vectors are named within the layer: `x`, `h`, and the names that chains write."""

    x_part: tuple[Chain, ...]  # chains that need x alone; the next x is loaded after them
    h_part: tuple[Chain, ...]  # chains that need results of the step before
    constants: tuple[str, ...] = ()  # vectors that are loaded once


def _products(layer: Layer, gates: str) -> tuple[Chain, ...]:
    """The product of each gate's input matrix, kept until the gate's recurrent product comes."""
    n, size = layer.input, layer.hidden
    return tuple(Chain(f"x {g}", size, Product("x", size, n), writes=(f"x{g}",)) for g in gates)


def _dense(layer: Layer) -> CellProgram:
    product = Product("x", layer.hidden, layer.input)
    return CellProgram((Chain("h", layer.hidden, product, writes=("h",), matrix=True),), ())


def _rnn(layer: Layer) -> CellProgram:
    n = layer.hidden
    h = Chain("h", n, Product("h", n, n), first=("xh",), writes=("h",), matrix=True)
    return CellProgram(_products(layer, "h"), (h,))


def _gru(layer: Layer) -> CellProgram:
    """The reset gate multiplies the product, n = tanh(x n + r * (W h)): one vector less for the matrix-vector unit."""
    n = layer.hidden
    w = Product("h", n, n)
    return CellProgram(
        _products(layer, "zrn"),
        (
            Chain("z", n, w, first=("xz",), writes=("z",)),
            Chain("(1-z)h", n, read="ones", first=("z",), second=("h",), writes=("zh",)),
            Chain("r", n, w, first=("xr",), writes=("r",)),
            Chain("n", n, w, first=("r",), second=("xn",), writes=("n",)),
            Chain("h", n, read="n", first=("z",), second=("zh",), writes=("h",), matrix=True),
        ),
        constants=("ones",),
    )


def _gru_lbr0(layer: Layer) -> CellProgram:
    n = layer.hidden
    return CellProgram(
        _products(layer, "zrc"),
        (
            Chain("z", n, Product("h", n, n), first=("xz",), writes=("z",)),
            Chain("(1-z)h", n, read="ones", first=("z",), second=("h",), writes=("zh",)),
            Chain("rh", n, Product("h", n, n), first=("xr",), second=("h",), writes=("rh",), matrix=True),
            Chain("c", n, Product("rh", n, n), first=("xc",), writes=("c",)),
            Chain("h", n, read="c", first=("z",), second=("zh",), writes=("h",), matrix=True),
        ),
        constants=("ones",),
    )


def _lstm(layer: Layer) -> CellProgram:
    n = layer.hidden
    w = Product("h", n, n)
    return CellProgram(
        _products(layer, "fcio"),
        (
            Chain("f", n, w, first=("xf",), writes=("f",)),
            Chain("i", n, w, first=("xi",), writes=("i",)),
            Chain("o", n, w, first=("xo",), writes=("o",)),
            Chain("i g", n, w, first=("xc",), second=("i",), writes=("ig",)),
            Chain("c", n, read="c", first=("f",), second=("ig",), writes=("c",)),
            Chain("h", n, read="c", first=("o",), writes=("h",), matrix=True),
        ),
    )


#: The program of each built-in cell that a row-wise NPU can run, by its name.
PROGRAMS: Mapping[str, Callable[[Layer], CellProgram]] = {
    "dense": _dense,
    "rnn": _rnn,
    "gru": _gru,
    "gru-lbr0": _gru_lbr0,
    "lstm": _lstm,
}


@dataclass(frozen=True)
class Item:
    """A chain or load of a layer."""

    what: Chain | Load  # the chain or load
    cell: str  # name of the layer's cell
    place: tuple[int, int]  # layer, direction
    own: str  # prefix of all names of vectors but x
    x: tuple[str, ...]  # vectors that the name x stands for
    batch: int  # how many inferences are worked on
    ends: bool = False  # whether it is the last item of the job


@dataclass(frozen=True)
class Block:
    """Items that repeat, like a `lstmsim.program.program.Phase`.

    matched: vectors that an earlier block with as many repeats, or with one, has written at the same step.
    """

    items: tuple[Item, ...]
    repeat: int = 1
    first_step: int = 0
    mirrored: bool = False
    matched: frozenset[str] = frozenset()


@lru_cache(maxsize=64)
def plan(model: Model, steps: int, batch: int, at_once: int) -> Sequence[Block]:
    """The blocks of a job; points of a sweep that differ in numbers of the core share them."""
    rounds = [min(at_once, batch - done) for done in range(0, batch, at_once)]
    if not any(layer.cell.recurrent for layer in model.layers):
        blocks = _dense_blocks(model, steps, rounds)
    else:
        order = _by_layer if model.layer_order == "layer" else _by_step
        blocks = [block for number, size in enumerate(rounds) for block in order(model, steps, number, size)]
    *items, last = blocks[-1].items
    blocks[-1] = replace(blocks[-1], items=(*items, replace(last, ends=True)))
    return blocks


def _dense_blocks(model: Model, steps: int, rounds: list[int]) -> list[Block]:
    """Every layer for all inputs: all rounds of a layer have one name, so the next layer waits for the last of them.

    One step is one block, as the compiler sees it; of several, each layer repeats.
    """
    layers = [_dense_items(model, number, rounds) for number in range(len(model.layers))]
    if steps == 1:
        return [Block(tuple(item for items in layers for item in items))]
    *below, top = layers
    return [*(Block(items, steps) for items in below), Block(top, steps - 1), Block(top, 1, steps - 1)]


def _dense_items(model: Model, number: int, rounds: list[int]) -> tuple[Item, ...]:
    layer, items = model.layers[number], []
    (chain,) = PROGRAMS[layer.cell.name](layer).x_part
    if number == len(model.layers) - 1:
        chain = replace(chain, matrix=False, output=True, writes=())
    for size in rounds:
        item = Item(chain, layer.cell.name, (number, 0), f"{number}.", (f"{number - 1}.h",), size)
        if number == 0:
            items.append(replace(item, what=Load("x", layer.input), own=""))
            item = replace(item, x=("x",))
        items.append(item)
    return tuple(items)


@dataclass(frozen=True)
class _Pass:
    """One direction of a layer in one round."""

    beginning: tuple[Item, ...]  # constants, and the first x
    x_part: tuple[Item, ...]  # items of a step before the next x is loaded
    following: tuple[Item, ...]  # the load of the next x
    h_part: tuple[Item, ...]  # items of a step after it

    def step(self, *, more: bool, output: bool) -> tuple[Item, ...]:
        """The items of one step; `more`: another step follows; `output`: its h leaves the machine."""
        items = (*self.x_part, *(self.following if more else ()), *self.h_part)
        last = items[-1].what
        if output and isinstance(last, Chain):
            items = (*items[:-1], replace(items[-1], what=replace(last, output=True)))
        return items


def _prefix(number: int, layer: int, direction: int) -> str:
    return f"{number}.{layer}.{direction}."


def _pass(model: Model, layer: int, direction: int, number: int, size: int) -> _Pass:
    shape: Layer = model.layers[layer]
    program = PROGRAMS[shape.cell.name](shape)
    own = _prefix(number, layer, direction)
    below = range(model.layers[layer - 1].directions) if layer else ()
    x = tuple(_prefix(number, layer - 1, each) + "h" for each in below) or (own + "x",)
    item = Item(Load("x", shape.input), shape.cell.name, (layer, direction), own, x, size)
    # constants are loaded once, for all rounds
    constants = [Load(name, shape.hidden, matrix=False, frame=False) for name in program.constants if number == 0]
    return _Pass(
        (*[replace(item, what=constant, own="") for constant in constants], *(() if layer else (item,))),
        tuple(replace(item, what=chain) for chain in program.x_part),
        () if layer else (replace(item, what=Load("x", shape.input, ahead=1)),),
        tuple(replace(item, what=chain) for chain in program.h_part),
    )


def _by_layer(model: Model, steps: int, number: int, size: int) -> Iterator[Block]:
    for layer, shape in enumerate(model.layers):
        matched = frozenset() if layer == 0 else frozenset(_pass(model, layer, 0, number, size).x_part[0].x)
        for direction in range(shape.directions):
            each = _pass(model, layer, direction, number, size)
            top = layer == len(model.layers) - 1
            backward = shape.backward(direction)
            if each.beginning:
                yield Block(each.beginning, 1, steps - 1 if backward else 0, backward)
            # a dense layer on top gives a result at every step, a recurrent one its last h
            main = each.step(more=True, output=top and not shape.cell.recurrent)
            if steps > 1:
                yield Block(main, steps - 1, steps - 1 if backward else 0, backward, matched)
            yield Block(each.step(more=False, output=top), 1, 0 if backward else steps - 1, backward, matched)


def _by_step(model: Model, steps: int, number: int, size: int) -> Iterator[Block]:
    passes = [_pass(model, layer, 0, number, size) for layer in range(len(model.layers))]
    yield Block(tuple(item for each in passes for item in each.beginning))
    recurrent = model.layers[-1].cell.recurrent

    def step(*, more: bool) -> tuple[Item, ...]:
        whole = [each.step(more=more, output=False) for each in passes[:-1]]
        whole.append(passes[-1].step(more=more, output=not more or not recurrent))
        return tuple(item for items in whole for item in items)

    if steps > 1:
        yield Block(step(more=True), steps - 1)
    yield Block(step(more=False), 1, steps - 1)
