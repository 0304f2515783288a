"""Runs of so many requests of a scenario over one horizon that all its entries share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.files.scenario.requests import load_requests
from lstmsim.studies.serve.stream import Served, check_wanted, serve_loaded
from lstmsim.studies.shared.loading import Path
from lstmsim.traffic.latencies import PERCENTILES

__all__ = ["serve_on_horizon"]


def serve_on_horizon(
    scenario: Path | Mapping[str, Any],
    requests: int,
    overrides: Sequence[str] = (),
    percentiles: Sequence[float] = PERCENTILES,
    *,
    until_half_width: float | None = None,
    most_requests: int | None = None,
) -> Served:
    """Serve the first `requests` of all entries together: each process of arrivals goes on until the last of them.

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
    >>> serve_on_horizon(chip | {"jobs": jobs}, 300).serving.requests
    300
    """
    most = requests if until_half_width is None else max(requests, most_requests or requests)
    check_wanted(percentiles, until_half_width)
    return serve_loaded(
        load_requests(scenario, overrides, most), percentiles=percentiles, until_half_width=until_half_width
    )
