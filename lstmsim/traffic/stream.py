"""Serving any number of requests in memory that does not grow with it: they are drawn, run and counted as they come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lstmsim import targets
from lstmsim.engines.feed import WINDOW, Coming, Feed
from lstmsim.errors import InputError, Mistake
from lstmsim.formats.requests import Requests, load_requests
from lstmsim.serving.latencies import PERCENTILES
from lstmsim.serving.metrics import Collector
from lstmsim.serving.result import Serving
from lstmsim.serving.run_requests import coarse_cores, entries_of
from lstmsim.traffic.alone import Alones
from lstmsim.traffic.offered import traffic_of
from lstmsim.workload.dispatch import DISPATCH
from lstmsim.workload.scenario import Job, Scenario

__all__ = ["Row", "Served", "serve"]

_NEVER = 2**63 - 1


class Row(NamedTuple):
    """One request, numbered as they come: its job entry's name, where it ran (-1: it was turned away, at `start`), and
    its cycles."""

    request: int
    job: str
    core: int
    thread: int
    arrival: int
    start: int
    finish: int


@dataclass(frozen=True)
class Served:
    """What serving came to, and what the whole run did: `utilization` and `tops` are those of a report."""

    serving: Serving
    makespan_cycles: int
    utilization: float
    tops: float


def serve(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    *,
    requests: int | None = None,
    overrides: Sequence[str] = (),
    rows: Callable[[Sequence[Row]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    window: int = WINDOW,
    percentiles: Sequence[float] = PERCENTILES,
) -> Served:
    """Serve the requests of a scenario as they come, the same to the cycle as in a simulation of all of them.

    `requests`: so many in all, processes of arrivals going on as long as that takes, instead of each entry's `count`.
    `rows` is called with requests that are done, in the order of their ends; `progress` with requests done and in all.
    `percentiles`: which ones the latencies have. At most `window` may be in the machine at once. `InputError` as for a
    simulation; for clients who wait for answers and for preemption, which only a simulation follows; if more are in the
    machine at once.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 50, "arrival": arrival}]
    >>> serve({"chip": "column-npu-16k", "jobs": jobs}, requests=2000).serving.requests
    2000
    """
    found = load_requests(scenario, overrides, requests)
    chip, jobs = found.scenario.chip, found.scenario.jobs
    if any(job.preempts for job in jobs):
        raise InputError(Mistake("preemption", "a stream of requests does not follow pauses: use simulate --serving"))
    program = targets.lower(chip, jobs)
    dues: dict[int, int] = {}
    feed = Feed(program, _coming(found, dues), window=window)
    alones = Alones(chip)
    collector = Collector(
        chip.frequency_mhz,
        sum(core.contexts for core in program.cores if not core.shared),
        entries=entries_of(jobs),
        coarse=coarse_cores(chip),
    )
    done = 0
    for numbers, own, table in feed.results():
        _collect(collector, found.scenario, alones, dues, numbers.tolist(), own.tolist(), table)
        done += len(numbers)
        if rows is not None:
            rows([_row(*each, jobs=jobs) for each in zip(numbers.tolist(), own.tolist(), table.tolist(), strict=True)])
        if progress is not None:
            progress(done, found.count)
    work, makespan = int(feed.totals().work.sum()), feed.makespan_cycles
    peak = makespan * sum(core.npe for core in chip.array_cores)
    tops = 2 * work * chip.frequency_mhz / makespan / 1e6 if makespan else 0.0
    load = traffic_of(found.scenario, found.count).load
    return Served(collector.result(load=load, percentiles=percentiles), makespan, work / peak if peak else 0.0, tops)


def _coming(found: Requests, dues: dict[int, int]) -> Iterator[Coming]:
    """What comes, with its key; due times are kept until the request is done."""
    jobs = found.scenario.jobs
    keys = [DISPATCH[job.dispatch](job)[0] for job in jobs]
    for number, each in enumerate(found.coming):
        job, key = jobs[each.entry], keys[each.entry]
        deadline = each.due if job.deadline is None else job.deadline
        if deadline is not None:
            dues[number] = each.arrival + deadline
            if job.deadline is None:
                # the template has no deadline, so its key does not count from the arrival
                key, from_arrival = DISPATCH[job.dispatch](replace(job, deadline=deadline))
                key += each.arrival if from_arrival else 0
        yield Coming(each.arrival, each.entry, key)


def _collect(
    collector: Collector,
    scenario: Scenario,
    alones: Alones,
    dues: dict[int, int],
    numbers: list[int],
    own: list[int],
    table: Any,
) -> None:
    """Hand requests that are done to the collector."""
    core, _, start, finish, arrived, _ = np.asarray(table).T
    alone = [alones(scenario.jobs[entry]) for entry in own]
    seats = np.array([max(1, len(job.together(len(scenario.chip.array_cores)))) for job in scenario.jobs])
    collector.add_many(
        numbers,
        arrived,
        start,
        np.where(core < 0, start, finish),
        tenants=[scenario.jobs[entry].tenant for entry in own],
        due=[dues.pop(number, _NEVER) for number in numbers],
        servers=np.where(core < 0, 0, seats[own]),
        alone=[each.latency_cycles for each in alone],
        cores=core,
        stalls=[each.stalls for each in alone],
    )


def _row(number: int, entry: int, row: list[int], *, jobs: Sequence[Job]) -> Row:
    core, thread, start, finish, arrived, _ = row
    return Row(number, jobs[entry].name, core, thread, arrived, start, finish)
