"""Which runs tell designs apart: how many requests they have; and what the clock model keeps open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lstmsim.studies.design.alike import Alikes, unsure_times
from lstmsim.studies.design.walk import Found, Labels


def test_with_one_objective_nothing_is_put_off_the_front() -> None:
    """The second may be better than the best: it is alike, and there is no front."""
    found = Found(Labels.of(2), {0: (1.0,), 1: (1.1,)}, [], {0: (0.9,), 1: (0.95,)})
    measure: Any = SimpleNamespace(names=("latency_ms",), choice=lambda point, values: (point, values))
    alike, shaky = unsure_times(found, measure)
    assert [each.choice for each in alike] == [(1, (1.1,))]
    assert shaky == ()


@pytest.mark.parametrize(("until", "grows"), [(19, False), (20, True), (29, True)])
def test_runs_grow_by_a_factor_of_two_as_long_as_they_may(until: int, grows: bool) -> None:
    class Drawn(Alikes):
        def _scenario(self, point: int, factor: int) -> Any:
            return SimpleNamespace(jobs=range(10 * factor))

    assert Drawn(cast(Any, None), "p99_ms", until)._grows(0, 1) is grows
