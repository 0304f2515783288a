"""Serving any number of requests in constant memory: requests are drawn, run and counted as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.units import tops
from lstmsim.engines.feeds import WINDOW, Feed
from lstmsim.files.scenario.requests import Batch, Requests, load_requests
from lstmsim.model.scenario import DISPATCH, Scenario, cores_at_once
from lstmsim.program.runs import Runs
from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp
from lstmsim.studies.serve.demands import Alones
from lstmsim.studies.serve.metrics import Collector, coarse_cores, with_batches
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.programs import differences, servers_of, serving_program
from lstmsim.studies.serve.request import Row, ServeRequest
from lstmsim.studies.serve.result import Entry, Serving
from lstmsim.studies.serve.tenants import NEVER, Rows
from lstmsim.studies.serve.together import Together
from lstmsim.studies.shared.loading import Path, drawn_anew
from lstmsim.studies.shared.request import takes, wrong_value
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.traffic.latencies import PERCENTILES
from lstmsim.traffic.load import Traffic, relaxation_of


class Inside:
    """Hands requests to the engine as they come, and to the collector once they are done.

    Due times and tenants are kept until a request is done, so memory grows with the requests in the machine.
    """

    def __init__(self, asked: Requests) -> None:
        self._asked = asked
        jobs, self._alones = asked.scenario.jobs, Alones(asked.scenario.chip)
        self._keys = np.array([DISPATCH[job.dispatch](job)[0] for job in jobs])
        self._deadlines = np.array([-1 if job.deadline is None else job.deadline for job in jobs])
        self._slots = np.array([max(1, len(cores_at_once(asked.scenario.chip, job))) for job in jobs])
        #: Of each template, cycles alone and whether it ever stalls; -1 before one of its requests is done.
        self._alone: Ints = np.full((2, len(jobs)), -1)
        self._macs = np.array([job.macs for job in jobs])
        #: Multiply-accumulates of what was served, without padding.
        self.useful = 0
        self._came = 0
        #: Numbers of the requests inside, ascending, with their due times, their tenants, for how long they paused,
        #: and of those in rounds when the last pause and the first round ended (-1: not yet, or another one led), and
        #: the thread of the first round (-1: not over); last their arrivals.
        self._inside: Ints = np.zeros((8, 0), dtype=np.int64)
        self.together = Together(jobs, len(asked.tenants))

    def chunks(self) -> Iterator[Ints]:
        """Give what comes as a `Feed` takes it."""
        for batch in self._asked.coming:
            own = self._deadlines[batch.template]
            deadlines = np.where(own < 0, batch.due, own)
            due = np.where(deadlines < 0, NEVER, batch.arrival + deadlines)
            numbers = np.arange(self._came, self._came + len(due))
            self._came += len(due)
            none = np.zeros_like(due)
            more = np.stack([numbers, due, batch.tenant, none, none - 1, none - 1, none - 1, batch.arrival])
            self._inside = np.concatenate([self._inside, more], axis=1)
            yield np.stack([batch.arrival, batch.template, self._ranks(batch, deadlines)], axis=1)

    def _ranks(self, batch: Batch, deadlines: Ints) -> Ints:
        """The key of each request."""
        keys = self._keys[batch.template]
        # a template without a deadline has a key that does not count from the arrival
        own = np.flatnonzero((self._deadlines[batch.template] < 0) & (deadlines >= 0))
        kinds, place = np.unique(np.stack([batch.template[own], deadlines[own]]), axis=1, return_inverse=True)
        for kind, (template, deadline) in enumerate(kinds.T.tolist()):
            job = self._asked.scenario.jobs[template]
            key, from_arrival = DISPATCH[job.dispatch](replace(job, deadline=deadline))
            of_kind = own[place.ravel() == kind]
            keys[of_kind] = key + (batch.arrival[of_kind] if from_arrival else 0)
        return keys

    def pause(self, collector: Collector, pauses: Ints) -> None:
        """Hand pauses, as `Feed.pauses` gives them, to the collector, and note them with their requests."""
        numbers, _, _, since, until, leads = pauses.T
        places = np.searchsorted(self._inside[0], numbers)
        np.add.at(self._inside[3], places, until - since)
        # a request that may pause has one thread; in rounds those who lead them have it
        collector.pause(np.stack([since, until, (leads < 0).astype(np.int64)]))
        if (leads >= 0).any():
            self._rounds(collector, pauses[np.lexsort((since, numbers))])

    def _rounds(self, collector: Collector, pauses: Ints) -> None:
        """Note rounds that are over, of requests that are not: pauses in the order of requests."""
        numbers, _, threads, since, until, leads = pauses.T
        places = np.searchsorted(self._inside[0], numbers)
        began = self._inside[4, places]
        again = np.flatnonzero(numbers[1:] == numbers[:-1]) + 1
        began[again] = until[again - 1]
        led = leads == numbers
        # when the first round began is known when the request is done
        collector.hold(began[led & (began >= 0)], since[led & (began >= 0)])
        first = places[led & (began < 0)]
        self._inside[5, first] = since[led & (began < 0)]
        self._inside[6, places[began < 0]] = threads[began < 0]
        np.maximum.at(self._inside[4], places, until)
        self.together.add(leads, since, self._inside[2, places])

    def collect(self, collector: Collector, numbers: Ints, templates: Ints, table: Ints) -> tuple[Ints, Ints]:
        """Hand finished requests, as `Feed.results` gives them, to the collector.

        Gives the indices of their tenants and the threads on which they began.
        """
        places = np.searchsorted(self._inside[0], numbers)
        _, due, tenants, paused, last, first, thread, _ = self._inside[:, places]
        self._inside = np.delete(self._inside, places, axis=1)
        core, context, start, finish, arrived, _, taken, batch = table.T
        served = core >= 0
        self.useful += int(self._macs[templates[served]].sum())
        threads = np.where(served, np.maximum(self._slots[templates], np.bitwise_count(taken)), 0)
        if (batch >= 0).any():
            # a batch takes its threads once, whoever is in it
            threads[batch >= 0] = 0
            rounds = self.together.in_rounds[templates] & (batch >= 0)
            led = rounds & (batch == numbers)
            collector.hold(np.maximum(start, last)[led], finish[led])
            begun = rounds & (first >= 0)
            collector.hold(start[begun], first[begun])
            self.together.add(batch[rounds], finish[rounds], tenants[rounds])
            whole = (batch >= 0) & ~rounds
            runs = Runs(numbers[whole], core[whole], context[whole], start[whole], finish[whole], batch[whole])
            since, until, own = self.together.held(runs)
            collector.hold(since, until, self._slots[templates[whole]][own])
            self.together.add(batch[whole], start[whole], tenants[whole], templates[whole])
            # a batch does not begin before its members have come
            self.together.settle(int(self._inside[7].min(initial=NEVER)))
        alone, stalls = self._by_themselves(templates)
        end = np.where(served, finish, start)
        collector.take(numbers, Rows(arrived, start, end, due, threads, alone, core, stalls, paused), tenants)
        return np.asarray(tenants), np.where(thread < 0, context, thread)

    def _by_themselves(self, templates: Ints) -> Ints:
        """Cycles alone of each request, and whether it ever stalls."""
        for template in np.flatnonzero(np.bincount(templates, minlength=self._alone.shape[1])).tolist():
            if self._alone[0, template] < 0:
                alone = self._alones(self._asked.scenario.jobs[template])
                self._alone[:, template] = alone.latency_cycles, alone.stalls
        known: Ints = self._alone[:, templates]
        return known


Ints = NDArray[np.int64]

#: Why serving ended.
ENDS = {
    "all": "all requests were served",
    "half width": "the intervals were as narrow as was asked for",
    "limit": "the limit of requests came first: the intervals are wider than was asked for",
    "full": "more requests than there is room for were in the machine at once",
}
#: Most requests for the sake of an interval, unless another limit is given: some minutes.
MOST_REQUESTS = 10_000_000
#: Requests after which the intervals are looked at for the first time, and by which factor more for the next time.
FIRST_LOOK, NEXT_LOOK = 1_000, 1.25
#: Narrowest interval that may be asked for, as a share of the value.
LEAST_HALF_WIDTH = 1e-6

#: Largest window: memory grows with it.
MOST_WINDOW = 1 << 20


@dataclass(frozen=True)
class Served(Table, forms="lstmsim.studies.serve.report"):
    """The figures of a run that was served, and why it ended.

    utilization, tops: as those of a report.
    ended: why serving ended, a key of `ENDS`.
    full_at: the cycle in which more requests than there is room for would have been in the machine at once; those that
        came until then were all finished and counted.
    until_half_width: the half width asked for, as a share.
    remarks: remarks of the chip on the jobs.
    asked: number of requests that were to come at most.
    window: number of requests for which there was room.
    scenario: the scenario; its jobs are the templates of the requests.
    """

    serving: Serving
    makespan_cycles: int
    utilization: float
    tops: float
    ended: str = "all"
    full_at: int | None = None
    until_half_width: float | None = None
    remarks: tuple[str, ...] = ()
    asked: int | None = None
    window: int = WINDOW
    scenario: Scenario | None = field(default=None, compare=False, repr=False)

    @property
    def stamp(self) -> Stamp | None:
        """What the cycles are exact against, and which keys are assumptions."""
        return None if self.scenario is None else stamp_of_scenario(self.scenario)


@takes(ServeRequest)
def serve(request: ServeRequest) -> Served:
    """Serve the requests of a scenario as they come, the same to the cycle as in a simulation of all of them.

    `InputError` as for a simulation, and for clients who wait for answers, which need a simulation.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 50, "arrival": arrival}]
    >>> serve({"chip": "column-npu-16k", "jobs": jobs}, requests=2000).serving.requests
    2000
    """
    scenario, requests, share = drawn_anew(request.scenario, rates=False), request.requests, request.until_half_width
    check_wanted(request.percentiles, share)
    asked = load_requests(scenario, tuple(request.overrides), requests)
    goes_on = any(each.rate_per_second > 0 and not each.estimated for each in asked.scenario.offers.values())
    if requests is None and share is not None and goes_on:
        asked = load_requests(scenario, tuple(request.overrides), MOST_REQUESTS)
    return serve_loaded(
        asked,
        rows=request.rows,
        progress=request.progress,
        window=request.window,
        percentiles=request.percentiles,
        until_half_width=share,
    )


def serve_loaded(
    asked: Requests,
    *,
    rows: Callable[[Sequence[Row]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    window: int = WINDOW,
    percentiles: Sequence[float] = PERCENTILES,
    until_half_width: float | None = None,
) -> Served:
    """Serve requests that have been read, once; arguments are as for `serve`, after `check_wanted`."""
    chip, jobs = asked.scenario.chip, asked.scenario.jobs
    refuse(wrong_value("window", window, Annotated[int, Key(low=len(jobs), high=MOST_WINDOW)]))
    program = serving_program(chip, jobs, templates=True)
    traffic = traffic_of(asked.scenario, asked.count)
    collector = Collector(
        chip.frequency_mhz,
        servers_of(chip, program),
        [Entry(name, model) for name, model in asked.tenants],
        coarse=coarse_cores(program),
    )
    goal = _Goal(until_half_width, percentiles[-1], traffic, collector)
    known, done = Inside(asked), 0
    feed = engines.feed(program, known.chunks(), window=window)
    for numbers, templates, table in feed.results():
        known.pause(collector, feed.pauses())
        tenants, threads = known.collect(collector, numbers, templates, table)
        done += len(numbers)
        if rows is not None:
            rows(_rows(asked, numbers, templates, tenants, threads, table))
        if progress is not None:
            progress(done, asked.count)
        if goal.reached_by(done):
            feed.stop()
    serving = collector.result(traffic, sorted(set(percentiles)), cut=feed.full_at is not None)
    serving = with_batches(serving, known.together)
    served = _served(feed, asked, serving, known.useful)
    return replace(served, ended=goal.ended(feed), until_half_width=until_half_width)


def _served(feed: Feed, asked: Requests, serving: Serving, useful: int) -> Served:
    """What the whole run did, as far as the engine knows. `useful`: work of the requests, in which is no padding."""
    scenario, makespan = asked.scenario, feed.makespan_cycles
    padded = any(job.batching is not None for job in scenario.jobs)
    work = useful if padded else int(feed.totals().work.sum())
    peak = makespan * sum(core.peak for core in scenario.chip.core_figures)
    return Served(
        serving=serving,
        makespan_cycles=makespan,
        utilization=work / (peak or 1),
        tops=tops(work, makespan, scenario.chip.frequency_mhz),
        full_at=feed.full_at,
        remarks=(*scenario.remarks, *differences(scenario.chip, scenario.jobs)),
        asked=asked.count,
        window=feed.window,
        scenario=scenario,
    )


def check_wanted(percentiles: Sequence[float], until_half_width: float | None) -> None:
    """Raise `InputError` for percentiles and shares that cannot be."""
    wrong = []
    outside = [each for each in percentiles if not 0 < each < 100]
    if outside or not percentiles:
        got = ", ".join(f"{each:g}" for each in outside) or "none"
        wrong.append(Mistake("percentile", f"must be above 0 and below 100, got {got}"))
    if until_half_width is not None and not LEAST_HALF_WIDTH <= until_half_width < 1:
        text = f"must be a share of the value from {LEAST_HALF_WIDTH:g} to below 1, got {until_half_width:g}"
        wrong.append(Mistake("until_half_width", text))
    refuse(wrong)


class _Goal:
    """Tells when the intervals are narrow enough."""

    def __init__(self, share: float | None, percent: float, traffic: Traffic, collector: Collector) -> None:
        self.share, self.percent, self.traffic, self.collector = share, percent, traffic, collector
        self.next, self.reached = FIRST_LOOK, False

    def ended(self, feed: Feed) -> str:
        """Say why serving ended: a key of `ENDS`."""
        if feed.full_at is not None:
            return "full"
        return "all" if self.share is None else "half width" if self.reached else "limit"

    def reached_by(self, done: int) -> bool:
        """Say whether the intervals of the requests so far are narrow enough."""
        if self.share is None or done < self.next or self.traffic.load is None:
            return self.reached
        self.next = int(done * NEXT_LOOK)
        latencies = self.collector.latencies
        warmup = latencies.count // 10 if latencies.exact else 0
        relaxation = relaxation_of(self.traffic, done, self.collector.busy)
        made = latencies.distribution(warmup, relaxation=relaxation, percentiles=[self.percent])
        both = (made.mean, made.percentiles[self.percent])
        self.reached = all(each.half_width is not None and each.half_width <= self.share * each.value for each in both)
        return self.reached


def _rows(asked: Requests, numbers: Ints, templates: Ints, tenants: Ints, threads: Ints, table: Ints) -> list[Row]:
    jobs, names = asked.scenario.jobs, [name for name, _ in asked.tenants]
    own = [jobs[template] for template in templates.tolist()]
    whose = [names[tenant] for tenant in tenants.tolist()]
    return [
        Row(number, job.name, core, thread, arrived, start, finish, job.steps, tenant)
        for number, job, tenant, thread, (core, _, start, finish, arrived, *_) in zip(
            numbers.tolist(), own, whose, threads.tolist(), table.tolist(), strict=True
        )
    ]


def serve_on_horizon(
    scenario: Path | Mapping[str, Any],
    requests: int,
    overrides: Sequence[str] = (),
    percentiles: Sequence[float] = PERCENTILES,
    *,
    until_half_width: float | None = None,
    most_requests: int | None = None,
) -> Served:
    """Serve the first `requests` of all entries together: each process of arrivals goes on until the last of them."""
    most = requests if until_half_width is None else max(requests, most_requests or requests)
    check_wanted(percentiles, until_half_width)
    return serve_loaded(
        load_requests(scenario, overrides, most), percentiles=percentiles, until_half_width=until_half_width
    )
