"""Formulas against each other, against series and chains computed another way, and against simulated queues."""

from __future__ import annotations

import os
from itertools import repeat
from math import exp, fsum, lgamma, log

import numpy as np
import pytest

from experiments.serving.queueing import md1_wait, mdc_wait, mm1_wait, mmc_wait
from lstmsim.base.errors import InputError
from lstmsim.traffic.arrivals import Poisson, arrivals
from lstmsim.traffic.streams import UNIT, exponentials
from tests.studies.serve.collecting import Collector
from tests.traffic.lindley import served

LONG = "LSTMSIM_EXAMPLES" in os.environ
LOADS = [0.05, 0.3, 0.5, 0.7, 0.8, 0.9] if LONG else [0.05, 0.5, 0.8]
SERVERS = [1, 2, 3, 4, 8, 16] if LONG else [1, 3, 8]


def poisson(mean: float, count: int) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1))


def spitzer(load: float, servers: int) -> float:
    """Mean wait of M/D/c in services by Spitzer's identity (A combinatorial lemma and its application to probability
    theory; Transactions of the AMS 82, 1956): of the walk with steps Poisson(a) - c, E max = sum E[S_n^+] / n."""
    total, n = [], 0
    while not total or total[-1] > 1e-14 * fsum(total):
        n += 1
        mean, floor = n * load * servers, n * servers
        # From here on each Poisson probability is at most load times the one before.
        overs = range(1, int(40 / -log(load)) + 60)
        total.append(fsum(over * poisson(mean, floor + over) for over in overs) / n)
    return fsum(total) / (load * servers)


def chain(load: float, servers: int, size: int = 300) -> float:
    """Mean wait of M/D/c in services: the chain of numbers in the system, stepped until it stands still."""
    chances = np.array([poisson(load * servers, count) for count in range(size)])
    state = np.zeros(size)
    state[0] = 1
    for _ in range(20_000):
        left = np.concatenate([[state[: servers + 1].sum()], state[servers + 1 :]])
        after = np.convolve(left, chances)[:size]
        after /= after.sum()
        if np.abs(after - state).max() < 1e-15:
            break
        state = after
    waiting = np.maximum(np.arange(size) - servers, 0) @ state
    return float(waiting) / (load * servers)


@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("load", LOADS)
def test_many_servers_agree_with_spitzers_identity(load: float, servers: int) -> None:
    assert mdc_wait(load, 1, servers) == pytest.approx(spitzer(load, servers), rel=1e-11, abs=2e-15 * servers / load)


@pytest.mark.parametrize(("load", "servers"), [(0.5, 2), (0.8, 3), (0.7, 8)])
def test_many_servers_agree_with_the_chain(load: float, servers: int) -> None:
    assert mdc_wait(load, 1, servers) == pytest.approx(chain(load, servers), rel=1e-9)


@pytest.mark.parametrize("load", [*LOADS, 0.99, 0.9999])
def test_one_server_is_a_special_case(load: float) -> None:
    assert mdc_wait(load, 7, 1) == pytest.approx(md1_wait(load, 7), rel=1e-12)
    assert mmc_wait(load, 7, 1) == pytest.approx(mm1_wait(load, 7), rel=1e-12)
    assert md1_wait(load, 7) == pytest.approx(mm1_wait(load, 7) / 2)


@pytest.mark.parametrize("servers", [2, 16, 200, 1000])
def test_heavy_traffic_halves_the_wait(servers: int) -> None:
    """Kingman: towards load 1 the wait depends on the variance only, so that M/D/c has half the wait of M/M/c."""
    halves = [mdc_wait(load, 1, servers) / mmc_wait(load, 1, servers) for load in (0.99, 0.9999, 0.999999)]
    assert halves == sorted(halves, reverse=True)
    assert halves[-1] == pytest.approx(0.5, abs=2e-4)


def test_erlangs_formula_as_a_sum() -> None:
    offered, servers = 3.2, 4
    terms = [offered**n / np.prod(np.arange(1, n + 1)) for n in range(servers + 1)]
    last = terms[-1] / (1 - offered / servers)
    assert mmc_wait(0.8, 1, 4) == pytest.approx(last / (sum(terms[:-1]) + last) / (servers * 0.2), rel=1e-13)


def test_no_load_no_wait() -> None:
    assert mdc_wait(0, 5, 3) == md1_wait(0, 5) == mm1_wait(0, 5) == mmc_wait(0, 5, 2) == 0


@pytest.mark.parametrize("load", [-0.1, 1.0, 2.0, float("nan")])
def test_loads_without_a_mean_are_refused(load: float) -> None:
    for wait in (md1_wait, mm1_wait):
        with pytest.raises(InputError, match=r"load.*below 1"):
            wait(load, 1)
    with pytest.raises(InputError, match=r"(?s)load.*service.*servers"):
        mdc_wait(load, 0, 0)
    with pytest.raises(InputError, match="servers"):
        mmc_wait(0.5, 1, 1001)


def simulated(
    load: float, services: object, service: int, servers: int, count: int, key: tuple[object, ...]
) -> Collector:
    collector = Collector(100, servers)
    rate = load * servers / service * 100e6
    for row in served(arrivals(Poisson(rate), count, 100, key), services, servers):  # type: ignore[arg-type]
        collector.add(*row)
    return collector


@pytest.mark.parametrize(
    ("load", "servers"), [(0.6, 2), *(pytest.param(*each, marks=pytest.mark.long) for each in ((0.8, 4), (0.9, 8)))]
)
def test_simulated_servers_wait_as_long(load: float, servers: int) -> None:
    service = 1000
    collector = simulated(load, repeat(service), service, servers, 60_000, (3, "mdc"))
    result = collector.figures()
    assert result.wait.mean.holds(mdc_wait(load, service, servers))
    assert result.little.difference == result.little_waiting.difference == 0
    assert result.utilization == pytest.approx(load, rel=0.02)
    assert result.most_inside - result.most_waiting <= servers


@pytest.mark.parametrize("load", [0.4, pytest.param(0.7, marks=pytest.mark.long)])
def test_simulated_exponential_service_waits_as_long(load: float) -> None:
    services = (each * 5000 // UNIT for each in exponentials((3, "service")))
    result = simulated(load, services, 5000, 1, 80_000, (3, "mm1")).figures()
    assert result.wait.mean.holds(mm1_wait(load, 5000))


@pytest.mark.parametrize("load", [0.6, pytest.param(0.3, marks=pytest.mark.long)])
def test_intervals_hold_the_formula_as_often_as_they_say(load: float) -> None:
    """Runs from empty: 95 of 100 intervals, less four standard deviations; their mean is not off to one side."""
    service, count, runs = 1000, 3000, 200 if LONG else 40
    held, means, numbers = 0, [], np.arange(count)
    for number in range(runs):
        cycles = np.array(list(arrivals(Poisson(load * 1e5), count, 100, (1, "coverage", number))))
        starts = np.maximum.accumulate(cycles - numbers * service) + numbers * service
        collector = Collector(100)
        collector.add_many(numbers, cycles, starts, starts + service)
        wait = collector.figures().wait.mean
        held += wait.holds(md1_wait(load, service))
        means.append(wait.value)
    assert held / runs >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5
    off = float(np.mean(means)) - md1_wait(load, service)
    assert abs(off) < 4 * float(np.std(means)) / runs**0.5
