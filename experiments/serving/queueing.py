"""Queues that have a formula: simulated runs are compared with these. Times are in any unit, loads are below 1.

load: the arrival rate times the service time divided by the number of servers.
service: the (mean) time of one service.
servers: how many requests are served at once.
"""

from __future__ import annotations

from cmath import exp as complex_exp
from cmath import pi
from math import exp, expm1, fsum, lgamma, log

from lstmsim.base.errors import InputError, Mistake

__all__ = ["md1_wait", "md1n_throughput", "mdc_wait", "mm1_wait", "mmc_wait"]

_MAX_SERVERS = 1000


def _check(load: float, service: float, servers: int = 1) -> None:
    """Raise `InputError` with a sentence for each argument that the formulas do not allow."""
    wrong = []
    if not 0 <= load < 1:
        wrong.append(Mistake("load", f"must be at least 0 and below 1, where the queue has a mean, got {load}"))
    if not 0 < service < float("inf"):
        wrong.append(Mistake("service", f"must be a finite time above 0, got {service}"))
    if not 1 <= servers <= _MAX_SERVERS:
        wrong.append(Mistake("servers", f"must be from 1 to {_MAX_SERVERS}, got {servers}"))
    if wrong:
        raise InputError(wrong)


def mm1_wait(load: float, service: float) -> float:
    """Give the mean wait before service: Poisson arrivals, exponential service of mean `service`, one server.

    Source: Kleinrock, Queueing Systems I (1975), 3.2.

    >>> mm1_wait(0.5, 10)
    10.0
    """
    _check(load, service)
    return load * service / (1 - load)


def md1_wait(load: float, service: float) -> float:
    """Give the mean wait before service: Poisson arrivals, every service takes `service`, one server.

    Source: the Pollaczek-Khinchine formula (Kleinrock, Queueing Systems I (1975), 5.6): half of M/M/1's.

    >>> md1_wait(0.5, 10)
    5.0
    """
    _check(load, service)
    return load * service / (2 * (1 - load))


def mmc_wait(load: float, service: float, servers: int) -> float:
    """Give the mean wait before service: Poisson arrivals, exponential service, any number of servers.

    Source: Erlang's delay formula (Kleinrock, Queueing Systems I (1975), 3.5).

    >>> mmc_wait(0.5, 10, 1) == mm1_wait(0.5, 10)
    True
    """
    _check(load, service, servers)
    # Erlang's loss formula by its recursion, for factorials of a thousand have no double.
    offered, loss = load * servers, 1.0
    for count in range(1, servers + 1):
        loss = offered * loss / (count + offered * loss)
    return loss / (1 - load * (1 - loss)) * service / (servers * (1 - load))


def mdc_wait(load: float, service: float, servers: int) -> float:
    """Give the mean wait before service: Poisson arrivals, every service takes `service`, any number of servers. Exact.

    Crommelin (Delay probability formulae when the holding times are constant; Post Office Electrical Engineers'
    Journal 25, 1932): the numbers in the system one service time apart are a chain, for all requests that were in
    service have left; the number that waits becomes max(0, waiting + Poisson(a) - c), a = load * c. By the generating
    function of that chain, with z the zeros of z^c = exp(a (z - 1)) inside the unit circle (Bailey: On queueing
    processes with bulk service; Journal of the Royal Statistical Society B 16, 1954), the mean number that waits is

        sum over the c - 1 zeros of 1 / (1 - z)  +  (a^2 - c (c - 1)) / (2 (c - a))

    and the wait is that divided by the arrival rate (Little). Terms of about c / 2 cancel, so that doubles leave an
    error of up to 1e-15 * c services / load: the tiny waits of many servers at low loads drown in it.

    >>> mdc_wait(0.5, 10, 1) == md1_wait(0.5, 10)
    True
    >>> round(mdc_wait(0.8, 1, 4), 6), round(mmc_wait(0.8, 1, 4), 6)
    (0.386095, 0.745541)
    """
    _check(load, service, servers)
    if load == 0:
        return 0.0
    offered = load * servers
    zeros = fsum((1 / (1 - _zero(load, servers, place))).real for place in range(1, servers))
    waiting = zeros + (offered**2 - servers * (servers - 1)) / (2 * (servers - offered))
    return max(0.0, waiting) / offered * service


def md1n_throughput(clients: int, think: float, service: float) -> float:
    """Give the requests per unit of time that one server does for a closed loop of clients. Exact.

    Every service is equally long. This is the machine repair problem with constant repair times (Ashcroft: The
    productivity of several machines under the care of one operator; Journal of the Royal Statistical Society B 12,
    1950). The clients that a service leaves behind are a chain: of the clients who think when it begins, each asks
    before its end with probability 1 - exp(-service / think). With the zeroth of its probabilities the server is idle
    for the share

        1 / (1 + N a sum over i < N of C(N - 1, i) product over 0 < j <= i of (exp(j a) - 1)),  a = service / think

    of the time (Takacs: Introduction to the theory of queues, 1962, chapter 5); the throughput is the rest / service.

    clients: how many there are.
    think: the mean of the exponential times between an answer and the client's next request.
    service: the time of one service.

    >>> md1n_throughput(1, 3, 1), round(md1n_throughput(2, 1, 1), 6)
    (0.25, 0.844638)
    """
    if not 0 < think < float("inf"):
        raise InputError(Mistake("think", f"must be a finite time above 0, got {think}"))
    _check(0, service, clients)
    ratio = service / think
    # in logarithms, for the products of many clients have no double
    terms, product = [], 0.0
    for i in range(clients):
        product += _log_expm1(i * ratio) if i else 0.0
        terms.append(lgamma(clients) - lgamma(i + 1) - lgamma(clients - i) + product)
    largest = max(terms)
    busy = log(clients * ratio) + largest + log(fsum(exp(term - largest) for term in terms))
    return 1 / (1 + exp(-busy)) / service


def _log_expm1(number: float) -> float:
    return number if number > 40 else log(expm1(number))


def _zero(load: float, servers: int, place: int) -> complex:
    """The z with z = w exp(load (z - 1)), w being the `place`-th root of 1: plain steps, then Newton's."""
    root = complex_exp(2j * pi * place / servers)
    z = 0j
    for _ in range(50):
        z = root * complex_exp(load * (z - 1))
    for _ in range(20):
        image = root * complex_exp(load * (z - 1))
        z -= (z - image) / (1 - load * image)
    return z
