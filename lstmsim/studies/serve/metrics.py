"""The metrics of a run, gathered while its requests finish, as they come or from the report of a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from lstmsim.analysis.report import JobReport, Rejected, Report
from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals
from lstmsim.studies.serve.demands import Alones
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.programs import servers_of
from lstmsim.studies.serve.result import ClosedWindow, Entry, Little, Serving
from lstmsim.studies.serve.tenants import NEVER, Accounts, Ints, Known, Rows, Sharing
from lstmsim.studies.serve.together import Together
from lstmsim.traffic.arrivals import MAX_CYCLE, positive
from lstmsim.traffic.intervals import Interval, Warmup, warmup_of
from lstmsim.traffic.latencies import KEPT, PERCENTILES, Distribution, Series, no_times, sum_of
from lstmsim.traffic.load import Round, Traffic, relaxation_of, verdict_of
from lstmsim.traffic.population import Past
from lstmsim.traffic.rates import Rates, Span, level_interval, no_surer, relaxation_in, unless_sure


def check_times(number: Ints, arrival: Ints, start: Ints, finish: Ints, before: tuple[int, int]) -> None:
    """Raise `InputError` for the first request whose times cannot be true."""
    following, last_finish = before
    earlier = np.concatenate([[last_finish], finish[:-1]])
    for wrong, sentence in (
        ((number < following), "comes twice (or has a number below 0)"),
        ((arrival < 0) | (finish > MAX_CYCLE), f"must lie between cycles 0 and {MAX_CYCLE}"),
        (start < arrival, "starts before it arrives"),
        (finish < start, "finishes before it starts"),
        (finish < earlier, "finishes before the one that came before it; they must come in the order of finishes"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            cycles = f"arrival {arrival[at]}, start {start[at]}, finish {finish[at]}"
            raise InputError(Mistake(f"request {number[at]}", f"{sentence}; {cycles}"))


class Collector:
    """Gathers finished requests; `result` gives their figures.

    servers: number of requests that can run at once, for the utilization.
    entries: the tenants in the order in which they are listed.
    warmup: number of the first finishes that are left out of the latencies; None: a tenth of all (of the first `kept`,
        if there are more than can be kept).
    kept: number of latencies that are kept one by one.
    window: of a closed loop, the part of the run that counts.
    coarse: the coarse-grained cores that have several threads, by number.
    `InputError` for a clock or servers not above 0, and for a warm-up that does not fit into `kept`.
    """

    def __init__(
        self,
        frequency_mhz: float,
        servers: int,
        entries: Sequence[Entry],
        *,
        warmup: int | None = None,
        kept: int = KEPT,
        window: ClosedWindow | None = None,
        coarse: Mapping[int, int] | None = None,
    ) -> None:
        positive("chip", frequency_mhz=frequency_mhz, servers=servers)
        if kept < 1 or (warmup is not None and not 0 <= warmup < kept):
            text = f"must be from 0 to less than the latencies kept ({kept}), got {warmup}"
            raise InputError(Mistake("warmup", text))
        self.frequency_mhz, self.servers, self.kept = frequency_mhz, servers, kept
        self._given = warmup
        self._warmup: Warmup | None = None
        #: Latencies of all requests so far, and their waits.
        self.latencies, self._wait = Series(kept), Series(kept)
        self._past = Past()
        self._requests = self._away = self._misses = self._sojourn = self._waited = self._taken = 0
        self._taken_inside = 0
        self._last_finish, self._squares = 0, 0.0
        self._done = False
        self._window = window
        self._accounts, self._sharing = Accounts(entries, kept, window), Sharing(coarse or {})

    def pause(self, pauses: Ints) -> None:
        """Move requests from running to waiting while they are paused, before `take` takes these requests."""
        paused, resumed, servers = pauses
        one, length = np.ones(len(paused), dtype=np.int64), int((resumed - paused).sum())
        self._waited += length
        self._taken -= int(((resumed - paused) * servers).sum())
        self._taken_inside -= self._inside(paused, resumed, servers)
        gives_up = np.stack([paused, one, -one, -servers])
        goes_on = np.stack([resumed, -one, one, servers])
        self._past.change(np.concatenate([gives_up, goes_on], axis=1))

    def hold(self, start: Ints, end: Ints, servers: Ints | int = 1) -> None:
        """Count threads that batches had, before `take` takes their members, which count none."""
        service, none = (end - start) * servers, np.zeros(len(start), dtype=np.int64)
        self._taken += sum_of(service)
        self._taken_inside += self._inside(start, end, servers)
        self._squares += float((service.astype(np.float64) ** 2).sum())
        taken = none + servers
        begins, ends = np.stack([start, none, none, taken]), np.stack([end, none, none, -taken])
        self._past.change(np.concatenate([begins, ends], axis=1))

    def _inside(self, start: Ints, end: Ints, servers: Ints | int) -> int:
        """Thread cycles between these that lie in the window of a closed loop; 0 without one."""
        if self._window is None:
            return 0
        since, until = (np.clip(each, self._window.start_cycle, self._window.end_cycle) for each in (start, end))
        return int(((until - since) * servers).sum())

    def take(self, number: Ints, rows: Rows, tenants: Ints) -> None:
        """Take the requests that finish next."""
        arrival, start, finish, due, servers = rows[:5]
        if self._done:
            raise InputError(Mistake("requests", "the result has been taken, nothing can be added any more"))
        if not len(number):
            return
        check_times(number, arrival, start, finish, (self._past.next, self._last_finish))
        latency, wait, served = finish - arrival, start - arrival, rows.served
        self._requests += int(served.sum())
        self._away += int((~served).sum())
        self._misses += int(((finish > due) & served).sum())
        self._sojourn += sum_of(latency)
        self._waited += sum_of(wait)
        service = (finish - start) * servers
        self._taken += sum_of(service)
        self._taken_inside += self._inside(start, finish, servers)
        self._squares += float((service.astype(np.float64) ** 2).sum())
        self._last_finish = int(finish[-1])
        self._accounts.take(tenants, rows)
        self._sharing.take(tenants, rows)
        counts = served if self._window is None else served & (finish <= self._window.end_cycle)
        self._keep(latency[counts], wait[counts])
        none, one = np.zeros(len(number), dtype=np.int64), np.ones(len(number), dtype=np.int64)
        times, waiting = np.concatenate([arrival, start, finish]), np.concatenate([one, -one, none])
        runs = served.astype(np.int64)
        running, taken = np.concatenate([none, runs, -runs]), np.concatenate([none, servers, -servers])
        self._past.change(np.stack([times, waiting, running, taken]))
        self._past.settle(np.stack([number, arrival]))

    def _keep(self, latency: Ints, wait: Ints) -> None:
        """Keep latencies and waits one by one, or put them into histograms once they are too many."""
        room = max(0, self.kept - self.latencies.count) if self.latencies.exact else len(latency)
        self.latencies.add(latency[:room])
        self._wait.add(wait[:room])
        if room < len(latency):
            self._warmup = warmup_of(self.latencies.count, self._given)
            for series, rest in ((self.latencies, latency[room:]), (self._wait, wait[room:])):
                series.summarize(self._warmup.requests)
                series.add(rest)

    def _left_out(self) -> Warmup:
        warmup = self._warmup or warmup_of(self.latencies.count, self._given)
        if self.latencies.exact and warmup.requests >= self.latencies.count > 0:
            text = f"leaves out {warmup.requests} requests of {self.latencies.count}"
            raise InputError(Mistake("warmup", f"{text}, expected at least one to remain"))
        return warmup

    @property
    def busy(self) -> float:
        """The share of time in which threads were taken, up to the last finish so far."""
        span = self._last_finish - self._past.population.first_cycle
        return self._taken / (self.servers * span) if span > 0 else 0.0

    @property
    def _span(self) -> Span:
        """The part of the run that rates are of."""
        if self._window is not None:
            return Span(self._window.start_cycle, self._window.end_cycle, self.frequency_mhz)
        return Span(self._past.population.first_cycle, self._last_finish, self.frequency_mhz)

    def _utilization(self, latency: Distribution | None, taken: float) -> Interval:
        """The share of time in which threads are taken; `latency`: None where the queue's memory is unknown."""
        span, relaxation = self._span, relaxation_in(latency)
        windows = self._past.population.windows[:-1]
        inside = [each for each in windows if span.start <= each.start_cycle <= span.end - each.width_cycles]
        requests = self._requests if self._window is None else sum(each.finished for each in inside)
        parts = [each.taken / self.servers for each in inside]
        return unless_sure(level_interval(taken, parts, 1.0, requests, relaxation), requests, relaxation)

    def _rates(self, latency: Distribution | None, taken: Interval, alike: bool) -> Rates:
        """Rates of all tenants together; `latency`: None where it is not known how long the queue remembers."""
        rates = replace(self._accounts.rates(self._span, latency), utilization=taken)
        return no_surer(rates, taken, self._span.seconds, alike=alike) if self._away or self._window else rates

    @property
    def _spread(self) -> float:
        """The squared coefficient of variation of services."""
        service = self._taken / max(1, self._requests)
        return max(0.0, self._squares / self._requests / service**2 - 1) if service else 0.0

    def _relaxation(self, traffic: Traffic, taken: float) -> float | None:
        """About how many served requests pass until the queue has forgotten its past: fewer than come in that time."""
        came = self._requests + self._away
        relaxation = relaxation_of(traffic, came, taken, Round(self._accounts.round(), self._spread))
        return None if relaxation is None else max(1.0, relaxation * self._requests / came)

    def result(self, coming: Traffic, percentiles: Sequence[float] = PERCENTILES, *, cut: bool = False) -> Serving:
        """Give the figures of all requests; nothing can be added after that."""
        if not self._requests + self._away:
            raise InputError(Mistake("requests", "none has finished, expected at least one that does"))
        swept, warmup, self._done = self._past.finish(), self._left_out(), True
        span, came = swept.span_cycles, self._requests + self._away
        taken = self._taken / (self.servers * span) if span else 0.0
        if self._window is not None and self._window.span_cycles:
            taken = self._taken_inside / (self.servers * self._window.span_cycles)
        relaxation = inf if cut or not self._requests else self._relaxation(coming, taken)
        latency, wait = (
            series.distribution(warmup.requests, relaxation=relaxation, percentiles=percentiles)
            if series.count
            else no_times(percentiles)
            for series in (self.latencies, self._wait)
        )
        grows = relaxation is not None and self.latencies.grows(warmup.requests, relaxation)
        verdict = verdict_of(coming, grows=grows, known=latency.mean.half_width is not None, cut=cut)
        told = None if relaxation is None else latency
        known = Known(coming, relaxation, taken, verdict, self._utilization(told, taken), self._spread < 1e-9)
        return Serving(
            frequency_mhz=self.frequency_mhz,
            servers=self.servers,
            requests=self._requests,
            misses=self._misses,
            first_arrival=swept.first_cycle,
            last_finish=self._last_finish,
            service_cycles=self._taken,
            utilization=taken,
            warmup=warmup,
            latency=latency,
            wait=wait,
            little=Little(swept.waiting_area + swept.running_area, self._sojourn, came, span),
            little_waiting=Little(swept.waiting_area, self._waited, came, span),
            most_waiting=swept.most_waiting,
            most_inside=swept.most_inside,
            windows=swept.windows,
            tenants=self._accounts.tenants(self._span, (latency, wait), self._given, known, percentiles),
            models=self._accounts.models(),
            window=self._window,
            remarks=self._sharing.remarks(self._accounts.names),
            rejected=self._away,
            load=coming.load,
            verdict=verdict,
            rates=self._rates(told, known.taken, known.alike),
            relaxation=relaxation,
        )


#: Requests that are counted at a time.
_CHUNK = 4096


def served(
    scenario: Scenario,
    program: Program,
    report: Report,
    totals: Totals,
    *,
    slowdowns: bool = False,
    percentiles: Sequence[float] = PERCENTILES,
) -> Serving:
    """Give rates, latencies, queues, misses, offered load and verdict of a run; slowdowns simulate jobs alone, too."""
    entries, alones = entries_of(scenario.jobs), Alones(scenario.chip)
    both: list[JobReport | Rejected] = [*report.jobs, *report.rejected]
    came, most = sorted(both, key=lambda job: (job.arrival, job.number)), servers_of(scenario.chip, program)
    collector = Collector(
        report.frequency_mhz, most, entries, window=_window(scenario.jobs, came), coarse=coarse_cores(program)
    )
    tenants = {each.name: place for place, each in enumerate(entries)}
    # a job that has the whole chip takes the one thread that there is
    threads = {each.number: min(max(1, len(each.cores)), most) for each in report.jobs}
    together = Together(scenario.jobs, len(entries))
    for batch in report.batches:
        members, batching = np.array(batch.members), scenario.jobs[batch.members[0]].batching
        if batching is None:
            continue
        collector.hold(np.array([batch.start]), np.array([batch.finish]), threads[batch.members[0]])
        own = np.array([tenants[_tenant(scenario.jobs[number])] for number in batch.members])
        leads, since = np.full_like(members, members[0]), np.full_like(members, batch.start)
        together.add(leads, since, own, None if batching.in_rounds else members)
    # a batch takes its threads once, whoever is in it
    threads |= {number: 0 for number in threads if scenario.jobs[number].batching is not None}
    paused, gaps = Counter[int](), []
    for task, _, _, since, until, _ in totals.pauses.tolist():
        if task in threads:
            paused[task] += until - since
            gaps.append((since, until, threads[task]))
    collector.pause(np.array(gaps, dtype=np.int64).reshape(-1, 3).T)
    rows = []
    for rank, job in enumerate(came):
        asked = scenario.jobs[job.number]
        start, end, core = (job.at, job.at, -1) if isinstance(job, Rejected) else (job.start, job.finish, job.core)
        due = NEVER if asked.deadline is None else job.arrival + asked.deadline
        times = job.arrival, start, end, due, threads.get(job.number, 0)
        alone = alones(asked) if slowdowns else None
        cycles, stalls = (0, True) if alone is None else (alone.latency_cycles, alone.stalls)
        rows.append((rank, *times, cycles, core, stalls, paused[job.number], tenants[_tenant(asked)]))
    table = np.array(sorted(rows, key=lambda row: (row[3], row[0])), dtype=np.int64).T
    for part in np.split(table, range(_CHUNK, len(rows), _CHUNK), axis=1):
        collector.take(part[0], Rows(*part[1:-1]), part[-1])
    return with_batches(collector.result(traffic_of(scenario), percentiles), together)


def with_batches(serving: Serving, together: Together) -> Serving:
    """The figures with those of batches, of the whole and of each tenant."""
    whole, each = together.figures()
    names = list(serving.tenants)
    own = {names[number]: replace(serving.tenants[names[number]], batching=figures) for number, figures in each.items()}
    return replace(serving, batching=whole, tenants={**serving.tenants, **own})


def _tenant(job: Job) -> str:
    """The job's tenant; for a job that belongs to no entry of a scenario file, its model's name."""
    return job.tenant or job.model.name


def entries_of(jobs: Sequence[Job]) -> list[Entry]:
    """List the tenants of the jobs, in their order, with the number of clients of closed loops."""
    clients = Counter(_tenant(jobs[number]) for number in _last_ones(jobs))
    models = {_tenant(job): job.model.name for job in jobs}
    return [Entry(name, model, clients[name]) for name, model in models.items()]


def _last_ones(jobs: Sequence[Job]) -> list[int]:
    """The numbers of the jobs after which a client asks no more: one for each client.

    A tenant has clients if one of its jobs comes after another of its own.
    """
    followed = {job.after for job in jobs if job.after is not None and _tenant(jobs[job.after]) == _tenant(job)}
    closed = {_tenant(jobs[number]) for number in followed}
    return [number for number, job in enumerate(jobs) if number not in followed and _tenant(job) in closed]


def _window(jobs: Sequence[Job], came: Sequence[JobReport | Rejected]) -> ClosedWindow | None:
    """The part of the run in which all clients are active.

    It is None where there are no clients, or where a client leaves before anything has been served.
    """
    last = set(_last_ones(jobs))
    if not last:
        return None
    end = min(job.at if isinstance(job, Rejected) else job.finish for job in came if job.number in last)
    served = sorted(job.finish for job in came if isinstance(job, JobReport) and job.finish <= end)
    if not served:
        return None
    warmup = len(served) // 10
    start = served[warmup - 1] if warmup else min(job.arrival for job in came)
    return ClosedWindow(len(last), start, end)


def coarse_cores(program: Program) -> dict[int, int]:
    """Give how many threads each coarse-grained core has that has several, by the core's number."""
    own = [each for each in program.cores if not each.shared]
    return {
        number: core.contexts
        for number, core in enumerate(own)
        if core.accounted is not None and core.units[core.accounted].policy == "coarse" and core.contexts > 1
    }
