"""The trace alone computes the right answer, and a wrong trace does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines, machines
from lstmsim.analysis.replay import FLOAT_TOLERANCE, JobData, JobNumbers, check_numerics, replay
from lstmsim.base.errors import ReplayError
from lstmsim.engines import ENGINES
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.passes import ARRAY, TAIL
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import fixed_arithmetic
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import ISSUES, TASKS, Trace
from tests.strategies import scenarios

#: 200 and more by LSTMSIM_EXAMPLES=200; each example is several jobs of several layers.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))
#: Every second built-in cell in the usual run.
SOME_CELLS = sorted(CELLS)[:: 1 if "LSTMSIM_EXAMPLES" in os.environ else 2]

PRECISIONS = st.builds(
    Precision,
    weight_bits=st.sampled_from([2, 4, 8, 8, 16]),
    vector_bits=st.sampled_from([2, 5, 8, 8, 16]),
    weight_scale=st.sampled_from(["row", "tensor"]),
    formats=st.sampled_from(["own", "shared"]),
    shift=st.sampled_from(["row", "common"]),
    accumulator_bits=st.sampled_from([8, 16, 32, 40]),
    multiplier_bits=st.sampled_from([4, 16, 20]),
    tail_bits=st.sampled_from([6, 16, 24]),
    state_bits=st.sampled_from([8, 16, 24]),
    activation=st.sampled_from(["table", "linear"]),
    activation_entries=st.sampled_from([2, 64, 1024]),
    activation_range=st.sampled_from([2, 8]),
)


def floats(scenario: Scenario) -> dict[int, JobNumbers]:
    """Random weights and input, other ones for each job."""
    return {
        index: JobNumbers(
            float_arithmetic(random_network(job.model, index)), random_stimulus(job.model, job.steps, index)
        )
        for index, job in enumerate(scenario.jobs)
    }


@settings(max_examples=EXAMPLES)
@given(scenarios(tuple(CELLS)), st.sampled_from(sorted(ENGINES)), PRECISIONS)
def test_in_fixed_point_every_schedule_gives_the_bits_of_the_golden_model(
    scenario: Scenario, engine: str, precision: Precision
) -> None:
    program = machines.lower(scenario.chip, scenario.jobs)
    numbers = {}
    for index, job in enumerate(scenario.jobs):
        stimulus = random_stimulus(job.model, job.steps, index)
        numbers[index] = JobNumbers(fixed_arithmetic(random_network(job.model, index), stimulus, precision), stimulus)
    golden = {index: run_network(own.arithmetic, own.stimulus) for index, own in numbers.items()}
    done = replay(scenario, program, engines.run(program, engine), numbers)
    for index in numbers:
        for computed, wanted in zip(chain(*done[index].passes), chain(*golden[index].passes), strict=True):
            assert computed.h.dtype == np.int64
            assert np.array_equal(computed.h, wanted.h)
            assert set(computed.states) == set(wanted.states)
            assert all(np.array_equal(computed.states[name], values) for name, values in wanted.states.items())


@settings(max_examples=max(6, EXAMPLES // 4))
@given(scenarios(tuple(CELLS)), st.sampled_from(sorted(ENGINES)))
def test_every_schedule_computes_what_the_golden_model_does(scenario: Scenario, engine: str) -> None:
    program = machines.lower(scenario.chip, scenario.jobs)
    numbers = floats(scenario)
    done = replay(scenario, program, engines.run(program, engine), numbers)
    for index, own in numbers.items():
        golden = run_network(own.arithmetic, own.stimulus)
        for passes, expected in zip(done[index].passes, golden.passes, strict=True):
            for computed, wanted in zip(passes, expected, strict=True):
                np.testing.assert_allclose(computed.h, wanted.h, rtol=1e-9, atol=1e-9)
                for state, values in wanted.states.items():
                    np.testing.assert_allclose(computed.states[state], values, rtol=1e-9, atol=1e-9)


def a_run(cell_name: str = "lstm", block_order: str = "row") -> tuple[Scenario, Program, Trace, dict[int, JobNumbers]]:
    """Two jobs on two threads, several row blocks and column groups each."""
    own = cell(cell_name)
    model = Model("m", (Layer(own, 11, 7, projection=6 if own.projected else None),))
    core = ColumnCore(npe=64, ep=2, vp=16, threads=2, tail_width=2, block_order=block_order, accumulator_banks=8)
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), (Job("a", model, 3), Job("b", model, 3, arrival=20)))
    program = machines.lower(scenario.chip, scenario.jobs)
    return scenario, program, engines.run(program, "fast"), floats(scenario)


def column(name: str) -> int:
    return ISSUES.place(name)


def changed(trace: Trace, change: Callable[[np.ndarray], np.ndarray]) -> Trace:
    """The trace with other issues, in order again."""
    issues = change(trace.issues.copy())
    order = np.lexsort((issues[:, column("unit")], issues[:, column("core")], issues[:, column("start")]))
    return Trace(issues[order], trace.switches, trace.tasks)


def rows(trace: Trace, unit: int) -> np.ndarray:
    return np.flatnonzero(trace.issue("unit") == unit)


@pytest.mark.halved
@pytest.mark.parametrize("name", sorted(set(CELLS) - {"dense"}))
@pytest.mark.parametrize("block_order", ["row", pytest.param("column", marks=pytest.mark.long)])
def test_a_dropped_tile_is_found(name: str, block_order: str) -> None:
    scenario, program, trace, numbers = a_run(name, block_order)
    for row in rows(trace, ARRAY)[::17]:
        fewer = changed(trace, lambda issues, row=row: np.delete(issues, row, axis=0))
        with pytest.raises(ReplayError, match=r"of \d+ column groups added up|lies outside|no free|been computed"):
            replay(scenario, program, fewer, numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "gru-lbr0", "lstm-layernorm"])
def test_a_doubled_tile_is_found(name: str) -> None:
    scenario, program, trace, numbers = a_run(name)

    def twice(issues: np.ndarray, row: int) -> np.ndarray:
        # at a time when the array is free, so that nothing else is wrong
        again = issues[row].copy()
        again[column("start")] = trace.makespan_cycles + 1
        return np.vstack([issues, again])

    for row in rows(trace, ARRAY)[::13]:
        with pytest.raises(ReplayError):
            replay(scenario, program, changed(trace, lambda issues, row=row: twice(issues, row)), numbers)

    # in the same place, before its row block is finished: counted twice
    first = rows(trace, ARRAY)[0]

    def stretched(issues: np.ndarray) -> np.ndarray:
        own = issues[first].copy()
        own[column("start")] += own[column("count")]
        later = issues[:, column("start")] >= own[column("start")]
        issues[later, column("start")] += own[column("count")]
        return np.vstack([issues, own])

    with pytest.raises(ReplayError, match=r"counted twice|lies outside"):
        replay(scenario, program, changed(trace, stretched), numbers)


@pytest.mark.parametrize("name", SOME_CELLS)
def test_moving_anything_one_cycle_forward_is_found_where_it_waited(name: str) -> None:
    scenario, program, trace, numbers = a_run(name)
    until = trace.issue("hazard_until")
    held = [row for row in range(len(until)) if until[row] == trace.issue("start")[row] > 0]
    assert held
    # some from the whole length of the trace; with LSTMSIM_EXAMPLES all of them
    for row in held[:: 1 if "LSTMSIM_EXAMPLES" in os.environ else 1 + len(held) // 5]:

        def earlier(issues: np.ndarray, row: int = row) -> np.ndarray:
            issues[row, column("start")] -= 1
            return issues

        with pytest.raises(ReplayError, match=r"reads element|arrive at cycle|is busy|the switch takes"):
            replay(scenario, program, changed(trace, earlier), numbers)


def test_a_dropped_row_block_and_a_foreign_thread_are_found() -> None:
    scenario, program, trace, numbers = a_run()
    last = rows(trace, TAIL)[-1]
    with pytest.raises(ReplayError, match="has not been computed"):
        replay(scenario, program, changed(trace, lambda issues: np.delete(issues, last, axis=0)), numbers)

    def other_thread(issues: np.ndarray) -> np.ndarray:
        issues[0, column("context")] = 1
        return issues

    with pytest.raises(ReplayError, match="not on its own"):
        replay(scenario, program, changed(trace, other_thread), numbers)


def test_two_things_at_once_in_one_unit_are_found() -> None:
    scenario, program, trace, numbers = a_run()

    def together(issues: np.ndarray) -> np.ndarray:
        first, second = rows(trace, ARRAY)[:2]
        issues[second, column("start")] = issues[first, column("start")]
        return issues

    with pytest.raises(ReplayError, match="is busy until"):
        replay(scenario, program, changed(trace, together), numbers)


def test_more_row_blocks_than_banks_are_found() -> None:
    scenario, program, trace, numbers = a_run(block_order="column")
    core = ColumnCore(npe=64, ep=2, vp=16, threads=2, tail_width=2, accumulator_banks=1, block_order="column")
    poorer = Scenario(ColumnNpu("chip", 260, (core,)), scenario.jobs)
    with pytest.raises(ReplayError, match="no free accumulator bank"):
        replay(poorer, program, trace, numbers)


def test_a_tail_that_takes_less_than_its_turns_is_found() -> None:
    core = ColumnCore(npe=256, ep=8, vp=16, tail_width=1)
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), (Job("a", Model("m", (Layer(cell("lstm"), 11, 7),)), 3),))
    program = machines.lower(scenario.chip, scenario.jobs)
    trace, numbers = engines.run(program, "fast"), floats(scenario)

    def faster(issues: np.ndarray) -> np.ndarray:
        # one row block after another without a gap, each said to take one cycle only
        tails = rows(trace, TAIL)
        gaps = np.flatnonzero(np.diff(issues[tails, column("start")]) == issues[tails[:-1], column("cycles")])
        row = tails[gaps[0] + 1]
        assert issues[tails[gaps[0]], column("cycles")] > 1
        issues[tails, column("cycles")] = 1
        issues[row, column("start")] -= 1
        return issues

    with pytest.raises(ReplayError, match=r"is busy until|arrive at cycle"):
        replay(scenario, program, changed(trace, faster), numbers)


def test_a_job_that_finishes_before_its_results_is_found() -> None:
    scenario, program, trace, numbers = a_run()
    tasks = trace.tasks.copy()
    tasks[1, TASKS.place("finish")] -= 1
    with pytest.raises(ReplayError, match="the result reads element"):
        replay(scenario, program, Trace(trace.issues, trace.switches, tasks), numbers)


def test_a_thread_switch_takes_its_cycles() -> None:
    scenario, program, trace, numbers = a_run()
    core = replace(scenario.chip.cores[0], switch_cycles=2)  # type: ignore[attr-defined]
    slower = Scenario(ColumnNpu("chip", 260, (core,)), scenario.jobs)
    with pytest.raises(ReplayError, match="the switch takes until"):
        replay(slower, program, trace, numbers)
    program = machines.lower(slower.chip, slower.jobs)
    replay(slower, program, engines.run(program, "fast"), numbers)


@pytest.mark.slow
def test_networks_that_amplify_rounding_are_not_called_wrong() -> None:
    model = Model("m", (Layer(cell("rnn"), 24, 4),))
    small = random_network(model, seed=3)
    weights = small.passes[0][0]
    loud = replace(weights, matrices={key: 12 * each for key, each in weights.matrices.items()})
    core = ColumnCore(npe=64, ep=4, vp=16)
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), (Job("a", model, 120),))
    program = machines.lower(scenario.chip, scenario.jobs)
    data = JobData(Network(model, ((loud,),)), random_stimulus(model, 120, seed=5), "w", "x")
    (computed,) = check_numerics(scenario, program, engines.run(program, "fast"), {0: data})
    assert computed.float_error > FLOAT_TOLERANCE
