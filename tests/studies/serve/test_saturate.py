"""The highest rate: against the exact M/D/1, below the machine's bound, for tenants, and refusals."""

from __future__ import annotations

import os
from typing import Any

import pytest

from lstmsim import simulate
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.requests import rate_overrides, rates_of
from lstmsim.studies.serve.offered import capacity_of
from lstmsim.studies.serve.run import serve_on_horizon
from lstmsim.studies.serve.saturate import saturate
from lstmsim.studies.serve.saturation import Saturation
from tests.traffic.md1 import md1_rate

#: The long version, by LSTMSIM_EXAMPLES (any number), judges more bounds and with more requests.
LONG = "LSTMSIM_EXAMPLES" in os.environ
ONE_THREAD = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 16384, "ep": 16, "vp": 1024, "threads": 1}]}
POISSON = {"kind": "poisson", "rate_per_second": 200_000}
SMALL: dict[str, Any] = {
    "chip": ONE_THREAD,
    "jobs": [{"model": "lstm-256", "steps": 2, "count": 100, "arrival": POISSON}],
}


def tenants(**counts: int) -> dict[str, Any]:
    """Two tenants, one of which comes nine times as often."""
    fast = {"name": "fast", "model": "lstm-256", "steps": 1, "count": counts.get("fast", 100)}
    slow = {"name": "slow", "model": "lstm-256", "steps": 8, "count": counts.get("slow", 100)}
    fast["arrival"], slow["arrival"] = ({"kind": "poisson", "rate_per_second": rate} for rate in (900.0, 100.0))
    return {"chip": ONE_THREAD, "jobs": [fast, slow]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("services", "percentile"), [(3, 90.0), *([(4, 99.0), (8, 99.0), (20, 99.0), (15, 99.9)] if LONG else [])]
)
def test_the_answer_is_that_of_md1(services: int, percentile: float) -> None:
    bound = capacity_of(SMALL).bound_per_second
    truth = bound * md1_rate(services, percentile)
    size, near = (640_000, 0.03) if LONG else (10_000, 0.15)
    answer = saturate(SMALL, 1000 * services / bound, percentile=percentile, most_requests=size, tolerance=near / 2)
    assert answer.rate is not None
    assert answer.fails_from is not None
    # The certain rates lie on their sides of the truth, and near it.
    assert (1 - near) * truth < answer.rate <= truth <= answer.fails_from < (1 + near) * truth
    assert answer.monotone


@pytest.mark.slow
def test_no_rate_above_the_machines_bound() -> None:
    """All that came within a hundred requests was over before the queue could grow."""
    jobs = [{"model": "lstm-512", "steps": 20, "count": 100, "arrival": POISSON}]
    answer = saturate({"chip": "column-npu-64k", "jobs": jobs}, 0.5, high=5e7, most_requests=1000, tolerance=0.1)
    assert answer.bound_per_second is not None
    assert answer.bound_per_second < 406_250
    assert max(run.rate for run in answer.runs) <= answer.bound_per_second
    assert answer.fails_from is not None
    last = max(answer.runs, key=lambda run: run.rate)
    assert (last.verdict, last.kept, last.p99_ms) == ("unstable", False, None)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["edge", "intel-npu-rtl", "xeon-gold-5122", "column-npu-4x16k"])
@pytest.mark.parametrize("batching", [None, {"max_batch_size": 2}])
def test_no_rate_keeps_a_bound_that_a_request_alone_breaks(chip: str, batching: dict[str, Any] | None) -> None:
    layers = [{"cell": "lstm", "hidden": 64, "input": 64}]
    short = {"name": "short", "model": {"layers": layers}, "steps": 2, "arrival": POISSON, "batching": batching}
    jobs = [{key: each for key, each in short.items() if each is not None}]
    jobs.append({**jobs[0], "name": "long", "steps": 6, "arrival": POISSON | {"rate_per_second": 4000}})
    alone = [simulate({"chip": chip, "jobs": [{"model": {"layers": layers}, "steps": steps}]}) for steps in (2, 6)]
    one, other = (report.makespan_cycles / (report.frequency_mhz * 1e3) for report in alone)
    size = {"most_requests": 500, "tolerance": 0.9}
    # caches are warm where requests follow each other, so that the first one of all takes longer than any later one
    under = saturate({"chip": chip, "jobs": jobs}, one / 20, percentile=50, **size)  # type: ignore[arg-type]
    assert under.alone_ms is not None
    assert one / 20 < under.alone_ms <= one
    said = f"no rate can keep a p50 of {one / 20:g} ms: one request of short alone takes "
    assert " ".join(Saturation.to_text(under).split()).startswith(said)
    # two of a hundred requests are long ones
    tail = saturate({"chip": chip, "jobs": jobs}, None, bounds_ms={"long": other / 20}, **size)  # type: ignore[arg-type]
    assert tail.alone_ms is not None
    assert other / 20 < tail.alone_ms <= other
    kept = saturate({"chip": chip, "jobs": jobs}, 20 * other, percentile=50, **size)  # type: ignore[arg-type]
    assert kept.alone_ms is None


@pytest.mark.slow
def test_far_above_the_bound_is_above_before_there_is_an_interval() -> None:
    bound = capacity_of(SMALL).bound_per_second
    ends = {"low": 0.2 * bound, "high": 0.9 * bound, "most_requests": 8_000, "tolerance": 0.9}
    worst = max(saturate(SMALL, 3000 / bound, **ends).runs, key=lambda run: run.rate)  # type: ignore[arg-type]
    assert worst.needs is not None
    assert worst.needs > 8_000
    assert (worst.verdict, worst.half_width_ms) == ("above", None)


@pytest.mark.slow
@pytest.mark.parametrize(("percentile", "limit"), [(80.0, 3), (50.0, 1)])
def test_with_a_queue_limit_rates_above_load_1_are_tried(percentile: float, limit: int) -> None:
    """Who is served waits for so few that the bound holds: only the share that is turned away can break it."""
    jobs = [SMALL["jobs"][0] | {"queue_limit": limit}]
    size = {"low": 1e6, "tolerance": 0.12, "most_requests": 20_000}
    answer = saturate({"chip": ONE_THREAD, "jobs": jobs}, 1.0, percentile=percentile, **size)  # type: ignore[arg-type]
    assert answer.rate is not None
    assert answer.fails_from is not None
    assert answer.bound_per_second is not None
    assert answer.bound_per_second < answer.rate
    shares = {run.rate: run.rejected for run in answer.runs}
    assert shares[answer.rate] < 1 - percentile / 100 < shares[answer.fails_from]
    # one server does no more than its bound
    assert shares[answer.fails_from] >= 1 - answer.bound_per_second / answer.fails_from - 0.02
    assert "the rest is rejected" in answer.to_text().replace("\n", " ")


FAST = {"name": "fast", "model": "lstm-256", "steps": 10, "count": 1000, "arrival": POISSON}
SLOW = {"name": "slow", "model": "lstm-1024", "steps": 25, "count": 10}
SLOW["arrival"] = {"kind": "poisson", "rate_per_second": 4000}


@pytest.mark.skipif(not LONG, reason="takes minutes: LSTMSIM_EXAMPLES")
@pytest.mark.parametrize(
    ("jobs", "tenant", "bound_ms"),
    [
        ([{"model": "lstm-512", "steps": 20, "count": 100, "arrival": POISSON}], "lstm-512", 0.5),
        ([FAST, SLOW], "fast", 0.02),
    ],
)
def test_the_answer_is_within_three_percent_of_serve_by_hand(
    jobs: list[dict[str, Any]], tenant: str, bound_ms: float
) -> None:
    scenario = {"chip": "column-npu-64k", "jobs": jobs}
    answer = saturate(scenario, bounds_ms={tenant: bound_ms})
    assert answer.rate is not None
    assert answer.bound_per_second is not None
    assert answer.rate < answer.bound_per_second

    def by_hand(rate: float) -> float:
        changes = rate_overrides(rates_of(scenario), rate)
        latency = serve_on_horizon(scenario, 1_000_000, changes).serving.tenants[tenant].latency
        assert latency is not None
        return latency.p99.value / 260e3

    assert by_hand(answer.rate) <= bound_ms < by_hand(1.03 * answer.rate)


@pytest.mark.slow
def test_counts_of_the_file_do_not_matter() -> None:
    """All entries go on until the last request, whatever their counts."""
    one, two = (
        saturate(tenants(fast=fast, slow=slow), 0.02, most_requests=1000, tolerance=0.3)
        for fast, slow in ((1000, 10), (10, 1000))
    )
    assert one == two


@pytest.mark.slow
def test_each_tenant_keeps_its_own_bound() -> None:
    size = {"most_requests": 40_000, "tolerance": 0.5, "high": 900_000.0}
    bounds = {"fast": 0.0032, "slow": 1.0}
    both = saturate(tenants(), bounds_ms=bounds, **size)  # type: ignore[arg-type]
    best, worst = (next(each for each in both.runs if each.rate == rate) for rate in (both.rate, both.fails_from))
    assert {name: each.verdict for name, each in best.tenants.items()} == {"fast": "below", "slow": "below"}
    assert {name: each.verdict for name, each in worst.tenants.items()} == {"fast": "above", "slow": "below"}
    assert best.tenants["slow"].requests < best.tenants["fast"].requests
    assert both.bound_ms is None


def test_an_undecided_rate_is_neither_kept_nor_broken() -> None:
    answer = saturate(SMALL, 0.01, most_requests=300, low=100_000, high=400_000, tolerance=0.1)
    assert answer.undecided is not None
    assert all(run.kept is None for run in answer.runs if answer.undecided[0] <= run.rate <= answer.undecided[1])
    assert answer.rate is None or answer.rate < answer.undecided[0]


@pytest.mark.slow
def test_preemption_has_the_same_horizon() -> None:
    chip = {"chip": ONE_THREAD, "dispatch": "sjf"}
    jobs = tenants()["jobs"]
    plain, preempting = (
        serve_on_horizon(chip | {"jobs": jobs, "preemption": preempts}, 500).serving for preempts in (False, True)
    )
    assert {name: each.requests for name, each in plain.tenants.items()} == {
        name: each.requests for name, each in preempting.tenants.items()
    }
    answer = saturate(chip | {"jobs": jobs, "preemption": True}, 5.0, most_requests=500, tolerance=0.5)
    assert answer.bound_per_second is not None
    assert max(run.requests for run in answer.runs) == 500


@pytest.mark.slow
@pytest.mark.needs_core
def test_requests_of_one_rank_preempt_nobody_in_a_run_of_any_length() -> None:
    """The known answer of one server stands whether jobs could pause or not, with more than 20,000 requests too."""
    full = capacity_of(SMALL).bound_per_second
    search = {"low": 0.9 * full, "high": 0.95 * full, "tolerance": 0.5, "percentile": 90.0, "most_requests": 60_000}
    plain = saturate(SMALL, 1.0, **search)  # type: ignore[arg-type]
    assert saturate(SMALL | {"dispatch": "priority", "preemption": True}, 1.0, **search) == plain  # type: ignore[arg-type]
    assert max(run.requests for run in plain.runs) > 20_000
    assert plain.rate == search["high"]


@pytest.mark.needs_core
def test_a_run_that_has_no_room_for_a_burst_says_nothing_of_what_comes_behind() -> None:
    """Twenty requests come for each that is served, some 20,000 in a row, and then none for long: a load of 0.2."""
    full = capacity_of(SMALL).bound_per_second
    bursts = {"kind": "bursty", "on_rate_per_second": 20 * full, "mean_on_ms": 1e6 / full}
    jobs = [{**SMALL["jobs"][0], "arrival": bursts | {"mean_off_ms": 99 * bursts["mean_on_ms"]}}]
    ends = {"low": 0.19 * full, "high": 0.2 * full, "tolerance": 0.5, "percentile": 99.9}
    answer = saturate({"chip": ONE_THREAD, "jobs": jobs}, 1e3, **ends, most_requests=60_000)
    assert {(run.verdict, run.kept) for run in answer.runs} == {("cannot tell", None)}
    assert "more than 8,192 requests were in the machine at once, where the run ended" in answer.to_text()


@pytest.mark.parametrize(
    ("changes", "arguments", "sentence"),
    [
        ({}, {"bound_ms": None}, "expected a bound"),
        ({}, {"percentile": 100.0}, "percentile"),
        ({}, {"percentile": float("nan")}, "finite number|above 0 and below 100"),
        ({}, {"bounds_ms": {"lstm-265": 1.0}}, "no job entry of that name; did you mean 'lstm-256'"),
        ({}, {"most_requests": 0}, "most_requests"),
        ({}, {"low": 5e6}, r"low: must be below .* the most that this machine can possibly do, got 5,000,000.0"),
        ({}, {"low": 5.0, "high": 4.0}, "high: must be above the lowest rate"),
        ({"arrival": {"kind": "closed", "clients": 2, "think_ms": 1}}, {}, "no job comes at a rate"),
        ({"arrival": 0}, {}, "no job comes at a rate"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], arguments: dict[str, Any], sentence: str) -> None:
    scenario = {**SMALL, "jobs": [{**SMALL["jobs"][0], **changes}]}
    with pytest.raises(InputError, match=sentence):
        saturate(scenario, **{"bound_ms": 1.0, **arguments})


@pytest.mark.slow
def test_with_preemption_the_bracket_is_narrow() -> None:
    """What goes first keeps its bound until near load 1; the search was once cut off at two thirds of that."""
    arrival = {"kind": "poisson", "rate_per_second": 9e4}
    hi = {"name": "hi", "model": "lstm-256", "steps": 1, "priority": 1, "arrival": arrival}
    lo = {"name": "lo", "model": "lstm-512", "steps": 25, "arrival": arrival | {"rate_per_second": 1e4}}
    data = {"chip": "column-npu-16k", "dispatch": "priority", "preemption": True, "jobs": [hi, lo]}
    answer = saturate(data, bounds_ms={"hi": 0.05}, percentile=95, low=5e5, tolerance=0.2, most_requests=110_000)
    assert answer.rate is not None
    assert answer.fails_from is not None
    assert answer.fails_from < 1.25 * answer.rate
