"""The least makespan and the least latencies of a box's points, from what the machine says of its jobs.

The machine gives the least cycles of each job on each core (`lstmsim.machines.bounds`); here they are joined to those
of all jobs. Nothing here knows a machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from math import inf
from typing import Any

import numpy as np

from lstmsim.base.units import rank_below
from lstmsim.machines.bounds import Column, Least
from lstmsim.machines.registry import capability
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.studies.design.space import Box

#: Later than any cycle of a simulation; where nothing is possible.
NEVER = 2**60
#: A sum of rounded products, less so much, is surely no more than the sum.
_ROUNDED = 1 - 1e-9
#: Arrivals from which on the work is added up, at most: each is a bound of its own.
_MOST_STARTS = 64


@dataclass
class _Kind:
    """Jobs that are alike but for their arrivals: those that cannot be rejected and run on one core.

    batches: (inferences, members) of each batch in which such a job may run.
    """

    model: Model
    steps: int
    interval: int
    batches: tuple[tuple[int, int], ...]
    allowed: tuple[int, ...]
    releases: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Bounded:
    """What is known of the points of a box before any is simulated.

    broken: by rule, which points break it.
    makespan: by the name of the bound, the least cycles.
    latencies: (jobs, least cycles) of jobs that are alike.
    leave: whether some jobs may be rejected, so that it is not known whose latencies count.
    whole: whether every core can run every model; `lstmsim fit` counts no other chips.
    held, contexts, spread: cycles that each of these holds a context, the contexts of the chip, and the cycles from the
        first arrival to the last one; empty where some jobs are not bounded.
    shared: of contexts and units the least cycles that any job takes there, and how many there are.
    comes: all arrivals, ascending.
    peak: multiply-accumulates that the chip can do in a cycle.
    """

    broken: dict[str, Column]
    makespan: dict[str, Column]
    latencies: tuple[tuple[int, Column], ...]
    leave: bool
    whole: Column
    held: tuple[Column, ...] = ()
    contexts: Column = 1
    spread: int = 0
    shared: tuple[tuple[Column, Column], ...] = ()
    comes: tuple[int, ...] = ()
    peak: Column = 0


def bounded(box: Box) -> Bounded | None:
    """Bound the points of a box; None where the machine gives no bounds."""
    machine: Any = capability(box.scenario.chip.kind, "bounds")
    return None if machine is None else _Bounding(machine, box).bounded()


def most_per_second(box: Box, mix: Sequence[tuple[Job, float]], bound_ms: float, percentile: float) -> Column:
    """The most requests per second that any schedule of a box's points can keep under a bound on their latencies.

    mix: jobs, each with how many of them come for one request per second; 0: they come whatever the rate is.
    """
    machine: Any = capability(box.scenario.chip.kind, "bounds")
    count = sum(box.counts)
    if machine is None or any(job.may_leave or job.settled(count).split for job, _ in mix):
        return np.asarray(inf)
    own, clock = _Bounding(machine, box), box.scenario.chip.frequency_mhz * 1e3
    kinds = [(_kind(job, count, NEVER), weight) for job, weight in mix]
    # of jobs that come at a rate of their own it is not known how many they are
    known = all(weight for _, weight in mix)
    late = sum(known * weight * (own.best(kind, "alone") * _ROUNDED > bound_ms * clock) for kind, weight in kinds)
    first = [kind for kind, _ in kinds]
    servers = [(sum(own.contexts[each] for each in own.entry_of), "held", "")]
    servers += [(np.asarray(count), "work", unit) for unit in own.units(first)]
    most: Column = np.asarray(inf)
    for number, what, unit in servers:
        work = sum(
            weight * np.where((cycles := own.best(kind, what, unit)) < NEVER, cycles, 0) for kind, weight in kinds
        )
        most = np.minimum(most, number * clock * 1e3 / np.maximum(work, 1e-12) / _ROUNDED)
    every = sum(weight for _, weight in kinds)
    return np.where(late > every * (1 - percentile / 100) / _ROUNDED, 0.0, most)


def _kind(job: Job, count: int, others: int) -> _Kind:
    """The kind of a job among so many others on so many cores."""
    most = 0 if job.batching is None else min(job.batching.max_batch_size, others)
    batches = tuple((size, size) for size in range(1, most + 1)) or ((job.batch, 1),)
    return _Kind(job.model, job.steps, job.frame_interval, batches, job.allowed(count))


class _Bounding:
    def __init__(self, machine: Any, box: Box) -> None:
        self.machine, self.box = machine, box
        self.cores = [machine.read(entry) for entry in box.entries]
        self.entry_of = [number for number, count in enumerate(box.counts) for _ in range(count)]
        self.contexts = [np.asarray(machine.contexts(core)) for core in self.cores]
        self.known: dict[tuple[Model, int, int, int, int], Least] = {}
        self.able = {
            model: [np.asarray(machine.able(core, model)) for core in self.cores]
            for model in dict.fromkeys(job.model for job in box.scenario.jobs)
        }

    def bounded(self) -> Bounded:
        jobs, count = self.box.scenario.jobs, len(self.entry_of)
        broken = self.machine.broken(self.cores, self.box.counts)
        for job in {(job.model, job.allowed(count)): job for job in jobs if not job.settled(count).split}.values():
            able = self.able[job.model]
            none = ~reduce(np.logical_or, [able[each] for each in self._entries(job.allowed(count))])
            name = f"no core can run model {job.model.name}"
            broken[name] = broken.get(name, False) | none
        kinds = self._kinds(jobs, count)
        makespan: dict[str, Column] = {}
        if kinds:
            alone = [self.best(kind, "alone") for kind in kinds]
            ends = [max(kind.releases) + cycles for kind, cycles in zip(kinds, alone, strict=True)]
            makespan["recurrence"] = reduce(np.maximum, ends)
            self._shared(kinds, makespan)
        load = self.machine.loads(self.box.scenario.chip, self.cores, self.box.counts, jobs)
        if load is not None:
            makespan["memory"] = load
        left = len(jobs) - sum(len(kind.releases) for kind in kinds)
        latencies = [(len(kind.releases), cycles) for kind, cycles in zip(kinds, alone, strict=True)] if kinds else []
        latencies += [(left, np.asarray(1))] if left else []
        whole = reduce(np.logical_and, [each for able in self.able.values() for each in able])
        leave = any(job.may_leave for job in jobs)
        shared: dict[str, Any] = {}
        if kinds and not left and not any(job.after is not None for job in jobs):
            comes = [release for kind in kinds for release in kind.releases]
            shared["held"] = tuple(self.best(kind, "held") for kind in kinds)
            shared["contexts"] = sum(self.contexts[entry] for entry in self.entry_of)
            shared["spread"] = max(comes) - min(comes)
            shared["comes"] = tuple(sorted(comes))
            each = [[self.best(kind, "work", unit) for kind in kinds] for unit in self.units(kinds)]
            works = [(reduce(np.minimum, own), np.asarray(count)) for own in each]
            shared["shared"] = ((reduce(np.minimum, shared["held"]), shared["contexts"]), *works)
        both = zip(self.cores, self.box.counts, strict=True)
        peak = sum(np.asarray(self.machine.peak(core)) * number for core, number in both)
        return Bounded(broken, makespan, tuple(latencies), leave, whole, peak=peak, **shared)

    def _kinds(self, jobs: Sequence[Job], count: int) -> list[_Kind]:
        made: dict[Any, _Kind] = {}
        releases: list[int] = []
        for job in jobs:
            # what comes after another job comes no sooner than if that one had been rejected at once
            releases.append(job.arrival + (0 if job.after is None else releases[job.after]))
            if job.may_leave or job.settled(count).split:
                continue
            kind = _kind(job, count, len(jobs))
            key = (kind.model, kind.steps, kind.interval, kind.batches, kind.allowed)
            made.setdefault(key, kind)
            made[key].releases.append(releases[-1])
        return list(made.values())

    def _entries(self, allowed: Sequence[int]) -> list[int]:
        return list(dict.fromkeys(self.entry_of[each] for each in allowed))

    def _least(self, kind: _Kind, entry: int, batch: int) -> Least:
        job = (kind.model, kind.steps, kind.interval, batch)
        if (*job, entry) not in self.known:
            self.known[*job, entry] = self.machine.least(self.cores[entry], *job)
        return self.known[*job, entry]

    def best(self, kind: _Kind, what: str, unit: str = "", place: int = 0) -> Column:
        """The least of a number of a job over its batches and the cores that it may use and that can run it.

        Of what a batch takes each member has its part.
        """
        best: Column = np.asarray(NEVER)
        for entry, (batch, members) in product(self._entries(kind.allowed), kind.batches):
            least = getattr(self._least(kind, entry, batch), what)
            number = least[unit][place] if unit else least
            if what != "alone" and not place:
                number = number // members
            best = np.minimum(best, np.where(self.able[kind.model][entry], number, NEVER))
        return best

    def units(self, kinds: Sequence[_Kind]) -> list[str]:
        """The units that work on one job at a time."""
        return list(self._least(kinds[0], self._entries(kinds[0].allowed)[0], kinds[0].batches[0][0]).work)

    def _shared(self, kinds: Sequence[_Kind], makespan: dict[str, Column]) -> None:
        """Bounds of jobs that share cores: what they take there in sum, spread evenly, from some arrival on."""
        units = self.units(kinds)
        for cores in dict.fromkeys(kind.allowed for kind in kinds):
            among = [kind for kind in kinds if set(kind.allowed) <= set(cores)]
            held = [self.best(kind, "held") for kind in among]
            contexts = sum(self.contexts[self.entry_of[each]] for each in set(cores))
            self._spread(among, held, contexts, 0, "contexts", makespan)
            for unit in units:
                work = [self.best(kind, "work", unit) for kind in among]
                after = reduce(np.minimum, [self.best(kind, "work", unit, 1) for kind in among])
                self._spread(among, work, np.asarray(len(set(cores))), after - 1, f"{unit} work", makespan)

    def _spread(
        self,
        kinds: Sequence[_Kind],
        each: Sequence[Column],
        servers: Column,
        after: Column,
        name: str,
        makespan: dict[str, Column],
    ) -> None:
        starts = sorted({release for kind in kinds for release in kind.releases})
        starts = starts[:: -(-len(starts) // _MOST_STARTS)]
        for start in starts:
            total: Column = np.asarray(0)
            for kind, cycles in zip(kinds, each, strict=True):
                number = sum(release >= start for release in kind.releases)
                # what can run nowhere breaks a rule, and is no matter here
                total = total + number * np.where(cycles < NEVER, cycles, 0)
            own = start + -(-total // servers) + np.where(after < NEVER - 1, after, 0)
            makespan[name] = np.maximum(makespan.get(name, 0), own)


def percentile_of(own: Bounded, percent: int) -> Column:
    """The least that a percentile of latencies can be, in cycles; where some may leave, of any job."""
    if own.leave:
        return reduce(np.minimum, [cycles for _, cycles in own.latencies])
    counts = np.array([number for number, _ in own.latencies])
    rank, part, whole = rank_below(int(counts.sum()), percent)
    last = min(rank + 1, int(counts.sum()) - 1)
    low, high = (_ranked(counts, [cycles for _, cycles in own.latencies], place)[0] for place in (rank, last))
    if own.held:
        # so many jobs, at least those that hold a context shortest, are through within the latency and the arrivals
        low, high = (
            np.maximum(each, -(-_ranked(counts, own.held, place)[1] // own.contexts) - own.spread)
            for each, place in ((low, rank), (high, last))
        )
        low, high = (np.maximum(each, _crowded(own, place)) for each, place in ((low, rank), (high, last)))
    return low + (high - low) * part / whole


def _crowded(own: Bounded, place: int) -> Column:
    """The least that the latency at a place can be for jobs that come close together.

    Of any jobs in a row all but those behind the place are through within it after the last of them has come.
    """
    comes, least = np.array(own.comes), np.asarray(0)
    beyond = len(comes) - 1 - place
    for number in sorted({1 << power for power in range(30)} | {3 << power for power in range(29)}):
        length = number + beyond
        if length > len(comes):
            break
        window = int((comes[length - 1 :] - comes[: len(comes) - length + 1]).min())
        for each, servers in own.shared:
            cycles = -(-number * np.where(each < NEVER, each, 0) // servers) - window
            least = np.maximum(least, cycles)
    return least


def _ranked(counts: Any, columns: Sequence[Column], place: int) -> tuple[Column, Column]:
    """The number at a place among sorted ones, of which each column stands for several; and the sum up to it."""
    table = np.stack(np.broadcast_arrays(*columns)).reshape(len(counts), -1)
    order = np.argsort(table, axis=0, kind="stable")
    table, ends = np.take_along_axis(table, order, axis=0), counts[order].cumsum(axis=0)
    number = np.take_along_axis(table, (ends > place).argmax(axis=0)[None], axis=0)[0]
    begins = ends - counts[order]
    total = (np.clip(place + 1 - begins, 0, counts[order]) * np.where(table < NEVER, table, 0)).sum(axis=0)
    return number, total
