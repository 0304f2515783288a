"""Jobs with `split: auto`: the worked example, random ones against the cycle-stepped model, what is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim import check_numerics, engines, explain, load_scenario, run, serving
from lstmsim.base.errors import InputError
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange
from lstmsim.machines.column.passes import ARRAY
from lstmsim.machines.column.phases import spreads_over
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.accounts import totals_of
from lstmsim.program.trace import Trace
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.programs import alone
from lstmsim.studies.serve.run import serve
from tests.oracle.auto import simulate_auto
from tests.splits import issues
from tests.strategies import cores_of_a_chip, models

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "4"))

SMALL = ColumnCore(npe=64, ep=4, vp=16)
MODEL = Model("m", (Layer(cell("lstm"), 8, 8),))


def taken(trace: Trace) -> list[list[int]]:
    """The cores of each job, member by member."""
    cores = [[core] for core in trace.task("core").tolist()]
    for task, _, core, _ in trace.thread_slots.tolist():
        cores[task].append(core)
    return cores


def traced(chip: ColumnNpu, jobs: list[Job]) -> Trace:
    program = lower(chip, jobs)
    trace = reference.run(program)
    assert engines.run(program) == trace
    assert engines.totals(program) == totals_of(program, trace)
    return trace


def test_the_worked_example_of_section_9() -> None:
    jobs = [Job(f"j{number}", MODEL, 2, arrival, split="auto") for number, arrival in enumerate((0, 200, 200, 250))]
    trace = traced(ColumnNpu("c", 260, (SMALL,) * 2), jobs)
    assert taken(trace) == [[0, 1], [0], [1], [0, 1]]
    assert trace.task("admitted").tolist() == [0, 200, 200, 315]
    assert trace.task("finish").tolist() == [124, 315, 315, 439]
    assert trace.task("taken").tolist() == [3, 1, 2, 3]


def test_as_many_cores_as_are_free_in_the_order_of_its_own() -> None:
    long = Job("long", MODEL, 50, cores=(1,))
    auto = Job("auto", MODEL, 2, 10, cores=(3, 1, 0, 2), split="auto")
    trace = traced(ColumnNpu("c", 260, (SMALL,) * 4), [long, auto])
    assert taken(trace) == [[1], [3, 0, 2]]
    assert trace.task("taken").tolist() == [0, 0b1101]
    # with a thread more, the core on which the other one runs is taken too
    threads = ColumnNpu("c", 260, (replace(SMALL, threads=2),) * 4)
    trace = traced(threads, [long, auto])
    assert taken(trace) == [[1], [3, 1, 0, 2]]
    assert trace.thread_slots.tolist() == [[1, 1, 1, 1], [1, 2, 0, 0], [1, 3, 2, 0]]


def test_who_waits_for_other_cores_is_none_of_its_business() -> None:
    chip = ColumnNpu("c", 260, (SMALL,) * 3)
    jobs = [Job("first", MODEL, 50, cores=(2,)), Job("behind", MODEL, 1, 1, cores=(2,))]
    auto = Job("auto", MODEL, 2, 10, cores=(0, 1), split="auto")
    assert taken(traced(chip, [*jobs, auto])) == [[2], [2], [0, 1]]
    # but one that waits for a core of its own counts, whether it stands before it or behind
    assert taken(traced(chip, [*jobs, replace(auto, cores=(0, 1, 2))])) == [[2], [2], [0]]
    joined = Job("joined", MODEL, 1, 10, cores=(1, 2), split="rows")
    assert taken(traced(chip, [*jobs, auto, joined]))[2] == [0]


def test_no_more_members_than_units_and_one_for_reductions() -> None:
    chip = ColumnNpu("c", 260, (SMALL,) * 4)
    narrow = Job("narrow", Model("m", (Layer(cell("lstm"), 3, 8),)), 2, split="auto")
    assert taken(traced(chip, [narrow])) == [[0, 1, 2]]
    alone_on_one = Job("normed", Model("m", (Layer(cell("lstm-layernorm"), 8, 8),)), 2, split="auto")
    urgent = Job("urgent", MODEL, 1, 50, priority=1, dispatch="priority", preempts=True, cores=(0,))
    trace = traced(chip, [replace(alone_on_one, steps=20, dispatch="priority"), urgent])
    assert taken(trace) == [[0], [0]]
    assert trace.task("pauses").tolist() == [1, 0]


def test_it_is_never_asked_to_pause() -> None:
    chip = ColumnNpu("c", 260, (SMALL,))
    slow = Job("slow", MODEL, 20, dispatch="priority", split="auto", cores=(0,))
    urgent = Job("urgent", MODEL, 1, 50, priority=1, dispatch="priority", preempts=True)
    # on one core there is nothing to find out: it is a job like any other
    assert traced(chip, [slow, urgent]).task("pauses").tolist() == [1, 0]
    chip = ColumnNpu("c", 260, (SMALL,) * 2)
    jobs = [replace(slow, cores=None), replace(urgent, arrival=0, steps=30), urgent]
    trace = traced(chip, jobs)
    assert taken(trace)[:2] == [[1], [0]]
    assert trace.task("pauses").tolist() == [0, 0, 0]


@st.composite
def busy_chips(draw: st.DrawFn) -> Scenario:
    """A few equal cores and jobs for them, most with `split: auto`."""
    core, count = draw(cores_of_a_chip()), draw(st.integers(2, 4))
    exchange = Exchange(draw(st.sampled_from([0, 1, 8])), draw(st.sampled_from([1, 3, 64])))
    jobs = []
    for number in range(draw(st.integers(2, 6))):
        model = draw(models(("lstm", "gru", "rnn", "dense")))
        assume(core.refusal(model) is None)
        own = draw(st.permutations(range(count)))[: draw(st.integers(1, count))]
        jobs.append(
            Job(
                f"j{number}",
                model,
                draw(st.integers(1, 3)),
                draw(st.sampled_from([0, 1, 30, 100, 200, 400])),
                draw(st.sampled_from([0, 0, 7])),
                cores=draw(st.sampled_from([None, tuple(own)])),
                split=draw(st.sampled_from(["auto", "auto", ""])),
            )
        )
    return Scenario(ColumnNpu("c", 260, (core,) * count, None, exchange), tuple(jobs))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(busy_chips())
def test_random_jobs_as_the_cycle_stepped_model_has_them(scenario: Scenario) -> None:
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    trace = traced(chip, list(scenario.jobs))
    expected, cores = simulate_auto(scenario)
    rows = zip(trace.task("admitted").tolist(), trace.task("finish").tolist(), strict=True)
    assert list(rows) == [(start, finish) for _, start, finish in expected]
    assert taken(trace) == [[core for core, _ in places] for places, _, _ in expected]
    for on, core in enumerate(cores):
        assert issues(trace, on, ARRAY) == core.issued


CHIP = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 64, "ep": 4, "vp": 16, "count": 4}]}
ENTRY = {"model": {"layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 2, "split": "auto"}
POISSON = {"kind": "poisson", "rate_per_second": 1.2e6}


def test_what_it_took_is_in_the_report_the_serving_and_the_stream() -> None:
    scenario = {"chip": CHIP, "jobs": [{**ENTRY, "count": 60, "arrival": POISSON}]}
    result = run(scenario)
    counts = [max(1, len(job.cores)) for job in result.report.jobs]
    assert {1, 4} <= set(counts)
    assert [max(1, len(cores)) for cores in (job.cores for job in run(scenario, engine="reference").report.jobs)] == (
        counts
    )
    busy = sum(count * (job.finish - job.start) for count, job in zip(counts, result.report.jobs, strict=True))
    assert serving(result).service_cycles == busy
    rows: list[Any] = []
    streamed = serve(scenario, rows=rows.extend, window=30)
    assert streamed.serving.service_cycles == busy
    assert sorted((row.start, row.finish) for row in rows) == sorted((j.start, j.finish) for j in result.report.jobs)
    loaded = load_scenario(scenario)
    assert alone(loaded.chip, loaded.jobs[0]).cores == 4
    # as much work as can be done is done with each on one core
    apart = load_scenario({"chip": CHIP, "jobs": [{**ENTRY, "split": None, "count": 60, "arrival": POISSON}]})
    loads = [traffic_of(each).load for each in (loaded, apart)]
    assert loads[0] is not None
    assert loads[1] is not None
    for part in ("PE arrays", "threads"):
        assert loads[0].parts[part] == loads[1].parts[part]


@pytest.mark.slow
@pytest.mark.usefixtures("no_other_machines")
def test_its_numbers_are_right_on_any_number_of_cores() -> None:
    result = run({"chip": CHIP, "jobs": [{**ENTRY, "count": 12, "arrival": POISSON}]})
    assert {1, 4} <= {max(1, len(job.cores)) for job in result.report.jobs}
    assert all(each.values for each in check_numerics(result, random_weights=1))
    shares = explain(result).shares
    assert sum(each.cycles for each in shares) == result.report.makespan_cycles


@pytest.mark.parametrize(
    ("change", "chip", "text"),
    [
        ({"cores": [0, 0]}, CHIP, "names core 0 twice"),
        ({}, {**CHIP, "cores": [*CHIP["cores"], {"npe": 64, "ep": 8, "vp": 8}]}, "must be equal"),  # type: ignore[misc]
        ({}, {**CHIP, "cores": [{"npe": 64, "ep": 4, "vp": 16, "count": 17}]}, "auto takes at most 16 cores, got 17"),
        ({}, "intel-npu-rtl", "a row-wise NPU runs a job on one core"),
    ],
)
def test_what_a_scenario_may_not_ask_for(change: dict[str, Any], chip: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load_scenario({"chip": chip, "jobs": [{**ENTRY, **change}]})


def test_weights_must_stay_on_all_of_its_cores() -> None:
    core = {"npe": 64, "ep": 4, "vp": 16, "count": 2}
    other = {**ENTRY, "model": {"layers": [{"cell": "lstm", "hidden": 24, "input": 24}]}, "split": None}
    for kib, memory in ((8, None), (8, {"gb_per_s": 4})):
        chip = {**CHIP, "cores": [{**core, "weight_kib": kib}]} | ({"memory": memory} if memory else {})
        assert run({"chip": chip, "jobs": [ENTRY]}).report.jobs[0].cores == (0, 1)
    jobs = [{key: value for key, value in each.items() if value is not None} for each in (ENTRY, other)]
    chip = {**CHIP, "cores": [{**core, "weight_kib": 5}], "memory": {"gb_per_s": 4}}
    with pytest.raises(InputError, match="auto needs weights that stay on all of its cores"):
        run({"chip": chip, "jobs": jobs})
    # without a memory, the first of the list stays
    del chip["memory"]
    with pytest.raises(InputError, match=r"its weights take 4\.5 KiB"):
        run({"chip": chip, "jobs": [jobs[0], {**jobs[1], "split": "auto"}]})


def test_how_many_members_a_model_may_have() -> None:
    assert spreads_over(MODEL, SMALL, 4) == (2, 3, 4)
    assert spreads_over(MODEL, SMALL, 1) == ()
