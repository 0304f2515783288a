"""Recurrent layers that an ONNX network writes out step by step: the steps put together again.

Steps (`lstmsim.importers.onnx.steps`) are one layer if each step begins with the states of the step before and all have
the same weights. Step t must read frame t of one tensor, or step t of the layer below. Everything is proven from the
file: the operations, the order of the frames, and that weights which the file holds more than once are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lstmsim.base.wording import show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Scope, Value, label, node_input, resolve
from lstmsim.importers.onnx.nodes import is_recurrent
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.steps import (
    Frame,
    Product,
    Refused,
    Step,
    StepNumbers,
    find_steps,
    frame_of,
    made_of,
    picked_by,
    run_of_frames,
)
from lstmsim.importers.onnx.stored import is_stored
from lstmsim.importers.onnx.unrolled import Placed, UnrolledLayer, UnrolledStack
from lstmsim.importers.tensors import Stacked, unstacked
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from lstmsim.model.numerics.weights import Floats

#: Exporters fold constants in single precision.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class _Halves:
    """The products of x and h and the biases of a step; h is None if the exporter has folded it into the biases."""

    x: Product
    h: Product | None
    biases: tuple[Floats, ...]


def find_unrolled(
    scopes: Sequence[Scope], shapes: Shapes, constants: Constants
) -> tuple[list[UnrolledStack], list[str]]:
    """Put the unrolled layers of a network together."""
    stacks: list[UnrolledStack] = []
    refused: list[str] = []
    for scope in scopes:
        numbers = StepNumbers(constants)
        reader = _Reader(shapes, numbers)
        own_stacks, sentences = reader.stacks(reader.chains(list(find_steps(scope, shapes, numbers.number))))
        stacks += own_stacks
        refused += sentences
    return stacks, refused


class _Reader:
    def __init__(self, shapes: Shapes, numbers: StepNumbers) -> None:
        self._shapes, self._numbers = shapes, numbers

    def chains(self, steps: Sequence[Step]) -> list[tuple[Step, ...]]:
        """List runs of at least two steps, in which each step begins with the states of the step before."""
        by_h = {step.new_h: step for step in steps}
        before = {step.new_h: former for step in steps if (former := self._before(step, by_h)) is not None}
        after = Counter(former.new_h for former in before.values())
        follower = {former.new_h: by_h[h] for h, former in before.items() if after[former.new_h] == 1}
        chains = []
        for step in steps:
            if step.new_h not in before or after[before[step.new_h].new_h] > 1:
                chain = [step]
                while chain[-1].new_h in follower and len(chain) <= len(steps):
                    chain.append(follower[chain[-1].new_h])
                chains += [tuple(chain)] if len(chain) > 1 else []
        return chains

    def _before(self, step: Step, by_h: dict[Value, Step]) -> Step | None:
        sources = [step.h] if step.h is not None else [each.source for each in step.sums[0].products]
        for source in sources:
            former = by_h.get(source)
            alike = former is not None and (former.cell, former.gates) == (step.cell, step.gates)
            if former is None or not alike or former is step or step.c != former.new_c:
                continue
            own = [each for terms in step.sums for each in terms.products]
            theirs = [each for terms in former.sums for each in terms.products]
            if all(any(self._numbers.same(each, other) for other in own) for each in theirs):
                return former
        return None

    def stacks(self, chains: Sequence[tuple[Step, ...]]) -> tuple[list[UnrolledStack], list[str]]:
        """Make layers of chains, and stacks of layers that read each other; a sentence for each refused chain."""
        placed = Placed()
        refused = []
        for chain in chains:
            try:
                lower, turned = self._reads(chain, placed)
                sources = set(self._sources(chain))
                nodes = frozenset(key for step in chain for key in made_of(step))
                picking = frozenset(key for source in sources for key in picked_by(source))
                own = replace(
                    self._layer(chain), turned=turned, nodes=nodes, picking=picking if lower is None else frozenset()
                )
                placed.add([step.new_h for step in chain], own, lower)
            except Refused as reason:
                refused.append(f"{_about(chain)}: {reason}")
        return placed.stacks(), refused

    def _reads(self, chain: tuple[Step, ...], placed: Placed) -> tuple[Value | None, bool]:
        """The layer below, if it is one of the placed layers, and whether the steps read backward."""
        return placed.read_by(self._sources(chain)) or (None, self._runs_backward(chain))

    def _sources(self, chain: tuple[Step, ...]) -> list[Value]:
        own = self._halves(chain)
        return [each.x.source for each in own]

    def _runs_backward(self, chain: tuple[Step, ...]) -> bool:
        """Whether the steps read the frames of one tensor from the last to the first."""
        frames = []
        for at, source in enumerate(self._sources(chain)):
            frame = frame_of(source, shapes=self._shapes)
            if frame is None:
                text = f"step {at} reads {_called(source)}, which is not shown to be frame {at} of one tensor"
                raise Refused(text)
            frames.append(frame)
        return run_of_frames(frames)

    def _layer(self, chain: tuple[Step, ...]) -> UnrolledLayer:
        first, halves = chain[0], self._halves(chain)
        recurrent = halves[1].h
        assert recurrent is not None
        x, h = self._numbers.matrix(halves[1].x), self._numbers.matrix(recurrent)
        hidden = h.shape[-1]
        if x.ndim != 2 or h.ndim != 2 or len(h) != len(first.gates) * hidden or len(x) != len(h) or not x.shape[1]:
            raise Refused(f"its matrices {list(x.shape)} and {list(h.shape)} fit no cell")
        biases = [*halves[1].biases, None][:2]
        own = cell(first.cell)
        weights = unstacked(own, first.gates, Stacked(x, h, biases[0], biases[1]))
        name = recurrent.matrix.name
        name = name.rsplit(".", 1)[0] if ".weight_hh" in name else name
        states, notes, computed = self._beginning(chain, halves)
        frame = frame_of(halves[0].x.source, shapes=self._shapes)
        notes += _left_out(frame, len(chain))
        return UnrolledLayer(
            Layer(own, hidden, x.shape[1]), weights, states, first.new_h, name, len(chain), tuple(notes), computed
        )

    def _halves(self, chain: tuple[Step, ...]) -> list[_Halves]:
        """The products and biases of each step, proven to have the same weights in all steps."""
        halves: list[_Halves] = []
        second = self._apart(chain, 1, None)
        for at in range(len(chain)):
            own = second if at == 1 else self._apart(chain, at, second)
            halves.append(own)
            # A folded product with h stands among the biases: `_folded` looks at it.
            count = len(own.biases) if own.h is not None else len(own.biases) - 1
            for one, other in zip(own.biases[:count], second.biases[:count], strict=True):
                if not np.array_equal(one, other):
                    raise Refused(f"step {at} has a bias of its own")
        return halves

    def _apart(self, chain: tuple[Step, ...], at: int, like: _Halves | None) -> _Halves:
        step, before = chain[at], chain[at - 1].new_h if at else None
        products = [each for terms in step.sums for each in terms.products]
        recurrent = [each for each in products if (each.source == before if at else self._is_recurrent(each, like))]
        others = [each for each in products if each not in recurrent]
        if at and len(recurrent) > 1:
            raise Refused(
                f"step {at} reads what the step before has given, as a decoder does that feeds back "
                "its output: frames that come in order can be simulated"
            )
        if len(others) != 1 or len(recurrent) > 1 or (at and not recurrent):
            raise Refused(f"step {at} is no sum of one product with x and one with h")
        halves = _Halves(others[0], recurrent[0] if recurrent else None, self._numbers.biases(step))
        if like is not None:
            same = [self._numbers.same(halves.x, like.x)]
            same += [self._numbers.same(halves.h, like.h)] if halves.h is not None and like.h is not None else []
            if not all(same):
                raise Refused(f"step {at} has weights of its own")
        return halves

    def _is_recurrent(self, product: Product, like: _Halves | None) -> bool:
        """Whether a product of the first step is the product of h, as its weights show."""
        assert like is not None
        assert like.h is not None
        if self._numbers.same(product, like.h) and self._numbers.same(product, like.x):
            return is_stored(product.source)
        return self._numbers.same(product, like.h)

    def _beginning(self, chain: tuple[Step, ...], halves: list[_Halves]) -> tuple[dict[str, Floats], list[str], str]:
        """The states before the first step that the file fixes, notes, and in words what computes further states."""
        first, own, usual = chain[0], halves[0], halves[1]
        states: dict[str, Floats] = {}
        notes: list[str] = []
        computed = ""
        given = {"h": [each for each in (own.h.source if own.h else None, first.h) if each is not None]}
        given["c"] = [first.c] if first.c is not None else []
        for name, values in given.items():
            for value in values:
                fixed = self._numbers.fixed(value)
                if fixed is not None:
                    states[name] = _agreeing(states.get(name), fixed, chain)
                elif value.node is None:
                    notes.append(f"initial {name} is the input {show(value.name)}; a run begins at 0")
                else:
                    computed = computed or _computed(value)
        if own.h is None:
            states |= self._folded(own, usual, states.get("h"))
        hidden = self._numbers.matrix(chain[1].sums[-1].products[0]).shape[0] // len(first.gates)
        wide = {name: np.broadcast_to(each, hidden) for name, each in states.items() if each.any()}
        return wide, list(dict.fromkeys(notes)), computed

    def _folded(self, own: _Halves, usual: _Halves, h: Floats | None) -> dict[str, Floats]:
        """The h before the first step, if the exporter has put numbers in place of its product with the matrix."""
        assert usual.h is not None
        matrix = self._numbers.matrix(usual.h).astype(np.float64)
        product = own.biases[-1].astype(np.float64) - usual.biases[-1]
        near = _TOLERANCE * (1 + np.abs(own.biases[-1]).max(initial=0))
        if h is None and np.abs(product).max(initial=0) <= near:
            return {}
        start = np.linalg.lstsq(matrix, product)[0] if h is None else np.broadcast_to(h, matrix.shape[1])
        if np.abs(matrix @ start - product).max(initial=0) > near:
            raise Refused("its first step begins with an h that cannot be read from the file")
        return {"h": start}


def _agreeing(known: Floats | None, other: Floats, chain: tuple[Step, ...]) -> Floats:
    if known is not None and not np.all(known == other):
        raise Refused("its first step begins with two different h")
    return other if known is None or len(other) > len(known) else known


def _left_out(frame: Frame | None, steps: int) -> list[str]:
    if frame is None or frame.count is None or frame.count == steps:
        return []
    return [f"only {steps} of {frame.count} frames are read"]


def _about(chain: tuple[Step, ...]) -> str:
    first = chain[0].new_h
    return f"a {chain[0].cell} written out over {len(chain)} steps, the first up to {label(first.scope, first.index)}"


def _computed(value: Value) -> str:
    """Where a state comes from, in words, if the network computes it."""
    inner: Value | None = value
    for _ in range(8):
        if inner is None or inner.node is None or is_recurrent(inner.node):
            break
        inner = resolve(inner.scope, node_input(inner.node, 0))
    if inner is not None and inner.node is not None and is_recurrent(inner.node):
        return f"the last states of {label(inner.scope, inner.index)}"
    return f"what {label(value.scope, value.index)} gives"


def _called(value: Value) -> str:
    return label(value.scope, value.index) if value.node is not None else show(value.name)
