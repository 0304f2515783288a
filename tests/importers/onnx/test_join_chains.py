"""Random chains of rearranging operations between two layers: every stack computes what onnxruntime does.

Equal sizes could hide a difference, so most sizes are equal: 4 frames, 4 units, and now and then a batch of 4.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.importers.onnx.runs import CLOSE, ours, theirs
from tests.importers.onnx.test_joins import SIZE, Two, both, squeezed

CHAINS = int(os.environ.get("LSTMSIM_EXAMPLES", "0")) or 50


class Chain:
    """A value on its way from one layer to the next; `shape` is its shape in the run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.batch = self.random.choice([1, 1, 2, SIZE])
        self.sides = self.random.choice([1, 1, 2])
        known = self.random.random() < 0.5
        self.two = Two((SIZE if known else "steps", self.batch if known or self.random.random() < 0.3 else "batch"))
        self.value = self.two.layer("LSTM", "x", 3, SIZE, name="a", directions=self.sides)
        self.shape = [SIZE, self.sides, self.batch, SIZE]
        if self.random.random() < 0.6:
            self.value = (both if self.sides == 2 else squeezed)(self.two, self.value)
            self.shape = [SIZE, self.batch, self.sides * SIZE]

    def then(self, kind: str, *inputs: str | list[int], **attributes: object) -> None:
        self.value = self.two.then(kind, self.value, *inputs, **attributes)

    def transpose(self) -> None:
        order = self.random.sample(range(len(self.shape)), len(self.shape))
        self.then("Transpose", perm=order)
        self.shape = [self.shape[axis] for axis in order]

    def reshape(self) -> None:
        sizes = list(self.random.choice([each for each in self.targets() if prod(each) == prod(self.shape)]))
        written = [
            0 if at < len(self.shape) and size == self.shape[at] and self.random.random() < 0.5 else size
            for at, size in enumerate(sizes)
        ]
        if self.random.random() < 0.5:
            written[self.random.randrange(len(written))] = -1
        self.then("Reshape", written)
        self.shape = sizes

    def targets(self) -> list[tuple[int, ...]]:
        time, batch, units = SIZE, self.batch, self.sides * SIZE
        return [
            *((time, batch, units), (batch, time, units), (time * batch, 1, units), (time, 1, batch * units)),
            *((time * batch, units), (time, batch, self.sides, SIZE), (1, *self.shape), tuple(self.shape)),
        ]

    def slice(self) -> None:
        axis = self.random.randrange(len(self.shape))
        size = self.shape[axis]
        start, end, step = self.random.choice(
            [(0, 2**40, 1), (0, size, 1), (-size, 2**31 - 1, 1), (1, 2**40, 1), (0, 2**40, 2), (-1, -(2**40), -1)]
        )
        left = len(range(*slice(start, end, step).indices(size)))
        if left:
            self.then("Slice", [start], [end], [axis], [step])
            self.shape[axis] = left

    def squeeze(self) -> None:
        single = [axis for axis, size in enumerate(self.shape) if size == 1]
        if single and len(self.shape) > 2:
            axis = self.random.choice(single)
            self.then("Squeeze", [axis])
            del self.shape[axis]

    def unsqueeze(self) -> None:
        if len(self.shape) < 5:
            axis = self.random.randint(0, len(self.shape))
            self.then("Unsqueeze", [axis])
            self.shape.insert(axis, 1)

    def gather(self) -> None:
        axis = self.random.randrange(len(self.shape))
        self.then("Gather", [self.random.randrange(self.shape[axis])], axis=axis)
        self.shape[axis] = 1

    def halves(self) -> None:
        axis = self.random.randrange(len(self.shape))
        if self.shape[axis] % 2 == 0:
            parts = [f"{self.value}_0", f"{self.value}_1"]
            self.two.nodes.append(helper.make_node("Split", [self.value], parts, axis=axis, num_outputs=2))
            along = self.random.choice([axis, axis, self.random.randrange(len(self.shape))])
            self.value = self.two.then("Concat", *self.random.choice([parts, parts, parts[::-1]]), axis=along)
            self.shape[axis] //= 2
            self.shape[along] *= 2

    def own_shape(self) -> None:
        self.then("Reshape", self.two.then("Shape", self.value))

    def cast(self) -> None:
        self.then("Cast", to=1)


STEPS: list[Callable[[Chain], None]] = [
    *(Chain.transpose, Chain.transpose, Chain.reshape, Chain.reshape, Chain.slice, Chain.squeeze, Chain.unsqueeze),
    *(Chain.gather, Chain.halves, Chain.own_shape, Chain.cast),
]


def outcome(seed: int, folder: Path) -> str:
    """Give `joined` or `apart`, or `invalid` for a chain whose end no layer can read."""
    chain = Chain(seed)
    for _ in range(chain.random.randint(0, 5)):
        chain.random.choice(STEPS)(chain)
    if len(chain.shape) != 3 or chain.shape[2] != chain.sides * SIZE:
        return "invalid"
    chain.two.layer("GRU", chain.value, chain.shape[2], 5, name="b")
    model = chain.two.model("b_Y")
    x = np.random.default_rng(seed).normal(size=(SIZE, chain.batch, 3)).astype(np.float32)
    outputs = ours(model, x[:, 0], folder)
    if isinstance(outputs, str):
        return "apart"
    np.testing.assert_allclose(outputs, theirs(model, {"x": x})[:, 0, 0], rtol=0, atol=CLOSE, err_msg=f"chain {seed}")
    return "joined"


@pytest.mark.slow
def test_what_is_joined_is_equal(tmp_path: Path) -> None:
    outcomes = [outcome(seed, tmp_path) for seed in range(CHAINS)]
    assert outcomes.count("joined") > CHAINS / 8
    assert outcomes.count("apart") > CHAINS / 8
