"""A bound on the requests that designs bear is near what they do: one that is far off rules nothing out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.studies.design.bounds.jobs import most_per_second
from lstmsim.studies.design.space import Broken, space_of
from lstmsim.studies.shared.loading import load_scenario

C = "chip.cores.0."
JOBS: list[dict[str, Any]] = [
    {"name": "a", "model": "lstm-256", "steps": 9},
    {"name": "b", "model": "gru-512", "steps": 4},
]
SCENARIO: dict[str, Any] = {"chip": "column-npu-16k", "jobs": JOBS}
AXES = {C + "ep": [8, 16], C + "vp": [128, 1024], C + "threads": [1]}
#: Requests of each job among one.
PARTS = (0.75, 0.25)


def cycles_alone(overrides: list[str], job: int) -> int:
    return lstmsim.simulate({**SCENARIO, "jobs": [JOBS[job]]}, overrides=overrides).makespan_cycles


def test_one_request_after_the_other_is_near_the_bound() -> None:
    space = space_of(SCENARIO, AXES, [])
    loaded = load_scenario(SCENARIO)
    mix = list(zip(loaded.jobs, PARTS, strict=True))
    for box in space.boxes():
        assert not isinstance(box, Broken)
        most = np.broadcast_to(most_per_second(box, mix, 1e6, 50), box.points.shape)
        for point, own in zip(box.points.tolist(), most.tolist(), strict=True):
            mean = sum(part * cycles_alone(space.settings(point), job) for job, part in enumerate(PARTS))
            one_by_one = loaded.chip.frequency_mhz * 1e6 / mean
            # jobs on one thread do not overlap: what is above it is what rounding may take
            assert one_by_one <= own == pytest.approx(one_by_one, rel=1e-6)
