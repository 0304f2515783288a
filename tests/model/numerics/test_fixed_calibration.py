"""Formats and tables that calibration chooses, and inputs that it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import cell, graph
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.fixed_point import QFormat
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, PassWeights, Stimulus, random_network, random_stimulus


def network_of(own: Cell, hidden: int = 7, width: int = 5, seed: int = 1, layers: int = 1) -> Network:
    projection = 4 if own.projected else None
    first = Layer(own, hidden, width, projection=projection)
    rest = (Layer(own, hidden, first.output, projection=projection),) * (layers - 1)
    return random_network(Model("m", (first, *rest)), seed)


def test_states_have_the_format_of_the_node_that_feeds_them_and_start_in_it() -> None:
    network = network_of(cell("lstm"))
    start = {"c": np.array([40.0, 0, 0, 0, 0, 0, -1]), "h": np.full(7, -3.0)}
    stimulus = Stimulus(random_stimulus(network.model, 4, 1).x, {(0, 0): start})
    own = fixed_arithmetic(network, stimulus, Precision(state_bits=20))[0][0]
    assert own.formats["c"] == own.formats["c'"] == QFormat(20, 13)
    assert own.formats["h"] is own.formats["h'"]
    for name, values in start.items():
        np.testing.assert_allclose(own.decode(name, own.start(name, values)), values, rtol=1e-12)
    assert own.start("c", None).tolist() == [0] * 7
    assert not own.saturated
    own.start("c", np.array([40.0, 90, -90, 0, 0, 0, 0]))
    assert own.saturated == {"c": 2}


def test_the_layer_above_reads_both_directions_with_their_own_scales() -> None:
    gru = cell("gru")
    below = Layer(gru, 4, 3, bidirectional=True)
    network = random_network(Model("m", (below, Layer(gru, 5, 8))), seed=3)
    arithmetic = fixed_arithmetic(network, random_stimulus(network.model, 8, 3), Precision())
    forward, backward = (float(each.formats["h"].scale) for each in arithmetic[0])
    assert forward != backward
    assert arithmetic[1][0].formats["x"].scale.tolist() == [forward] * 4 + [backward] * 4
    assert arithmetic[0][0].x is arithmetic[0][1].x


def test_formats_hold_exactly_what_the_floating_point_run_reaches() -> None:
    layer = Layer(cell("gru"), 4, 3, bidirectional=True)
    network = random_network(Model("m", (layer, Layer(cell("lstm"), 5, 8, bidirectional=True))), seed=3)
    stimulus = random_stimulus(network.model, 8, 3)
    exact = run_network(float_arithmetic(network), stimulus)
    for number, both in enumerate(fixed_arithmetic(network, stimulus, Precision())):
        for direction, own in enumerate(both):
            largest = np.abs(exact.h(number, direction)).max()
            assert float(own.formats["h"].scale) == pytest.approx(largest / 127, rel=1e-12)


def test_exponentials_that_were_never_above_1_use_the_whole_table_below() -> None:
    wide = Precision(16, 16, "row", 40, 20, 24, 24, "linear", 65536, 8)
    network = network_of(cell("slstm"))
    usual = random_stimulus(network.model, 4, 1)
    # Arguments far below 0: i meets a stabiliser m of 15.
    damped = Stimulus(usual.x, {(0, 0): {"m": np.full(7, 15.0)}})
    own = fixed_arithmetic(network, [usual, damped], wide)[0][0]
    node = own.layer.cell.node("it")
    raw, lost = own.formats["im"].held([-15.0, -12.0, -1.0, 0.0])
    assert lost == 0
    results = own.decode("it", own.compute(node, {"im": raw}, slice(0, 4)))
    np.testing.assert_allclose(results, np.exp([-15.0, -12.0, -1.0, 0.0]), atol=2**-21)
    above = Cell("e", (stage_of("a[x h]"),), graph("e exp a; h' quantize e"), {"h": "h'"})
    network = network_of(above)
    own = fixed_arithmetic(network, random_stimulus(network.model, 4, 1), wide)[0][0]
    raw, lost = own.formats["a"].held([-1.0, 0.25, own.ranges["a"][1]])
    results = own.decode("e", own.compute(above.node("e"), {"a": raw}, slice(0, 3)))
    assert lost == 0
    np.testing.assert_allclose(results, np.exp([-1.0, 0.25, own.ranges["a"][1]]), rtol=1e-5)


def test_other_functions_keep_their_table_when_calibration_saw_one_side_only() -> None:
    layer = Layer(cell("rnn"), 3, 2)
    weights = random_network(Model("m", (layer,)), 1).passes[0][0]
    network = Network(Model("m", (layer,)), ((replace(weights, biases={"a": np.full(3, -6.0)}),),))
    own = fixed_arithmetic(network, random_stimulus(network.model, 4, 1), Precision())[0][0]
    assert own.ranges["a"][1] <= 0
    raw, _ = own.formats["a"].held([-1.0, 0.0, 0.5])
    results = own.decode("hf", own.compute(layer.cell.node("hf"), {"a": raw}, slice(0, 3)))
    np.testing.assert_allclose(results, np.tanh([-1.0, 0.0, 0.5]), atol=1e-3)


def test_several_stimuli_widen_the_formats() -> None:
    network = network_of(cell("rnn"))
    quiet = random_stimulus(network.model, 4, 1)
    loud = Stimulus(quiet.x * 100)
    for several in ([quiet, loud], [loud, quiet], [loud]):
        own = fixed_arithmetic(network, several, Precision())[0][0]
        assert float(own.formats["x"].scale) == np.abs(loud.x).max() / 127
    own = fixed_arithmetic(network, quiet, Precision())[0][0]
    assert np.abs(own.encode(loud.x)).max() == 127
    assert own.saturated["x"] > 0


def test_all_zero_networks_and_inputs_run() -> None:
    layer = Layer(cell("lstm"), 3, 2)
    matrices = {key: each * 0 for key, each in random_network(Model("m", (layer,)), 1).passes[0][0].matrices.items()}
    network = Network(Model("m", (layer,)), ((PassWeights(matrices),),))
    own = fixed_arithmetic(network, Stimulus(np.zeros((2, 2))), Precision())[0][0]
    assert float(own.formats["x"].scale) == 1
    assert own.formats["i"] == QFormat(16, 15)
    assert own.matrix("i", "x").tolist() == [[0, 0]] * 3


def test_what_cannot_be_calibrated_gets_a_sentence() -> None:
    network = network_of(cell("rnn"))
    with pytest.raises(InputError, match="at least one stimulus"):
        fixed_arithmetic(network, [], Precision())
    with pytest.raises(InputError, match=r"precision\.tail_bits: must be between"):
        fixed_arithmetic(network, random_stimulus(network.model, 2, 1), Precision(tail_bits=60))
    for wrong in (np.nan, np.inf, 1e200):
        with pytest.raises(InputError, match="x has no finite range"):
            fixed_arithmetic(network, Stimulus(np.full((2, 5), wrong)), Precision())
    growing = Cell("g", (stage_of("a[x h]"),), graph("e exp a; i divide 1 e; h' quantize i"), {"h": "h'"})
    network = network_of(growing)
    with pytest.raises(InputError, match="no finite range"):
        fixed_arithmetic(network, Stimulus(np.full((2, 5), 1e6)), Precision())
