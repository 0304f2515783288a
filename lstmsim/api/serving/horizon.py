"""Runs of so many requests of a scenario over one horizon that all its entries share, with or without preemption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lstmsim.api.loading import Path
from lstmsim.api.run import run, serving
from lstmsim.api.serving.stream import check_wanted, serve_loaded
from lstmsim.formats.scenario.rates import processes_of
from lstmsim.formats.scenario.requests import Requests, load_requests
from lstmsim.traffic.latencies import PERCENTILES, Distribution
from lstmsim.traffic.result import Serving

__all__ = ["MOST_SIMULATED", "serve_on_horizon"]

#: Most requests where a simulation of all of them is needed, which keeps every operation of a preempted job.
MOST_SIMULATED = 20_000
#: A simulation that is too short is made again with so many times the requests.
_TIMES = 4


def serve_on_horizon(
    scenario: Path | Mapping[str, Any],
    requests: int,
    overrides: Sequence[str] = (),
    percentiles: Sequence[float] = PERCENTILES,
    *,
    until_half_width: float | None = None,
    most_requests: int | None = None,
) -> Serving:
    """Serve the first `requests` of all entries together: each process of arrivals goes on until the last of them.

    Where that is possible it is a stream of requests (`lstmsim.serve`). With preemption it is a simulation of as many
    jobs of each entry as come within that horizon: one job where none comes, and `MOST_SIMULATED` jobs at most.

    scenario: a path or a mapping.
    requests: how many in all.
    overrides: texts like `"chip.cores.0.ep=16"`.
    percentiles: of the latencies.
    until_half_width: go on until the intervals of the mean latency and of the last of `percentiles` are within that
    share of their values.
    most_requests: with `until_half_width`, the most requests.

    `InputError` for clients who wait for answers.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 7, "arrival": arrival, "priority": at} for at in (0, 1)]
    >>> chip = {"chip": "column-npu-16k", "dispatch": "priority", "preemption": True}
    >>> serve_on_horizon(chip | {"jobs": jobs}, 300).requests
    300
    """
    most = requests if until_half_width is None else max(requests, most_requests or requests)
    drawn = load_requests(scenario, overrides, most)
    if not any(job.preempts for job in drawn.scenario.jobs):
        check_wanted(percentiles, until_half_width)
        return serve_loaded(drawn, percentiles=percentiles, until_half_width=until_half_width).serving
    size, most = min(requests, MOST_SIMULATED), min(most, MOST_SIMULATED)
    while True:
        made = _simulated(scenario, load_requests(scenario, overrides, size), overrides, percentiles)
        if size >= most or until_half_width is None or _narrow(made.latency, percentiles[-1], until_half_width):
            return made
        size = min(most, size * _TIMES)


def _simulated(
    scenario: Path | Mapping[str, Any], drawn: Requests, overrides: Sequence[str], percentiles: Sequence[float]
) -> Serving:
    entries = np.array(drawn.entries)
    came = Counter(number for batch in drawn.coming for number in entries[batch.template].tolist())
    counts = [f"jobs.{index}.count={max(1, came[index])}" for index in processes_of(scenario, overrides)]
    return serving(run(scenario, overrides=[*overrides, *counts]), percentiles=percentiles)


def _narrow(latency: Distribution, percent: float, share: float) -> bool:
    pair = (latency.mean, latency.percentiles[percent])
    return all(each.half_width is not None and each.half_width <= share * each.value for each in pair)
