"""Tenants that share nothing of a chip have verdicts and intervals of their own."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim
from lstmsim.studies.simulate.run import run, serving

MANY = 1000
_JOB = {"model": "lstm-256", "steps": 1, "count": MANY}


def scenario(core: int) -> dict[str, Any]:
    """A tenant with time to spare on core 0, and one that overloads `core`."""
    calm = _JOB | {"name": "calm", "core": 0, "arrival": {"kind": "poisson", "rate_per_second": 1_000_000}}
    flood = _JOB | {"name": "flood", "core": core, "steps": 10, "count": 4 * MANY}
    flood["arrival"] = {"kind": "poisson", "rate_per_second": 4_000_000}
    return {"chip": "column-npu-4x16k", "jobs": [calm, flood]}


@pytest.fixture(scope="module")
def apart() -> Any:
    return serving(run(scenario(1)))


@pytest.mark.slow
def test_an_overloaded_tenant_elsewhere_takes_no_interval_away(apart: Any) -> None:
    calm, flood = apart.tenants["calm"], apart.tenants["flood"]
    assert apart.verdict == "unstable"
    assert (calm.verdict, flood.verdict) == ("settled", "unstable")
    assert calm.latency.mean.half_width is not None
    assert flood.latency.mean.half_width is None
    assert "settled: calm; unstable: flood" in " ".join(apart.to_text().split())


def test_the_interval_is_that_of_the_tenant_alone(apart: Any) -> None:
    own = serving(run(scenario(1) | {"jobs": scenario(1)["jobs"][:1]}))
    assert apart.tenants["calm"].latency == own.latency


def test_serve_says_the_same(apart: Any) -> None:
    made = lstmsim.serve(scenario(1)).serving
    assert made.tenants["calm"].verdict == "settled"
    assert made.tenants["calm"].latency.mean.half_width is not None


@pytest.mark.slow
def test_on_the_same_core_nobody_settles() -> None:
    made = serving(run(scenario(0)))
    assert {each.verdict for each in made.tenants.values()} == {"unstable"}
    assert made.tenants["calm"].latency.mean.half_width is None
