"""Networks: a stack of recurrent layers, shapes only."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lstmsim.errors import InputError, Mistake
from lstmsim.workload.cell import Cell

__all__ = ["LAYER_ORDERS", "Layer", "Model"]

#: `layer`: all steps of layer 0, then of layer 1; `step`: step 0 of every layer, then step 1.
LAYER_ORDERS = ("layer", "step")


@dataclass(frozen=True)
class Layer:
    """One recurrent layer: `hidden` (Lh) units over an input of `input` (Lx) elements.

    >>> from lstmsim.workload.cell import cell
    >>> Layer(cell("lstm"), hidden=512, input=256).macs_per_step
    1572864
    """

    cell: Cell
    hidden: int
    input: int
    bidirectional: bool = False

    @property
    def directions(self) -> int:
        """Passes over the sequence: 2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    @property
    def output(self) -> int:
        """Elements that the layer above reads at each step."""
        return self.hidden * self.directions

    @property
    def macs_per_step(self) -> int:
        """Useful multiply-accumulates of one step, both directions; padding is never useful."""
        columns = self.input + (self.hidden if self.cell.recurrent else 0)
        return self.directions * len(self.cell.gates) * self.hidden * columns


@dataclass(frozen=True)
class Model:
    """A stack of layers, each reading the output of the one below; `InputError` if the shapes do not chain.

    >>> from lstmsim.workload.cell import cell
    >>> lstm = cell("lstm")
    >>> Model("two", (Layer(lstm, 8, 4), Layer(lstm, 8, 8))).macs_per_step
    896
    """

    name: str
    layers: tuple[Layer, ...]
    layer_order: str = "layer"

    def __post_init__(self) -> None:
        mistakes = self.mistakes()
        if mistakes:
            raise InputError([Mistake(f"model {self.name}: {place}", text) for place, text in mistakes])

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the stack, as (place, sentence) pairs; places look like `layers.1.input`."""
        found = [] if self.layers else [("layers", "must hold at least one layer")]
        if self.layer_order not in LAYER_ORDERS:
            found.append(("layer_order", f"must be 'layer' or 'step', got {self.layer_order!r}"))
        for index, layer in enumerate(self.layers):
            for key in ("hidden", "input"):
                if getattr(layer, key) < 1:
                    found.append((f"layers.{index}.{key}", f"must be at least 1, got {getattr(layer, key)}"))
            if layer.bidirectional and self.layer_order == "step":
                text = "a bidirectional layer needs layer_order 'layer': its backward pass starts at the last step"
                found.append((f"layers.{index}.bidirectional", text))
            if layer.bidirectional and not layer.cell.recurrent:
                found.append((f"layers.{index}.bidirectional", f"cell '{layer.cell.name}' has no direction"))
        for index, (below, layer) in enumerate(pairwise(self.layers), start=1):
            if layer.input != below.output:
                how = f"{below.hidden} units{' in both directions' if below.bidirectional else ''}"
                text = f"must be {below.output}, the output of layer {index - 1} ({how}), got {layer.input}"
                found.append((f"layers.{index}.input", text))
        return found

    @property
    def macs_per_step(self) -> int:
        """Useful multiply-accumulates of one step through all layers."""
        return sum(layer.macs_per_step for layer in self.layers)
