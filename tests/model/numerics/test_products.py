"""The multipliers that are read off a cell are those of fixed-point arithmetic: each multiplication is watched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from lstmsim.model.cell import Cell, kinds, stage_of
from lstmsim.model.cells import CELLS, graph
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import FixedArithmetic, fixed_arithmetic, once, per_unit
from lstmsim.model.numerics.golden import initial_states, step
from lstmsim.model.numerics.weights import random_network, random_stimulus

#: Reads h and x, which are held as streamed vectors, beside its sums.
READS_VECTORS = Cell(
    "reads-vectors",
    (stage_of("a[x h]"),),
    graph("p multiply a h; q multiply p h; hf tanh q; h' quantize hf"),
    {"h": "h'"},
)
LARGEST: list[tuple[int, int]] = []


class Watched(np.ndarray[Any, Any]):
    """Integers whose multiplications with other numbers than constants of the program are noted."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in (np.multiply, np.matmul) and not any(isinstance(each, int) for each in inputs):
            LARGEST.append(tuple(int(np.abs(np.asarray(each)).max()) for each in inputs))
        plain = [each.view(np.ndarray) if isinstance(each, Watched) else each for each in inputs]
        options.pop("out", None)
        result = getattr(ufunc, method)(*plain, **options)
        return result.view(Watched) if isinstance(result, np.ndarray) else result


class Watching(FixedArithmetic):
    """Fixed point that notes its multiplications for each sum and node."""

    notes: dict[str, list[tuple[int, int]]]

    def adapt(self, sum_: str, total: Any, units: slice) -> Any:
        LARGEST.clear()
        result = super().adapt(sum_, total.view(Watched), units)
        self.notes[sum_] = list(LARGEST)
        return result

    def compute(self, node: Any, values: Any, units: slice) -> Any:
        LARGEST.clear()
        result = super().compute(node, {name: each.view(Watched) for name, each in values.items()}, units)
        self.notes[node.name] = list(LARGEST)
        return result


def watched(cell: Cell, precision: Precision) -> dict[str, list[tuple[int, int]]]:
    """Run two steps, and give the multiplications of the second step by sum or node."""
    layer = Layer(cell, hidden=6, input=5, projection=3 if cell.projected else None)
    model = Model("m", (layer,))
    network, stimulus = random_network(model, seed=1), random_stimulus(model, 4, seed=1)
    own = fixed_arithmetic(network, stimulus, precision)[0][0]
    watching = Watching(own.layer, own.weights, own.precision, own.ranges, own.x)
    object.__setattr__(watching, "notes", {})
    states = initial_states(watching, stimulus, 0, 0)
    for frame in watching.encode(stimulus.x)[:2]:
        states = step(watching, frame, states)
    return watching.notes


@pytest.mark.parametrize("activation", ["linear", "table"])
@pytest.mark.parametrize("cell", [*CELLS.values(), READS_VECTORS], ids=lambda each: each.name)
def test_every_multiplication_is_counted_and_no_other(cell: Cell, activation: str) -> None:
    precision = Precision(activation=activation)
    notes = watched(cell, precision)
    scalars = {name for name, rows in kinds(cell).items() if rows == "scalar"}
    squares = {node.name for node in cell.nodes if node.operation == "mean_square"}
    units = sum(len(noted) for name, noted in notes.items() if name not in scalars - squares)
    declared = per_unit(cell, precision)
    # an element of a vector is read once, however many nodes use it
    reads = sum(each.kind == "vector read" for each in declared.elements())
    uses = sum(name in ("h", "x") for node in cell.nodes for name in node.sources) if reads else 0
    assert units - uses == declared.total() - reads
    assert sum(len(notes[name]) for name in scalars - squares) == once(cell, precision).total()


def test_operands_fit_the_widths() -> None:
    precision = Precision(accumulator_bits=24, multiplier_bits=12, tail_bits=14, state_bits=18)
    notes = watched(CELLS["lstm"], precision)
    widths: dict[str, Any] = {"i": (24, 13), "it": (15, 14), "ct": (15, 18), "fc": (14, 18), "h'": (14, 13)}
    declared = per_unit(CELLS["lstm"], precision)
    for name, (first, second) in widths.items():
        ((one, two),) = notes[name]
        assert one <= 2 ** (first - 1), name
        # the position within a piece is held with 24 bits, of which the last are zero
        assert name.endswith("t") or two <= 2 ** (second - 1), name
        assert (first, second) in {each.widths for each in declared}


def test_widths_of_an_lstm() -> None:
    counts = Counter({(each.kind, each.widths): n for each, n in per_unit(CELLS["lstm"], Precision()).items()})
    assert counts == {
        ("adapter", (32, 17)): 4,
        ("interpolation", (17, 16)): 5,
        ("product", (16, 16)): 3,
        ("quantize", (16, 17)): 1,
    }
    assert per_unit(CELLS["lstm"], Precision(activation="table")).total() == 8
