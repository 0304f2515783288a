"""Rates of a scenario's arrivals: which there are, and that all change together, each in its share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.requests import rate_overrides, rates_of
from lstmsim.files.scenario.scenario_file import load_scenario

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16}]}
JOB = {"model": {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}, "steps": 1}
POISSON = {"kind": "poisson", "rate_per_second": 300.0}
#: On for a quarter of an hour: within a test, a Poisson process of that rate.
BURSTY = {"kind": "bursty", "on_rate_per_second": 100.0, "mean_on_ms": 1e6, "mean_off_ms": 1000.0}


def scenario(*arrivals: Any) -> dict[str, Any]:
    return {"chip": CHIP, "jobs": [{**JOB, "count": 9, "arrival": each} for each in arrivals]}


def test_the_rate_is_the_sum_of_both_kinds_each_in_its_share() -> None:
    """docs/serving.md: the rates of all `poisson` and `bursty` entries in the long run."""
    data = scenario(POISSON, {"kind": "fixed", "interval_cycles": 7}, BURSTY)
    rates = rates_of(data)
    assert rates.stated == {"jobs.0.arrival.rate_per_second": 300.0, "jobs.2.arrival.on_rate_per_second": 100.0}
    assert rates.per_second == pytest.approx(300 + 100 * 1e6 / 1_001_000)
    assert rates.peak_ratio == pytest.approx(400 / rates.per_second)
    faster = rates_of(data, rate_overrides(rates, 3 * rates.per_second))
    assert list(faster.stated.values()) == pytest.approx([900.0, 300.0])
    assert faster.per_second == pytest.approx(3 * rates.per_second)


@pytest.mark.parametrize("change", [{"mean_on_ms": 0}, {"mean_off_ms": "long"}, {"mean_on_ms": None}])
def test_wrong_keys_of_bursts_are_left_to_the_check_of_the_scenario(change: dict[str, Any]) -> None:
    assert rates_of(scenario(BURSTY | change)).per_second == 100.0


@pytest.mark.parametrize("arrival", [POISSON, BURSTY], ids=["poisson", "bursty"])
def test_ten_times_the_rate_is_a_tenth_of_every_gap(arrival: dict[str, Any]) -> None:
    def gaps(*overrides: str) -> list[int]:
        jobs = load_scenario(data, overrides).jobs
        return [two.arrival - one.arrival for one, two in pairwise(jobs)]

    data = scenario(arrival)
    rates = rates_of(data)
    faster = gaps(*rate_overrides(rates, 10 * rates.per_second))
    assert [10 * gap for gap in faster] == pytest.approx(gaps(), abs=20)
    assert min(gaps()) > 2000


def test_a_scenario_without_a_rate_says_what_was_expected() -> None:
    with pytest.raises(InputError, match="no job comes at a rate: expected an arrival of kind poisson or bursty"):
        rates_of(scenario({"kind": "fixed", "interval_cycles": 7}, [1] * 9))
