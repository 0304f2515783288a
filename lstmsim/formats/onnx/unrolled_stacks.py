"""Unrolled layers above each other, and which way each goes through time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lstmsim.formats.onnx.graph import Scope, Value
from lstmsim.numerics.weights import Floats, PassWeights
from lstmsim.workload.model import Layer

__all__ = ["Placed", "UnrolledLayer", "UnrolledStack"]


@dataclass(frozen=True, eq=False)
class UnrolledLayer:
    """One layer put together again.

    states: what the file itself fixes before the first step; computed: in words, where it comes from at run time.
    first: what gives the h of its first step; name: what its weights are called in the file; steps: how many there are.
    turned: its steps go through what they read from the end.
    nodes: the operations that it is made of; picking: those that pick its frames.
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
    """Layers above each other, all of as many steps."""

    layers: tuple[UnrolledLayer, ...]


@dataclass(eq=False)
class Placed:
    """Layers by the new h of their first steps; `places` has the layer and number of every step by its new h."""

    layers: dict[Value, UnrolledLayer] = field(default_factory=dict)
    places: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    below: dict[Value, Value] = field(default_factory=dict)

    def add(self, chain: Sequence[Value], layer: UnrolledLayer, lower: Value | None) -> None:
        """A layer with what stands for its steps, and the one that it reads."""
        key = chain[0]
        self.layers[key] = layer
        self.places |= {value: (key, at) for at, value in enumerate(chain)}
        if lower is not None:
            self.below[key] = lower

    def stacks(self) -> list[UnrolledStack]:
        """Layers above each other; several above one are stacks of their own, and say so."""
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
        """Whether a layer's steps go through time from its end."""
        backward = self.layers[key].turned
        while key in self.below:
            key = self.below[key]
            backward ^= self.layers[key].turned
        return backward


def _turned(own: UnrolledLayer, backward: bool) -> UnrolledLayer:
    return replace(own, layer=replace(own.layer, reverse=backward))
