"""The arrivals of the jobs of an entry: stated cycles, those of a process, or those of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounds import MAX_CYCLES
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.job_traces import Traces
from lstmsim.files.scenario.schema import JobEntry
from lstmsim.files.scenario.schema_arrivals import ArrivalEntry, TraceEntry, arrival_mistakes, describe
from lstmsim.files.yaml.document import Document
from lstmsim.model.scenario import Offer, estimated_offer
from lstmsim.traffic.arrival_cycles import arrival_arrays, arrivals, deadline_arrays
from lstmsim.traffic.arrivals import Clients, ClosedLoop, Stream, exact, offer_of
from lstmsim.traffic.streams import StreamKey

__all__ = ["Coming", "JobArrivals"]

Ints = NDArray[np.int64]

#: Arrival of a job, position of the job that it comes after (or None), latency that it should not exceed (or None).
Coming = tuple[int, int | None, int | None]


class JobArrivals:
    """The arrivals of a document's jobs at one clock; each file of arrivals is read once.

    document: the document, in which mistakes are noted.
    frequency_mhz: clock of the chip; None for a scenario with mistakes, of which only keys are checked.
    whole: the file of arrivals of the whole scenario; None: there is no such file.
    """

    def __init__(self, document: Document, frequency_mhz: float | None, whole: TraceEntry | None = None) -> None:
        self.document, self.frequency_mhz = document, frequency_mhz
        self.traces = Traces(document, frequency_mhz, whole)

    def prepare(self, entries: Sequence[JobEntry | None], names: Sequence[str]) -> None:
        """Take all entries (None: a wrong entry) and their names; to be called before all other methods."""
        self.traces.prepare(entries, names)

    def check(self, index: int, entry: JobEntry) -> int:
        """Count the jobs of entry number `index`: its `count`, or all rows of its file if `count` is left out.

        Mistakes in its process are noted in the document.
        """
        process = entry.arrival
        if isinstance(process, ArrivalEntry):
            mistakes = arrival_mistakes(process)
            for key, text in mistakes:
                self.document.blame(("jobs", index, "arrival", key), text)
            if mistakes or self.frequency_mhz is None:
                return entry.count
            if process.kind == "stream" and exact(process.frame_ms) * exact(self.frequency_mhz) * 1000 < 1:
                text = f"is shorter than a cycle, which takes {0.001 / self.frequency_mhz:g} ms on this chip"
                self.document.blame(("jobs", index, "arrival", "frame_ms"), f"{text}: no frame could be in time")
        try:
            rows = self.traces.rows(index, entry)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)
            rows = None
        return entry.count if rows is None else len(rows.numbers)

    def coming(self, index: int, entry: JobEntry, name: str, occurrence: int, first: int) -> list[Coming]:
        """Give the arrivals of the jobs of entry number `index`.

        name: name of the entry.
        occurrence: how many earlier entries have that name. Name and occurrence give the entry random numbers of its
        own.
        first: position of the entry's first job among all jobs.
        `InputError` for arrivals that are too late for a simulation.

        >>> from lstmsim.files.yaml.document import document_of
        >>> layers = [{"cell": "rnn", "hidden": 4, "input": 4}]
        >>> data = {"model": {"layers": layers}, "count": 3, "arrival": {"kind": "stream", "frame_ms": 0.5}}
        >>> from lstmsim.files.yaml.checks import usable
        >>> entry = usable(JobEntry, data, ())
        >>> JobArrivals(document_of({"jobs": [data]}), frequency_mhz=1).coming(0, entry, "a", 0, 0)
        [(0, None, 500), (500, None, 500), (1000, None, 500)]
        """
        process, rows = entry.arrival, self.traces.rows(index, entry)
        if rows is None and not isinstance(process, ArrivalEntry):
            each = process if isinstance(process, list) else [process] * entry.count
            return [(cycle, None, None) for cycle in each]
        if rows is not None:
            drawn: Iterator[Coming] = ((cycle, None, None) for cycle in rows.cycles)
        else:
            assert isinstance(process, ArrivalEntry)
            drawn = self._drawn(entry.count, process, (process.seed, name, occurrence), first)
        coming: list[Coming] = []
        place = self.document.place(("jobs", index, "arrival"))
        try:
            for one in drawn:
                if one[0] > MAX_CYCLES:
                    text = f"job {len(coming) + 1:,} of this entry comes as late as cycle {one[0]:,}"
                    raise InputError(Mistake(place, f"{text}, at most {MAX_CYCLES:,} are simulated"))
                coming.append(one)
        except InputError as error:
            raise InputError([Mistake(place, each.sentence) for each in error.mistakes]) from None
        return coming

    def goes_on(self, index: int, entry: JobEntry) -> bool:
        """Tell whether the arrivals of the entry never end."""
        return isinstance(entry.arrival, ArrivalEntry) and self.traces.comes_from(index, entry) is None

    def tenants(self, index: int, entry: JobEntry, name: str) -> list[str] | None:
        """Name the tenant of each request of an entry, `name/word`; None if its file names no tenants.

        name: name of the entry.
        """
        rows = self.traces.rows(index, entry)
        words = None if rows is None else rows.tenants
        return None if words is None else [f"{name}/{word}" for word in words]

    def in_arrays(
        self, index: int, entry: JobEntry, key: tuple[str, int], count: int, chunk: int
    ) -> Iterator[tuple[Ints, Ints | None]]:
        """Yield the arrivals of entry number `index` in the entry's order, and latency limits (None: there are none).

        key: name of the entry, and how many earlier entries have that name.
        count: most arrivals. A process goes on until then, whatever the `count` of the entry.
        chunk: arrivals in each array; the last one may be shorter.
        `InputError` for clients, because they wait for answers.
        """
        process, rows = entry.arrival, self.traces.rows(index, entry)
        if rows is not None or not isinstance(process, ArrivalEntry):
            each = rows.cycles if rows is not None else process
            listed = np.array(each) if isinstance(each, list) else np.full(entry.count, each)
            listed = listed.astype(np.int64, copy=False)[:count]
            return ((listed[first : first + chunk], None) for first in range(0, len(listed), chunk))
        if process.kind == "closed":
            text = "clients wait for their answers, which a stream of requests does not know: use simulate --serving"
            raise InputError(Mistake(self.document.place(("jobs", index, "arrival")), text))
        description, clock = describe(process), self.frequency_mhz or 0
        assert not isinstance(description, ClosedLoop)
        cycles = arrival_arrays(description, count, clock, (process.seed, *key), chunk)
        if isinstance(description, Stream):
            return _until_the_next(cycles, deadline_arrays(description, count, clock, chunk))
        return ((block, None) for block in cycles)

    def offer(self, index: int, entry: JobEntry) -> Offer:
        """Give the rate at which the jobs of entry number `index` come in the long run, as far as it is known."""
        process, clock, rows = entry.arrival, self.frequency_mhz or 0, self.traces.rows(index, entry)
        if rows is not None:
            return estimated_offer(rows.cycles, clock)
        if not isinstance(process, ArrivalEntry):
            return estimated_offer(sorted(process), clock) if isinstance(process, list) else Offer()
        return offer_of(describe(process), clock)

    def _drawn(self, count: int, process: ArrivalEntry, key: StreamKey, first: int) -> Iterator[Coming]:
        description, clock = describe(process), self.frequency_mhz or 0
        if isinstance(description, ClosedLoop):
            yield from _asked(description, count, clock, key, first)
        elif isinstance(description, Stream):
            for cycle, following in pairwise(arrivals(description, count + 1, clock, key)):
                yield cycle, None, following - cycle
        else:
            for cycle in arrivals(description, count, clock, key):
                yield cycle, None, None


def _until_the_next(cycles: Iterator[Ints], following: Iterator[Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Frames, each with the cycles until the next one comes. The next one of the last may be too late to come."""
    for block, ends in zip(cycles, following, strict=True):
        yield block[: len(ends)], ends - block[: len(ends)]


def _asked(loop: ClosedLoop, count: int, frequency_mhz: float, key: StreamKey, first: int) -> Iterator[Coming]:
    many = min(loop.clients, count)
    clients = Clients(replace(loop, clients=many), frequency_mhz, key)
    thought = [0] * many
    for number in range(count):
        # how long a client thinks does not depend on when its last request has finished
        before = thought[number % many]
        thought[number % many] = clients.next_arrival(number % many, before)
        after = None if number < many else first + number - many
        yield thought[number % many] - before, after, None
