"""The rates of a scenario's random arrivals, and the overrides that change all of them together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.left_out import left_out
from lstmsim.files.scenario.scenario_file import open_scenario
from lstmsim.files.yaml.overrides import apply_overrides

__all__ = ["processes_of", "rate_overrides", "rates_of"]

#: The key of the rate in each kind of arrivals that has one.
_KEYS = {"poisson": "rate_per_second", "bursty": "on_rate_per_second"}


def rates_of(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> dict[str, float]:
    """Give the rates in a scenario without mistakes: path -> requests per second.

    source: file of the scenario, or its data.
    overrides: texts `PATH=VALUE`.
    `InputError` if the scenario has no rates.

    >>> job = {"model": "lstm-512", "count": 9, "arrival": {"kind": "poisson", "rate_per_second": 500}}
    >>> rates_of({"chip": "column-npu-64k", "jobs": [{"model": "lstm-256"}, job]})
    {'jobs.1.arrival.rate_per_second': 500.0}
    """
    rates = {}
    for index, arrival in processes_of(source, overrides).items():
        key = _KEYS.get(str(arrival.get("kind")))
        if key and isinstance(arrival.get(key), int | float):
            rates[f"jobs.{index}.arrival.{key}"] = float(arrival[key])
    if not rates:
        text = "no job comes at a rate: expected an arrival of kind poisson or bursty"
        raise InputError(Mistake("jobs", text))
    return rates


def processes_of(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()
) -> dict[int, Mapping[str, Any]]:
    """Give the processes and files of arrivals of a scenario without mistakes: number of a job entry -> its keys.

    source: file of the scenario, or its data.
    overrides: texts `PATH=VALUE`.

    >>> job = {"model": "lstm-512", "count": 9, "arrival": {"kind": "fixed", "interval_cycles": 500}}
    >>> processes_of({"chip": "column-npu-64k", "jobs": [{"model": "lstm-256"}, job]})
    {1: {'kind': 'fixed', 'interval_cycles': 500}}
    """
    document, _ = open_scenario(source)
    apply_overrides(document, [each for each in overrides if each.startswith("jobs.")], lambda path: True, left_out)
    jobs = document.data.get("jobs")
    entries = enumerate(jobs if isinstance(jobs, list) else [])
    arrivals = {index: job.get("arrival") for index, job in entries if isinstance(job, dict)}
    return {index: arrival for index, arrival in arrivals.items() if isinstance(arrival, dict)}


def rate_overrides(rates: Mapping[str, float], rate: float) -> list[str]:
    """Make overrides that bring the sum of the rates to `rate`; each rate keeps its share.

    rates: path -> requests per second.
    rate: requests per second.

    >>> rate_overrides({"jobs.0.arrival.rate_per_second": 100.0, "jobs.1.arrival.rate_per_second": 300.0}, 40)
    ['jobs.0.arrival.rate_per_second=10.0', 'jobs.1.arrival.rate_per_second=30.0']
    """
    total = sum(rates.values())
    return [f"{path}={value / total * rate!r}" for path, value in rates.items()]
