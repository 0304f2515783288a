"""Load-latency curves: which points there are, who computes them, and that they go on where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.serving.queueing import md1_wait
from lstmsim.base.errors import InputError
from lstmsim.studies.serve import load_latency as points
from lstmsim.studies.serve.curves import CDF, Estimate, LoadLatency, Machine, Measured, Point
from lstmsim.studies.serve.load_latency import Asked, key_of, load_latency, loads_of
from lstmsim.studies.serve.run import serve_on_horizon

#: A curve, or a rate that just keeps a bound, takes thousands of requests.
pytestmark = pytest.mark.needs_core

ONE_THREAD = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 16384, "ep": 16, "vp": 1024, "threads": 1}]}
POISSON = {"kind": "poisson", "rate_per_second": 200_000}
SHORT = {"name": "short", "model": "lstm-256", "steps": 2, "deadline": 2000, "arrival": POISSON}
LONG = {"name": "long", "model": "lstm-256", "steps": 12, "arrival": POISSON}
SCENARIO: dict[str, Any] = {"chip": ONE_THREAD, "jobs": [SHORT, LONG]}


def curves(**changes: Any) -> LoadLatency:
    return load_latency(SCENARIO, **{"loads": [0.4, 0.8], "requests": 600, **changes})


def test_one_task_on_one_thread_is_md1() -> None:
    answer = load_latency({"chip": ONE_THREAD, "jobs": [LONG]}, loads=[0.3, 0.6], requests=10_000)
    service = 1000 / answer.bound_per_second
    for point in answer.points:
        assert point.measured.mean is not None
        assert point.measured.mean.half_width_ms is not None
        exact = service + md1_wait(point.load, service)
        assert abs(point.measured.mean.value_ms - exact) < 2 * point.measured.mean.half_width_ms
        assert point.rate_per_second == pytest.approx(point.load * answer.capacity_per_second)


@pytest.mark.slow
def test_every_policy_has_the_same_requests() -> None:
    answer = curves(policies=["fcfs", "sjf", "sjf+preempt"])
    assert [each.label for each in answer.machines] == ["fcfs", "sjf", "sjf+preempt"]
    assert [point.load for point in answer.points] == [0.4, 0.8] * 3
    assert len({point.rate_per_second for point in answer.points}) == 2
    assert {point.measured.requests for point in answer.points} == {600}
    means = {each.label: answer.of(each)[1].measured.mean for each in answer.machines}
    assert means["sjf"].value_ms < means["fcfs"].value_ms  # type: ignore[union-attr]
    by_hand = serve_on_horizon(
        SCENARIO,
        600,
        [
            f"jobs.{at}.arrival.rate_per_second={rate!r}"
            for at, rate in ((0, answer.points[1].rate_per_second / 2), (1, answer.points[1].rate_per_second / 2))
        ],
    ).serving
    assert answer.points[1].measured.mean.value_ms == by_hand.ms(by_hand.latency.mean.value)  # type: ignore[union-attr]


def test_other_chips_have_the_same_rates() -> None:
    answer = curves(chips=["column-npu-64k"], loads=[0.5])
    own, other = answer.points
    assert own.rate_per_second == other.rate_per_second
    # How fast a backlog is done is measured by as many requests as are asked about.
    assert own.measured.offered == pytest.approx(0.5, rel=0.01)
    assert other.measured.offered < 0.5  # type: ignore[operator]
    assert "all chips have the same requests per second" in LoadLatency.to_text(answer)


def test_overload_has_no_latency() -> None:
    answer = curves(loads=[0.5, 1.5])
    stable, over = answer.points
    assert stable.measured.mean is not None
    assert (over.measured.verdict, over.measured.mean, over.measured.percentiles) == ("unstable", None, {})
    assert "unstable: more work comes than is done" in LoadLatency.to_text(answer)


def test_what_cannot_be_told_has_no_latency() -> None:
    """Two ranks share core 0, and one of them has core 1 beside it."""
    jobs = [{**SCENARIO["jobs"][0], "priority": 1, "cores": [0]}, {**SCENARIO["jobs"][1], "cores": [0, 1]}]
    jobs.append({**SCENARIO["jobs"][1], "name": "third", "priority": 2, "cores": [1]})
    mixed = SCENARIO | {"jobs": jobs, "chip": "column-npu-4x16k", "dispatch": "priority", "preemption": True}
    answer = load_latency(mixed, loads=[0.5], requests=300)
    (point,) = answer.points
    assert (point.measured.verdict, point.measured.mean, point.measured.percentiles) == ("cannot tell", None, {})
    assert "cannot tell: whether the machine keeps up is not known" in LoadLatency.to_text(answer)


@pytest.mark.slow
def test_who_computes_does_not_matter(tmp_path: Path) -> None:
    kept = curves(folder=tmp_path)
    assert curves(jobs=2) == kept
    assert len(list((tmp_path / "points").iterdir())) == 2


def test_what_is_kept_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = curves(folder=tmp_path)
    made: list[Asked] = []
    run_point = points.run_point

    def counted(asked: Asked) -> Any:
        made.append(asked)
        return run_point(asked)

    monkeypatch.setattr(points, "run_point", counted)
    assert curves(folder=tmp_path) == first
    assert not made
    more = curves(folder=tmp_path, loads=[0.4, 0.6, 0.8])
    assert len(made) == 1
    assert (more.points[0], more.points[2]) == first.points
    # A file that does not hold its point is written anew.
    broken = next((tmp_path / "points").iterdir())
    broken.write_text("{")
    curves(folder=tmp_path, loads=[0.4, 0.6, 0.8])
    assert len(made) == 2
    whole = broken.read_text()
    data = json.loads(whole)
    # So is one with other numbers than were written.
    data["measured"]["latency_ms"]["p99"]["value"] = 0.5
    broken.write_text(json.dumps(data))
    assert curves(folder=tmp_path, loads=[0.4, 0.6, 0.8]) == more
    assert (len(made), broken.read_text()) == (3, whole)


def test_the_key_of_a_point_is_what_it_simulates(tmp_path: Path) -> None:
    rows = tmp_path / "a.csv"
    rows.write_text("arrival_cycles\n5\n")
    jobs = [SHORT, {"model": "lstm-256", "steps": 1, "arrival": {"kind": "file", "path": str(rows)}}]
    scenario = {"chip": ONE_THREAD, "jobs": jobs}
    one = key_of(Asked(scenario, (), 100, 100))
    assert key_of(Asked({**scenario, "dispatch": "fcfs"}, ("dispatch=fcfs",), 100, 100)) != one
    assert key_of(Asked(scenario, (), 200, 200)) != one
    assert key_of(Asked(scenario, ("chip.cores.0.threads=2",), 100, 100)) != one
    assert key_of(Asked(scenario, (), 100, 100)) == one
    rows.write_text("arrival_cycles\n6\n")
    assert key_of(Asked(scenario, (), 100, 100)) != one


@pytest.mark.parametrize("rejected", [0, 1234])
def test_the_table_fits_a_terminal(rejected: int) -> None:
    machines = tuple(Machine(each, "chip", each, False, "least-loaded") for each in ("fcfs", "edf"))
    long = Estimate(0.0052031, 0.000038)
    one = Measured("settled", 0.3, 5678, rejected, 1234, 404_543.3, 396_452.2, long, dict.fromkeys(CDF, long))
    few = replace(one, verdict="too few", mean=Estimate(0.0052031, None))
    points = tuple(Point(each, 0.5167, 396_452.0, measured) for each in machines for measured in (one, few))
    answer = LoadLatency("s", machines, 404_543.0, 404_543.0, {"PE arrays": 404_543.0}, True, points)
    lines = LoadLatency.to_text(answer).splitlines()
    assert max(map(len, lines)) <= 100
    assert "0.005203 +- 0.7%  0.005203 +- 0.7%    396,452  21.73 %" in lines[4]
    assert any(line.startswith("rejected: ") for line in lines) == bool(rejected)


def test_rows_and_json_say_the_same() -> None:
    answer = curves(policies=["fcfs", "edf"])
    rows = answer.to_records()
    head = list(rows[0])
    data = LoadLatency.to_dict(answer)
    assert all(list(row) == head for row in rows)
    for named, point in zip(rows, data["points"], strict=True):
        assert (named["machine"], named["load"]) == (point["machine"], point["load"])
        assert named["p99_ms"] == point["latency_ms"]["p99"]["value"]
        quantiles = [
            named[name] for name in head if name.startswith("p") and name.endswith("_ms") and "half" not in name
        ]
        assert quantiles == sorted(quantiles)


@pytest.mark.parametrize(
    "text", ["", "a", "0.9:0.3", "0.3:0.9:1", "0.3:0.9:4:5", "0.5,0.4", "0,1", "0.5,0.5", "nan", "1e9"]
)
def test_loads_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="loads"):
        loads_of(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"policies": ["fcsf"]}, "policy 'fcsf'"),
        ({"policies": ["fcfs+preempt"]}, "no job goes before another"),
        ({"policies": ["sjf", "sjf"]}, "named twice"),
        ({"chips": ["column-npu-64"]}, "did you mean 'column-npu-64k'"),
        ({"placements": ["best"]}, "placement"),
        ({"requests": 0}, "requests"),
        ({"until_half_width": 1.5}, "until_half_width"),
        ({"overrides": ["jobs.0.arrival=0", "jobs.1.arrival=0"]}, "no job comes at a rate"),
    ],
)
def test_what_is_wrong_is_said(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        curves(**arguments)


def test_one_name_alone_is_a_list_of_one() -> None:
    short = {"loads": [0.4], "requests": 50}
    assert [each.dispatch for each in curves(policies="sjf", **short).machines] == ["sjf"]
    assert [each.chip for each in curves(chips="column-npu-64k", **short).machines][1:] == ["column-npu-64k"]
    assert [each.placement for each in curves(placements="least-loaded", **short).machines] == ["least-loaded"]


@pytest.mark.slow
def test_with_preemption_a_point_has_all_requests_that_are_asked_for() -> None:
    """Once 20,000 at most were simulated, without a word."""
    arrival = {"kind": "poisson", "rate_per_second": 1e5}
    jobs = [{"name": f"p{at}", "model": "lstm-256", "steps": 1, "priority": at, "arrival": arrival} for at in (0, 1)]
    data = {"chip": "column-npu-16k", "jobs": jobs}
    curves = load_latency(data, policies=["priority", "priority+preempt"], loads=[0.3], requests=25_000)
    assert [point.measured.requests for point in curves.points] == [25_000, 25_000]
    assert [point.machine.preemption for point in curves.points] == [False, True]
