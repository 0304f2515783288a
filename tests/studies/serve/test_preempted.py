"""The load with what preemption adds: against threads that long runs take, and where it cannot be known."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import run, saturate, serve, serving
from lstmsim.files.scenario.requests import load_requests
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.load import Load, Preemption

pytestmark = pytest.mark.needs_core

CORE = {"npe": 1024, "ep": 8, "vp": 128, "threads": 1, "tail_width": 64}


def model(hidden: int, inputs: int) -> dict[str, Any]:
    return {"name": f"{hidden}x{inputs}", "layers": [{"cell": "lstm", "hidden": hidden, "input": inputs}]}


def poisson(rate: float) -> dict[str, Any]:
    return {"kind": "poisson", "rate_per_second": rate}


#: A request of one takes 54 cycles and comes every 120 (a load of 0.45); of the other 50 steps of 65 cycles.
HIGH = {"name": "hi", "model": model(8, 8), "steps": 1, "priority": 2, "arrival": poisson(1e9 / 120)}
LOW = {"name": "lo", "model": model(32, 480), "steps": 50, "arrival": poisson(138_376.4)}
MIDDLE = {"name": "mid", "model": model(16, 64), "steps": 8, "priority": 1, "arrival": poisson(3e5)}


def scenario(*jobs: dict[str, Any], dispatch: str = "priority", **core: Any) -> dict[str, Any]:
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 1000, "cores": [{**CORE, **core}]}
    return {"chip": chip, "dispatch": dispatch, "preemption": True, "jobs": [{"count": 300, **job} for job in jobs]}


def at(job: dict[str, Any], times: float, **keys: Any) -> dict[str, Any]:
    return {**job, "arrival": poisson(job["arrival"]["rate_per_second"] * times), **keys}


def load_of(data: dict[str, Any]) -> Load:
    load = traffic_of(load_requests(data, requests=60_000).scenario, 60_000).load
    assert load is not None
    return load


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(
    "data",
    [
        scenario(at(HIGH, 0.7), at(LOW, 0.7)),
        scenario(at(HIGH, 0.5), MIDDLE, at(LOW, 0.5)),
        scenario(at(HIGH, 1.1), at(LOW, 1.1), count=2),
        scenario(at(HIGH, 0.7), at(LOW, 1.0, steps={"kind": "uniform", "low": 1, "high": 50}), dispatch="sjf"),
        scenario(at(HIGH, 0.7, deadline=500), at(LOW, 0.7), dispatch="edf"),
        scenario({**HIGH, "arrival": {"kind": "fixed", "interval_cycles": 200}}, at(LOW, 0.7)),
    ],
    ids=["two ranks", "three ranks", "two cores", "many ranks", "deadlines", "evenly"],
)
def test_the_load_is_the_threads_that_a_long_run_takes(data: dict[str, Any]) -> None:
    """On cores of one thread whatever takes a thread longer than alone is preemption. The run has other requests."""
    load, run = load_of(data), serve(data, requests=30_000).serving
    came = run.requests * 1e9 / run.last_finish / load.rate_per_second
    assert load.preemption is not None
    assert load.preemption.exact
    assert load.offered == load.preemption.load
    assert 0.01 < load.added == load.offered - max(load.parts.values())
    assert run.utilization / came == pytest.approx(load.offered, rel=0.02)


@pytest.mark.slow
def test_with_a_load_of_1_and_more_the_lowest_rank_is_never_done() -> None:
    """Threads alone are a load of 0.9; what is added makes it 1.05, and the queue grows in proportion to the run."""
    data = scenario(HIGH, LOW)
    load = load_of(data)
    assert load.parts["threads"] == pytest.approx(0.9, rel=1e-3)
    assert 1.02 < load.offered < 1.07
    runs = [serve(data, requests=requests).serving for requests in (20_000, 80_000)]
    assert [each.verdict for each in runs] == ["unstable", "unstable"]
    assert runs[1].most_inside > 2.5 * runs[0].most_inside
    assert all(each.latency.mean.half_width is None for each in runs)
    text = " ".join(Serving.to_text(runs[0]).split())
    assert "offered load 1.046, of which preemption adds 0.146 +- 0.0038 (measured on 17,910 requests): PE" in text


def test_a_run_of_a_list_of_jobs_has_the_same_load() -> None:
    data = scenario(at(HIGH, 0.7, count=600), at(LOW, 0.7, count=10))
    (one, two) = (serving(run(data)), serve(data).serving)
    assert one.load == two.load
    assert Serving.to_dict(one)["load"]["preemption"]["load"] == one.load.offered  # type: ignore[union-attr]


@pytest.mark.slow
def test_saturate_finds_the_rate_at_which_the_lowest_rank_is_just_done() -> None:
    """All rates below 0.96 of the scenario's own are stable, all above are not (long runs: threads taken 99.9 %)."""
    data, own = scenario(HIGH, LOW), 1e9 / 120 + 138_376.4
    ends = {"low": 0.9 * own, "high": 1.02 * own, "tolerance": 0.02}
    answer = saturate(data, bounds_ms={"hi": 50.0}, most_requests=2000, **ends)  # type: ignore[arg-type]
    unstable = [each.rate / own for each in answer.runs if each.verdict == "unstable"]
    assert answer.fails_from == min(unstable) * own
    assert 0.95 < min(unstable) < 0.98
    assert all(each.verdict != "below" for each in answer.runs if each.rate / own > 0.97)


@pytest.mark.slow
def test_a_lowest_rank_that_is_left_no_time_is_an_overload() -> None:
    """By threads alone the load is 0.94; whatever is not the longest takes all of it with what stopping costs."""
    steps = {"kind": "uniform", "low": 1, "high": 50}
    data = scenario(at(HIGH, 0.9), at(LOW, 2.3, steps=steps), dispatch="sjf")
    load = load_of(data)
    assert max(load.parts.values()) < 1 <= load.offered
    assert not load.unsure
    assert serve(data, requests=5000).serving.verdict == "unstable"


@pytest.mark.slow
def test_deadlines_stop_the_fewer_the_longer_the_queue() -> None:
    """So the measured load is an upper bound: below 1 it decides, above 1 it does not."""
    stable, unsure = (
        load_of(scenario(at(HIGH, each, deadline=500), at(LOW, each, deadline=20_000), dispatch="edf"))
        for each in (0.7, 1.0)
    )
    for load in (stable, unsure):
        assert load.preemption is not None
        assert not load.preemption.exact
        assert load.offered == max(load.parts.values()) < load.preemption.most
    assert stable.stable
    assert not unsure.stable
    assert "preemption may bring the load to 1.05" in unsure.unsure
    result = serve(
        scenario(at(HIGH, 1, deadline=500), at(LOW, 1, deadline=20_000), dispatch="edf"), requests=3000
    ).serving
    assert (result.verdict, result.latency.mean.half_width) == ("cannot tell", None)
    assert "which adds" not in Serving.to_text(result)
    assert "verdict: cannot tell: whether the machine keeps up" in " ".join(Serving.to_text(result).split())


@pytest.mark.slow
def test_sets_of_cores_that_overlap_cannot_be_told() -> None:
    apart, overlapping = (
        load_of(scenario({**HIGH, "cores": first}, at(MIDDLE, 1, cores=second), at(LOW, 0.5, cores=[1]), count=2))
        for first, second in (([0], [1]), ([0], [0, 1]))
    )
    assert apart.preemption is not None
    assert apart.preemption.cores == (1,)
    assert not apart.unsure
    assert overlapping.unsure == (
        "the cost of preemption is not known where jobs of several ranks share only some of their cores"
    )


def test_who_comes_ever_so_rarely_is_bounded() -> None:
    load = load_of(scenario(at(HIGH, 1e-6), LOW))
    assert load.preemption == Preemption(pytest.approx(load.offered, rel=1e-3), 0.0, False, cores=(0,))
    assert load.stable


@pytest.mark.slow
def test_bursts_that_no_measurement_holds_cannot_be_told() -> None:
    bursts = {"kind": "bursty", "on_rate_per_second": 1e7, "mean_on_ms": 1000, "mean_off_ms": 1000}
    load = load_of(scenario({**HIGH, "arrival": bursts}, at(LOW, 0.7)))
    assert load.unsure == (
        "what preemption costs could not be measured: 320,000 requests do not come at the rate of their entries"
    )


def test_where_all_are_of_one_rank_nobody_is_stopped() -> None:
    assert load_of(scenario({**HIGH, "priority": 0}, LOW)).preemption is None
