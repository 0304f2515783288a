"""Offered load: parts that are certain, and what is measured."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from lstmsim import Scenario, load_scenario, run, serving
from lstmsim.studies.serve.demands import Demand, Kind, relaxation_at
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.run import serve
from lstmsim.traffic.load import Load

JOB = {"model": "lstm-512", "steps": 20, "count": 200}


def poisson(rate: float) -> dict[str, Any]:
    return {"kind": "poisson", "rate_per_second": rate}


def load_of(jobs: list[dict[str, Any]], *overrides: str, chip: str = "column-npu-64k") -> Load:
    load = traffic_of(load_scenario({"chip": chip, "jobs": jobs}, overrides)).load
    assert load is not None
    return load


@pytest.mark.needs_core
def test_more_than_the_array_can_do_is_unstable() -> None:
    """A request takes 640 cycles of the array at 260 MHz: 406,250 a second, and two threads less than that."""
    data = {"chip": "column-npu-64k", "jobs": [{**JOB, "arrival": poisson(500_000)}]}
    for each in (serving(run(data)), serve(data).serving):
        assert each.load is not None
        assert each.load.parts["PE arrays"] == pytest.approx(500_000 / 406_250)
        assert each.load.bound_per_second < 406_250
        assert each.verdict == "unstable"
        assert each.latency.mean.half_width is None


def test_one_thread_without_pause_is_all_there_is() -> None:
    """1,423 cycles a request: bound and measurement are one figure."""
    load = load_of([{**JOB, "arrival": poisson(91_356)}], "chip.cores.0.threads=1")
    assert load.bound_per_second == pytest.approx(260e6 / 1423)
    assert load.parts["saturated"] == pytest.approx(load.parts["threads"], rel=1e-9)
    assert load.offered == pytest.approx(0.5, rel=1e-4)
    assert load.relaxation == pytest.approx(1 / (1 - load.offered) ** 2)


def test_a_coarse_core_does_less_than_its_bounds() -> None:
    load = load_of([{**JOB, "arrival": poisson(100_000)}])
    assert load.parts["saturated"] > max(load.parts["PE arrays"], load.parts["threads"])


@pytest.mark.needs_core
def test_jobs_that_may_not_go_everywhere_count_against_their_own_cores() -> None:
    pinned = {**JOB, "cores": [1], "arrival": poisson(20_000)}
    free = {**JOB, "arrival": poisson(1000)}
    alone = load_of([{**JOB, "arrival": poisson(20_000)}], chip="column-npu-4x16k")
    both = load_of([pinned, free], chip="column-npu-4x16k")
    assert both.cores["threads"] == (1,)
    assert both.parts["threads"] == pytest.approx(4 * alone.parts["threads"])
    assert both.rate_per_second == 21_000


def test_cores_that_are_apart_are_measured_by_the_one_that_is_done_last() -> None:
    jobs = [{**JOB, "cores": [core], "arrival": poisson(rate)} for core, rate in ((0, 1000), (1, 30_000))]
    load = load_of(jobs, "chip.cores.0.threads=1", chip="column-npu-4x16k")
    assert load.parts["saturated"] == pytest.approx(load.parts["threads"], rel=0.01)


def test_rates_add_up_by_their_shares() -> None:
    short, long = ({**JOB, "steps": steps, "arrival": poisson(30_000)} for steps in (5, 40))
    one, two = load_of([short]), load_of([long])
    both = load_of([short, long])
    assert both.parts["PE arrays"] == pytest.approx(one.parts["PE arrays"] + two.parts["PE arrays"])
    assert both.parts["threads"] == pytest.approx(one.parts["threads"] + two.parts["threads"])


def test_where_no_rate_can_be_said_there_is_no_load() -> None:
    closed = {**JOB, "arrival": {"kind": "closed", "clients": 3, "think_ms": 0.1}}
    traffic = traffic_of(load_scenario({"chip": "column-npu-64k", "jobs": [closed]}))
    assert (traffic.load, traffic.clients, traffic.steady) == (None, 3, True)
    result = serving(run({"chip": "column-npu-64k", "jobs": [JOB]}))
    assert (result.load, result.verdict) == (None, "no steady state")
    assert result.latency.mean.half_width is None


def test_a_list_of_arrivals_is_estimated() -> None:
    cycles = list(range(0, 200_000, 1000))
    listed = load_of([{**JOB, "arrival": cycles}])
    assert listed.estimated
    assert listed.rate_per_second == pytest.approx(260_000)
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{**JOB, "arrival": cycles}]})
    by_hand = traffic_of(Scenario(scenario.chip, scenario.jobs)).load
    assert by_hand == listed


def test_jobs_that_come_once_are_named() -> None:
    load = load_of([{**JOB, "arrival": poisson(1000)}, {**JOB, "name": "late", "count": 2}])
    assert load.not_counted == ("late, which comes once",)


def test_many_lengths_are_not_all_simulated() -> None:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{**JOB, "steps": 1, "count": 60}]})
    jobs = tuple(replace(job, steps=1 + number % 30, arrival=1000 * number) for number, job in enumerate(scenario.jobs))
    load = traffic_of(Scenario(scenario.chip, jobs)).load
    assert load is not None
    assert load.parts["PE arrays"] == pytest.approx(15.5 * 32 / 1000, rel=1e-3)


def test_a_job_that_may_take_all_free_cores_counts_as_what_takes_the_least() -> None:
    jobs = [{**JOB, "arrival": poisson(10_000)}]
    one, auto = (load_of([{**jobs[0], **more}], chip="column-npu-4x16k") for more in ({}, {"split": "auto"}))
    assert auto.parts["threads"] <= one.parts["threads"]
    assert auto.parts["saturated"] >= max(auto.parts["threads"], auto.parts["PE arrays"])


@pytest.mark.parametrize("limit", [{"queue_limit": 3}, {"patience": 200}])
@pytest.mark.parametrize("share", [0.97, 1.4])
def test_a_queue_that_turns_away_forgets_at_any_load(limit: dict[str, int], share: float) -> None:
    """It has little room, so that a run of some hundred requests tells, whatever comes."""
    job = {"model": "lstm-256", "steps": 10, "count": 1500}
    arrival = {"kind": "poisson", "rate_per_second": share * 700_000}
    made = serving(run({"chip": "column-npu-16k", "jobs": [job | limit | {"arrival": arrival}]}))
    assert made.load is not None
    assert made.load.relaxation is not None
    assert 1 <= made.load.relaxation < 5
    assert made.verdict == "settled"
    assert made.latency.mean.half_width is not None


def test_who_waits_as_long_as_it_takes_has_a_queue_of_his_own_beside_them() -> None:
    def kind(rate: float, room: float, memory: float = 0.0) -> Kind:
        return Kind(rate, 1.0, frozenset({0}), Demand(1.0, 1.0, ()), room, memory)

    free, limited = relaxation_at([kind(0.99, inf)], 0.99), relaxation_at([kind(0.99, 3.0)], 0.99)
    mixed = relaxation_at([kind(0.49, inf), kind(0.5, 3.0)], 0.99)
    assert limited < 2 < mixed < 20 < free
    # staying requests alone are more than the machine can do
    assert relaxation_at([kind(1.1, inf), kind(0.5, 3.0)], 1.6) == inf
    # a large room is no limit, and bursts that last are remembered
    assert relaxation_at([kind(0.9, 1e6)], 0.9) == pytest.approx(relaxation_at([kind(0.9, inf)], 0.9))
    assert relaxation_at([kind(0.9, 3.0, memory=70.0)], 0.9) == pytest.approx(63.0)


@pytest.mark.parametrize(
    ("cores", "meet"),
    # cores 0 and 1 are on the first of two devices, with one link
    [([[0, 1, 2, 3]], False), ([[0, 1], [2, 3]], False), ([[0, 2], [1, 3]], True), ([[0, 2], [0, 3]], False)],
)
def test_a_backlog_meets_on_a_link_only_where_jobs_have_no_core_in_common(cores: list[list[int]], meet: bool) -> None:
    """Else the load of the backlog is that of any long queue, and tells."""
    core = {"npe": 64, "ep": 4, "vp": 16, "threads": 2, "count": 4}
    devices = {"count": 2, "latency_cycles": 9, "width": 4}
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [core], "devices": devices}
    model = {"name": "m", "layers": [{"cell": "lstm", "input": 8, "hidden": 32}]}

    def load(rate: float) -> Load:
        job = {"model": model, "steps": 2, "split": "rows", "arrival": poisson(rate)}
        jobs = [{**job, "name": f"j{number}", "cores": own} for number, own in enumerate(cores)]
        made = traffic_of(load_scenario({"chip": chip, "jobs": jobs}), 200).load
        assert made is not None
        return made

    below = load(1000.0)
    share = 0.5 / below.parts["threads"] + 0.5 / below.parts["saturated"]
    between = load(1000.0 * share)
    assert 0.8 < max(between.parts["threads"], between.parts["PE arrays"]) < 1 < between.parts["saturated"]
    assert ("meet on the links" in between.unsure) == meet
    assert between.stable is False
