"""Designs by the requests per second that they bear, against searches of every design, and bounds against loads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.design.bounds.jobs import most_per_second
from lstmsim.studies.design.rates import Question, Rates
from lstmsim.studies.design.space import Broken, Space, space_of
from lstmsim.studies.serve import offered
from lstmsim.studies.serve.offered import capacity_of
from lstmsim.studies.serve.saturate import judge_rate
from lstmsim.studies.serve.saturation import Saturation
from lstmsim.studies.shared.loading import load_scenario

C = "chip.cores.0."
JOBS: list[dict[str, Any]] = [
    {"name": "a", "model": "lstm-256", "steps": 2, "arrival": {"kind": "poisson", "rate_per_second": 2e5}},
    {"name": "b", "model": "gru-512", "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e5}},
]
SCENARIO: dict[str, Any] = {"chip": "column-npu-16k", "jobs": JOBS}
AXES = {C + "ep": [8, 16], C + "vp": [64, 128, 1024]}
BOUND, UNTIL = 0.004, 1000


@pytest.fixture(scope="module", autouse=True)
def short_measurements() -> Iterator[None]:
    """Loads are measured on fewer requests: answers are compared here, whatever they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offered, "MOST_MEASURED", 500)
        yield


def asked(**more: Any) -> dict[str, Any]:
    return {"axes": AXES, "bound_ms": BOUND, "percentile": 50, "until": UNTIL, "jobs": 1, **more}


def most_of(space: Space, scenario: Any, bound_ms: float, percentile: int) -> dict[int, float]:
    """The bound on the rate of each design."""
    rates = Rates(Question(scenario, (), bound_ms, percentile, UNTIL, None, True), space, None, 1)
    most: dict[int, float] = {}
    for box in space.boxes():
        if not isinstance(box, Broken):
            most |= zip(box.points.tolist(), np.broadcast_to(rates.most(box), box.points.shape).tolist(), strict=True)
    return most


def searched(space: Space) -> list[Saturation]:
    return [
        lstmsim.saturate(SCENARIO, BOUND, percentile=50, most_requests=UNTIL, overrides=space.settings(point))
        for point in range(space.size)
    ]


def test_jobs_of_a_rate_of_their_own_leave_open_how_many_requests_are_late() -> None:
    """A job that is always late bears no rate alone; among others of an unknown number it may be one of the few."""
    loaded = load_scenario(SCENARIO, ())
    boxes = [box for box in space_of(SCENARIO, AXES, []).boxes() if not isinstance(box, Broken)]
    late = [(loaded.jobs[0], 1.0)]
    for box in boxes:
        assert not most_per_second(box, late, 1e-6, 99).any()
        assert most_per_second(box, [*late, (loaded.jobs[1], 0.0)], 1e-6, 99).all()


@pytest.mark.slow
def test_the_best_bears_the_most_and_those_that_may_bear_more_are_named() -> None:
    found = lstmsim.design(SCENARIO, "none", maximise=["requests_per_second"], **asked())
    space = space_of(SCENARIO, AXES, [])
    truth = searched(space)
    most = most_of(space, SCENARIO, BOUND, 50)
    for point, each in enumerate(truth):
        assert each.bound_per_second is not None
        assert (each.rate or 0.0) <= most[point]
        assert each.bound_per_second <= most[point] or each.rate is None
    rates = [each.rate or 0.0 for each in truth]
    best = found.best[0]
    assert (best.point, best.objective) == (rates.index(max(rates)), (max(rates),))
    may = {each for each, own in enumerate(truth) if (own.fails_from or np.inf) > max(rates) and each != best.point}
    assert {each.choice.point for each in found.alike} == may
    assert found.proven == (not may)
    assert sum(found.pruned.values()) + found.simulated == found.space == 6
    assert found.pruned["load"] > 0
    for rival in found.rivals:
        (point,) = [each for each in range(6) if space.values(each) == {**best.values, rival.key: rival.value}]
        assert rival.objective == rates[point] > 0
    assert "requests/s" in found.to_text()
    # of those whose rates are surely below that of a better one nobody knows that they bear none
    late = " ".join(replace(found, late=2).to_text().split())
    assert "2 of the simulated designs do not keep the bound on latencies at the rate of a better one" in late
    none = replace(found, best=(), gap=None, proven=False)
    assert "no design of 6 is known to keep all that is asked" in none.to_text()
    assert "no design of 6 keeps all that is asked" in replace(none, proven=True).to_text()
    assert found.to_dict()["maximise"] == ["requests_per_second"]


@pytest.mark.slow
def test_without_a_bound_every_design_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rates, "most", lambda self, box: np.asarray(np.inf))
    found = lstmsim.design(SCENARIO, "none", maximise=["requests_per_second"], **asked())
    # more than are taken together at first
    assert (found.simulated, dict(found.pruned)) == (6, {})


@pytest.mark.slow
def test_the_smallest_chip_that_bears_a_rate() -> None:
    rate = 5e5
    found = lstmsim.design(
        SCENARIO, "none", minimise=["npe"], at_rate=rate, **asked(axes=AXES | {C + "npe": [1024, 16384]})
    )
    space = space_of(SCENARIO, found.axes, [])

    def npe_of(point: int) -> float:
        return float(space.values(point)[C + "npe"] or 0)

    keep = []
    for point in sorted(range(space.size), key=npe_of):
        try:
            kept = judge_rate(
                SCENARIO, BOUND, rate, percentile=50, most_requests=UNTIL, overrides=space.settings(point)
            ).kept
        except InputError:
            continue
        keep += [npe_of(point)] * bool(kept)
    assert found.best[0].objective == (min(keep),)
    assert found.proven
    assert found.pruned["at_rate: load"] > 0


@pytest.mark.slow
def test_a_front_of_size_and_rate_and_a_run_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = asked(maximise=["requests_per_second"], minimise=["npe"], folder=tmp_path, axes={C + "npe": [4096, 16384]})
    more |= {"overrides": [C + "vp=null", C + "ep=16"]}
    found = lstmsim.design(SCENARIO, "none", **more)
    assert [each.objective[0] for each in found.best] == [4096, 16384]
    # what is set beside the keys of the space holds in the searches, too
    for each in found.best:
        settings = [*more["overrides"], f"{C}npe={each.values[C + 'npe']}"]
        alone = lstmsim.saturate(SCENARIO, BOUND, percentile=50, most_requests=UNTIL, overrides=settings)
        assert alone.rate == each.objective[1]
    assert found.best[0].objective[1] < found.best[1].objective[1]

    def never(*_: object) -> None:
        raise AssertionError("it was searched before")

    monkeypatch.setattr(Question, "answer", never)
    assert lstmsim.design(SCENARIO, "none", **more).best == found.best


def scenario(rng: random.Random) -> dict[str, Any]:
    """Random mixes at rates: lengths, batches, bursts."""
    jobs = []
    for number in range(rng.randint(1, 3)):
        job: dict[str, Any] = {"name": f"j{number}", "model": rng.choice(["lstm-256", "gru-512", "lstm-512"])}
        job["steps"] = rng.choice([1, 4, {"kind": "list", "values": [1, 2, 5]}])
        job["arrival"] = {"kind": "poisson", "rate_per_second": rng.choice([1e3, 1e5])}
        if rng.random() < 0.3:
            job["arrival"] = {"kind": "bursty", "on_rate_per_second": 1e5, "mean_on_ms": 0.1, "mean_off_ms": 0.3}
        if rng.random() < 0.3:
            job["batching"] = {"max_batch_size": rng.choice([2, 3]), "max_wait_cycles": 100}
        jobs.append(job)
    return {"chip": rng.choice(["column-npu-16k", "column-npu-4x16k", "intel-npu-rtl"]), "jobs": jobs}


def compared(seed: int) -> int:
    """Hold the bounds of a random space against the rates at which the load is 1; give the designs."""
    rng = random.Random(seed)
    base = scenario(rng)
    keys = (
        {"tiles": [2, 7], "lanes": [8, 40]} if base["chip"] == "intel-npu-rtl" else {"ep": [4, 16], "threads": [1, 3]}
    )
    space = space_of(base, {C + key: values for key, values in keys.items()}, [])
    most = most_of(space, base, 1e6, 50)
    for point, own in most.items():
        machine = capacity_of(base, space.settings(point))
        # a backlog is measured at both of its ends, too
        assert min(machine.limits_per_second.values()) <= 1.001 * own, (seed, point)
        if not any("batching" in job for job in base["jobs"]):
            # with batches that one leaves out threads
            assert machine.bound_per_second <= own, (seed, point)
    return len(most)


@pytest.mark.slow
@pytest.mark.needs_core
def test_no_load_below_1_is_above_the_bound() -> None:
    assert sum(map(compared, range(3))) >= 8


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_no_load_below_1_is_above_the_bound_of_more_designs(seed: int) -> None:
    compared(seed)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"maximise": ["requests_per_second"]}, "bound_ms"),
        ({"at_rate": 5.0}, "bound_ms"),
        ({"maximise": ["requests_per_second"], "bound_ms": 1.0, "percentile": 100}, "percentile"),
        ({"maximise": ["cycles"]}, "maximise cycles"),
        ({"minimise": ["requests_per_second"]}, "minimise requests_per_second"),
        ({"at_rate": 5.0, "bound_ms": 1.0, "stability": 0.5}, "stability"),
    ],
)
def test_what_does_not_go_together_is_refused(more: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        lstmsim.design(SCENARIO, "none", axes=AXES, **more)


def test_jobs_without_a_rate_bear_none() -> None:
    base = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2}]}
    with pytest.raises(InputError, match="no job comes at a rate"):
        lstmsim.design(base, "none", axes=AXES, maximise=["requests_per_second"], bound_ms=1.0)
