"""A queue as small as it gets: whole cycles, first come first served, any number of servers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

__all__ = ["Finished", "served"]

#: Number, arrival, start, finish.
Finished = tuple[int, int, int, int]


def served(arrivals: Iterable[int], services: Iterable[int], servers: int = 1) -> Iterator[Finished]:
    """Requests in the order of finishes: each starts once it has come and a server is free (Lindley's recursion)."""
    free = [0] * servers
    running: list[tuple[int, int, int, int]] = []
    for number, (arrival, service) in enumerate(zip(arrivals, services, strict=False)):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        # Later requests start, and so finish, no earlier than this start.
        while running and running[0][0] <= start:
            finish, *rest = heapq.heappop(running)
            yield rest[0], rest[1], rest[2], finish
        heapq.heappush(running, (start + service, number, arrival, start))
    while running:
        finish, *rest = heapq.heappop(running)
        yield rest[0], rest[1], rest[2], finish
