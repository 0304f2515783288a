"""Clients that wait for their answer, think, and ask again: arrivals that depend on what has been served."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import repeat
from typing import Literal

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.traffic.arrivals import exact, positive
from lstmsim.traffic.streams import UNIT, StreamKey, exponentials

__all__ = ["MAX_CLIENTS", "Clients", "ClosedLoop"]

#: Most clients of a closed loop: as many as a scenario may have jobs, for more never wait at once.
MAX_CLIENTS = 1_000_000


@record
class ClosedLoop:
    """A number of clients ask, wait for the answer, think, and ask again: each has at most one request on its way.

    clients: how many there are, 1 to `MAX_CLIENTS`.
    think_ms: for how long a client thinks between an answer and its next request; the mean, if times are exponential.
    think: `exponential` (all times independent) or `fixed`. Fixed clients that begin together stay together until the
        queue has drawn them apart.

    >>> ClosedLoop(clients=4, think_ms=0.5).think
    'exponential'
    """

    clients: int
    think_ms: float
    think: Literal["exponential", "fixed"] = "exponential"

    def __post_init__(self) -> None:
        if not 1 <= self.clients <= MAX_CLIENTS:
            raise InputError(Mistake("closed: clients", f"must be from 1 to {MAX_CLIENTS}, got {self.clients}"))
        if self.think_ms != 0:
            positive("closed", think_ms=self.think_ms)
        if self.think not in ("exponential", "fixed"):
            raise InputError(Mistake("closed: think", f"must be exponential or fixed, got {self.think!r}"))


class Clients:
    """The clients of a closed loop while they run: they tell the next arrival of a client whose request has finished.

    A client's think times depend on the key and the client's number only, not on the order in which clients finish. The
    sum of a client's think times is rounded down to whole cycles, so roundings do not add up. The code that runs the
    requests calls `next_arrival` at each finish.

    description: the closed loop.
    frequency_mhz: the clock.
    seed_key: the key of the streams of random numbers.

    >>> clients = Clients(ClosedLoop(2, think_ms=1, think="fixed"), frequency_mhz=0.1)
    >>> clients.first_arrivals(), clients.next_arrival(client=1, finish_cycle=250)
    ([(100, 0), (100, 1)], 350)
    """

    def __init__(self, description: ClosedLoop, frequency_mhz: float, seed_key: StreamKey = (0,)) -> None:
        positive("chip", frequency_mhz=frequency_mhz)
        self.description = description
        mean = exact(description.think_ms) * exact(frequency_mhz) * 1000
        self._thinking = [_think_cycles(description, mean, (*seed_key, "think", c)) for c in range(description.clients)]
        self._arrived = [-1] * description.clients

    def first_arrivals(self) -> list[tuple[int, int]]:
        """Give the pair (cycle, client) of every client's first request, in order; all begin to think at cycle 0.

        This method must be called once, before `next_arrival`.
        """
        return sorted((self.next_arrival(client, 0), client) for client in range(self.description.clients))

    def next_arrival(self, client: int, finish_cycle: int) -> int:
        """Give the cycle at which a client's next request arrives.

        client: the client's number, from 0.
        finish_cycle: when the client's last request finished.
        `InputError` for a client that does not exist, and for a finish before the client's last arrival.
        """
        if not 0 <= client < self.description.clients:
            text = f"must be one of the clients 0 to {self.description.clients - 1}, got {client}"
            raise InputError(Mistake("closed: client", text))
        if finish_cycle < self._arrived[client]:
            text = f"client {client}'s request arrives at {self._arrived[client]}, it cannot finish at {finish_cycle}"
            raise InputError(Mistake("closed: finish_cycle", text))
        self._arrived[client] = finish_cycle + next(self._thinking[client])
        return self._arrived[client]


def _think_cycles(description: ClosedLoop, mean: Fraction, key: StreamKey) -> Iterator[int]:
    # A few words at a time: there may be many clients with few requests each.
    """The think times of one client in whole cycles; `mean` is in cycles."""
    times = exponentials(key, chunk=16) if description.think == "exponential" else repeat(UNIT)
    total = before = 0
    for time in times:
        total += time * mean.numerator
        now = total // (mean.denominator * UNIT)
        yield now - before
        before = now
