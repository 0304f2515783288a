"""The serving figures of a simulated run, gathered from its report, with what was asked of the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.report import JobReport, Rejected, Report
from lstmsim.model.figures import Words
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals
from lstmsim.studies.serve.demands import Alones
from lstmsim.studies.serve.metrics import Collector
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.serve.result import ClosedWindow, Entry, Serving
from lstmsim.studies.serve.tenants import NEVER, Coarse, Rows
from lstmsim.traffic.latencies import PERCENTILES
from lstmsim.traffic.load import Traffic

#: Requests that are counted at a time.
_CHUNK = 4096


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
    """Give rates, latencies, queues, misses and slowdowns, by tenant."""
    entries = entries_of(scenario.jobs)
    both: list[JobReport | Rejected] = [*report.jobs, *report.turned_away]
    came = sorted(both, key=lambda job: (job.arrival, job.number))
    collector = Collector(
        report.frequency_mhz,
        threads_of(program),
        entries,
        window=_window(scenario.jobs, came),
        coarse=coarse_cores(scenario.chip, program),
    )
    threads = {job.number: max(1, len(job.cores)) for job in report.jobs}
    paused, gaps = Counter[int](), []
    for task, _, _, since, until in [] if pauses is None else pauses.tolist():
        if task in threads:
            paused[task] += until - since
            gaps.append((since, until, threads[task]))
    collector.pause(np.array(gaps, dtype=np.int64).reshape(-1, 3).T)
    tenants = {each.name: place for place, each in enumerate(entries)}
    rows = []
    for rank, job in enumerate(came):
        asked = scenario.jobs[job.number]
        start, end, core = (job.at, job.at, -1) if isinstance(job, Rejected) else (job.start, job.finish, job.core)
        due = NEVER if asked.deadline is None else job.arrival + asked.deadline
        times = job.arrival, start, end, due, threads.get(job.number, 0)
        cycles, stalls = (0, True) if alone is None else alone[job.number]
        rows.append((rank, *times, cycles, core, stalls, paused[job.number], tenants[_tenant(asked)]))
    table = np.array(sorted(rows, key=lambda row: (row[3], row[0])), dtype=np.int64).T
    for part in np.split(table, range(_CHUNK, len(rows), _CHUNK), axis=1):
        collector.take(part[0], Rows(*part[1:-1]), part[-1])
    return collector.result(traffic or Traffic(None), percentiles)


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


def _end(job: JobReport | Rejected) -> int:
    """When the job left the system."""
    return job.at if isinstance(job, Rejected) else job.finish


def threads_of(program: Program) -> int:
    """Count the threads on which jobs run; threads that only belong to a memory do not count."""
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
    """Give latencies, intervals, offered load and verdict of a run."""
    alone = None
    if slowdowns:
        alones = Alones(scenario.chip)
        alone = [(each.latency_cycles, each.stalls) for each in map(alones, scenario.jobs)]
    traffic = traffic_of(scenario)
    pauses = None if totals is None else totals.pauses
    return collect(scenario, program, report, pauses, alone, traffic=traffic, percentiles=percentiles)
