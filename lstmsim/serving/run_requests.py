"""What serving the jobs of a run came to, gathered from its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.metrics.report import JobReport, Report, TurnedAway
from lstmsim.program.program import Program
from lstmsim.serving.latencies import PERCENTILES
from lstmsim.serving.metrics import Collector
from lstmsim.serving.result import Serving
from lstmsim.workload.scenario import Scenario

__all__ = ["collect"]


def collect(
    scenario: Scenario,
    program: Program,
    report: Report,
    pauses: NDArray[np.int64] | None = None,
    percentiles: Sequence[float] = PERCENTILES,
) -> Serving:
    """Rates, latencies, queues, misses and fairness between models; `pauses` as in `Trace.pauses` (None: no job was
    preempted)."""
    gaps: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for task, _, _, paused, resumed in [] if pauses is None else pauses.tolist():
        gaps[task].append((paused, resumed))
    came: list[JobReport | TurnedAway] = sorted(
        [*report.jobs, *report.turned_away], key=lambda job: (job.arrival, job.number)
    )
    rank = {job.number: place for place, job in enumerate(came)}
    collector = Collector(report.frequency_mhz, _threads(program))
    for job in sorted(came, key=lambda job: (_end(job), rank[job.number])):
        asked = scenario.jobs[job.number]
        tenant = asked.model.name
        if isinstance(job, TurnedAway):
            collector.turn_away(rank[job.number], job.arrival, job.at, tenant=tenant)
            continue
        due = None if job.deadline is None else job.arrival + job.deadline
        servers = max(1, len(job.cores))
        times = (job.arrival, job.start, job.finish)
        collector.add(rank[job.number], *times, tenant=tenant, due=due, servers=servers, pauses=gaps[job.number])
    return collector.result(percentiles=percentiles)


def _end(job: JobReport | TurnedAway) -> int:
    return job.at if isinstance(job, TurnedAway) else job.finish


def _threads(program: Program) -> int:
    """Threads that jobs run on; those of a memory only belong to them."""
    return sum(core.contexts for core in program.cores if not core.shared)
