"""The serving figures of a simulated run, gathered from its report, with what was asked of the machine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.report import JobReport, Report, TurnedAway
from lstmsim.model.figures import Words
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals
from lstmsim.studies.serve.demands import Alones
from lstmsim.studies.serve.metrics import Collector
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.result import ClosedWindow, Entry, Serving
from lstmsim.studies.serve.tenants import Coarse
from lstmsim.traffic.latencies import PERCENTILES
from lstmsim.traffic.load import Traffic


def collect(
    scenario: Scenario,
    program: Program,
    report: Report,
    pauses: NDArray[np.int64] | None = None,
    alone: Sequence[tuple[int, bool]] | None = None,
    *,
    traffic: Traffic | None = None,
    percentiles: Sequence[float] = PERCENTILES,
) -> Serving:
    """Give rates, latencies, queues, misses and slowdowns, by tenant.

    pauses: as in `Trace.pauses`; None: no job was preempted.
    alone: of each job, its latency alone on the chip in cycles, and whether it ever stalls; None: unknown, and there
        are no slowdowns.
    traffic: None: unknown, and there is no load.
    """
    gaps: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for task, _, _, paused, resumed in [] if pauses is None else pauses.tolist():
        gaps[task].append((paused, resumed))
    came: list[JobReport | TurnedAway] = sorted(
        [*report.jobs, *report.turned_away], key=lambda job: (job.arrival, job.number)
    )
    rank = {job.number: place for place, job in enumerate(came)}
    collector = Collector(
        report.frequency_mhz,
        _threads(program),
        entries=entries_of(scenario.jobs),
        window=_window(scenario.jobs, came),
        coarse=coarse_cores(scenario.chip, program),
    )
    for job in sorted(came, key=lambda job: (_end(job), rank[job.number])):
        tenant = _tenant(scenario.jobs[job.number])
        cycles, stalls = (0, True) if alone is None else alone[job.number]
        if isinstance(job, TurnedAway):
            deadline = scenario.jobs[job.number].deadline
            due = None if deadline is None else job.arrival + deadline
            collector.turn_away(rank[job.number], job.arrival, job.at, tenant=tenant, due=due, alone=cycles)
            continue
        collector.add(
            rank[job.number],
            job.arrival,
            job.start,
            job.finish,
            tenant=tenant,
            due=None if job.deadline is None else job.arrival + job.deadline,
            servers=max(1, len(job.cores)),
            pauses=gaps[job.number],
            alone=cycles,
            core=job.core,
            stalls=stalls,
        )
    return collector.result(traffic=traffic, percentiles=percentiles)


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


def _window(jobs: Sequence[Job], came: Sequence[JobReport | TurnedAway]) -> ClosedWindow | None:
    """The part of the run in which all clients are active.

    It is None where there are no clients, or where a client leaves before anything has been served.
    """
    last = set(_last_ones(jobs))
    if not last:
        return None
    end = min(_end(job) for job in came if job.number in last)
    served = sorted(job.finish for job in came if isinstance(job, JobReport) and job.finish <= end)
    if not served:
        return None
    warmup = len(served) // 10
    start = served[warmup - 1] if warmup else min(job.arrival for job in came)
    return ClosedWindow(len(last), start, end)


def coarse_cores(chip: Chip, program: Program) -> dict[int, Coarse]:
    """Give the threads of each coarse-grained core that has several, by the core's number."""
    own = [each for each in program.cores if not each.shared]
    return {
        number: Coarse(core.contexts, figures.words.get("ready", Words()).remedy)
        for number, (core, figures) in enumerate(zip(own, chip.core_figures, strict=True))
        if core.accounted is not None and core.units[core.accounted].policy == "coarse" and core.contexts > 1
    }


def _end(job: JobReport | TurnedAway) -> int:
    """When the job left the system."""
    return job.at if isinstance(job, TurnedAway) else job.finish


def _threads(program: Program) -> int:
    """How many threads jobs run on; threads that only belong to a memory do not count."""
    return sum(core.contexts for core in program.cores if not core.shared)


def served(
    scenario: Scenario,
    program: Program,
    report: Report,
    totals: Totals | None = None,
    *,
    slowdowns: bool = False,
    percentiles: Sequence[float] = PERCENTILES,
) -> Serving:
    """Give latencies, intervals, offered load and verdict of a run.

    totals: of the run; None if no job was preempted.
    slowdowns: simulate each kind of job alone for the slowdowns, too.
    """
    alone = None
    if slowdowns:
        alones = Alones(scenario.chip)
        alone = [(each.latency_cycles, each.stalls) for each in map(alones, scenario.jobs)]
    traffic = traffic_of(scenario)
    pauses = None if totals is None else totals.pauses
    return collect(scenario, program, report, pauses, alone, traffic=traffic, percentiles=percentiles)
