"""Fixed-point arithmetic of a pass: weights, adapter and nodes against exact rational numbers; blocks and whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.model.cell import OPERATIONS, Cell, Node, kinds, stage_of
from lstmsim.model.cells import CELLS, cell, graph
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import FixedArithmetic, fixed_arithmetic
from lstmsim.model.numerics.fixed_point import QFormat, VectorFormat
from lstmsim.model.numerics.weights import Network, PassWeights, Stimulus, random_network, random_stimulus
from tests.strategies import examples

HALF = Fraction(1, 2)
#: Outside every format.
BEYOND = 2**100

#: Every operation that is no table; they read a sum, a state, a vector, a parameter, a number, a scalar.
MIXED = Cell(
    "mixed",
    (stage_of("a[x h] b[x h]"),),
    graph(
        """ad add a c; su subtract 1 ad; mu multiply p su; di divide mu b; ma maximum di h; mi minimum ma 0.3
        re relu mi; ve quantize re; vs add ve c; me mean vs a; ms mean_square vs; mt add ms 1e-5; rs rsqrt mt
        ce subtract vs me; no multiply ce rs; h' quantize no"""
    ),
    {"h": "h'", "c": "ad"},
    ("p",),
)

PRECISIONS = st.builds(
    Precision,
    weight_bits=st.integers(2, 16),
    vector_bits=st.integers(2, 16),
    weight_scale=st.sampled_from(["row", "tensor"]),
    accumulator_bits=st.integers(8, 40),
    multiplier_bits=st.integers(4, 20),
    tail_bits=st.integers(4, 24),
    state_bits=st.integers(4, 24),
    activation=st.sampled_from(["table", "linear"]),
    activation_entries=st.sampled_from([2, 16, 256]),
    activation_range=st.sampled_from([2, 8, 64]),
)


def network_of(own: Cell, hidden: int = 7, width: int = 5, seed: int = 1, layers: int = 1) -> Network:
    projection = 4 if own.projected else None
    first = Layer(own, hidden, width, projection=projection)
    rest = (Layer(own, hidden, first.output, projection=projection),) * (layers - 1)
    return random_network(Model("m", (first, *rest)), seed)


def arithmetic_of(own: Cell, precision: Precision, seed: int = 1) -> FixedArithmetic:
    network = network_of(own, seed=seed)
    return fixed_arithmetic(network, random_stimulus(network.model, 6, seed), precision)[0][0]


def real(raw: int, own: QFormat) -> Fraction:
    return raw * Fraction(2) ** -own.fraction


def rounded(exact: Fraction) -> int:
    """Round half up."""
    return math.floor(exact + HALF)


def within(exact: Fraction, own: QFormat | VectorFormat) -> int:
    """Round and saturate a number in units of the format."""
    return max(own.lowest, min(rounded(exact), own.highest))


def product(raw: int, scale: Fraction, bits: int) -> Fraction:
    """Multiply by a real number of which only the first `bits` bits count, as a multiplier and a shift do it."""
    if not scale:
        return Fraction(0)
    exponent = math.floor(math.log2(scale)) - bits + 1
    exponent += (scale * Fraction(2) ** -exponent >= 2**bits) - (scale * Fraction(2) ** -exponent < 2 ** (bits - 1))
    return raw * round(scale * Fraction(2) ** -exponent) * Fraction(2) ** exponent


def reference(own: FixedArithmetic, node: Node, values: Mapping[str, Any], unit: int) -> int:
    """Compute one unit of a node with exact rational numbers from what is held; rounded, not saturated."""
    tail, bits = own.precision.tail_bits, own.precision.multiplier_bits
    numbers: list[list[Fraction]] = []
    for each in node.inputs:
        if not isinstance(each, str):
            form = QFormat.of(abs(each), tail)
            numbers.append([real(round(each * Fraction(2) ** form.fraction), form)])
            continue
        form = own.formats[each]
        if each in own.weights.parameters:
            exact = Fraction(float(own.weights.parameters[each][unit])) * Fraction(2) ** form.fraction
            numbers.append([real(round(exact), form)])
            continue
        raw = [int(one) for one in values[each]]
        if isinstance(form, VectorFormat):
            scale, form = Fraction(float(form.scale)) * Fraction(2) ** form.element.fraction, form.element
            raw = [within(product(one, scale, bits), form) for one in raw]
        numbers.append([real(one, form) for one in raw])
    result = own.formats[node.name]
    if node.operation == "quantize":
        exact = numbers[0][unit] * Fraction(2) ** own.formats[node.inputs[0]].fraction
        unit_scale = Fraction(1 / float(result.scale)) / Fraction(2) ** own.formats[node.inputs[0]].fraction
        return rounded(product(int(exact), unit_scale, bits))
    if node.operation in ("mean", "mean_square"):
        several = [one ** (2 if node.operation == "mean_square" else 1) for each in numbers for one in each]
        return rounded(sum(several) / Fraction(len(several)) * Fraction(2) ** result.fraction)
    a, b = (each[unit if len(each) > 1 else 0] for each in (numbers * 2)[:2])
    if node.operation == "rsqrt":
        if a <= 0:
            return BEYOND
        square = 1 / (a / Fraction(4) ** result.fraction)
        return rounded(Fraction(math.isqrt(math.floor(4 * square)), 2))
    if node.operation == "divide" and not b:
        return BEYOND * ((a > 0) - (a < 0))
    exact = {
        "add": lambda: a + b,
        "subtract": lambda: a - b,
        "maximum": lambda: max(a, b),
        "minimum": lambda: min(a, b),
        "relu": lambda: max(a, Fraction(0)),
        "multiply": lambda: a * b,
        "divide": lambda: a / b,
    }[node.operation]()
    return rounded(exact * Fraction(2) ** result.fraction)


def random_values(own: FixedArithmetic, data: st.DataObject) -> dict[str, np.ndarray]:
    """Draw values for every name from all that its format can hold, extremes included."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    drawn = {}
    for name, form in own.formats.items():
        if name not in own.weights.parameters:
            # numbers of every magnitude, not only large numbers
            numbers = generator.integers(form.lowest, form.highest + 1, own.layer.width(name))
            small = numbers >> generator.integers(0, form.bits, len(numbers))
            extremes = generator.choice([form.lowest, form.highest, 0], len(numbers))
            drawn[name] = np.where(generator.random(len(numbers)) < 0.2, extremes, small)
    return drawn


def test_the_mixed_cell_reads_everything_that_is_no_table() -> None:
    tables = {"sigmoid", "tanh", "exp", "log_sigmoid"}
    assert {node.operation for node in MIXED.nodes} == {*OPERATIONS, "mean", "mean_square"} - tables
    assert kinds(MIXED)["rs"] == "scalar"


@settings(max_examples=examples(25))
@given(PRECISIONS, st.data())
def test_every_node_is_rounded_exactly_and_saturation_is_counted(precision: Precision, data: st.DataObject) -> None:
    own = arithmetic_of(MIXED, precision, data.draw(st.integers(1, 3)))
    values = random_values(own, data)
    lost = {}
    for node in MIXED.nodes:
        results, form = own.compute(node, values, slice(0, 7)), own.formats[node.name]
        exact = [reference(own, node, values, unit) for unit in range(len(results))]
        assert results.dtype == np.int64
        assert results.tolist() == [max(form.lowest, min(each, form.highest)) for each in exact], node
        lost[node.name] = sum(not form.lowest <= each <= form.highest for each in exact)
    assert own.saturated == {name: count for name, count in lost.items() if count}


@pytest.mark.halved
@pytest.mark.parametrize("graph_of", [*CELLS.values(), MIXED], ids=lambda each: each.name)
@settings(max_examples=examples(3))
@given(precision=PRECISIONS, data=st.data())
def test_row_blocks_give_what_the_whole_gives(graph_of: Cell, precision: Precision, data: st.DataObject) -> None:
    own, other = arithmetic_of(graph_of, precision), arithmetic_of(graph_of, precision)
    values, rows = random_values(own, data), kinds(graph_of)
    cut = data.draw(st.integers(1, 3))
    for node in graph_of.nodes:
        if rows[node.name] == "scalar":
            continue
        whole = own.compute(node, values, slice(0, own.layer.width(node.name)))
        for start in range(0, len(whole), cut):
            units = slice(start, min(start + cut, len(whole)))
            block = {name: each if rows.get(name) == "scalar" else each[units] for name, each in values.items()}
            assert other.compute(node, block, units).tolist() == whole[units].tolist(), node
    for each in graph_of.sums:
        total = np.arange(own.layer.width(each.name)) * 7919 - 9999
        whole = own.adapt(each.name, total, slice(0, len(total)))
        for start in range(0, len(total), cut):
            units = slice(start, min(start + cut, len(total)))
            assert other.adapt(each.name, total[units], units).tolist() == whole[units].tolist()
    assert own.saturated == other.saturated
    assert own.overflowed == other.overflowed


@settings(max_examples=examples(25))
@given(PRECISIONS, st.sampled_from([1e-30, 1.0, 1e12]), st.sampled_from([1e-30, 1.0, 1e12]), st.data())
def test_sums_of_extreme_weights_and_inputs(
    precision: Precision, weight: float, size: float, data: st.DataObject
) -> None:
    """Zero rows, rows of 1e12 or 1e-30, any accumulator contents: exactly the multiplier, the bias, the range."""
    rng = np.random.default_rng(5)
    rows = np.array([0, 1, 1e-3, 1])[:, None] * weight
    matrices = {("a", name): rng.uniform(-1, 1, (4, width)) * rows for name, width in (("x", 3), ("h", 4))}
    biases = {"a": np.array([0, 1e12, 1e-30, -1.5])}
    network = Network(Model("m", (Layer(cell("rnn"), 4, 3),)), ((PassWeights(matrices, biases),),))
    own = fixed_arithmetic(network, Stimulus(rng.uniform(-1, 1, (5, 3)) * size), precision)[0][0]
    top = 2 ** (precision.weight_bits - 1) - 1
    folded = np.hstack([matrices["a", name] * float(own.formats[name].scale) for name in "xh"])
    largest = np.abs(folded).max(axis=1)
    unit = np.where(precision.weight_scale == "row", largest, largest.max()) / top
    held = np.hstack([own.matrix("a", name) for name in "xh"])
    assert held.dtype == np.float64
    assert np.abs(held).max() == top
    assert (held == np.rint(held)).all()
    assert np.abs(held * unit[:, None] - folded).max(axis=1) == pytest.approx(0, abs=0.50001 * unit.max())
    half, form = 2 ** (precision.accumulator_bits - 1), own.formats["a"]
    extremes = st.sampled_from([0, 1, -1, half - 1, -half, half, -half - 1])
    totals = data.draw(st.lists(st.one_of(extremes, st.integers(-(2**52), 2**52)), min_size=4, max_size=4))
    adapted = own.adapt("a", np.array(totals), slice(0, 4)).tolist()
    for row, total in enumerate(totals):
        inside = (total + half) % (2 * half) - half
        scaled = product(inside, Fraction(float(unit[row])) * Fraction(2) ** form.fraction, precision.multiplier_bits)
        bias = round(Fraction(float(biases["a"][row])) * Fraction(2) ** form.fraction)
        bias = max(-(2**31), min(bias, 2**31 - 1))
        assert adapted[row] == within(Fraction(math.floor(scaled + HALF) + bias), form)
    assert own.overflowed["a"] == sum(not -half <= each < half for each in totals)


@given(st.integers(8, 40), st.data())
def test_any_order_and_grouping_of_partial_sums_gives_the_same(bits: int, data: st.DataObject) -> None:
    own = arithmetic_of(cell("rnn"), Precision(accumulator_bits=bits))
    parts = [
        np.array(each)
        for each in data.draw(
            st.lists(st.lists(st.integers(-(2**45), 2**45), min_size=7, max_size=7), min_size=1, max_size=6)
        )
    ]
    whole = own.adapt("a", own.add(np.zeros(7), np.sum(parts, axis=0).astype(np.float64)), slice(0, 7))
    once = own.overflowed["a"]
    open_ = list(parts)
    while len(open_) > 1:
        first, second = (open_.pop(data.draw(st.integers(0, len(open_) - 1))) for _ in range(2))
        open_.append(own.add(first, second.astype(np.float64)))
    assert own.adapt("a", open_[0], slice(0, 7)).tolist() == whole.tolist()
    assert own.overflowed["a"] == 2 * once


def test_an_accumulator_that_overflows_wraps_and_is_counted() -> None:
    own = arithmetic_of(cell("rnn"), Precision(accumulator_bits=8))
    inside, outside = own.adapt("a", np.full(7, -128), slice(0, 7)), own.adapt("a", np.full(7, 128), slice(0, 7))
    assert outside.tolist() == inside.tolist()
    assert own.overflowed == {"a": 7}


def test_floats_hold_the_integer_products_exactly() -> None:
    network = network_of(cell("rnn"), hidden=40, width=1000)
    own = fixed_arithmetic(network, random_stimulus(network.model, 2, 1), Precision(weight_bits=16, vector_bits=16))
    matrix = own[0][0].matrix("a", "x")
    x = own[0][0].encode(random_stimulus(network.model, 2, 1).x)[0]
    exact = matrix.astype(np.int64) @ x
    assert (matrix @ x).astype(np.int64).tolist() == exact.tolist()
    assert (matrix[:, ::-1] * x[::-1]).sum(axis=1).astype(np.int64).tolist() == exact.tolist()
