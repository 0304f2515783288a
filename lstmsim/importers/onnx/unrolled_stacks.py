"""Unrolled layers above each other, and the direction in which each layer goes through time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lstmsim.importers.onnx.graph import Scope, Value
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats, PassWeights

__all__ = ["Placed", "UnrolledLayer", "UnrolledStack"]


@dataclass(frozen=True, eq=False)
class UnrolledLayer:
    """One layer, put together again from its steps.

    layer: its shapes.
    weights: its weights.
    states: the states before the first step that the file fixes, name to [units].
    first: the value that is the h of its first step.
    name: the name of its weights in the file.
    steps: number of steps.
    notes: what to know about it.
    computed: where further first states come from at run time, in words; empty if there are none.
    turned: whether its steps read the frames, or the layer below, from the end.
    nodes: the operations that it is made of.
    picking: the operations that pick its frames.
    """

    layer: Layer
    weights: PassWeights
    states: dict[str, Floats]
    first: Value
    name: str
    steps: int
    notes: tuple[str, ...] = ()
    computed: str = ""
    turned: bool = False
    nodes: frozenset[tuple[Scope, int]] = frozenset()
    picking: frozenset[tuple[Scope, int]] = frozenset()


@dataclass(frozen=True, eq=False)
class UnrolledStack:
    """Layers above each other, the lowest first; all have the same number of steps."""

    layers: tuple[UnrolledLayer, ...]


@dataclass(eq=False)
class Placed:
    """Layers that are being put above each other.

    layers: new h of the first step to the layer.
    places: new h of every step to the new h of the layer's first step, and the step's number.
    below: layer to the layer that it reads, both by the new h of their first steps.
    """

    layers: dict[Value, UnrolledLayer] = field(default_factory=dict)
    places: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    below: dict[Value, Value] = field(default_factory=dict)

    def add(self, chain: Sequence[Value], layer: UnrolledLayer, lower: Value | None) -> None:
        """Add a layer.

        chain: the new h of each of its steps.
        layer: the layer.
        lower: new h of the first step of the layer that it reads; None if it reads frames.
        """
        key = chain[0]
        self.layers[key] = layer
        self.places |= {value: (key, at) for at, value in enumerate(chain)}
        if lower is not None:
            self.below[key] = lower

    def stacks(self) -> list[UnrolledStack]:
        """Join layers into stacks; if several layers read one, each begins a stack, and a note says so."""
        readers = Counter(self.below.values())
        above = {lower: upper for upper, lower in self.below.items() if readers[lower] == 1}
        stacks = []
        for key, lowest in self.layers.items():
            if key in self.below and readers[self.below[key]] == 1:
                continue
            backward, made = self._backward(key), []
            notes = lowest.notes
            if key in self.below:
                notes += (
                    f"reads {self.layers[self.below[key]].name}, which other layers read too: a model of its own",
                )
            made.append(_turned(replace(lowest, notes=notes), backward))
            while key in above:
                key = above[key]
                backward ^= self.layers[key].turned
                made.append(_turned(self.layers[key], backward))
            stacks.append(UnrolledStack(tuple(made)))
        return stacks

    def _backward(self, key: Value) -> bool:
        """Whether a layer's steps go backward through time."""
        backward = self.layers[key].turned
        while key in self.below:
            key = self.below[key]
            backward ^= self.layers[key].turned
        return backward


def _turned(own: UnrolledLayer, backward: bool) -> UnrolledLayer:
    return replace(own, layer=replace(own.layer, reverse=backward))
