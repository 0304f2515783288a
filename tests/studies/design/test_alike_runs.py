"""Which runs tell designs apart: how many requests they have; and what the clock model keeps open."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lstmsim.files.yaml.document import yaml_text
from lstmsim.files.yaml.source import read_document
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


def test_only_drawn_requests_are_doubled(tmp_path: Path) -> None:
    """Jobs that are all there at once stay as they are; a drawn job that states no count has one request."""
    model = {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
    drawn = {"kind": "poisson", "rate_per_second": 1000, "seed": 1}
    jobs = [
        {"name": "fixed", "model": model, "steps": 1, "count": 2},
        {"name": "drawn", "model": model, "steps": 1, "count": 3, "arrival": drawn},
        {"name": "one", "model": model, "steps": 1, "arrival": drawn},
    ]
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 8, "threads": 1}]}
    path = tmp_path / "s.yaml"
    path.write_text(yaml_text({"chip": chip, "jobs": jobs}), encoding="utf-8")
    setup = SimpleNamespace(document=read_document(path), overrides=(), scenario_name="s")
    space: Any = SimpleNamespace(setup=setup, settings=lambda point: ())
    runs = Alikes(space, "p99_ms", 100)
    assert [len(runs._scenario(0, factor).jobs) for factor in (1, 2, 3)] == [6, 10, 14]
