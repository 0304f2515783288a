"""Closed loops: one request a client, independent think times, and the laws of closed systems."""

from __future__ import annotations

import heapq
import os
from math import comb, exp, factorial
from typing import Any

import numpy as np
import pytest

from experiments.serving.queueing import md1n_throughput
from lstmsim import run as simulate
from lstmsim import serving
from lstmsim.base.errors import InputError
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.arrivals import ClosedLoop
from lstmsim.traffic.streams import UNIT, exponentials
from tests.studies.serve.collecting import Collector
from tests.traffic.clients import Clients

MHZ = 100.0
#: The longer version of a test, by LSTMSIM_EXAMPLES=500 or more.
LONG = int(os.environ.get("LSTMSIM_EXAMPLES", "0")) >= 500


def run(description: ClosedLoop, count: int, mean_service: int, key: tuple[int, ...] = (1,)) -> Serving:
    """One server with exponential service, first come first served."""
    clients, services = Clients(description, MHZ, key), exponentials((*key, "service"))
    coming = clients.first_arrivals()
    heapq.heapify(coming)
    names = [f"client {client}" for client in range(description.clients)]
    collector, free = Collector(MHZ, entries=names), 0
    for number in range(count):
        arrival, client = heapq.heappop(coming)
        start = max(arrival, free)
        free = start + next(services) * mean_service // UNIT
        collector.add(number, arrival, start, free, tenant=f"client {client}")
        heapq.heappush(coming, (clients.next_arrival(client, free), client))
    return collector.figures()


def test_fixed_thinking_is_added_to_the_finish() -> None:
    clients = Clients(ClosedLoop(3, 0.25, "fixed"), MHZ)
    assert clients.first_arrivals() == [(25_000, 0), (25_000, 1), (25_000, 2)]
    assert clients.next_arrival(2, 30_000) == 55_000
    assert clients.next_arrival(2, 55_000) == 80_000


def test_parts_of_cycles_are_not_lost() -> None:
    clients = Clients(ClosedLoop(1, 1 / 3, "fixed"), 0.001)  # a third of a cycle
    [(cycle, _)] = clients.first_arrivals()
    for _ in range(8):
        cycle = clients.next_arrival(0, cycle)
    # 9 times the decimal 0.3333333333333333 is a little less than 3
    assert cycle == 2


def test_no_think_time_at_all() -> None:
    clients = Clients(ClosedLoop(2, 0), MHZ)
    assert clients.first_arrivals() == [(0, 0), (0, 1)]
    assert clients.next_arrival(0, 17) == 17


def test_think_times_do_not_depend_on_the_others() -> None:
    one, other = (Clients(ClosedLoop(5, 0.1), MHZ, (9, "a")) for _ in range(2))
    begin = dict(one.first_arrivals()[::-1])
    assert begin == dict(other.first_arrivals()[::-1])
    first = [(one.next_arrival(client, 10**6), client) for client in (0, 1, 2, 3, 4)]
    last = [(other.next_arrival(client, 10**6), client) for client in (4, 2, 0, 1, 3)]
    assert sorted(first) == sorted(last)
    assert len({cycle for cycle, _ in first}) == 5


def test_a_client_alone_never_waits() -> None:
    result = run(ClosedLoop(1, 0.01), 2000, 500)
    assert result.wait.max == 0
    assert result.most_inside == 1


@pytest.mark.parametrize(
    ("clients", "think", "service"),
    [(4, 3000, 1000), *(pytest.param(*each, marks=pytest.mark.long) for each in ((10, 5000, 1000), (2, 1000, 1000)))],
)
def test_one_server_and_its_clients_have_the_known_throughput(clients: int, think: int, service: int) -> None:
    """The machine repair model M/M/1//N (Kleinrock, Queueing Systems I, 3.8), and the response time law R = N / X - Z
    (Denning, Buzen: The operational analysis of queueing network models; ACM Computing Surveys 10, 1978)."""
    ratio = service / think
    empty = 1 / sum(comb(clients, n) * factorial(n) * ratio**n for n in range(clients + 1))
    result = run(ClosedLoop(clients, think / MHZ / 1000), 50_000, service)
    throughput = result.requests / result.span_cycles
    assert abs(throughput / ((1 - empty) / service) - 1) < 0.015
    assert abs(result.utilization - (1 - empty)) < 0.01
    response = clients / throughput - think
    assert abs(result.little.time_inside / response - 1) < 0.03
    assert result.most_inside <= clients
    assert result.little.difference == 0
    assert result.fairness_throughput > 0.999


WRONG = [
    (lambda: ClosedLoop(0, 1), "clients.*got 0"),
    (lambda: ClosedLoop(2_000_000, 1), "clients.*1000000"),
    (lambda: ClosedLoop(1, -1), "think_ms.*got -1"),
    (lambda: ClosedLoop(1, float("nan")), "think_ms.*got nan"),
    (lambda: ClosedLoop(1, 1, "normal"), "exponential or fixed, got 'normal'"),  # type: ignore[arg-type]
    (lambda: Clients(ClosedLoop(1, 1), float("inf")), "frequency_mhz"),
    (lambda: Clients(ClosedLoop(2, 1), 1).next_arrival(2, 5), "clients 0 to 1, got 2"),
]


@pytest.mark.parametrize(("make", "sentence"), WRONG)
def test_what_is_wrong_is_said(make: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()  # type: ignore[operator]


def test_a_request_cannot_finish_before_it_arrives() -> None:
    clients = Clients(ClosedLoop(1, 1, "fixed"), 1)
    clients.first_arrivals()
    with pytest.raises(InputError, match="arrives at 1000, it cannot finish at 999"):
        clients.next_arrival(0, 999)


def chain_throughput(clients: int, think: float, service: float) -> float:
    """M/D/1//N by its chain, solved directly: how many requests are left behind at the ends of services."""
    asks = 1 - exp(-service / think)
    moves = np.zeros((clients, clients))
    for left in range(clients):
        begun = max(left, 1)
        for more in range(clients - begun + 1):
            chance = comb(clients - begun, more) * asks**more * (1 - asks) ** (clients - begun - more)
            moves[left, begun - 1 + more] += chance
    equations = np.vstack([moves.T - np.eye(clients), np.ones(clients)])
    shares = np.linalg.lstsq(equations, np.append(np.zeros(clients), 1), rcond=None)[0]
    return 1 / (service + float(shares[0]) * think / clients)


@pytest.mark.parametrize(("clients", "think"), [(1, 3.0), (2, 1.0), (5, 4.0), (20, 20.0), (20, 30.0), (40, 50.0)])
def test_the_formula_of_constant_repairs_is_its_chain(clients: int, think: float) -> None:
    assert md1n_throughput(clients, think, 1) == pytest.approx(chain_throughput(clients, think, 1), rel=1e-10)


def test_the_formula_at_its_ends() -> None:
    assert md1n_throughput(1000, 1, 1) == pytest.approx(1)
    assert md1n_throughput(1000, 1e9, 2) == pytest.approx(1000 / 1e9, rel=1e-5)
    for wrong in ((0, 1.0, 1.0), (1, 0.0, 1.0), (1, 1.0, 0.0)):
        with pytest.raises(InputError):
            md1n_throughput(*wrong)


#: Cycles of one step of lstm-256 alone on one core of 16k.
STEP = 88


def closed(clients: int, think: int, count: int, more: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    arrival = {"kind": "closed", "clients": clients, "think_ms": think / 260_000}
    entry = {"model": "lstm-256", "steps": 1, "count": count, "arrival": arrival, "name": "asking"}
    return {"chip": "column-npu-16k", "jobs": [entry, *more]}


ONE_THREAD = ["chip.cores.0.threads=1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "think", "count"),
    [(1, 40, 2500), (5, 300, 4000), (20, 1300, 6000), *([(20, 1700, 60_000), (20, 2640, 60_000)] if LONG else [])],
)
def test_throughput_is_that_of_machine_repair(clients: int, think: int, count: int) -> None:
    """Within 1 %, which is twice the standard deviation or more over seeds; of the whole run it would be too low, for
    clients leave one after another."""
    served = serving(simulate(closed(clients, think, count), overrides=ONE_THREAD))
    exact = md1n_throughput(clients, think, STEP) * 260e6
    assert served.throughput_per_second == pytest.approx(exact, rel=0.01)
    # Response time law: each client is thinking or waiting (Denning, Buzen 1978).
    assert served.latency.mean.value + think == pytest.approx(clients / exact * 260e6, rel=0.01)
    if clients == 20:
        assert served.per_second(served.requests) < (0.99 if LONG else 0.96) * exact


def test_the_window_ends_when_the_first_client_leaves() -> None:
    result = simulate(closed(5, 300, 1003), overrides=ONE_THREAD)
    served, jobs = serving(result), result.scenario.jobs
    followed = {job.after for job in jobs}
    last = [job for job in result.report.jobs if job.number not in followed]
    assert len(last) == 5
    window = served.window
    assert window is not None
    assert window.clients == 5
    assert window.end_cycle == min(job.finish for job in last) < served.last_finish
    until = sorted(job.finish for job in result.report.jobs if job.finish <= window.end_cycle)
    assert window.start_cycle == until[len(until) // 10 - 1]
    inside = sum(finish > window.start_cycle for finish in until)
    rate = inside / (window.end_cycle - window.start_cycle) * 260e6
    assert served.throughput_per_second == served.goodput_per_second == pytest.approx(rate)
    assert served.latency.requests == len(until) - len(until) // 10 == inside
    assert served.requests == 1003
    plain = Serving.to_dict(served)
    assert plain["throughput_per_second"] == served.throughput_per_second
    assert plain["throughput_whole_run_per_second"] == pytest.approx(1003 / served.span_cycles * 260e6)
    assert plain["window"] == {
        "clients": 5,
        "start_cycle": window.start_cycle,
        "end_cycle": window.end_cycle,
        "requests": inside,
    }
    text = " ".join(Serving.to_text(served).split())
    assert f"while all 5 clients are active (cycles {window.start_cycle:,} to {window.end_cycle:,}, " in text


@pytest.mark.slow
def test_clients_beside_arrivals_that_come_by_themselves() -> None:
    poisson = {"kind": "poisson", "rate_per_second": 500_000}
    more = ({"model": "lstm-256", "steps": 1, "count": 1200, "arrival": poisson, "name": "open"},)
    served = serving(simulate(closed(3, 300, 2000, more), overrides=ONE_THREAD))
    window = served.window
    assert window is not None
    assert window.clients == 3
    asking, coming = served.tenants["asking"], served.tenants["open"]
    assert (asking.clients, coming.clients) == (3, 0)
    assert asking.throughput_per_second + coming.throughput_per_second == pytest.approx(served.throughput_per_second)
    assert coming.throughput_per_second == pytest.approx(500_000, rel=0.1)
    response = 3 / asking.throughput_per_second * 260e6 - 300
    assert asking.latency is not None
    assert asking.latency.mean.value == pytest.approx(response, rel=0.05)


def test_all_loops_have_to_be_active() -> None:
    arrival = {"kind": "closed", "clients": 2, "think_ms": 0.001}
    more = ({"model": "lstm-256", "steps": 1, "count": 20, "arrival": arrival, "name": "few"},)
    result = simulate(closed(3, 300, 500, more), overrides=ONE_THREAD)
    served = serving(result)
    assert served.window is not None
    assert served.window.clients == 5
    ends = [job.finish for job in result.report.jobs if result.scenario.jobs[job.number].tenant == "few"]
    assert served.window.end_cycle in ends


def test_without_clients_there_is_no_window() -> None:
    served = serving(simulate({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1, "count": 5}]}))
    plain = Serving.to_dict(served)
    assert plain["window"] is None
    assert plain["throughput_per_second"] == plain["throughput_whole_run_per_second"] == served.per_second(5)
    assert "active" not in Serving.to_text(served)
