"""Wrong traces of split jobs, of weights that come from a memory and of paused jobs are found."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim.analysis.replay import replay
from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange, Memory
from lstmsim.machines.column.passes import ARRAY, EXCHANGE
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import PAUSES, TASKS, THREAD_SLOTS, Trace
from tests.replays import assert_golden, changed, column, crowds, fixed, legal, moved, run, waited, without
from tests.splits import splits

#: Rows of a trace and unit that are moved; with LSTMSIM_EXAMPLES all of them.
SOME = 10**9 if "LSTMSIM_EXAMPLES" in os.environ else 3
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))

Case = tuple[Scenario, Program, Trace]


def assert_found(case: Case, wrong: Trace, match: str = ".") -> None:
    with pytest.raises(ReplayError, match=match):
        replay(case[0], case[1], wrong, fixed(case[0]))


def find_any(case: Case, data: st.DataObject) -> None:
    """Of all rows that a cause held back until their start, one comes a cycle earlier."""
    rows = sorted({row for cause in CAUSES for row in waited(case[2], cause)})
    assume(rows)
    assert_found(case, moved(case[2], data.draw(st.sampled_from(rows)), -1))


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits(), st.data())
def test_a_cycle_too_early_is_found_in_split_jobs(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], data: st.DataObject
) -> None:
    core, exchange, job, place = case
    scenario = Scenario(ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange), (job,))
    find_any((scenario, *run(scenario)), data)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(["weights", "pauses"]).flatmap(crowds), st.data())
def test_a_cycle_too_early_is_found_where_jobs_take_turns(scenario: Scenario, data: st.DataObject) -> None:
    find_any((scenario, *legal(scenario, "fast")), data)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(splits(), st.data())
def test_a_dropped_exchange_is_found(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], data: st.DataObject
) -> None:
    core, exchange, job, place = case
    scenario = Scenario(ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange), (job,))
    program, trace = run(scenario)
    rows = np.flatnonzero(trace.issue("unit") == EXCHANGE).tolist()
    assume(rows)
    fewer = without(trace, data.draw(st.sampled_from(rows)))
    assert_found((scenario, program, trace), fewer, "has not been computed by then")


def a_split(name: str, split: str, cores: tuple[int, ...], **exchange: int) -> Case:
    own = cell(name)
    layer = Layer(own, 11, 7, projection=6 if own.projected else None)
    model = Model("m", (layer, replace(layer, input=layer.output), replace(layer, input=layer.output)))
    core = ColumnCore(npe=64, ep=2, vp=16, threads=max(map(cores.count, cores)), tail_width=2)
    chip = ColumnNpu("chip", 260, (core,) * (max(cores) + 1), None, Exchange(**exchange))
    scenario = Scenario(chip, (Job("a", model, 3, cores=cores, split=split),))
    return (scenario, *run(scenario))


CUTS = [("rows", (0, 1, 2)), ("layers", (0, 1)), ("layers", (1, 0, 1))]


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(("split", "cores"), CUTS)
@pytest.mark.parametrize("name", ["lstm-projection", "gru", "gru-lbr0"])
def test_what_waits_for_an_exchange_waits_for_all_of_it(name: str, split: str, cores: tuple[int, ...]) -> None:
    case = a_split(name, split, cores, latency_cycles=5, width=2)
    scenario, trace = case[0], case[2]
    held = waited(trace, "hazard")
    for unit in (ARRAY, EXCHANGE):
        rows = [row for row in held if trace.issue("unit")[row] == unit]
        assert rows
        # some from the whole length of the trace
        for row in rows[:: 1 + len(rows) // SOME]:
            assert_found(case, moved(trace, row, -1), r"reads element|is busy until")
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    for slower, match in ((Exchange(6, 2), "reads element"), (Exchange(5, 1), r"is busy until|reads element")):
        worse = replace(scenario, chip=replace(chip, exchange=slower))
        assert_found((worse, *case[1:]), trace, match)


def test_who_receives_does_not_see_what_the_sender_sees() -> None:
    case = a_split("lstm", "rows", (0, 1), latency_cycles=30)
    trace = case[2]
    # the tile that waited for the other half, at a time when only its sender has that
    row = next(row for row in waited(trace, "hazard") if trace.issue("unit")[row] == ARRAY)
    assert_found(case, moved(trace, row, -1), "but it is there only from cycle")


def test_an_exchange_twice_and_members_elsewhere_are_found() -> None:
    case = a_split("lstm", "rows", (0, 1))
    trace = case[2]
    row = np.flatnonzero(trace.issue("unit") == EXCHANGE)[0]

    def twice(issues: np.ndarray) -> np.ndarray:
        again = issues[row].copy()
        again[column("start")] = trace.makespan_cycles - again[column("cycles")]
        return np.vstack([issues, again])

    assert_found(case, changed(trace, twice), "is computed twice")

    def elsewhere(issues: np.ndarray) -> np.ndarray:
        issues[row, column("unit")] = ARRAY
        return issues

    assert_found(case, changed(trace, elsewhere), "for another operation")
    thread_slots = trace.thread_slots.copy()
    thread_slots[0, THREAD_SLOTS.place("core")] = 0
    assert_found(case, replace(trace, thread_slots=thread_slots), "member 1 of job a is on core 0, not on 1")
    assert_found(case, replace(trace, thread_slots=thread_slots[:0]), "has no thread for its member 1")


def a_stream(**memory: float) -> Case:
    """A model that stays, brought anew when it comes back, and one of which a part is streamed; on one small core."""
    small, large = Model("s", (Layer(cell("lstm"), 8, 8),)), Model("l", (Layer(cell("lstm"), 24, 16),))
    core = ColumnCore(npe=64, ep=4, vp=16, weight_kib=2)
    chip = ColumnNpu("chip", 260, (core,), Memory(**{"gb_per_s": 2, **memory}))  # type: ignore[arg-type]
    scenario = Scenario(chip, (Job("a", small, 2), Job("b", large, 3), Job("c", small, 2), Job("d", small, 2)))
    return (scenario, *run(scenario))


def transfers(case: Case, label: str) -> list[int]:
    _, program, trace = case
    phases = [task.phases(0) for task in program.tasks]
    names = zip(*(trace.issue(name).tolist() for name in ("task", "phase", "operation")), strict=True)
    return [
        row
        for row, (task, phase, index) in enumerate(names)
        if phases[task][phase].body.operations[index].label == label
    ]


@pytest.mark.parametrize("prefetch", [1, 2, 3])
def test_tiles_wait_for_their_weights(prefetch: int) -> None:
    case = a_stream(prefetch_blocks=prefetch)
    trace = case[2]
    for cause, match in (("reload", "before the model's weights"), ("weights", "before its weights|no free place")):
        rows = waited(trace, cause)
        assert rows
        for row in rows[:: 1 + len(rows) // SOME]:
            assert_found(case, moved(trace, row, -1), rf"{match}|is busy until")


def test_dropped_and_doubled_transfers_are_found() -> None:
    case = a_stream()
    trace = case[2]
    for label, match in (("load weights", "before the model's weights are"), ("stream weights", "been transferred")):
        rows = transfers(case, label)
        assert rows
        for row in rows[::3]:
            assert_found(case, without(trace, row), match)
    row = transfers(case, "stream weights")[-1]
    times = (trace.issue("start")[row], trace.issue("start")[row] + trace.issue("cycles")[row])

    def longer(issues: np.ndarray) -> np.ndarray:
        again = issues[row].copy()
        again[column("start")] = times[1]
        return np.vstack([issues, again])

    assert_found(case, changed(trace, longer), "its weights")


def test_the_memory_does_one_thing_at_a_time() -> None:
    case = a_stream()
    rows = transfers(case, "stream weights")
    start = case[2].issue("start")

    def together(issues: np.ndarray) -> np.ndarray:
        issues[rows[1], column("start")] = start[rows[0]]
        return issues

    assert_found(case, changed(case[2], together), "unit 0 of core 1 starts something at cycle .* is busy until")


def test_smaller_and_slower_memories_than_those_of_the_trace_are_found() -> None:
    case = a_stream()
    scenario, program, trace = case
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    assert chip.memory is not None
    worse = {
        "which holds": replace(chip, cores=(replace(chip.cores[0], weight_kib=1),)),
        "no free place": replace(chip, memory=replace(chip.memory, prefetch_blocks=1)),
        "before": replace(chip, memory=replace(chip.memory, latency_cycles=65)),
        "weights": replace(chip, memory=replace(chip.memory, gb_per_s=1)),
    }
    for match, other in worse.items():
        assert_found((replace(scenario, chip=other), program, trace), trace, match)
    poorer = replace(program, cores=(replace(program.cores[0], capacity=1000), program.cores[1]))
    assert_found((scenario, poorer, trace), trace, "which others fill")


def test_who_finds_no_weights_has_to_bring_them() -> None:
    scenario, program, trace = a_stream()
    # at the start, the first model lies there: without it, the trace lacks a transfer
    assert program.cores[0].held
    empty = replace(program, cores=(replace(program.cores[0], held=()), program.cores[1]))
    assert_found((scenario, empty, trace), trace, "job a: .* comes before the model's weights are loaded")
    # and one that lies there is not brought again
    full = replace(program, cores=(replace(program.cores[0], capacity=10**6, held=(1, 0)), program.cores[1]))
    assert_found((scenario, full, trace), trace, "loads weights that are there already")


def test_weights_that_nobody_brings_have_to_fit_together() -> None:
    models = [Model("m", (Layer(cell("lstm"), units, 12),)) for units in (8, 12)]
    core = ColumnCore(npe=64, ep=4, vp=16, weight_kib=2)
    jobs = tuple(Job(f"j{number}", models[number % 2], 2) for number in range(4))
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), jobs)
    program, trace = run(scenario)
    assert_golden(scenario, program, trace)
    poorer = replace(scenario, chip=ColumnNpu("chip", 260, (replace(core, weight_kib=1),)))
    assert_found((poorer, program, trace), trace, "jobs use 1792 weights on core 0, which holds 1024")


def a_pause() -> Case:
    """Three jobs on two threads, each more urgent than those before it."""
    model = Model("m", (Layer(cell("lstm"), 11, 7),))
    core = ColumnCore(npe=64, ep=2, vp=16, threads=2, tail_width=2)
    wants = {"dispatch": "priority", "preempts": True}
    jobs = [Job(f"j{number}", model, 6, 40 * number, priority=number, **wants) for number in range(4)]  # type: ignore[arg-type]
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), tuple(jobs))
    return (scenario, *run(scenario))


@pytest.mark.slow
def test_a_tile_in_a_pause_is_found() -> None:
    case = a_pause()
    trace = case[2]
    assert len(trace.pauses)
    for task, paused, resumed in zip(trace.pause("task"), trace.pause("paused"), trace.pause("resumed"), strict=True):
        own, start = trace.issue("task") == task, trace.issue("start")
        after = np.flatnonzero(own & (start >= resumed))[0]
        before = np.flatnonzero(own & (start < paused) & (trace.issue("unit") == ARRAY))[-1]
        assert_found(case, moved(trace, int(after), int(resumed) - 1 - int(start[after])), "is paused from")
        # its row block, which has gone on meanwhile, lacks it before
        text = "is paused from|column groups added up"
        assert_found(case, moved(trace, int(before), int(paused) - int(start[before])), text)


def test_a_pause_before_all_has_come_about_is_found() -> None:
    case = a_pause()
    trace = case[2]
    for row in range(len(trace.pauses)):
        pauses = trace.pauses.copy()
        pauses[row, PAUSES.place("paused")] -= 1
        assert_found(case, replace(trace, pauses=pauses), "is paused at cycle .*, before its results at")
    # none at all: the job sits on a thread that others use
    assert_found(case, replace(trace, pauses=trace.pauses[:0]), "which holds another|not on its own")


def test_a_bank_that_is_taken_over_a_pause_is_found() -> None:
    core = ColumnCore(npe=64, ep=2, vp=16)
    job = Job("a", Model("m", (Layer(cell("lstm"), 11, 7),)), 3)
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), (job,))
    program, trace = run(scenario)
    # of the third tile on all comes later, and in between the thread is given up
    first = int(np.flatnonzero(trace.issue("start") > 0)[0])
    at = int(trace.issue("start")[first])

    def later(issues: np.ndarray) -> np.ndarray:
        issues[first:, column("start")] += 10
        return issues

    wrong = replace(changed(trace, later), pauses=np.array([[0, 0, 0, at, at + 10, -1]]))
    wrong.tasks[0, TASKS.place("finish")] += 10
    assert_found((scenario, program, trace), wrong, f"is paused at cycle {at}, but a bank holds layer 0 step 0")


def test_a_pause_in_the_middle_of_a_step_is_found() -> None:
    core = ColumnCore(npe=64, ep=2, vp=16, accumulator_banks=1)
    job = Job("a", Model("m", (Layer(cell("lstm"), 11, 7),)), 3)
    scenario = Scenario(ColumnNpu("chip", 260, (core,)), (job,))
    program, trace = run(scenario)
    # all from the second row block on comes later, when the first one is long done
    at = int(trace.issue("start")[waited(trace, "backpressure")[0]])

    def later(issues: np.ndarray) -> np.ndarray:
        issues[issues[:, column("start")] >= at, column("start")] += 200
        return issues

    wrong = replace(changed(trace, later), pauses=np.array([[0, 0, 0, at + 190, at + 200, -1]]))
    wrong.tasks[0, TASKS.place("finish")] += 200
    assert_found((scenario, program, trace), wrong, "in the middle of layer 0 step 0")


def test_every_member_has_banks_of_its_own_and_no_more() -> None:
    case = a_split("lstm", "layers", (0, 0, 1))
    chip = case[0].chip
    assert isinstance(chip, ColumnNpu)
    cores = tuple(replace(each, accumulator_banks=1) for each in chip.cores)
    poorer = replace(case[0], chip=replace(chip, cores=cores))
    assert_found((poorer, *case[1:]), case[2], "no free accumulator bank")


def test_who_was_rejected_does_nothing() -> None:
    case = a_pause()
    trace = case[2]
    tasks = trace.tasks.copy()
    tasks[3, [TASKS.place(name) for name in ("core", "context", "finish")]] = -1
    assert_found(case, replace(trace, tasks=tasks), "job j3 has no thread")
