"""Split jobs, weights from a memory, pauses, jobs turned away: the trace alone computes the right answer."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.engines import ENGINES
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange, Memory
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from tests.replays import assert_golden, crowds, legal, run
from tests.splits import splits

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "4"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits(), st.sampled_from(sorted(ENGINES)))
def test_split_jobs_give_the_bits_of_the_golden_model(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], engine: str
) -> None:
    core, exchange, job, place = case
    scenario = Scenario(ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange), (job,))
    assert_golden(scenario, *run(scenario, engine))


@settings(max_examples=EXAMPLES, deadline=None)
@given(crowds("weights"), st.sampled_from(sorted(ENGINES)), st.sampled_from([None, 0]))
def test_jobs_whose_weights_take_turns_give_the_bits_of_the_golden_model(
    scenario: Scenario, engine: str, leave_out: int | None
) -> None:
    assert_golden(scenario, *legal(scenario, engine), leave_out)


@settings(max_examples=EXAMPLES, deadline=None)
@given(crowds("pauses"), st.sampled_from(sorted(ENGINES)), st.sampled_from([None, 0]))
def test_jobs_that_stop_each_other_give_the_bits_of_the_golden_model(
    scenario: Scenario, engine: str, leave_out: int | None
) -> None:
    assert_golden(scenario, *legal(scenario, engine), leave_out)


@pytest.mark.parametrize(("kib", "gb_per_s"), [(2, 0.2), (2, 2), (8, 0.2)])
def test_transfers_of_several_turns_give_the_bits_of_the_golden_model(kib: int, gb_per_s: float) -> None:
    """Section 10.3 of docs/timing.md: turns of 256 cycles. A row block of 768 weights takes 998.4 or 99.84 cycles."""
    model = Model("m", (Layer(cell("lstm"), 24, 24), Layer(cell("lstm"), 8, 24)))
    core = ColumnCore(npe=64, ep=4, vp=16, weight_kib=kib, threads=2)
    chip = ColumnNpu("c", 260, (core,) * 2, Memory(gb_per_s=gb_per_s, prefetch_blocks=1))
    place = (0, 1) if kib == 2 else None
    scenario = Scenario(chip, (Job("a", model, 2, cores=place, split="layers" if place else ""), Job("b", model, 2)))
    assert_golden(scenario, *run(scenario))
