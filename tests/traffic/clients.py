"""The clients of a closed loop while they run, and deadlines one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.base.errors import InputError, Mistake
from lstmsim.traffic.arrivals import ClosedLoop, Stream, deadline_arrays, positive, think_cycles
from lstmsim.traffic.streams import StreamKey


def deadlines(stream: Stream, count: int, frequency_mhz: float) -> Iterator[int]:
    """The cycles of `deadline_arrays`, one at a time."""
    return (cycle for block in deadline_arrays(stream, count, frequency_mhz) for cycle in block.tolist())


class Clients:
    """The clients of a closed loop while they run: they give the next arrival of a client whose request has finished.

    A client's think times depend on the key and the client's number only, not on the order in which clients finish. The
    sum of a client's think times is rounded down to whole cycles, so roundings do not add up. The code that runs the
    requests calls `next_arrival` at each finish.

    >>> clients = Clients(ClosedLoop(2, think_ms=1, think="fixed"), frequency_mhz=0.1)
    >>> clients.first_arrivals(), clients.next_arrival(client=1, finish_cycle=250)
    ([(100, 0), (100, 1)], 350)
    """

    def __init__(self, description: ClosedLoop, frequency_mhz: float, seed_key: StreamKey = (0,)) -> None:
        positive("chip", frequency_mhz=frequency_mhz)
        self.description = description
        self._thinking = [think_cycles(description, c, frequency_mhz, seed_key) for c in range(description.clients)]
        self._arrived = [-1] * description.clients

    def first_arrivals(self) -> list[tuple[int, int]]:
        """Give (cycle, client) of every client's first request, in order; all begin to think at cycle 0.

        Called once, before `next_arrival`.
        """
        return sorted((self.next_arrival(client, 0), client) for client in range(self.description.clients))

    def next_arrival(self, client: int, finish_cycle: int) -> int:
        """Give the cycle at which the next request of a client (from 0) arrives once its last one has finished.

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
