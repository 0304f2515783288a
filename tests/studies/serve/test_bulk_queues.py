"""Queues of batches against theory: a server of constant time D, Poisson arrivals of rate r (docs/batching.md, 12)."""

from __future__ import annotations

from math import exp, lgamma, log
from typing import Any

import numpy as np
import pytest

from lstmsim import serve, simulate
from lstmsim.studies.serve import together
from lstmsim.studies.serve.offered import capacity_of
from lstmsim.studies.serve.run import Served

#: On this machine a batch of up to 6 takes as long as one request.
CHIP, JOB = "intel-npu-rtl", {"model": "lstm-256", "steps": 1}
LOADS = [0.3, 0.8]
MORE = [0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.85, 0.9]


def loads() -> Any:
    return pytest.mark.parametrize("load", LOADS + [pytest.param(each, marks=pytest.mark.long) for each in MORE])


def served(load: float, most: int, requests: int) -> tuple[Served, float, int]:
    """A run, its rate per cycle, and the cycles of the server."""
    alone = simulate({"chip": CHIP, "jobs": [JOB]})
    cycles = alone.makespan_cycles
    rate = load * most / cycles
    arrival = {"kind": "poisson", "rate_per_second": rate * alone.frequency_mhz * 1e6, "seed": 7}
    batching = {"max_batch_size": most}
    job = JOB | {"count": 10, "arrival": arrival, "batching": batching}
    return serve({"chip": CHIP, "jobs": [job]}, requests=requests), rate, cycles


def inside(result: Served, expected: float) -> bool:
    """Whether the interval of the mean wait holds a value; one cycle is what whole cycles may change."""
    mean = result.serving.wait.mean
    assert mean.half_width is not None
    return abs(mean.value - expected) <= mean.half_width + 1


@pytest.mark.slow
@loads()
def test_batches_of_one_are_an_m_d_1_queue(load: float) -> None:
    result, _, cycles = served(load, 1, 20_000)
    assert inside(result, load * cycles / (2 * (1 - load)))


def bailey(rate: float, cycles: int, most: int) -> float:
    """The mean wait where whoever waits is taken along, at most `most`: from what departures leave behind."""
    size = 80 * most
    coming = np.array([exp(number * log(rate * cycles) - rate * cycles - lgamma(number + 1)) for number in range(size)])
    left = np.zeros(size)
    left[0] = 1.0
    change = 1.0
    while change > 1e-13:
        rest = np.concatenate([[left[: most + 1].sum()], left[most + 1 :]])
        more = np.convolve(rest, coming)[:size]
        change, left = float(np.abs(more - left).max()), more
    beyond = float((left * np.maximum(np.arange(size) - most, 0)).sum())
    return (beyond + rate * cycles / 2) / (rate * (cycles + left[0] / rate)) * cycles


@pytest.mark.slow
@loads()
def test_a_backlog_makes_the_batches_of_baileys_queue(load: float) -> None:
    result, rate, cycles = served(load, 4, 20_000)
    assert inside(result, bailey(rate, cycles, 4))


@pytest.mark.parametrize("most", [6, 7])
def test_the_most_that_a_machine_can_do_is_told_by_the_best_size(most: int) -> None:
    """Six members fill the vectors of this chip, a seventh begins another round: 64 cycles for each, then 110."""
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}
    arrival = {"kind": "poisson", "rate_per_second": 1000}
    job = {"model": model, "steps": 4, "arrival": arrival, "batching": {"max_batch_size": most}}
    found = serve({"chip": "intel-npu-rtl", "jobs": [job]}, requests=10)
    clock, six = found.scenario.chip.frequency_mhz * 1e6, {**job, "arrival": 0, "batch": 6}
    del six["batching"]
    load, thread = found.serving.load, simulate({"chip": "intel-npu-rtl", "jobs": [six]}).makespan_cycles
    assert load.parts["PE arrays"] == pytest.approx(1000 * 64 / clock)
    # the one thread has a batch for as long as the batch takes: far longer than its share of the arrays
    assert load.bound_per_second == pytest.approx(6 * clock / thread)


@pytest.mark.needs_core
@pytest.mark.parametrize(
    ("chip", "policy", "least"),
    [("intel-npu-rtl", "dynamic", 0.6), ("intel-npu-rtl", "continuous", 0.6), ("column-npu-16k", "dynamic", 0.9)],
)
def test_the_bound_of_a_machine_with_batches_is_near_what_a_backlog_does(chip: str, policy: str, least: float) -> None:
    """It was eight times as much on a row NPU, whose thread has a batch for far longer than the arrays do."""
    arrival = {"kind": "poisson", "rate_per_second": 20_000}
    job = {"model": "lstm-256", "steps": 10, "arrival": arrival, "batching": {"max_batch_size": 8, "policy": policy}}
    machine = capacity_of({"chip": chip, "jobs": [job]})
    assert least < machine.limits_per_second["saturated"] / machine.bound_per_second <= 1


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.3])
def test_windows_that_close_at_once_have_the_relaxation_of_the_queue_that_they_make(share: float | None) -> None:
    """Requests come one by one, so batches are of one: at 98 % of what one by one can be done 20,000 are too few."""
    alone = simulate({"chip": CHIP, "jobs": [JOB]})
    rate = 0.98 / alone.makespan_cycles * alone.frequency_mhz * 1e6
    arrival = {"kind": "poisson", "rate_per_second": rate, "seed": 7}
    job = JOB | {"count": 10, "arrival": arrival, "batching": {"max_batch_size": 6, "policy": "window"}}
    result = serve({"chip": CHIP, "jobs": [job]}, requests=20_000, until_half_width=share)
    assert result.serving.load is not None
    assert result.serving.load.offered < 0.2
    assert result.serving.load.saturated_fcfs is None
    assert (result.serving.verdict, result.serving.latency.mean.half_width) == ("too few", None)
    assert result.ended == ("all" if share is None else "limit")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dynamic", "continuous"])
def test_batches_are_counted_alike_while_requests_come(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrival, model = {"kind": "poisson", "rate_per_second": 1e6}, {"layers": [{"cell": "rnn", "hidden": 8, "input": 8}]}
    pool = {"max_batch_size": 4, "policy": policy, "pool": "p"}
    jobs = [
        {"name": name, "model": {"name": "m", **model}, "steps": steps, "arrival": arrival, "batching": pool}
        for name, steps in (("a", 2), ("b", 3))
    ]
    scenario = {"chip": "column-npu-16k", "jobs": jobs}
    whole = serve(scenario, requests=5000).serving
    monkeypatch.setattr(together, "_MANY", 100)
    parts = serve(scenario, requests=5000).serving
    assert parts.batching == whole.batching
    assert parts.batching is not None
    assert parts.batching.mean_size > 1
    assert [each.batching for each in parts.tenants.values()] == [each.batching for each in whole.tenants.values()]
