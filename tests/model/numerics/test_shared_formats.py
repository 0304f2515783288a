"""What passes of a kind of cell share on a chip: formats, tables, rescalings of vectors, shifts behind the array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim.model.cells import cell
from lstmsim.model.model import FORMATS, SHIFTS, Layer, Model, Precision
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.jobs import JobData, fixed_numbers
from lstmsim.model.numerics.weights import Stimulus, random_network, random_stimulus


def chip(precision: Precision) -> list[FixedArithmetic]:
    """Two models of one kind of cell, the second much louder, and a model of another kind; the passes in order."""
    jobs = {}
    for index, (name, loud) in enumerate((("lstm-peephole", 1), ("lstm-peephole", 30), ("gru", 5))):
        model = Model(f"m{index}", (Layer(cell(name), 6, 5), Layer(cell(name), 4, 6)))
        stimulus = Stimulus(loud * random_stimulus(model, 9, seed=2).x)
        jobs[index] = JobData(random_network(model, seed=index), stimulus, "w", "x")
    numbers = fixed_numbers(jobs, precision).values()
    passes = [own for each in numbers for both in each.arithmetic for own in both]
    assert all(isinstance(own, FixedArithmetic) for own in passes)
    return [own for own in passes if isinstance(own, FixedArithmetic)]


def held(own: FixedArithmetic) -> str:
    """What a machine must know of a pass beside its weights and its adapters."""
    formats = {
        name: (each.bits, getattr(each, "fraction", None), repr(getattr(each, "element", None)))
        for name, each in own.formats.items()
        if name != "x"
    }
    tables = {name: each.entries.tolist() for name, each in own.tables.items()}
    return repr((formats, tables, own.quantizers, own.readers, own.constants))


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("formats", FORMATS)
def test_what_is_one_for_all_passes_of_a_kind(formats: str, shift: str) -> None:
    *lstm, gru, _ = chip(replace(Precision(activation_entries=16), formats=formats, shift=shift))
    assert len({held(each) for each in lstm}) == (1 if formats == "shared" else 4)
    assert held(gru) != held(lstm[0])
    shifts = {sum_: [set(each.adapters[sum_].shift.tolist()) for each in lstm] for sum_ in "ifgo"}
    assert all(len(each) == 1 for own in shifts.values() for each in own) == (shift == "common")
    assert all(len(set.union(*own)) == 1 for own in shifts.values()) == ((formats, shift) == ("shared", "common"))
    # the loud input has its own scale, which is folded into the weights
    assert float(lstm[0].x.scale) < float(lstm[2].x.scale)


@pytest.mark.parametrize("formats", FORMATS)
def test_factors_of_a_common_shift_are_as_exact_as_their_bits(formats: str) -> None:
    precision = Precision(multiplier_bits=8, formats=formats, shift="common")
    for own in chip(precision):
        for sum_, adapter in own.adapters.items():
            exact = np.ldexp(own.units[sum_], own.formats[sum_].fraction + adapter.shift)  # type: ignore[union-attr]
            assert adapter.factor.max() < 256
            assert np.abs(adapter.factor - exact).max() <= 0.5
    assert max(own.adapters["i"].factor.max() for own in chip(precision)[:4]) >= 128


def test_a_vector_that_only_another_pass_moves_has_its_scale() -> None:
    model = Model("m", (Layer(cell("rnn"), 4, 3),))
    stimulus = random_stimulus(model, 5, seed=1)
    moving, own = (random_network(model, seed=seed) for seed in (1, 2))
    nothing = {key: 0 * each for key, each in own.passes[0][0].matrices.items()}
    still = replace(own, passes=((replace(own.passes[0][0], matrices=nothing, biases={}),),))
    for formats in FORMATS:
        jobs = {index: JobData(each, stimulus, "w", "x") for index, each in enumerate((moving, still))}
        one, other = (each.arithmetic[0][0] for each in fixed_numbers(jobs, Precision(formats=formats)).values())
        most = np.array([127])
        assert (one.decode("h", most) == other.decode("h", most)) == (formats == "shared")
