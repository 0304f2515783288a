"""A lone reverse layer: what it means, what it costs, and that its numbers are those of a backward pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim import engines
from lstmsim.base.errors import InputError
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, Stimulus, random_network, random_stimulus
from lstmsim.model.scenario import Chip, Job

COLUMN = ColumnNpu("column", 260, (ColumnCore(npe=64, ep=4, vp=16, threads=2),))
ROW = RowNpu("row", 300, (RowCore(7, 40, 40, vectors=3, replicas=2, chunk_groups=12, serializer_cycles=4),))
LAYER = Layer(cell("lstm"), 20, 12)
BACKWARD = replace(LAYER, reverse=True)


def cycles(chip: Chip, layers: tuple[Layer, ...], frame_interval: int = 0, steps: int = 3) -> int:
    program = lower(chip, [Job("j", Model("m", layers), steps, frame_interval=frame_interval)])
    first, second = reference.run(program), engines.run(program)
    assert first.makespan_cycles == second.makespan_cycles
    return first.makespan_cycles


@pytest.mark.slow
@pytest.mark.parametrize("chip", [COLUMN, ROW], ids=["column", "row"])
def test_frames_that_are_there_make_a_reverse_layer_as_fast_as_a_forward_one(chip: Chip) -> None:
    above = Layer(cell("lstm"), 8, 20)
    assert cycles(chip, (BACKWARD,)) == cycles(chip, (LAYER,))
    # the whole stack turned round is the same machine run on the frames in the other order
    assert cycles(chip, (BACKWARD, replace(above, reverse=True))) == cycles(chip, (LAYER, above))


@pytest.mark.parametrize("chip", [COLUMN, ROW], ids=["column", "row"])
def test_a_reverse_layer_waits_for_the_last_frame(chip: Chip) -> None:
    interval, steps = 3000, 3
    start, end = cycles(chip, (BACKWARD,)), cycles(chip, (BACKWARD,), interval)
    assert end >= (steps - 1) * interval + cycles(chip, (LAYER,), steps=1)
    assert abs(end - ((steps - 1) * interval + start)) <= start
    # a forward one is done soon after the last frame, with all other steps behind it
    assert cycles(chip, (LAYER,), interval) < end


def test_a_forward_layer_above_begins_when_step_0_is_there() -> None:
    """The layer above reads step 0 first, which a reverse layer makes last: nothing overlaps. Turned, it does."""
    above = Layer(cell("lstm"), 8, 20)
    turned = cycles(COLUMN, (BACKWARD, replace(above, reverse=True)))
    assert cycles(COLUMN, (BACKWARD, above)) > turned


def halves(both: Network) -> tuple[Network, Network]:
    """The two passes of a bidirectional layer as networks of their own."""
    (layer,) = both.model.layers
    one = replace(layer, bidirectional=False)
    models = (Model("forward", (one,)), Model("reverse", (replace(one, reverse=True),)))
    first, second = (Network(model, ((side,),)) for model, side in zip(models, both.passes[0], strict=True))
    return first, second


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn-relu", "gru-lbr0"])
@pytest.mark.parametrize("precision", [None, Precision()], ids=["float", "fixed"])
def test_outputs_are_those_of_the_backward_half(name: str, precision: Precision | None) -> None:
    both = random_network(Model("both", (Layer(cell(name), 7, 5, bidirectional=True),)), seed=3)
    stimulus = random_stimulus(both.model, 6, seed=4)

    def run(network: Network) -> np.ndarray:
        arithmetic = fixed_arithmetic(network, stimulus, precision) if precision else float_arithmetic(network)
        return run_network(arithmetic, stimulus).output()

    joined = np.concatenate([run(each) for each in halves(both)], axis=1)
    np.testing.assert_array_equal(run(both), joined)


def test_outputs_stand_in_the_order_of_time() -> None:
    forward = random_network(Model("m", (Layer(cell("gru"), 6, 4),)), seed=1)
    layer = replace(forward.model.layers[0], reverse=True)
    reverse = Network(Model("m", (layer,)), forward.passes)
    x = random_stimulus(forward.model, 5, seed=2).x
    turned = run_network(float_arithmetic(forward), Stimulus(x[::-1])).output()[::-1]
    np.testing.assert_array_equal(run_network(float_arithmetic(reverse), Stimulus(x)).output(), turned)


@pytest.mark.parametrize(
    ("layer", "order", "sentence"),
    [
        (replace(BACKWARD, bidirectional=True), "layer", "layers.0.reverse: a bidirectional layer has both directions"),
        (BACKWARD, "step", "layers.0.reverse: a reverse layer needs layer_order 'layer'"),
        (Layer(cell("dense"), 4, 4, reverse=True), "layer", "layers.0.reverse: cell 'dense' has no direction"),
    ],
)
def test_what_makes_no_sense_is_refused(layer: Layer, order: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        Model("m", (layer,), order)
    assert sentence in str(caught.value)


def test_a_pipeline_of_layers_is_refused() -> None:
    job = Job("j", Model("m", (BACKWARD, Layer(cell("lstm"), 8, 20))), 4, cores=(0, 1), split="layers")
    chip = replace(COLUMN, cores=COLUMN.cores * 2)
    with pytest.raises(InputError, match="layer 0 runs in reverse: the layer above it cannot start before"):
        lower(chip, [job])
