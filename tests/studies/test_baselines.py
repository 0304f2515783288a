"""What stays in every chart: the scenario as it is, the base of a comparison, the first of several machines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import lstmsim as api
from lstmsim.report.results import Result

JOBS = [{"model": "lstm-256", "steps": 4}]
SCENARIO = {"chip": "column-npu-16k", "jobs": JOBS}


def baseline(result: Result) -> dict[str, Any]:
    """What the page says, and whole rows in place of their numbers."""
    text = re.search(r'id="data-rows">(.*?)</script>', result.to_page())
    assert text is not None
    rows = json.loads(text[1])
    named = [dict(zip(rows["columns"], each, strict=True)) for each in zip(*rows["values"], strict=True)]
    return {"words": rows["baseline"]["words"], "rows": [named[each] for each in rows["baseline"]["rows"]]}


def swept(folder: Path, path: str, values: list[Any]) -> dict[str, Any]:
    axes = {"x": {"path": path, "values": values}}
    return baseline(api.sweep({"scenario": SCENARIO, "axes": axes}, folder, jobs=1))


@pytest.mark.needs_core
@pytest.mark.parametrize(
    ("path", "values", "own"),
    [
        ("chip.cores.0.threads", [1, 2, 3], [2]),
        ("chip.cores.0.threads", [1, 3], []),
        # no cycle depends on the clock
        ("chip.frequency_mhz", [130, 260], [260]),
        ("jobs.0.steps", [3, 4, 5], [4]),
    ],
)
def test_the_scenario_as_it_is_is_the_baseline_of_its_sweep(
    tmp_path: Path, path: str, values: list[Any], own: list[Any]
) -> None:
    found = swept(tmp_path / "sweep", path, values)
    assert [row["x"] for row in found["rows"]] == own
    assert found["words"].startswith("the scenario as it is" if own else "none: ")


@pytest.mark.needs_core
def test_merged_shards_have_the_baseline_of_their_sweep(tmp_path: Path) -> None:
    axes = {"x": {"path": "jobs.0.steps", "values": [3, 4, 5]}}
    parts = [
        api.sweep({"scenario": SCENARIO, "axes": axes}, tmp_path / f"{number}", shard=(number, 2), jobs=1).path
        for number in (1, 2)
    ]
    merged = api.merge(tmp_path / "all.sqlite", parts)
    assert [row["x"] for row in baseline(merged)["rows"]] == [4]


def test_the_base_of_a_comparison_is_in_its_chart() -> None:
    found = baseline(api.compare(SCENARIO, ["column-npu-64k"], each=True))
    assert [row["machine"] for row in found["rows"]] == ["column-npu-16k"]
    assert [row["speedup"] for row in found["rows"]] == [1]


@pytest.mark.slow
@pytest.mark.needs_core
def test_one_machine_has_no_baseline_and_two_have_the_first() -> None:
    arriving = {"kind": "poisson", "rate_per_second": 1000, "seed": 1}
    scenario = {"chip": "column-npu-16k", "jobs": [{**JOBS[0], "count": 50, "arrival": arriving}]}
    alone = baseline(api.load_latency(scenario, loads=[0.5], requests=200))
    assert alone == {"words": "none: there is one machine; chips beside it come from --chip", "rows": []}
    both = baseline(api.load_latency(scenario, chips=["column-npu-64k"], loads=[0.3, 0.5], requests=200))
    assert [(row["machine"], row["load"]) for row in both["rows"]] == [(both["words"], 0.3), (both["words"], 0.5)]
    assert both["words"] == "column-npu-16k"
