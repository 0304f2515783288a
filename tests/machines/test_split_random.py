"""Random split jobs against the cycle-stepped model of section 9, and what holds for all of them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange
from lstmsim.machines.column.passes import ARRAY
from lstmsim.machines.column.phases import layer_runs, model_phases, operations_per_step, split_phases
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from tests.oracle import split as oracle
from tests.splits import issues, phases_of, splits, work
from tests.strategies import cores_of_a_chip, models

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(splits())
def test_random_splits_as_the_cycle_stepped_model_has_them(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]],
) -> None:
    core, exchange, job, place = case
    chip = ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange)
    program = lower(chip, [job])
    trace = reference.run(program)
    finish, cores = oracle.simulate_split(job, core, place, exchange)
    assert trace.makespan_cycles == finish
    for on in set(place):
        assert issues(trace, on, ARRAY) == cores[on].issued
    assert work(program) == sum(each.macs for each in cores.values()) == job.macs
    operations = sum(len(phase.body.operations) for phase in phases_of(program))
    assert operations <= operations_per_step(job.model.layers, core, job.split, len(place))


@settings(max_examples=EXAMPLES, deadline=None)
@given(models(tuple(CELLS)), cores_of_a_chip(), st.integers(1, 3), st.sampled_from(["rows", "layers"]))
def test_one_member_does_what_an_unsplit_job_does(model: Model, core: ColumnCore, steps: int, split: str) -> None:
    assume(core.refusal(model) is None)
    if split == "layers":
        assume(not any(layer.bidirectional or layer.reverse for layer in model.layers))
        model = Model("m", model.layers, "step")
    assert split_phases(model, core, steps, split, (0,), Exchange()) == model_phases(model, core, steps)


@settings(max_examples=EXAMPLES, deadline=None)
@given(models(("rnn", "lstm", "dense")), st.integers(1, 3))
def test_runs_are_the_best_of_all_cuts(model: Model, members: int) -> None:
    assume(members <= len(model.layers))
    assert list(layer_runs(model, members)) == oracle.runs(model, members)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(splits(), st.integers(1, 20))
def test_a_wider_link_never_ends_later(case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], more: int) -> None:
    core, exchange, job, place = case
    assume(len(set(place)) == len(place))
    ends = []
    for width in (exchange.width, exchange.width + more):
        chip = ColumnNpu("c", 260, (core,) * (max(place) + 1), None, replace(exchange, width=width))
        ends.append(reference.run(lower(chip, [job])).makespan_cycles)
    assert ends[0] >= ends[1]


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits(), st.integers(1, 20))
def test_a_slower_exchange_never_ends_sooner(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], more: int
) -> None:
    core, exchange, job, place = case
    assume(len(set(place)) == len(place))
    ends = []
    for latency in (exchange.latency_cycles, exchange.latency_cycles + more):
        chip = ColumnNpu("c", 260, (core,) * (max(place) + 1), None, replace(exchange, latency_cycles=latency))
        ends.append(reference.run(lower(chip, [job])).makespan_cycles)
    assert ends[0] <= ends[1]
