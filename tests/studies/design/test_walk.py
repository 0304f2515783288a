"""The walk over a space: a design that cannot be simulated is kept apart from those that break a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lstmsim.studies.design.walk import INFEASIBLE, SIMULATED, Bounds, Labels, Simulated, Walk


class Made:
    """A walker over three designs: the first has no values, the others simulate what their bounds say."""

    batches = 1, 1

    def __init__(self, failed: bool) -> None:
        self.failed = failed

    def judged(self, point: int) -> tuple[str, tuple[float, ...]]:
        return "", (-np.inf,)

    def simulated(self, points: Sequence[int], best: Any = None) -> list[Simulated]:
        nothing = Simulated(0, None, "a reason", self.failed)
        return [Simulated(point, (float(point),)) if point else nothing for point in points]


@pytest.mark.parametrize("failed", [True, False])
def test_a_design_that_cannot_be_simulated_may_still_be_the_best(failed: bool) -> None:
    """Its bound is better than the best design found, so it is noted; one that breaks a rule is out for good."""
    bounds = Bounds(np.array([[0.0], [1.0], [2.0]]), np.zeros(3, np.int8), ("the bound",))
    found = Walk(bounds, Labels.of(3), Made(failed)).run()
    assert found.failed == [0] * failed
    assert found.front() == [1]
    assert found.labels.counts(INFEASIBLE) == {"a reason": 1}
    assert found.labels.count(SIMULATED) == 1
