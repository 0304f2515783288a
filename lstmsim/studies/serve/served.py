"""What serving the jobs of one run came to, with what was asked of the machine."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.analysis.report import Report
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.studies.serve.alone import Alones
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.traffic.latencies import PERCENTILES
from lstmsim.traffic.result import Serving
from lstmsim.traffic.run_requests import collect

__all__ = ["served"]


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

    scenario, program, report: of the run.
    totals: of the run; None if no job was preempted.
    slowdowns: simulate each kind of job alone for the slowdowns, too.
    percentiles: of latencies and waits.

    >>> from lstmsim.studies.simulate.run import run
    >>> arrival = {"kind": "poisson", "rate_per_second": 1e6}
    >>> jobs = [{"model": "lstm-512", "steps": 20, "count": 30, "arrival": arrival}]
    >>> result = run({"chip": "column-npu-64k", "jobs": jobs})
    >>> figures = served(result.scenario, result.program, result.report)
    >>> figures.verdict, figures.load.offered > 1
    ('unstable', True)
    """
    alone = None
    if slowdowns:
        alones = Alones(scenario.chip)
        alone = [(each.latency_cycles, each.stalls) for each in map(alones, scenario.jobs)]
    traffic = traffic_of(scenario)
    pauses = None if totals is None else totals.pauses
    return collect(scenario, program, report, pauses, alone, traffic=traffic, percentiles=percentiles)
