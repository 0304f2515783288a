"""Closed loops: one request a client, think times that hang on nothing else, and the laws of closed systems."""

from __future__ import annotations

import heapq
from math import comb, factorial

import pytest

from lstmsim.errors import InputError
from lstmsim.serving.closed_loop import Clients, ClosedLoop
from lstmsim.serving.metrics import Collector
from lstmsim.serving.result import Serving
from lstmsim.serving.streams import UNIT, exponentials

MHZ = 100.0


def run(description: ClosedLoop, count: int, mean_service: int, key: tuple[int, ...] = (1,)) -> Serving:
    """One server with exponential service, first come first served."""
    clients, services = Clients(description, MHZ, key), exponentials((*key, "service"))
    coming = clients.first_arrivals()
    heapq.heapify(coming)
    collector, free = Collector(MHZ), 0
    for number in range(count):
        arrival, client = heapq.heappop(coming)
        start = max(arrival, free)
        free = start + next(services) * mean_service // UNIT
        collector.add(number, arrival, start, free, tenant=f"client {client}")
        heapq.heappush(coming, (clients.next_arrival(client, free), client))
    return collector.result()


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


@pytest.mark.parametrize(("clients", "think", "service"), [(4, 3000, 1000), (10, 5000, 1000), (2, 1000, 1000)])
def test_one_server_and_its_clients_have_the_known_throughput(clients: int, think: int, service: int) -> None:
    """The machine repair model M/M/1//N (Kleinrock, Queueing Systems I, 3.8), and the response time law R = N / X - Z
    (Denning, Buzen: The operational analysis of queueing network models; ACM Computing Surveys 10, 1978)."""
    ratio = service / think
    empty = 1 / sum(comb(clients, n) * factorial(n) * ratio**n for n in range(clients + 1))
    result = run(ClosedLoop(clients, think / MHZ / 1000), 100_000, service)
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
