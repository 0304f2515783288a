"""A plain model of pools and batches on servers of known batch times, cycle by cycle, from docs/batching.md alone.

One context a core; entries are mappings with `arrivals`, `steps`, `most`, `wait`, `policy`, `lengths`, `pool`, `cores`,
`rank` (of a request, by its steps and arrival), `limit`, `patience`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Entry = Mapping[str, Any]


@dataclass
class Request:
    number: int
    entry: int
    arrival: int
    steps: int
    turn: tuple[int, int, int]
    state: str = "future"
    start: int = -1
    finish: int = -1
    core: int = -1
    left: int = -1
    rounds: int = 0
    company: int = 0


@dataclass
class Window:
    ends: int
    members: list[Request] = field(default_factory=list)


class Model:
    """The machine and its pools; `cycles`: (entry, steps, members) -> cycles of a batch."""

    def __init__(self, entries: Sequence[Entry], cores: int, cycles: Mapping[tuple[int, int, int], int]) -> None:
        self.entries, self.cycles, self.now = entries, cycles, 0
        self.running: list[tuple[int, list[Request]] | None] = [None] * cores
        self.open: dict[Hashable, Window] = {}
        self.closed: list[Window] = []
        self.batches: list[list[Any]] = []
        self.requests: list[Request] = []
        for index, each in enumerate(entries):
            for arrival, steps in zip(each["arrivals"], each["steps"], strict=True):
                number = len(self.requests)
                turn = each["rank"](steps, arrival), arrival, number
                self.requests.append(Request(number, index, arrival, steps, turn))

    def run(self) -> None:
        while any(each.state in ("future", "waits", "runs") for each in self.requests):
            self._finish()
            self._lose_patience()
            self._come()
            for pool in [pool for pool, window in self.open.items() if window.ends <= self.now]:
                self.closed.append(self.open.pop(pool))
            self._admit()
            self._count()
            self.now += 1

    def _count(self) -> None:
        """Who waits for company in this cycle: in an open window, or in a pool that is not ripe."""
        for each in self._waiting():
            own, window = self.entries[each.entry], self.open.get(self._pool(each))
            if own["policy"] == "window":
                each.company += window is not None and any(one is each for one in window.members)
            elif own["policy"] == "dynamic":
                pool = [one for one in self._waiting() if self._pool(one) == self._pool(each)]
                each.company += not self._ripe(pool, own)

    def _ripe(self, pool: Sequence[Request], own: Entry) -> bool:
        return len(pool) >= own["most"] or min(each.arrival for each in pool) + own["wait"] <= self.now

    def _waiting(self) -> list[Request]:
        return [each for each in self.requests if each.state == "waits"]

    def _in_rounds(self, one: Request) -> bool:
        return bool(self.entries[one.entry]["policy"] == "continuous")

    def _cores(self, one: Request) -> Sequence[int]:
        """Where it may go: who has begun stays where it began."""
        cores: Sequence[int] = [one.core] if one.rounds else self.entries[one.entry]["cores"]
        return cores

    def _pool(self, one: Request) -> Hashable:
        own = self.entries[one.entry]
        divided = own["lengths"] == "equal" and not self._in_rounds(one)
        return own["pool"] or one.entry, one.steps if divided else None

    def _finish(self) -> None:
        for core, batch in enumerate(self.running):
            if batch is not None and batch[0] == self.now:
                for each in batch[1]:
                    each.rounds += 1
                    if self._in_rounds(each) and each.rounds < each.steps:
                        each.state = "waits"
                    else:
                        each.state, each.finish = "done", self.now
                self.running[core] = None

    def _lose_patience(self) -> None:
        for each in self._waiting():
            patience = self.entries[each.entry]["patience"]
            if patience is not None and not each.rounds and self.now - each.arrival > patience:
                each.state, each.left = "away", self.now
                for window in (*self.closed, *self.open.values()):
                    window.members = [one for one in window.members if one is not each]
        self.closed = [window for window in self.closed if window.members]
        self.open = {pool: window for pool, window in self.open.items() if window.members}

    def _come(self) -> None:
        for each in self.requests:
            if each.state != "future" or each.arrival != self.now:
                continue
            own = self.entries[each.entry]
            fresh = [one for one in self._waiting() if not one.rounds]
            alike = [one for one in fresh if self.entries[one.entry]["cores"] == own["cores"]]
            free = max(0, sum(self.running[core] is None for core in own["cores"]) - self._taken_again(own["cores"]))
            if own["limit"] is not None and len(alike) >= own["limit"] + free * own["most"]:
                each.state, each.left = "away", self.now
                continue
            each.state = "waits"
            if own["policy"] == "window":
                pool = self._pool(each)
                window = self.open.setdefault(pool, Window(self.now + own["wait"]))
                window.members.append(each)
                if len(window.members) == own["most"]:
                    self.closed.append(self.open.pop(pool))

    def _taken_again(self, cores: Sequence[int]) -> int:
        """Contexts that those take who are between two rounds, by pool and core."""
        counts: dict[Hashable, int] = {}
        most: dict[Hashable, int] = {}
        for one in self._waiting():
            if one.rounds and one.core in cores:
                key = self._pool(one), one.core
                counts[key] = counts.get(key, 0) + 1
                most[key] = self.entries[one.entry]["most"]
        return sum((count + most[key] - 1) // most[key] for key, count in counts.items())

    def _admit(self) -> None:
        looked_at: list[tuple[tuple[int, int, int], Window | None, Request]] = [
            (each.turn, None, each) for each in self._waiting() if self.entries[each.entry]["policy"] != "window"
        ]
        for window in self.closed:
            first = min(window.members, key=lambda each: each.turn)
            looked_at.append((first.turn, window, first))
        kept: set[int] = set()
        for _, window, first in sorted(looked_at, key=lambda each: each[0]):
            if first.state != "waits":
                continue
            own = self.entries[first.entry]
            pool = [each for each in self._waiting() if self._pool(each) == self._pool(first)]
            if window is None and not self._ripe(pool, own) and not self._in_rounds(first):
                continue
            able = [core for core in self._cores(first) if core not in kept and self.running[core] is None]
            if not able:
                kept.update(self._cores(first))
                continue
            if self._in_rounds(first):
                pool = [each for each in pool if each.turn >= first.turn and min(able) in self._cores(each)]
            members = sorted(pool if window is None else window.members, key=lambda each: each.turn)
            self._start(members[: own["most"]], min(able))
            self.closed = [each for each in self.closed if each is not window]

    def _start(self, members: list[Request], core: int) -> None:
        steps = 1 if self._in_rounds(members[0]) else max(each.steps for each in members)
        ends = self.now + self.cycles[members[0].entry, steps, len(members)]
        self.running[core] = ends, members
        self.batches.append([self.now, core, 0, [each.number for each in members]])
        for each in members:
            each.state, each.core = "runs", core
            if not each.rounds:
                each.start = self.now
