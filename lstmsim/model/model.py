"""Networks as stacks of recurrent layers (shapes, no numbers), and widths of the numbers of fixed point."""

from __future__ import annotations

from dataclasses import asdict, field
from functools import cached_property
from itertools import pairwise

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import hashed_once, record
from lstmsim.model import cell_rules
from lstmsim.model.cell import Cell, Stage, kinds

#: `layer`: all steps of layer 0, then of layer 1; `step`: step 0 of every layer, then step 1.
LAYER_ORDERS = ("layer", "step")


@hashed_once
@record
class Layer:
    """One recurrent layer.

    hidden: units (Lh).
    input: elements of x (Lx).
    bidirectional: whether a second pass runs backward over the sequence; the output is the h of both, forward first.
    projection: units of h if the cell projects h, else None.
    reverse: whether the only pass runs backward, from the last step to step 0; h is in the order of time all the same.

    >>> from lstmsim.model.cells import cell
    >>> Layer(cell("lstm"), hidden=512, input=256).macs_per_step
    1572864
    """

    cell: Cell
    hidden: int
    input: int
    bidirectional: bool = False
    projection: int | None = None
    reverse: bool = False

    @property
    def directions(self) -> int:
        """Passes over the sequence: 2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def backward(self, direction: int) -> bool:
        """Whether pass number `direction` runs from the last step to step 0."""
        return self.reverse or direction == 1

    def units(self, rows: str) -> int:
        """How many units (rows of each gate) `rows` stands for: `hidden` or `projection`."""
        return self.projection or 0 if rows == "projection" else self.hidden

    def width(self, name: str) -> int:
        """Elements of the vector, sum, node, state or parameter of that name."""
        if name == "x":
            return self.input
        rows = kinds(self.cell)[name]
        return 1 if rows == "scalar" else self.units(rows)

    def columns(self, stage: Stage) -> int:
        """Columns of a stage's matrix, without padding."""
        return sum(self.width(vector) for vector in stage.vectors)

    @property
    def output(self) -> int:
        """Elements that the layer above reads at each step."""
        return self.width("h") * self.directions

    @property
    def macs_per_step(self) -> int:
        """Useful multiply-accumulates of one step in all directions. Padding is never useful."""
        stages = self.cell.stages
        return self.directions * sum(len(s.gates) * self.units(s.rows) * self.columns(s) for s in stages)


@hashed_once
@record
class Model:
    """A stack of layers. Each layer reads the output of the layer below.

    layers: from the input to the output.
    layer_order: one of `LAYER_ORDERS`.
    weights: the file with the numbers, or empty; no shape and no cycle depends on it.
    states_from: where the states before the first step come from, in words, if the network computes them at run time
        (a decoder takes them from its encoder); empty if they are 0 or stand with the weights.
    states_whole: whether the states before the first step are all last states of another model, each in its place;
        then a job may begin with the last states of another job.
    network: the numbers (`lstmsim.model.numerics.weights.Network`) if they are in memory and in no file; else None.
    `InputError` if the shapes of the layers do not chain.

    >>> from lstmsim.model.cells import cell
    >>> lstm = cell("lstm")
    >>> Model("two", (Layer(lstm, 8, 4), Layer(lstm, 8, 8))).macs_per_step
    896
    """

    name: str
    layers: tuple[Layer, ...]
    layer_order: str = "layer"
    weights: str = field(default="", compare=False)
    states_from: str = field(default="", compare=False)
    states_whole: bool = field(default=True, compare=False)
    network: object | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        mistakes = self.mistakes()
        if mistakes:
            raise InputError([Mistake(f"model {self.name}: {place}", text) for place, text in mistakes])

    def mistakes(self) -> list[tuple[str, str]]:
        """List what is wrong with the stack, as (place, sentence) pairs. Places look like `layers.1.input`."""
        mistakes = [] if self.layers else [("layers", "must hold at least one layer")]
        if self.layer_order not in LAYER_ORDERS:
            mistakes.append(("layer_order", f"must be 'layer' or 'step', got {self.layer_order!r}"))
        for index, layer in enumerate(self.layers):
            mistakes += [(f"layers.{index}.{key}", text) for key, text in _layer_mistakes(layer, self.layer_order)]
        if any(".cell." in place for place, _ in mistakes):
            return mistakes
        for index, (below, layer) in enumerate(pairwise(self.layers), start=1):
            if below.cell.projected and below.projection is None:
                continue
            if layer.input != below.output:
                unit = "projected units" if below.cell.projected else "units"
                how = f"{below.width('h')} {unit}{' in both directions' if below.bidirectional else ''}"
                text = f"must be {below.output}, the output of layer {index - 1} ({how}), got {layer.input}"
                mistakes.append((f"layers.{index}.input", text))
        return mistakes

    @cached_property
    def macs_per_step(self) -> int:
        """Useful multiply-accumulates of one step through all layers."""
        return sum(layer.macs_per_step for layer in self.layers)


def _layer_mistakes(layer: Layer, layer_order: str) -> list[tuple[str, str]]:
    mistakes = [(f"cell.{place}", text) for place, text in cell_rules.mistakes(layer.cell)]
    if mistakes:
        return mistakes
    for key in ("hidden", "input"):
        if getattr(layer, key) < 1:
            mistakes.append((key, f"must be at least 1, got {getattr(layer, key)}"))
    name = layer.cell.name
    if layer.cell.projected and layer.projection is None:
        mistakes.append(("projection", f"cell '{name}' projects h and needs it: the number of projected units"))
    elif not layer.cell.projected and layer.projection is not None:
        mistakes.append(("projection", f"cell '{name}' has no projection; lstm-projection has"))
    elif layer.projection is not None and layer.projection < 1:
        mistakes.append(("projection", f"must be at least 1, got {layer.projection}"))
    return mistakes + _direction_mistakes(layer, layer_order)


def _direction_mistakes(layer: Layer, layer_order: str) -> list[tuple[str, str]]:
    mistakes = []
    if layer.bidirectional and layer.reverse:
        mistakes.append(("reverse", "a bidirectional layer has both directions: leave out reverse or bidirectional"))
    for key, what in (("bidirectional", "a bidirectional layer"), ("reverse", "a reverse layer")):
        if getattr(layer, key) and layer_order == "step":
            text = f"{what} needs layer_order 'layer': its backward pass starts at the last step"
            mistakes.append((key, text))
        if getattr(layer, key) and not layer.cell.recurrent:
            mistakes.append((key, f"cell '{layer.cell.name}' has no direction"))
    return mistakes


WEIGHT_SCALES = ("row", "tensor")
ACTIVATIONS = ("table", "linear")
FORMATS = ("own", "shared")
SHIFTS = ("row", "common")

#: Width -> narrowest and widest value in bits. Products and dequantisation must fit into 64 bits.
WIDTHS = {
    "weight_bits": (2, 16),
    "vector_bits": (2, 16),
    "accumulator_bits": (8, 40),
    "multiplier_bits": (4, 20),
    "tail_bits": (4, 24),
    "state_bits": (4, 24),
}


@record
class Precision:
    """The widths in bits of all numbers of a step, and the size of the activation functions.

    weight_bits: width of weights; symmetric, no zero point.
    vector_bits: width of x, h and further vectors that are streamed; symmetric, no zero point.
    weight_scale: one scale for each row of the matrix (`row`), or one for each sum (`tensor`).
    accumulator_bits: width of sums, which wrap.
    multiplier_bits: width of the factor of the dequantisation after the adapter.
    tail_bits: width of everything that the tail computes.
    state_bits: width of states that only the tail reads (c).
    activation: a `table` of values, or straight pieces (`linear`).
    activation_entries: how many values or pieces.
    activation_range: they cover the inputs from -`activation_range` to +`activation_range`.
    formats: each pass (a layer in one direction) has formats of its `own`, or all passes of a kind of cell on the chip
        have the same ones (`shared`).
    shift: of the dequantisation: one for each `row` of the matrix, or one for each sum (`common`).

    The widths 8, 32 and 16 are from the linear quantisation of the column-wise LSTM patent. Multiplier and tables are
    an assumption, because the patent gives none.

    >>> Precision(weight_bits=1).mistakes()
    [('weight_bits', 'must be between 2 and 16, got 1')]
    """

    weight_bits: int = 8
    vector_bits: int = 8
    weight_scale: str = "row"
    accumulator_bits: int = 32
    multiplier_bits: int = 16
    tail_bits: int = 16
    state_bits: int = 16
    activation: str = "linear"
    activation_entries: int = 256
    activation_range: int = 8
    formats: str = "own"
    shift: str = "row"

    def mistakes(self) -> list[tuple[str, str]]:
        """List what is wrong with the widths, as (key, sentence) pairs."""
        values = asdict(self)
        mistakes = [
            (key, f"must be between {low} and {high}, got {values[key]}")
            for key, (low, high) in WIDTHS.items()
            if not low <= values[key] <= high
        ]
        words = {"weight_scale": WEIGHT_SCALES, "activation": ACTIVATIONS, "formats": FORMATS, "shift": SHIFTS}
        for key, known in words.items():
            if values[key] not in known:
                mistakes.append((key, f"must be {' or '.join(known)}, got {values[key]!r}"))
        for key, high in (("activation_entries", 65536), ("activation_range", 64)):
            value = values[key]
            if not 2 <= value <= high or value & (value - 1):
                mistakes.append((key, f"must be a power of two between 2 and {high}, got {value}"))
        return mistakes
