"""The load of a machine at any rate of a scenario's random arrivals, and the rate of any load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.requests import load_requests, rate_overrides, rates_of
from lstmsim.model.scenario import DISPATCH
from lstmsim.studies.serve.offered import traffic_of
from lstmsim.studies.shared.loading import Path
from lstmsim.traffic.load import Load

#: The part of a load that is measured; the others hold for certain.
_MEASURED = "saturated"
#: Requests of a run, for whose load the measured part is as exact as it becomes.
_MANY = 10_000


@dataclass(frozen=True)
class Capacity:
    """How the parts of a load grow with the rate: `fixed[name] + per_request[name] * rate` of what the machine can do.

    Rates are the sum of the scenario's random rates, in requests per second (of `bursty` arrivals: while on).

    fixed: the work of all other arrivals, for each part.
    per_request: the work of one request per second, for each part.
    own_rate: the rate that the scenario states.
    not_counted: what comes but is in no part.

    >>> machine = Capacity({"PE arrays": 0.2}, {"PE arrays": 0.001}, own_rate=100.0)
    >>> round(machine.load(300), 3), machine.rate(1.0)
    (0.5, 800.0)
    """

    fixed: Mapping[str, float]
    per_request: Mapping[str, float]
    own_rate: float
    not_counted: tuple[str, ...] = ()

    def parts(self, rate: float) -> dict[str, float]:
        """Give the work that comes at a rate over what the machine can do, for each resource."""
        return {name: self.fixed[name] + each * rate for name, each in self.per_request.items()}

    def load(self, rate: float) -> float:
        """Give the offered load at a rate: the largest part."""
        return max(self.parts(rate).values())

    def rate(self, load: float) -> float:
        """Give the rate at which the offered load is `load`; `InputError` if the other arrivals alone are more than
        that."""
        return self._rate(load, self.per_request)

    @property
    def bound_per_second(self) -> float:
        """Give the rate at which a certain part is used up: no machine of this kind can keep up with more."""
        return self._rate(1.0, {name: each for name, each in self.per_request.items() if name != _MEASURED})

    @property
    def limits_per_second(self) -> dict[str, float]:
        """Give the rate at which each part of the load would be 1; parts that never reach 1 are left out."""
        return {name: self._rate(1.0, {name: each}) for name, each in self.per_request.items() if each > 0}

    def _rate(self, load: float, parts: Mapping[str, float]) -> float:
        least = max(self.fixed[name] for name in parts)
        if least >= load:
            text = f"arrivals without a rate are a load of {least:.3g} by themselves"
            raise InputError(Mistake(f"load {load:.3g}", f"{text}: expected more"))
        return min((load - self.fixed[name]) / each for name, each in parts.items() if each > 0)


def capacity_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Capacity:
    """Say how the offered load of a scenario grows with the rates of its poisson and bursty arrivals, each in its
    share.

    The answer is exact where all arrivals are of these kinds. Beside other arrivals the measured part is that of the
    scenario's own mix. What preemption adds is left out: it does not grow in proportion to the rate.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-512", "steps": 20, "arrival": arrival}]
    >>> machine = capacity_of({"chip": "column-npu-64k", "jobs": jobs})
    >>> round(machine.limits_per_second["PE arrays"], 6), machine.bound_per_second < 406_250
    (406250.0, True)
    """
    rates = rates_of(scenario, overrides)
    own = sum(rates.values())
    ranks = {DISPATCH[job.dispatch](job) for job in load_requests(scenario, overrides, 1).scenario.jobs if job.preempts}
    overrides = [*overrides, "preemption=false"]
    first, second = (load_of(scenario, [*overrides, *rate_overrides(rates, rate)], _MANY) for rate in (own, 2 * own))
    one, two = first.parts, second.parts
    slopes = {name: (two.get(name, part) - part) / own for name, part in one.items()}
    # A difference of equal parts may leave a last bit.
    slopes = {name: each if each * own > 1e-9 else 0.0 for name, each in slopes.items()}
    rest = {name: part - slopes[name] * own for name, part in one.items()}
    fixed = {name: each if each > 1e-9 else 0.0 for name, each in rest.items()}
    return Capacity(fixed, slopes, own, (*first.not_counted, *["what preemption costs"] * (len(ranks) > 1)))


def load_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str], requests: int) -> Load:
    """Say what so many requests of a scenario with these overrides ask of its chip."""
    load = traffic_of(load_requests(scenario, overrides, requests).scenario, requests).load
    if load is None:
        raise InputError(Mistake("jobs", "the load of these arrivals is not known"))
    return load
