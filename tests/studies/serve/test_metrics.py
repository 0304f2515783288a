"""Metrics of a run against brute force, exactly; in flat memory, in whatever chunks; and refused requests."""

from __future__ import annotations

import tracemalloc
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.analysis.report import latency_statistics
from lstmsim.base.errors import InputError
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.arrivals import Poisson, arrivals
from lstmsim.traffic.intervals import BATCHES, MOST_BATCHES
from lstmsim.traffic.latencies import Histogram, Series, sum_of
from lstmsim.traffic.population import WINDOWS, Population
from lstmsim.traffic.streams import UNIT, exponentials
from tests.studies.serve.collecting import Collector
from tests.traffic.lindley import Finished, served

runs = st.tuples(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=60), st.integers(1, 3)
).map(lambda drawn: finished(*drawn))


def finished(rows: list[tuple[int, int]], servers: int) -> tuple[list[Finished], int]:
    times = np.cumsum([gap for gap, _ in rows]).tolist()
    return list(served(times, [service for _, service in rows], servers)), servers


def collected(rows: list[Finished], servers: int = 1, **options: int) -> Serving:
    collector = Collector(100, servers, **options)
    for row in rows:
        collector.add(*row)
    return collector.figures()


@given(runs)
def test_every_number_is_that_of_a_count_cycle_by_cycle(drawn: tuple[list[Finished], int]) -> None:
    rows, servers = drawn
    result = collected(rows, servers, warmup=0)
    first, last = min(row[1] for row in rows), max(row[3] for row in rows)
    cycles = range(first, last)
    waiting = [sum(arrival <= cycle < start for _, arrival, start, _ in rows) for cycle in cycles]
    running = [sum(start <= cycle < finish for _, _, start, finish in rows) for cycle in cycles]
    assert (result.first_arrival, result.last_finish, result.requests) == (first, last, len(rows))
    assert result.little.area == sum(waiting) + sum(running) == result.little.sojourn
    assert result.little_waiting.area == sum(waiting) == result.little_waiting.sojourn
    assert result.service_cycles == sum(running)
    assert result.most_waiting == max(waiting, default=0)
    assert result.most_inside == max(map(sum, zip(waiting, running, strict=True)), default=0)
    assert sum(window.finished for window in result.windows) == (len(rows) if cycles else 0)
    for window in result.windows:
        there = slice(window.start_cycle - first, window.start_cycle - first + window.width_cycles)
        assert (window.waiting_cycles, window.running_cycles) == (sum(waiting[there]), sum(running[there]))
        until = window.start_cycle + window.width_cycles
        late = first - 1 if window.start_cycle == first else window.start_cycle
        assert window.finished == sum(late < finish <= until for *_, finish in rows)
    assert sum(window.width_cycles for window in result.windows) == last - first
    assert len(result.windows) <= WINDOWS


@pytest.mark.slow
@given(runs, st.integers(1, 20), st.randoms(use_true_random=False))
def test_chunks_change_nothing(drawn: tuple[list[Finished], int], size: int, random: object) -> None:
    rows, servers = drawn
    whole, parts = Collector(100, servers, "012"), Collector(100, servers, "012")
    whole.add_many(*np.array(rows).T, tenants=[str(row[0] % 3) for row in rows], due=[row[1] + 50 for row in rows])
    for start in range(0, len(rows), size):
        for row in rows[start : start + size]:
            parts.add(*row, tenant=str(row[0] % 3), due=row[1] + 50)
        parts.add_many([], [], [], [])  # counts the requests that are there
    one, other = whole.figures(), parts.figures()
    assert one == other


def test_latencies_are_those_of_the_report() -> None:
    rows = list(served(arrivals(Poisson(1e5), 2000, 100), (each * 700 // UNIT for each in exponentials((1,)))))
    result = collected(rows, warmup=0)
    known = latency_statistics([row[3] - row[1] for row in rows], 0.001)
    assert result.latency.mean.value == known.mean
    assert [result.latency.p50.value, result.latency.p95.value] == pytest.approx([known.p50, known.p95], rel=1e-15)
    assert result.latency.p99.value == pytest.approx(known.p99, rel=1e-15)
    assert result.latency.max == known.max
    assert result.latency.exact
    assert result.ms(1e5) == 1.0


def test_rates_misses_and_fairness() -> None:
    collector = Collector(100, 2, "ab")
    collector.add(0, 0, 0, 10, tenant="a", due=10, alone=10)
    collector.add(1, 0, 0, 10, tenant="b", due=9, alone=8)
    collector.add(2, 5, 10, 20, tenant="a", alone=10)
    collector.add(3, 5, 10, 40, tenant="b", due=40, alone=28)
    result = collector.figures()
    assert (result.requests, result.misses) == (4, 1)
    assert result.throughput_per_second == pytest.approx(4 / 40 * 100e6)
    assert result.goodput_per_second == pytest.approx(3 / 40 * 100e6)
    assert result.utilization == 60 / 80
    a, b = result.tenants.values()
    assert (a.name, a.requests, a.in_time, a.sojourn, a.service) == ("a", 2, 2, 25, 20)
    assert (b.name, b.requests, b.in_time, b.sojourn, b.service) == ("b", 2, 1, 45, 40)
    assert result.fairness_throughput == pytest.approx(9 / 10)
    assert result.fairness_goodput == pytest.approx(1.5**2 / (2 * 1.25))
    assert result.fairness_slowdown == pytest.approx(2.5**2 / (2 * 2 * 1.25**2))


def test_an_instant_is_a_run_too() -> None:
    result = collected([(0, 5, 5, 5), (1, 5, 5, 5)])
    assert (result.span_cycles, result.utilization, result.throughput_per_second, result.windows) == (0, 0, 0, ())
    assert result.little.difference == 0
    assert result.little.inside == result.little.arrival_rate == result.little.time_inside == 0


def test_enormous_cycles_are_exact() -> None:
    last = 2**62
    rows = [(number, 0, 0, last - 10 + number) for number in range(10)]
    result = collected(rows, servers=10, warmup=0)
    assert result.little.area == result.little.sojourn == 10 * (last - 10) + 45
    assert result.latency.max == last - 1
    assert sum(window.running_cycles for window in result.windows) == result.service_cycles
    assert sum_of(np.array([last, last, 7])) == 2 * last + 7


def test_overtaking_is_remembered_only_as_long_as_it_lasts() -> None:
    """Request 0 stays in the system; the other requests pass by."""
    collector = Collector(100, servers=2)
    for number in range(1, 5001):
        collector.add(number, number, number, number + 1)
    collector.add(0, 0, 0, 6000)
    for number in range(5001, 20_001):
        collector.add(number, number + 1000, number + 1000, number + 1001)
    result = collector.figures()
    assert 4000 <= collector._past.most_ahead <= 5000
    assert result.little.difference == 0
    assert result.most_inside == 2


@pytest.mark.parametrize("load", [0.5, 1.5])
def test_littles_law_holds_even_where_the_queue_only_grows(load: float) -> None:
    rows = served(arrivals(Poisson(load * 1e5), 20_000, 100, (1,)), [1000] * 20_000)
    result = collected(list(rows))
    assert result.little.difference == result.little_waiting.difference == 0
    assert result.little.arrival_rate * result.little.time_inside == pytest.approx(result.little.inside, rel=1e-15)
    assert (result.most_waiting > 1000) == (load > 1)
    assert load < 1 or result.latency.mean.half_width is None


def test_a_histogram_is_within_its_bound() -> None:
    values = np.array([int(each * 1e9) // UNIT for each, _ in zip(exponentials((1,)), range(50_000), strict=False)])
    histogram = Histogram()
    histogram.add(values[:30_000])
    other = Histogram()
    other.add(values[30_000:])
    histogram.join(other)
    ordered = np.sort(values)
    for percent in (0, 0.1, 1, 50, 95, 99, 99.9, 100):
        rank = (len(values) - 1) * percent / 100
        bounds = ordered[int(rank)] * (1 - 1 / 2048), ordered[ceil(rank)] * (1 + 1 / 2048)
        assert bounds[0] <= histogram.percentile(percent) <= bounds[1]
    assert histogram.total == int(values.sum())


@given(st.integers(0, 2**62))
def test_every_number_has_a_bucket_around_it(value: int) -> None:
    histogram = Histogram()
    histogram.add(np.array([value]))
    assert abs(histogram.percentile(50) - value) <= value / 2048 + value * 2**-52
    assert value >= 2048 or histogram.percentile(50) == value


@pytest.mark.slow
def test_histograms_take_over_when_room_runs_out() -> None:
    """The same run with and without room: exact where it says so, else within the bound."""
    rows = list(served(arrivals(Poisson(7e4), 50_000, 100, (2,)), [1000] * 50_000))
    full, tight = collected(rows, warmup=1000), collected(rows, warmup=1000, kept=10_000)
    assert full.latency.exact
    assert not tight.latency.exact
    assert (full.warmup, full.latency.requests) == (tight.warmup, tight.latency.requests)
    for one, other in ((full.latency, tight.latency), (full.wait, tight.wait)):
        assert one.mean.value == other.mean.value
        assert one.max == other.max
        for percent, interval in one.percentiles.items():
            estimate = other.percentiles[percent]
            assert estimate.value == pytest.approx(interval.value, rel=1 / 2048)
        assert BATCHES <= other.mean.batches <= 2 * BATCHES
        assert BATCHES <= one.mean.batches <= MOST_BATCHES
        assert other.mean.half_width == pytest.approx(one.mean.half_width, rel=0.6)
    assert (full.little, full.windows) == (tight.little, tight.windows)


def test_percentiles_have_intervals_where_enough_lies_beyond_them() -> None:
    series = Series()
    series.add(np.random.default_rng(1).permutation(np.arange(10_000) % 1000))
    percentiles = series.distribution(0, relaxation=1.0).percentiles
    assert [interval.half_width is not None for interval in percentiles.values()] == [True, True, True, False]
    assert 0 < (percentiles[99.0].half_width or 0) < 5
    assert percentiles[99.0].value == pytest.approx(989.01)
    assert series.distribution(0, relaxation=9.0).p99.half_width is None
    asked = series.distribution(0, relaxation=1.0, percentiles=[12.5]).percentiles
    assert list(asked) == [12.5]
    assert asked[12.5].value == pytest.approx(124.875)


def test_windows_do_not_depend_on_how_the_sweep_is_cut() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 100_000, 900))
    waiting, running = np.ones(900, dtype=np.int64), np.zeros(900, dtype=np.int64)
    running[::3] = 1
    whole = Population()
    whole.apply(times, waiting, running, 2 * running)
    for size in (1, 7, 100):
        parts = Population()
        for start in range(0, 900, size):
            parts.apply(*(each[start : start + size] for each in (times, waiting, running, 2 * running)))
        assert parts.windows == whole.windows
        assert parts.waiting_area == whole.waiting_area


@pytest.mark.parametrize("last", [40, 256, 257, *(pytest.param(each, marks=pytest.mark.long) for each in (255, 700))])
def test_changes_of_one_cycle_may_come_in_several_calls(last: int) -> None:
    """A finish counts for the window that ends with its cycle, also after other finishes of that cycle."""
    rng = np.random.default_rng(last)
    starts = np.array([0, *rng.integers(0, last, 300)])
    finishes = np.minimum(starts + np.array([0, *rng.choice([0, 1, 2, 30], 300)]), last)
    times, one, none = np.concatenate([starts, finishes]), np.ones(301, np.int64), np.zeros(602, np.int64)
    running = np.concatenate([one, -one])
    order = np.lexsort((-running, times))
    times, running = times[order], running[order]
    for size in (1, 2, 7, 602):
        parts = Population()
        for at in range(0, 602, size):
            there = slice(at, at + size)
            parts.apply(times[there], none[there], running[there], running[there])
        for window in parts.windows:
            begin, end = window.start_cycle, window.start_cycle + window.width_cycles
            late = -1 if begin == 0 else begin
            assert window.finished == np.count_nonzero((late < finishes) & (finishes <= end)), (size, window)
            inside = np.minimum(finishes, end) - np.maximum(starts, begin)
            assert window.running_cycles == window.taken_cycles == inside[inside > 0].sum(), (size, window)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run() -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        collector = Collector(100, kept=1500)
        for row in served(arrivals(Poisson(7e4), count, 100, (2,)), iter(lambda: 1000, None)):
            collector.add(*row)
        assert collector.figures().little.difference == 0
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(8_000) < 1.15 * peak(4_000)


WRONG: list[tuple[list[Finished], str]] = [
    ([], "none has finished"),
    ([(0, 5, 4, 6)], "request 0: starts before it arrives; arrival 5, start 4, finish 6"),
    ([(0, 5, 7, 6)], "request 0: finishes before it starts"),
    ([(0, 0, 1, 9), (1, 0, 1, 8)], "request 1: finishes before the one that came before it"),
    ([(0, -1, 1, 9)], "request 0: must lie between cycles 0"),
    ([(0, 0, 1, 2**62 + 1)], "request 0: must lie between cycles 0"),
    ([(0, 0, 1, 9), (0, 0, 1, 9)], "request 0: comes twice"),
    ([(1, 0, 1, 9), (1, 0, 1, 9)], "request 1: comes twice"),
    ([(-1, 0, 1, 9)], "request -1: comes twice"),
    ([(0, 5, 6, 9), (1, 4, 6, 9)], "request 1: arrives at 4, before the one with the number below"),
    ([(0, 0, 1, 9), (2, 0, 1, 9)], "request 1: has not finished, but request 2 has"),
]


@pytest.mark.parametrize(("rows", "sentence"), WRONG)
def test_what_is_wrong_is_said(rows: list[Finished], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        collected(rows)


def test_what_is_wrong_with_a_collector_is_said() -> None:
    with pytest.raises(InputError, match="servers"):
        Collector(100, 0)
    with pytest.raises(InputError, match=r"warmup.*got -1"):
        Collector(100, warmup=-1)
    with pytest.raises(InputError, match="leaves out 5 requests of 1"):
        collected([(0, 0, 0, 1)], warmup=5)
    done = Collector(100)
    done.add(0, 0, 0, 1)
    assert done.figures() == done.figures()
    done.add(1, 5, 5, 6)
    with pytest.raises(InputError, match="the result has been taken"):
        done.figures()


def test_the_order_of_arrival_is_checked_across_chunks() -> None:
    collector = Collector(100)
    collector.add_many([0, 1], [5, 6], [5, 6], [7, 7])
    with pytest.raises(InputError, match="request 2: arrives at 4"):
        collector.add_many([2], [4], [8], [9])
