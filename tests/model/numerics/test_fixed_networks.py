"""Whole networks in fixed point against float64: closer with more bits, and close for every cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.accuracy import accuracy
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, Stimulus, random_network, random_stimulus

#: Everything 16 bits wide, with tables fine enough not to matter: straight pieces of 1/256 are off by 1.5e-6 at most.
SIXTEEN = Precision(
    weight_bits=16, vector_bits=16, accumulator_bits=40, multiplier_bits=16, activation_entries=4096, activation_range=8
)
STEPS = 15


def network_of(name: str, hidden: int = 20, layers: int = 1, both: bool = False) -> Network:
    own = cell(name)
    projection = 11 if own.projected else None
    stack = [Layer(own, hidden, 13, both, projection)]
    for _ in range(layers - 1):
        stack.append(Layer(own, hidden, stack[-1].output, both, projection))
    return random_network(Model(name, tuple(stack)), seed=4)


def sqnr_db(network: Network, precision: Precision, stimulus: Stimulus) -> float:
    exact = run_network(float_arithmetic(network), stimulus).output()
    outputs = run_network(fixed_arithmetic(network, stimulus, precision), stimulus).output()
    return float(10 * np.log10(np.square(exact).sum() / np.square(outputs - exact).sum()))


@pytest.mark.parametrize("name", sorted(CELLS))
def test_sixteen_bits_are_close_for_every_cell(name: str) -> None:
    """Rounding to 16 bits is off by 2**-16 of the largest value at most, 2**-16 / sqrt(3) as RMS: 83 dB below a signal
    whose RMS is an eighth of its largest value. Fewer than 100 such errors meet in an output, 20 dB if they are
    independent."""
    network = network_of(name)
    assert sqnr_db(network, SIXTEEN, random_stimulus(network.model, STEPS, 4)) > 60


@pytest.mark.halved
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long if at % 2 else ()) for at, each in enumerate(sorted(CELLS))]
)
def test_more_bits_are_better(name: str) -> None:
    network = network_of(name)
    stimulus = random_stimulus(network.model, STEPS, 4)
    wide = replace(SIXTEEN, multiplier_bits=20, tail_bits=24, state_bits=24, activation_entries=65536)
    # Each further bit halves the error, which is 6 dB; the test asks for at least 4 dB.
    streamed = [
        sqnr_db(network, replace(wide, weight_bits=each, vector_bits=each), stimulus) for each in (4, 8, 12, 16)
    ]
    assert np.diff(streamed).min() > 4 * 4
    # In a wide stream, the width of the tail decides.
    tails = [sqnr_db(network, replace(wide, tail_bits=each, state_bits=each), stimulus) for each in (6, 9, 12)]
    assert np.diff(tails).min() > 4 * 3
    assert tails[-1] < streamed[-1]


@pytest.mark.parametrize("name", ["lstm", "gru", "slstm"])
@pytest.mark.parametrize("activation", ["table", "linear"])
def test_larger_tables_are_better(name: str, activation: str) -> None:
    network = network_of(name)
    stimulus = random_stimulus(network.model, STEPS, 4)
    sizes = (32, 256, 2048)
    ratios = [
        sqnr_db(network, replace(SIXTEEN, activation=activation, activation_entries=each), stimulus) for each in sizes
    ]
    # Eight times as many cells: an eighth of the error of steps; straight pieces end at what 16 bits allow.
    assert np.diff(ratios).min() > 9


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize(("scale", "bits"), [("row", 8), ("tensor", 8), ("row", 16)])
def test_stacked_bidirectional_layers(name: str, scale: str, bits: int) -> None:
    network = network_of(name, layers=2, both=True)
    precision = replace(SIXTEEN, weight_bits=bits, vector_bits=bits, weight_scale=scale)
    assert sqnr_db(network, precision, random_stimulus(network.model, STEPS, 4)) > (60 if bits == 16 else 24)


def test_a_row_scale_helps_rows_of_different_size() -> None:
    network = network_of("lstm")
    weights = network.passes[0][0]
    sizes = np.logspace(-2, 1, 20)[:, None]
    weights = replace(weights, matrices={key: each * sizes for key, each in weights.matrices.items()})
    uneven = Network(network.model, ((weights,),))
    stimulus = random_stimulus(network.model, STEPS, 4)
    row, tensor = (
        sqnr_db(uneven, replace(SIXTEEN, weight_bits=6, weight_scale=scale), stimulus) for scale in ("row", "tensor")
    )
    assert row > tensor


def test_held_numbers_are_integers_and_the_runs_repeat() -> None:
    network = network_of("lstm-layernorm")
    stimulus = random_stimulus(network.model, STEPS, 4)
    runs = [run_network(fixed_arithmetic(network, stimulus, Precision()), stimulus).passes[0][0] for _ in range(2)]
    assert runs[0].h.dtype == np.int64
    assert {each.dtype for each in runs[0].states.values()} == {np.dtype(np.int64)}
    assert (runs[0].h == runs[1].h).all()
    assert np.abs(runs[0].h).max() <= 127


@pytest.mark.halved
@pytest.mark.parametrize("name", sorted(CELLS))
@pytest.mark.parametrize(
    "precision",
    [
        Precision(2, 2, "tensor", 8, 4, 4, 4, "table", 2, 2),
        Precision(16, 16, "row", 40, 20, 24, 24, "linear", 65536, 64),
        Precision(16, 16, "row", 8, 20, 4, 24, "table", 16, 64),
    ],
)
def test_the_ends_of_every_width_run(name: str, precision: Precision) -> None:
    assert not precision.mistakes()
    network = network_of(name, hidden=3)
    stimulus = random_stimulus(network.model, 4, 2)
    arithmetic = fixed_arithmetic(network, stimulus, precision)
    for factor in (1.0, 1e6, 1e-6):
        output = run_network(arithmetic, Stimulus(stimulus.x * factor)).output()
        assert np.isfinite(output).all()
        assert np.abs(output).max() <= float(arithmetic[0][0].formats["h"].scale) * 2 ** (precision.vector_bits - 1)


def test_narrow_accumulators_overflow_and_wide_ones_do_not() -> None:
    network = network_of("lstm")
    stimulus = random_stimulus(network.model, STEPS, 4)
    lost = {}
    for bits in (12, 32):
        arithmetic = fixed_arithmetic(network, stimulus, Precision(accumulator_bits=bits))
        run_network(arithmetic, stimulus)
        lost[bits] = sum(arithmetic[0][0].overflowed.values())
    assert lost[12] > lost[32] == 0


def test_a_vector_that_is_always_zero_does_not_cost_the_others_their_bits() -> None:
    model = Model("m", (Layer(cell("lstm"), 32, 16),))
    network = random_network(model, seed=2)
    initial = {(0, 0): {"h": np.linspace(-1, 1, 32)}}
    quality = []
    for x in (np.zeros((1, 16)), np.full((1, 16), 1e-4)):
        stimulus = Stimulus(x, initial)
        fixed = run_network(fixed_arithmetic(network, stimulus, Precision()), stimulus)
        quality.append(accuracy(fixed.output(), run_network(float_arithmetic(network), stimulus).output()).sqnr_db)
    assert abs(quality[0] - quality[1]) < 6
