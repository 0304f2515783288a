"""docs/numerics.md is complete: a program written from its text alone computes the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.keys import keys_of
from lstmsim.files.scenario.schema import PrecisionEntry
from lstmsim.model.cell import OPERATIONS, REDUCTIONS, Cell, stage_of
from lstmsim.model.cells import CELLS, cell, graph
from lstmsim.model.model import WIDTHS, Layer, Model, Precision
from lstmsim.model.numerics.calibration import calibrate
from lstmsim.model.numerics.fixed import fixed_arithmetic, fixed_chip
from lstmsim.model.numerics.golden import run_network
from lstmsim.model.numerics.weights import Network, Stimulus, random_network, random_stimulus
from tests.oracle import numerics as page

PAGE = Path(__file__).parents[3] / "docs" / "numerics.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""

PRECISIONS = {
    "usual": Precision(),
    "narrow": Precision(4, 3, "tensor", 10, 4, 6, 5, "table", 16, 4),
    "wide": Precision(16, 16, "row", 40, 20, 24, 24, "linear", 1024, 16),
    "steps": Precision(7, 9, "row", 20, 9, 12, 14, "table", 64, 32),
    "odd": Precision(5, 11, "tensor", 14, 13, 9, 20, "linear", 2, 64),
    "common": Precision(6, 6, multiplier_bits=7, activation_entries=16, shift="common"),
}


def network(name: str, hidden: int = 5, layers: int = 1, both: bool = False, seed: int = 3) -> Network:
    own = cell(name)
    projection = 3 if own.projected else None
    both = both and own.recurrent
    stack = [Layer(own, hidden, 4, both, projection)]
    for _ in range(layers - 1):
        stack.append(Layer(own, hidden, stack[-1].output, both, projection))
    return random_network(Model(name, tuple(stack)), seed)


def as_pages(net: Network, stimulus: Stimulus) -> list[list[page.PassNumbers]]:
    return [
        [
            page.PassNumbers(
                {key: each.tolist() for key, each in own.matrices.items()},
                {key: each.tolist() for key, each in own.biases.items()},
                {key: each.tolist() for key, each in own.parameters.items()},
                {key: each.tolist() for key, each in stimulus.initial.get((number, direction), {}).items()},
            )
            for direction, own in enumerate(both)
        ]
        for number, both in enumerate(net.passes)
    ]


def assert_equal_bits(net: Network, stimulus: Stimulus, precision: Precision, *others: Stimulus) -> None:
    """Compare all bits; `others`: the stimuli of the calibration, if it is not the stimulus itself."""
    assert not precision.mistakes()
    ours = run_network(fixed_arithmetic(net, list(others) or stimulus, precision), stimulus)
    runs = [each.x.tolist() for each in others] or None
    theirs = page.run(net.model.layers, as_pages(net, stimulus), precision, stimulus.x.tolist(), runs)
    for layer, (both, written) in enumerate(zip(ours.passes, theirs, strict=True)):
        for direction, (own, (h, states, real)) in enumerate(zip(both, written, strict=True)):
            assert own.h.tolist() == h
            assert {name: each.tolist() for name, each in own.states.items()} == states
            # another order of additions in the calibration may move a scale by its last bits (section 14)
            assert ours.h(layer, direction) == pytest.approx(np.array(real), rel=1e-12)


@pytest.mark.halved
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        # in the usual run each cell has half of the precisions, and each precision half of the cells
        pytest.param(kind, name, marks=pytest.mark.long if (number + at) % 2 else ())
        for number, kind in enumerate(PRECISIONS)
        for at, name in enumerate(sorted(CELLS))
    ],
)
def test_every_cell_at_every_precision(name: str, kind: str) -> None:
    net = network(name)
    assert_equal_bits(net, random_stimulus(net.model, 6, seed=5), PRECISIONS[kind])


#: Operations that no built-in cell has, numbers, a vector that nodes read, a state of a `quantize` node's own.
ODD = Cell(
    "odd",
    (stage_of("a[x h] b{bx[x] b[h]}"), stage_of("d[x v]")),
    graph(
        """ar relu a; am minimum ar 0.75; bb subtract b bx; bs multiply bb w; v quantize bs; vh multiply v h
        ds add d vh; dd divide ds 3; e mean a b; em multiply e -0.125; k maximum dd em
        sn add s 0.5; ss multiply sn am; su add ss u; hf subtract su k
        h' quantize hf"""
    ),
    {"h": "h'", "s": "hf", "u": "v"},
    ("w",),
)


@pytest.mark.parametrize("kind", PRECISIONS)
def test_a_cell_of_the_users_own(kind: str) -> None:
    net = random_network(Model("m", (Layer(ODD, 5, 4), Layer(ODD, 3, 5))), seed=2)
    assert {node.operation for own in (*CELLS.values(), ODD) for node in own.nodes} == {*OPERATIONS, *REDUCTIONS}
    assert_equal_bits(net, random_stimulus(net.model, 6, seed=5), PRECISIONS[kind])


@pytest.mark.parametrize("name", ["lstm", "gru", "lstm-projection", "mingru"])
@pytest.mark.parametrize("kind", ["usual", "narrow"])
def test_stacks_in_both_directions(name: str, kind: str) -> None:
    net = network(name, layers=2, both=True)
    assert_equal_bits(net, random_stimulus(net.model, 4, seed=6), PRECISIONS[kind])


def test_a_reverse_layer() -> None:
    model = Model("m", (Layer(cell("gru"), 5, 4, reverse=True), Layer(cell("rnn"), 3, 5)))
    net = random_network(model, seed=3)
    stimulus = replace(random_stimulus(model, 5, seed=6), initial={(0, 0): {"h": np.full(5, 0.5)}})
    assert_equal_bits(net, stimulus, Precision())


@pytest.mark.parametrize("name", ["lstm", "gru", "gru-lbr0", "slstm"])
def test_initial_states(name: str) -> None:
    net = network(name, both=True)
    own = np.random.default_rng(8)
    some = {(0, 0): {"h": own.standard_normal(5)}, (0, 1): {n: own.standard_normal(5) for n in cell(name).states}}
    stimulus = replace(random_stimulus(net.model, 4, seed=6), initial=some)
    assert_equal_bits(net, stimulus, Precision())


@pytest.mark.parametrize("factor", [0.0, 1e-3, 30.0])
def test_frames_unlike_those_of_the_calibration(factor: float) -> None:
    net = network("lstm-layernorm")
    others = [random_stimulus(net.model, 5, seed=seed) for seed in (1, 2)]
    stimulus = random_stimulus(net.model, 5, seed=7)
    assert_equal_bits(net, Stimulus(factor * stimulus.x), PRECISIONS["narrow"], *others)
    assert_equal_bits(net, stimulus, Precision(), Stimulus(factor * stimulus.x))


def test_weights_of_very_different_size_in_single_precision() -> None:
    plain = network("gru")
    rows = np.array([1e-4, 1e3, 0.0, 1.0, 7.0])[:, None]
    own = plain.passes[0][0]
    matrices = {key: (each * rows).astype(np.float32) for key, each in own.matrices.items()}
    net = Network(plain.model, ((replace(own, matrices=matrices, biases={"r": own.biases["r"] * 1e6}),),))
    for kind in ("usual", "odd"):
        assert_equal_bits(net, random_stimulus(net.model, 5, seed=2), PRECISIONS[kind])


#: One chip: two models of one kind of cell with unlike ranges, one of two layers, and a model of another kind.
@pytest.mark.halved
@pytest.mark.parametrize("shift", ["row", "common"])
@pytest.mark.parametrize("name", ["lstm-peephole", "gru", "lstm-projection", "slstm"])
def test_models_that_share_their_formats(name: str, shift: str) -> None:
    precision = Precision(vector_bits=6, multiplier_bits=9, activation_entries=32, formats="shared", shift=shift)
    nets = [network(name, layers=2, both=True), network(name, hidden=3, seed=9), network("rnn", seed=4)]
    loud = zip(nets, (1, 20, 3), strict=True)
    stimuli = [Stimulus(scale * random_stimulus(net.model, 4, seed=6).x) for net, scale in loud]
    ranges = [(net, calibrate(net, [each])) for net, each in zip(nets, stimuli, strict=True)]
    written = [(net.model.layers, as_pages(net, s), [s.x.tolist()]) for net, s in zip(nets, stimuli, strict=True)]
    for number, passes in enumerate(fixed_chip(ranges, precision)):
        ours = run_network(passes, stimuli[number])
        own, rest = written[number], written[:number] + written[number + 1 :]
        theirs = page.run(*own[:2], precision, own[2][0], own[2], rest)
        for both, other in zip(ours.passes, theirs, strict=True):
            for one, (h, states, _) in zip(both, other, strict=True):
                assert one.h.tolist() == h
                assert {key: each.tolist() for key, each in one.states.items()} == states


@pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")
def test_the_page_names_every_operation_and_every_width() -> None:
    missing = [each for each in (*OPERATIONS, *REDUCTIONS, *keys_of(PrecisionEntry)) if f"`{each}`" not in TEXT]
    assert not missing
    for name, (low, high) in WIDTHS.items():
        default = getattr(Precision(), name)
        assert any(
            line.startswith(f"| `{name}`") and f"| {default} | {low} to {high} |" in line for line in TEXT.splitlines()
        ), name
    assert len(TEXT.splitlines()) < 350
