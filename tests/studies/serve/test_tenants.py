"""Tenants are entries of the scenario: own latencies, deadlines and rates, never merged, in bounded memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim import Run, run, serve, serving
from lstmsim.studies.serve.report import SHOWN
from lstmsim.studies.serve.result import Entry, Serving
from lstmsim.traffic.latencies import KEPT, LEAST_KEPT, Sample, _drawn
from tests.studies.serve.collecting import Collector

POISSON = {"kind": "poisson", "rate_per_second": 400_000}
SCENARIO: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [
        {"model": "lstm-512", "steps": 2, "count": 300, "arrival": POISSON, "deadline": 700},
        {"model": "lstm-256", "steps": 2, "count": 200, "arrival": POISSON, "queue_limit": 0, "deadline": 300},
        {"model": "lstm-512", "steps": 1, "count": 100, "arrival": {**POISSON, "seed": 5}},
        {"model": "lstm-256", "name": "late", "steps": 1, "count": 2, "arrival": [5_000, 9_000]},
    ],
}
NAMES = ["lstm-512 #1", "lstm-256", "lstm-512 #2", "late"]


@cache
def simulated() -> Run:
    return run(SCENARIO)


def test_each_entry_is_a_tenant_in_the_order_of_the_file() -> None:
    result = simulated()
    served, jobs = serving(result), result.scenario.jobs
    listed = Serving.to_dict(served)["tenants"]
    assert [each["tenant"] for each in listed] == list(served.tenants) == NAMES
    assert [each["model"] for each in listed] == ["lstm-512", "lstm-256", "lstm-512", "lstm-256"]
    for name, tenant in served.tenants.items():
        jobs_served = [job for job in result.report.jobs if jobs[job.number].tenant == name]
        away = [job for job in result.report.rejected if jobs[job.number].tenant == name]
        late = sum(job.missed for job in jobs_served)
        assert (tenant.requests, tenant.rejected, tenant.misses) == (len(jobs_served), len(away), late)
        latencies = np.array([job.latency for job in sorted(jobs_served, key=lambda job: (job.finish, job.arrival))])
        counted = latencies[len(latencies) // 10 :]
        assert tenant.latency is not None
        assert tenant.wait is not None
        assert tenant.latency.mean.value == pytest.approx(counted.mean())
        for percent, each in tenant.latency.percentiles.items():
            assert each.value == pytest.approx(np.percentile(counted, percent))
        assert tenant.wait.max <= max(job.start - job.arrival for job in jobs_served)
        assert tenant.throughput_per_second == pytest.approx(served.per_second(len(jobs_served)))
        assert tenant.goodput_per_second == pytest.approx(served.per_second(len(jobs_served) - late))
    assert sum(each.throughput_per_second for each in served.tenants.values()) == pytest.approx(
        served.throughput_per_second
    )


def test_a_deadline_is_attained_by_those_in_time_and_not_by_those_rejected() -> None:
    served = serving(simulated())
    small = served.tenants["lstm-256"]
    assert small.rejected > 0
    assert small.misses > 0
    assert small.attainment == (small.requests - small.misses) / 200
    assert served.tenants["lstm-512 #2"].attainment is None
    assert Serving.to_dict(served)["tenants"][1]["attainment"] == small.attainment


def test_models_still_join_what_shares_one() -> None:
    served = serving(simulated())
    models = Serving.to_dict(served)["models"]
    assert list(models) == ["lstm-256", "lstm-512"]
    first, second = served.tenants["lstm-512 #1"], served.tenants["lstm-512 #2"]
    assert models["lstm-512"]["requests"] == 400
    assert first.slowdown is not None
    assert second.slowdown is not None
    assert models["lstm-512"]["slowdown"] == pytest.approx((300 * first.slowdown + 100 * second.slowdown) / 400)


def test_serve_counts_the_same() -> None:
    assert Serving.to_dict(serve(SCENARIO).serving) == Serving.to_dict(serving(simulated()))


def test_the_only_tenant_has_the_latencies_of_all() -> None:
    served = serving(run({**SCENARIO, "jobs": SCENARIO["jobs"][:1]}))
    (tenant,) = served.tenants.values()
    assert (tenant.latency, tenant.wait) == (served.latency, served.wait)
    assert "TENANTS" not in Serving.to_text(served)
    assert "slowdown against each job alone" in Serving.to_text(served)


def test_what_the_terminal_shows() -> None:
    text = Serving.to_text(serving(simulated()))
    assert "TENANTS\n" in text
    assert all(text.count(f"\n{name} ") == 3 for name in NAMES), "counts and rates, latencies, mean waits"
    assert "too few" in text
    assert max(map(len, text.splitlines())) <= 100


def collected(tenants: int, requests: int, kept: int = KEPT, chunk: int = 1000) -> Collector:
    entries = [Entry(f"tenant with a rather long name {number}", "m") for number in range(tenants)]
    collector = Collector(100, entries=entries, kept=kept)
    numbers = np.arange(requests)
    for first in range(0, requests, chunk):
        own = numbers[first : first + chunk]
        names = [entries[number % tenants].name for number in own.tolist()]
        late = 10 + own % 7 * (1 + own % tenants)
        collector.add_many(
            own, own * 10, own * 10, own * 10 + 10, tenants=names, due=own * 10 + late, alone=5 + own % 3
        )
    return collector


def test_of_many_tenants_the_text_shows_the_worst_and_says_how_many_more() -> None:
    served = collected(40, 400).figures()
    text = Serving.to_text(served)
    assert f"TENANTS (the {SHOWN} of 40 with the largest slowdown; 28 more are in the JSON)" in text
    assert len(text.splitlines()) < 75
    assert max(map(len, text.splitlines())) <= 100
    assert len(Serving.to_dict(served)["tenants"]) == 40
    slowdowns = sorted((each.slowdown or 0 for each in served.tenants.values()), reverse=True)
    assert f"{slowdowns[0]:.4g}" in text


@pytest.mark.slow
def test_a_tenant_among_thousands_has_room_for_4096_latencies() -> None:
    few = collected(3_000, 6_000)
    assert {each.sample.room for each in few._accounts._accounts} == {4096}


def test_tenants_share_the_room_for_latencies() -> None:
    collector = collected(3, 60_000, kept=30_000, chunk=7_000)
    collector._accounts._count()
    for account in collector._accounts._accounts:
        assert account.sample.room == 10_000
        assert len(account.sample.latency) == 10_000
        assert account.sample._pairs.shape[1] <= 10_000
    few = collected(3_000, 6_000)
    assert all(each.sample.room == LEAST_KEPT for each in few._accounts._accounts)
    served = collector.figures()
    tenant = next(iter(served.tenants.values()))
    assert tenant.requests == 20_000
    assert tenant.latency is not None
    assert not tenant.latency.exact
    assert tenant.latency.requests == 9_000


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40),
    st.integers(5, 60),
    st.integers(1, 3),
    st.sampled_from([0, 24, 40]),
)
def test_a_sample_does_not_depend_on_how_it_was_gathered(chunks: list[int], room: int, shrinks: int, wide: int) -> None:
    # numbers of four bytes, of more, and of both, in turn
    values = np.arange(sum(chunks)) ** 2 % 997 << wide
    whole, parts = Sample(room), Sample(10_000)
    whole.add(values, 2 * values)
    done = 0
    for number, size in enumerate(chunks):
        if number % shrinks == 0:
            parts.room = max(room, parts.room // 2)
            parts._thin()
        parts.add(values[done : done + size], 2 * values[done : done + size])
        done += size
    parts.room = room
    parts._thin()
    assert np.array_equal(whole.latency, parts.latency)
    assert np.array_equal(2 * whole.latency, whole.wait)
    assert len(whole.latency) <= room
    assert whole.max == parts.max == values.max()


def test_a_sample_sees_no_pattern_in_the_traffic() -> None:
    for period in (2, 4, 8):
        sample = Sample(4096)
        sample.add(np.arange(2**17) % period, np.zeros(2**17, dtype=np.int64))
        assert sample.one_of == 32
        shares = np.bincount(sample.latency, minlength=period) / len(sample.latency)
        assert shares == pytest.approx([1 / period] * period, abs=0.03)


def test_percentiles_of_a_sample_are_those_of_all() -> None:
    values = np.random.default_rng(3).exponential(10_000, 200_000).astype(np.int64)
    sample = Sample(20_000)
    sample.add(values, values)
    pair = sample.distributions(None, 1.0)
    assert pair is not None
    assert pair[0].p50.value == pytest.approx(np.percentile(values, 50), rel=0.04)
    assert pair[0].p99.value == pytest.approx(np.percentile(values, 99), rel=0.06)
    assert pair[0].max == values.max()
    assert not pair[0].exact


def test_a_tenant_that_was_never_served_is_listed() -> None:
    collector = Collector(100, entries=[Entry("a", "m"), Entry("b", "m"), Entry("c", "n")])
    collector.add(0, 0, 0, 10, tenant="a", alone=10)
    collector.turn_away(1, 5, 15, tenant="b", due=50, alone=10)
    served = collector.figures()
    a, b, c = served.tenants.values()
    assert (a.slowdown, b.slowdown, c.slowdown) == (1.0, None, None)
    assert (b.attainment, b.progress, c.progress) == (0.0, 0.0, None)
    assert (served.antt, served.stp) == (1.0, 1.0)
    assert b.latency is None
    assert "none served" in Serving.to_text(served)
    assert Serving.to_dict(served)["tenants"][2]["latency_cycles"] is None
    assert list(served.models) == ["m"]


def test_what_stays_is_drawn_by_splitmix64_as_published() -> None:
    """Level l of group g is the lowest bit of number 64 g + l that SplitMix64 gives from seed 0."""

    def published(number: int) -> int:
        """Steele, Lea, Flood (2014), figure 16: mix64 of the seed and so many steps of the golden gamma."""
        mixed = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return mixed ^ mixed >> 31

    # the numbers that other implementations give from seed 0
    assert [published(number) for number in range(4)] == [
        *(0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC)
    ]
    for level in (0, 1, 5, 63):
        assert _drawn(np.arange(300), level).tolist() == [published(64 * group + level) & 1 for group in range(300)]
