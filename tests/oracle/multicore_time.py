"""Section 6 of docs/multicore.md, from event to event: steps on cores, memories as servers, barriers, jobs."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CAUSES = ("contention", "barrier", "memory")


def barrier_cycles(m: Any, threads: int) -> int:
    levels = 0
    while 2**levels < threads:
        levels += 1
    return int(m.barrier_cycles * levels)


@dataclass(eq=False)
class Timed:
    """A step in time. `needs`: what must have ended, with the delay and the name of waiting for it."""

    core: int
    x: int
    memory: dict[int, int]
    #: the step before it in its thread
    prior: Timed | None
    frame: int = 0
    needs: list[tuple[Timed | Barrier, int, str]] = field(default_factory=list)
    #: whether the thread has a later step
    later: bool = False
    group: Group | None = None
    start: int = -1
    end: int = -1
    left: int = 0
    followers: list[Timed | Barrier] = field(default_factory=list)


@dataclass(eq=False)
class Barrier:
    """Where all threads meet; it ends `cycles` after the last of `members`. `then` is told its end."""

    members: list[Timed]
    cycles: int
    then: Callable[[int], None] | None = None
    end: int = -1
    left: int = 0
    followers: list[Timed | Barrier] = field(default_factory=list)


@dataclass
class Group:
    """Steps that are there from one cycle on (a product, a job), with the waits that come of them."""

    steps: list[Timed]
    barriers: list[Barrier]
    since: int = 0
    waits: Counter[str] = field(default_factory=Counter)


class Clock:
    """What happens next: asks at memories and starts of steps, and calls, which come first in their cycle."""

    def __init__(self, m: Any) -> None:
        self.m = m
        self.free: Counter[int] = Counter()
        self.heap: list[tuple[int, int, int, int, Any]] = []
        self.number = 0

    def push(self, time: int, order: int, core: int, what: Any) -> None:
        self.number += 1
        heapq.heappush(self.heap, (time, order, core, self.number, what))

    def run(self) -> None:
        while self.heap:
            time, order, _, _, what = heapq.heappop(self.heap)
            if order == 2:
                self.begin(what, time)
            elif order == 3:
                self.serve(what, time)
            else:
                what(time)

    def add(self, group: Group) -> None:
        for step in group.steps:
            sources = [step.prior, *(need for need, _, _ in step.needs)]
            for source in sources:
                if source is not None:
                    source.followers.append(step)
                    step.left += 1
            step.group = group
        for barrier in group.barriers:
            for member in barrier.members:
                member.followers.append(barrier)
                barrier.left += 1
        for step in group.steps:
            if not step.left:
                self.ready(step)

    def ready(self, step: Timed) -> None:
        """All that a step needs has an end: when it starts, and what it waited for."""
        group = step.group
        assert group is not None
        base = max(group.since if step.prior is None else step.prior.end, step.frame)
        held = [(need.end + delay, name) for need, delay, name in step.needs]
        start = max([base, *(time for time, _ in held)])
        if start > base:
            names = {name for time, name in held if time == start}
            group.waits[next(name for name in CAUSES if name in names)] += start - base
        self.push(start, 2, step.core, step)

    def begin(self, step: Timed, time: int) -> None:
        step.start = time
        if any(step.memory.values()):
            self.push(time + 1, 3, step.core, step)
        else:
            self.ended(step, time + step.x)

    def serve(self, step: Timed, time: int) -> None:
        end = step.start + step.x
        for domain, lines in step.memory.items():
            if lines:
                busy = lines * self.m.memory_cycles_per_line
                begun = max(time, self.free[domain])
                self.free[domain] = begun + busy
                far = domain != step.core // self.m.cores_per_domain
                end = max(end, begun + busy + self.m.memory_latency + (self.m.remote_latency if far else 0))
        self.ended(step, end)

    def ended(self, step: Timed, end: int) -> None:
        step.end = end
        if step.later and step.group is not None:
            step.group.waits["memory"] += end - step.start - step.x
        self.tell(step.followers)

    def tell(self, followers: list[Timed | Barrier]) -> None:
        for each in followers:
            each.left -= 1
            if each.left:
                continue
            if isinstance(each, Timed):
                self.ready(each)
                continue
            each.end = max(member.end for member in each.members) + each.cycles
            self.tell(each.followers)
            if each.then is not None:
                self.push(each.end, 0, 0, each.then)
