"""What serving the jobs of one run came to, with what was asked of the machine."""

from __future__ import annotations

from lstmsim.metrics.report import Report
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.serving.result import Serving
from lstmsim.serving.run_requests import collect
from lstmsim.traffic.offered import traffic_of
from lstmsim.workload.scenario import Scenario

__all__ = ["served"]


def served(scenario: Scenario, program: Program, report: Report, trace: Trace | None = None) -> Serving:
    """Latencies, intervals, offered load and verdict of a run; `trace`: of the run, None if no job was preempted.
    Without slowdowns, which need each job alone.

    >>> from lstmsim.api import run
    >>> arrival = {"kind": "poisson", "rate_per_second": 1e6}
    >>> jobs = [{"model": "lstm-512", "steps": 20, "count": 30, "arrival": arrival}]
    >>> result = run({"chip": "column-npu-64k", "jobs": jobs})
    >>> found = served(result.scenario, result.program, result.report)
    >>> found.verdict, found.load.offered > 1
    ('unstable', True)
    """
    pauses = None if trace is None else trace.pauses
    return collect(scenario, program, report, pauses, traffic=traffic_of(scenario))
