"""A queue as small as it gets: whole cycles, first come first served, any number of servers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

__all__ = ["Finished", "served"]

#: Number, arrival, start, finish.
Finished = tuple[int, int, int, int]


def served(arrivals: Iterable[int], services: Iterable[int], servers: int = 1) -> Iterator[Finished]:
    """Each request starts when it is there and a server is free (Lindley's recursion); in the order of finishes."""
    free = [0] * servers
    running: list[tuple[int, int, int, int]] = []
    for number, (arrival, service) in enumerate(zip(arrivals, services, strict=False)):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        # Whatever comes later starts, and so finishes, no earlier than this start.
        while running and running[0][0] <= start:
            finish, *rest = heapq.heappop(running)
            yield rest[0], rest[1], rest[2], finish
        heapq.heappush(running, (start + service, number, arrival, start))
    while running:
        finish, *rest = heapq.heappop(running)
        yield rest[0], rest[1], rest[2], finish
