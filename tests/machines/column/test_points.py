"""Bodies in bulk: the native library writes the rows that the lowering writes, for any cell, order and core."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.assembly import MAX_STEP_OPERATIONS
from lstmsim.machines.column.npu import ColumnCore, Latency
from lstmsim.machines.column.phases import model_phases, operations_per_step
from lstmsim.machines.column.points import OWN, new_words, write
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.program.flat import WIDTHS, BodyRows
from lstmsim.program.operations import Ints
from tests.strategies import examples

pytestmark = pytest.mark.skipif(OWN.absence is not None, reason="the native library was not built")

_LATENCIES = ("read", "multiply", "add", "accumulate", "convert", "activation", "elementwise_multiply", "writeback")


def drawn_model(chance: random.Random) -> Model:
    """A stack of up to three layers, some of them bidirectional, reversed or projected."""
    order, size = chance.choice(["layer", "step"]), chance.choice([12, 90, 600])
    layers: list[Layer] = []
    width = chance.randint(1, size)
    for _ in range(chance.randint(1, 3)):
        own, hidden = cell(chance.choice(list(CELLS))), chance.randint(1, size)
        both = order == "layer" and chance.random() < 0.3
        backward = order == "layer" and not both and chance.random() < 0.2
        projection = chance.randint(1, hidden) if own.projected else None
        layers.append(Layer(own, hidden, width, both, projection, backward))
        width = layers[-1].output
    return Model("m", tuple(layers), order)


def drawn_core(chance: random.Random) -> ColumnCore:
    ep, vp = chance.choice([1, 2, 3, 7, 8, 32, 128]), chance.choice([chance.randint(1, 40), 300, 2048])
    latency = Latency(**{name: chance.randint(1, 20) for name in _LATENCIES}) if chance.random() < 0.5 else Latency()
    return ColumnCore(
        npe=ep * vp,
        ep=ep,
        vp=vp,
        threads=chance.randint(1, 3),
        tail_width=chance.choice([1, 2, 3, 8, 64, 100]),
        accumulator_banks=chance.choice([2, 8, 64]),
        block_order=chance.choice(["row", "row", "column"]),
        thread_policy=chance.choice(["coarse", "fine"]),
        latency=latency,
    )


def table(rows: BodyRows, number: int, name: str) -> Ints:
    """A table of native memory."""
    count = rows.sizes[number] * WIDTHS[name]
    numbers = (ctypes.c_int64 * count).from_address(rows.addresses[number]) if count else ()
    return np.array(numbers, dtype=np.int64).reshape(-1, WIDTHS[name])


def lowered(pairs: list[tuple[Model, ColumnCore]]) -> tuple[Ints, Ints, Ints, Ints]:
    """The tables that the lowering makes of pairs, and what is told of each pair; of those refused there is nothing."""
    operations, needs, bodies, told = [], [], list[tuple[int, ...]](), []
    before = waits = 0
    for model, core in pairs:
        refused = core.refusal(model) is not None or operations_per_step(model.layers, core) > MAX_STEP_OPERATIONS
        phases = () if refused else model_phases(model, core, 1)
        told.append((len(bodies), len(phases), int(refused)))
        for phase in phases:
            own, its_needs = phase.body.rows
            own = np.array(own).reshape(-1, WIDTHS["operations"])
            own[:, 8] += waits
            operations.append(own)
            needs.append(np.array(its_needs).reshape(-1, WIDTHS["needs"]))
            bodies.append((before, len(own), -1, 0))
            before, waits = before + len(own), waits + len(needs[-1])
    return np.concatenate(operations), np.concatenate(needs), np.array(bodies), np.array(told)


@pytest.mark.parametrize("seed", range(max(examples(4) // 100, 4)))
def test_rows_are_those_of_the_lowering(seed: int) -> None:
    chance, pairs, words = random.Random(seed), list[tuple[Model, ColumnCore]](), new_words()
    while len(pairs) < 60:
        try:
            pairs.append((drawn_model(chance), drawn_core(chance)))
        except InputError:  # a cell that only runs in the other order
            continue
    models, cores = zip(*pairs, strict=True)
    asked, numbers = words.pairs(words.of_models(models), words.of_cores(cores))
    pairs = [pairs[first] for first in np.unique(numbers, return_index=True)[1]]
    rows = write(asked)
    operations, needs, bodies, told = lowered(pairs)
    assert np.array_equal(rows.pairs[:, [0, 1, 3]], told)
    for (model, core), bound, refused in zip(pairs, rows.pairs[:, 2].tolist(), told[:, 2].tolist(), strict=True):
        assert refused or bound == operations_per_step(model.layers, core)
    assert np.array_equal(table(rows, 0, "operations"), operations)
    assert np.array_equal(table(rows, 1, "needs"), needs)
    assert np.array_equal(table(rows, 2, "bodies"), bodies)


def test_pairs_that_are_refused_have_no_bodies() -> None:
    model = Model("m", (Layer(cell("lstm"), 40, 40),))
    cores = [ColumnCore(npe=64, ep=32, vp=2), ColumnCore(npe=64, ep=4, vp=16, block_order="column")]
    words = new_words()
    rows = write(words.pairs(words.of_models([model] * len(cores)), words.of_cores(cores))[0])
    assert rows.pairs[:, 1].tolist() == [0, 0]
    assert rows.pairs[:, 3].tolist() == [1, 1]
    assert all(core.refusal(model) for core in cores)
