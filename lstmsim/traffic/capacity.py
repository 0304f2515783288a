"""The load of a machine at any rate of a scenario's random arrivals, and the rate of any load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.rates import rate_overrides, rates_of
from lstmsim.loading import Path
from lstmsim.traffic.horizon import serve_on_horizon

__all__ = ["Capacity", "capacity_of"]

#: Requests of the two runs whose load is read; their latencies are not.
_FEW = 100


@dataclass(frozen=True)
class Capacity:
    """Parts of a load that grow with the rate: `fixed[name] + per_request[name] * rate` of what the machine can do.

    Rates are the sum of those that stand in the scenario, in requests per second (of `bursty` arrivals: while on);
    `fixed` is the work of all other arrivals. `own_rate`: the scenario's. `not_counted`: what else limits the machine.

    >>> found = Capacity({"PE arrays": 0.2}, {"PE arrays": 0.001}, own_rate=100.0)
    >>> round(found.load(300), 3), found.rate(1.0)
    (0.5, 800.0)
    """

    fixed: Mapping[str, float]
    per_request: Mapping[str, float]
    own_rate: float
    not_counted: tuple[str, ...] = ()

    def parts(self, rate: float) -> dict[str, float]:
        """Work that comes at a rate over what the machine can do, for each of its resources."""
        return {name: self.fixed[name] + each * rate for name, each in self.per_request.items()}

    def load(self, rate: float) -> float:
        """The offered load at a rate: the largest part."""
        return max(self.parts(rate).values())

    def rate(self, load: float) -> float:
        """The rate at which the offered load is `load`; `InputError` if it is more than that without these arrivals."""
        if max(self.fixed.values()) >= load:
            text = f"arrivals without a rate are a load of {max(self.fixed.values()):.3g} by themselves"
            raise InputError(Mistake(f"load {load:g}", f"{text}: expected more"))
        return min((load - self.fixed[name]) / each for name, each in self.per_request.items() if each > 0)

    @property
    def bound_per_second(self) -> float:
        """The rate at which the machine has no time left: no longer run can keep up with more."""
        return self.rate(1.0)


def capacity_of(scenario: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Capacity:
    """How the offered load of a scenario grows with the rates of its poisson and bursty arrivals, each in its share.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-512", "steps": 20, "arrival": arrival}]
    >>> found = capacity_of({"chip": "column-npu-64k", "jobs": jobs})
    >>> round(found.load(found.bound_per_second), 6), round(found.load(found.bound_per_second / 2), 6)
    (1.0, 0.5)
    """
    rates = rates_of(scenario, overrides)
    own = sum(rates.values())
    loads = []
    for rate in (own, 2 * own):
        found = serve_on_horizon(scenario, _FEW, [*overrides, *rate_overrides(rates, rate)]).load
        if found is None:
            raise InputError(Mistake("jobs", "the load of these arrivals is not known"))
        loads.append(found)
    one, two = loads
    slopes = {name: (two.parts[name] - part) / own for name, part in one.parts.items()}
    # A difference of equal parts may leave a last bit.
    slopes = {name: each if each * own > 1e-9 else 0.0 for name, each in slopes.items()}
    fixed = {name: max(0.0, part - slopes[name] * own) for name, part in one.parts.items()}
    return Capacity(fixed, slopes, own, one.not_counted)
