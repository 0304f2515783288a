"""The requests of a scenario one after another, as many as are wanted, without a list of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.job_entries import job_templates, tenant_offers
from lstmsim.formats.scenario_file import checked_scenario, open_scenario
from lstmsim.formats.schema_arrivals import ArrivalEntry
from lstmsim.workload.scenario import Scenario

__all__ = ["MAX_REQUESTS", "Request", "Requests", "load_requests"]

#: Most requests of one run: a few hours.
MAX_REQUESTS = 1_000_000_000


class Request(NamedTuple):
    """When it comes, number of its job entry, and the latency that it should not exceed (None: it may take any)."""

    arrival: int
    entry: int
    due: int | None


@dataclass(frozen=True)
class Requests:
    """`scenario` has one job for each entry; `coming` gives the requests in the order of arrival, of equal ones that of
    the entries, and can be gone through once; there are `count` at most."""

    scenario: Scenario
    coming: Iterator[Request]
    count: int


def load_requests(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = (), requests: int | None = None
) -> Requests:
    """The requests of a scenario; `requests`: so many in all, all processes of arrivals going on as long as that takes,
    instead of each entry's `count`. `InputError` as for a scenario, and for clients who wait for answers.

    >>> arrival = {"kind": "fixed", "interval_cycles": 7}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "arrival": arrival}, {"model": "lstm-512", "steps": 1, "arrival": 10}]
    >>> [tuple(each) for each in load_requests({"chip": "column-npu-64k", "jobs": jobs}, requests=4).coming]
    [(0, 0, None), (7, 0, None), (10, 1, None), (14, 0, None)]
    """
    if requests is not None and not 1 <= requests <= MAX_REQUESTS:
        raise InputError(Mistake("requests", f"must be from 1 to {MAX_REQUESTS:,}, got {requests:,}"))
    document, name = open_scenario(source)
    found = checked_scenario(document, overrides, single=True)
    jobs = job_templates(document, found.order, found.models)
    named: Counter[str] = Counter()
    streams, total = [], 0
    for index, (entry, job) in enumerate(zip(found.order.jobs, jobs, strict=True)):
        own = found.arrivals.check(index, entry)
        endless = isinstance(entry.arrival, ArrivalEntry) and entry.arrival.kind != "file"
        count = requests if requests is not None and endless else own
        streams.append(_of_entry(index, found.arrivals.one_by_one(index, entry, (job.name, named[job.name]), count)))
        named[job.name] += 1
        total += count
    if requests is not None and total < requests:
        text = f"the file's arrivals end after {total:,}, and none is a process that goes on: leave it out"
        raise InputError(Mistake(f"requests {requests:,}", text))
    count = total if requests is None else requests
    offers = tenant_offers(found.order, jobs, found.arrivals)
    scenario = Scenario(found.chip, jobs, found.order.name or name, found.precision, offers)
    return Requests(scenario, islice(merge(*streams, key=lambda each: each[:2]), count), count)


def _of_entry(index: int, arrivals: Iterator[tuple[int, int | None]]) -> Iterator[Request]:
    return (Request(cycle, index, due) for cycle, due in arrivals)
