"""So many requests of a scenario over one horizon that all its entries have in common, with preemption or without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.api import run, serving
from lstmsim.formats.rates import processes_of
from lstmsim.formats.requests import load_requests
from lstmsim.loading import Path
from lstmsim.serving.latencies import PERCENTILES
from lstmsim.serving.result import Serving
from lstmsim.traffic.stream import serve

__all__ = ["MOST_SIMULATED", "serve_on_horizon"]

#: Most requests where a simulation of all of them is needed, which keeps every operation of a preempted job.
MOST_SIMULATED = 20_000


def serve_on_horizon(
    scenario: Path | Mapping[str, Any],
    requests: int,
    overrides: Sequence[str] = (),
    percentiles: Sequence[float] = PERCENTILES,
) -> Serving:
    """Serve the first `requests` of all entries together: each process of arrivals goes on until the last of them.

    A stream of requests where that is possible (`lstmsim.serve`). With preemption it is a simulation of as many jobs of
    each entry as come within that horizon, one where none does. `InputError` for clients who wait for answers.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 7, "arrival": arrival, "priority": at} for at in (0, 1)]
    >>> chip = {"chip": "column-npu-16k", "dispatch": "priority", "preemption": True}
    >>> serve_on_horizon(chip | {"jobs": jobs}, 300).requests
    300
    """
    drawn = load_requests(scenario, overrides, requests)
    if not any(job.preempts for job in drawn.scenario.jobs):
        return serve(scenario, requests=requests, overrides=overrides, percentiles=percentiles).serving
    came = Counter(each.entry for each in drawn.coming)
    counts = [f"jobs.{index}.count={max(1, came[index])}" for index in processes_of(scenario, overrides)]
    return serving(run(scenario, overrides=[*overrides, *counts]), percentiles=percentiles)
