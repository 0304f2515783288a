"""How often designs are told apart that are equal in truth, at drawn arrivals: at most in 5 of 100 answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.files.yaml.document import yaml_text
from lstmsim.studies.design.result import Design

#: EP of a core that is quick for the model, and of one that takes longer.
QUICK, SLOW = 16, 4


def chips(folder: Path, *pairs: tuple[int, int]) -> list[str]:
    """Chips of two cores with these EPs."""
    names = []
    for first, second in pairs:
        cores = [{"npe": 1024, "ep": ep, "vp": 64, "threads": 1} for ep in (first, second)]
        name = folder / f"c-{first}-{second}.yaml"
        name.write_text(yaml_text({"kind": "column-npu", "frequency_mhz": 100, "cores": cores}), encoding="utf-8")
        names.append(str(name))
    return names


def asked(names: list[str], seed: int, objective: str, rate: float) -> Design:
    """Two tenants that are alike but for their seeds, each on a core of its own."""
    jobs: list[dict[str, Any]] = [
        {
            "name": f"tenant{core}",
            "model": {"layers": [{"cell": "lstm", "hidden": 48, "input": 48}]},
            "steps": 4,
            "cores": [core],
            "count": 600,
            "arrival": {"kind": "poisson", "rate_per_second": rate, "seed": 2 * seed + core},
        }
        for core in (0, 1)
    ]
    base = {"chip": names[0], "jobs": jobs}
    return lstmsim.design(base, "none", axes={"chip": names}, minimise=(objective,), until=2400, jobs=1)


def outcomes(folder: Path, seeds: range, objective: str, rate: float) -> tuple[int, int]:
    """How often two chips are told apart that are mirrors of each other; and how often it is not known for want of
    requests.
    """
    names, told, unknown = chips(folder, (QUICK, SLOW), (SLOW, QUICK)), 0, 0
    for seed in seeds:
        found = asked(names, seed, objective, rate)
        (other,) = found.alike or (None,)
        # a percentile may be the same where many requests find a free core
        told += found.equal == 1 and (other is None or other.difference[1] < 0)
        unknown += other is not None and bool(other.reason)
    return told, unknown


@pytest.mark.slow
def test_equal_designs_are_not_told_apart_and_unequal_ones_are(tmp_path: Path) -> None:
    told, unknown = outcomes(tmp_path, range(2), "p95_ms", 60_000)
    assert told <= 1
    assert unknown < 2
    names = chips(tmp_path, (SLOW, SLOW), (QUICK, QUICK))
    found = asked(names, 1, "p50_ms", 60_000)
    assert (found.best[0].values["chip"], found.alike) == (names[1], ())


@pytest.mark.long
@pytest.mark.parametrize(("objective", "rate"), [("p95_ms", 60_000), ("p50_ms", 170_000), ("p95_ms", 20_000)])
def test_at_most_one_of_twenty_equal_designs_is_told_apart(tmp_path: Path, objective: str, rate: float) -> None:
    told, _ = outcomes(tmp_path, range(100, 300), objective, rate)
    assert told <= 0.05 * 200
