"""How many requests a machine can bear: many simulations at rates that a bisection chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lstmsim.api import run, serving
from lstmsim.loading import Path, load_scenario
from lstmsim.serving.saturation import Saturation, highest_rate, most_runs

__all__ = ["saturate"]


def saturate(
    scenario: Path | Mapping[str, Any],
    bound_ms: float,
    *,
    low: float | None = None,
    high: float | None = None,
    tolerance: float = 0.01,
    overrides: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Saturation:
    """The highest rate of requests per second at which the p99 latency of a scenario is at most `bound_ms`.

    Jobs with arrivals of kind poisson or bursty change their rates together. A rate at which more than 1 % of the
    requests are turned away keeps no bound. `low` and `high`: a tenth and ten times
    the scenario's own rate unless given. `progress` is called with runs done and at most to come.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 200, "arrival": arrival}]
    >>> saturate({"chip": "column-npu-16k", "jobs": jobs}, 0.002, tolerance=0.2).rate > 1e5
    True
    """
    from lstmsim.formats.rates import rate_overrides, rates_of

    load_scenario(scenario, overrides)
    rates = rates_of(scenario, overrides)
    own = sum(rates.values())
    low, high = own / 10 if low is None else low, own * 10 if high is None else high
    done = 0

    def p99_and_away(rate: float) -> tuple[float, float]:
        nonlocal done
        found = serving(run(scenario, overrides=[*overrides, *rate_overrides(rates, rate)]))
        done += 1
        if progress is not None:
            progress(done, most_runs(low, high, tolerance))
        away = found.turned_away / (found.turned_away + found.requests)
        return found.latency.p99.value / found.frequency_mhz / 1000, away

    return highest_rate(p99_and_away, low, high, bound_ms, tolerance)
