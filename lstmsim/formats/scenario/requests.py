"""The requests of a scenario one after another, up to any number, without a list of all requests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice, repeat
from typing import Any, NamedTuple

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.scenario.job_entries import entry_keys, job_templates, tenant_offers
from lstmsim.formats.scenario.scenario_file import checked_scenario, open_scenario
from lstmsim.formats.scenario.schema import JobEntry
from lstmsim.workload.scenario import Job, Scenario

__all__ = ["MAX_REQUESTS", "Request", "Requests", "load_requests"]

#: Most requests of one run: a few hours.
MAX_REQUESTS = 1_000_000_000


class Request(NamedTuple):
    """A request.

    arrival: cycle in which it comes.
    template: number of its template among the jobs of `Requests.scenario`.
    due: latency in cycles that it should not exceed; None: no limit.
    tenant: name of its tenant.
    """

    arrival: int
    template: int
    due: int | None
    tenant: str


@dataclass(frozen=True)
class Requests:
    """The requests of a scenario.

    scenario: one job for each entry and each number of steps that its requests may have, in this order: the templates.
    coming: the requests in the order of arrival, then of entries. It can be gone through once.
    count: most requests.
    tenants: every possible tenant, with the name of its model.
    entries: for each template, the number of its entry in the file.
    """

    scenario: Scenario
    coming: Iterator[Request]
    count: int
    tenants: tuple[tuple[str, str], ...]
    entries: tuple[int, ...]


def load_requests(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = (), requests: int | None = None
) -> Requests:
    """Read the requests of a scenario.

    source: file of the scenario, or its data.
    overrides: texts `PATH=VALUE`.
    requests: how many requests in all; the processes of arrivals go on until then. None: `count` of each entry.
    `InputError` as for a scenario, and for clients, because they wait for answers.

    >>> arrival, steps = {"kind": "fixed", "interval_cycles": 7}, {"kind": "uniform", "low": 1, "high": 3}
    >>> jobs = [{"model": "lstm-256", "steps": steps, "arrival": arrival}, {"model": "lstm-512", "steps": 9}]
    >>> checked = load_requests({"chip": "column-npu-64k", "jobs": jobs}, requests=4)
    >>> [job.steps for job in checked.scenario.jobs]
    [1, 2, 3, 9]
    >>> [tuple(each) for each in checked.coming]
    [(0, ..., None, 'lstm-256'), (0, 3, None, 'lstm-512'), (7, ..., None, 'lstm-256'), (14, ..., None, 'lstm-256')]
    """
    if requests is not None and not 1 <= requests <= MAX_REQUESTS:
        raise InputError(Mistake("requests", f"must be from 1 to {MAX_REQUESTS:,}, got {requests:,}"))
    document, name = open_scenario(source)
    checked = checked_scenario(document, overrides, single=True)
    entries = job_templates(document, checked.order, checked.models)
    jobs: list[Job] = []
    origins: list[int] = []
    tenants: list[tuple[str, str]] = []
    streams, total, ends = [], 0, []
    keys = entry_keys([job.name for job in entries])
    for index, (entry, job, key) in enumerate(zip(checked.order.jobs, entries, keys, strict=True)):
        own = checked.arrivals.check(index, entry)
        endless = requests is not None and checked.arrivals.goes_on(index, entry)
        count = requests if requests is not None and endless else own
        ends.append(0 if endless else own)
        lengths = checked.steps.possible(index)
        templates = {steps: len(jobs) + place for place, steps in enumerate(lengths)}
        jobs += [replace(job, steps=steps) for steps in lengths]
        origins += [index] * len(lengths)
        steps = map(templates.__getitem__, checked.steps.of_jobs(index, entry, key))
        whose = checked.arrivals.tenants(index, entry, job.tenant)
        tenants += [(name, job.model.name) for name in dict.fromkeys(whose or [job.tenant])]
        coming = checked.arrivals.one_by_one(index, entry, key, count)
        streams.append(_in_time(index, entry, coming, steps, whose or repeat(job.tenant)))
        total += count
    if requests is not None and total < requests:
        owner = "file's" if isinstance(source, str | os.PathLike) else "scenario's"
        text = f"the {owner} arrivals end after {total:,}, and none is a process that goes on: leave it out"
        raise InputError(Mistake(f"requests {requests:,}", text))
    count = total if requests is None else requests
    offers = tenant_offers(checked.order, entries, checked.arrivals, checked.steps, ends)
    scenario = checked.scenario(tuple(jobs), name, offers)
    in_order = merge(*streams, key=lambda each: each[:2])
    coming_in_order = (request for _, _, request in islice(in_order, count))
    return Requests(scenario, coming_in_order, count, tuple(tenants), tuple(origins))


def _in_time(
    index: int,
    entry: JobEntry,
    coming: Iterator[tuple[int, int | None]],
    templates: Iterator[int],
    tenants: Iterable[str],
) -> Iterator[tuple[int, int, Request]]:
    """Yield (arrival, number of the entry, request) for the requests of an entry, in the order of time."""
    drawn = (
        (cycle, index, Request(cycle, template, due, tenant))
        for (cycle, due), template, tenant in zip(coming, templates, tenants, strict=False)
    )
    # a list of arrivals is in any order, and each arrival has the steps of its place in the list
    return iter(sorted(drawn, key=lambda each: each[0])) if isinstance(entry.arrival, list) else drawn
