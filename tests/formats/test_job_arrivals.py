"""Jobs that come as a process says: the same as its own arrivals, clients that wait for their answers, mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lstmsim.api import simulate
from lstmsim.errors import InputError
from lstmsim.formats.scenario_file import load_scenario
from lstmsim.serving.arrivals import Bursty, OpenArrivals, Periodic, Poisson, Stream, arrivals

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}


def scenario(arrival: Any, count: int = 6, **more: Any) -> dict[str, Any]:
    return {"chip": CHIP, "jobs": [{"model": MODEL, "steps": 2, "count": count, "arrival": arrival, **more}]}


PROCESSES: list[tuple[dict[str, Any], OpenArrivals]] = [
    ({"kind": "periodic", "interval_cycles": 50, "jitter_cycles": 20}, Periodic(50, 20)),
    ({"kind": "poisson", "rate_per_second": 1e5}, Poisson(1e5)),
    ({"kind": "bursty", "on_rate_per_second": 1e6, "mean_on_ms": 0.01, "mean_off_ms": 0.1}, Bursty(1e6, 0.01, 0.1)),
    ({"kind": "stream", "frame_ms": 0.01}, Stream(0.01)),
]


@pytest.mark.parametrize(("entry", "description"), PROCESSES, ids=[entry["kind"] for entry, _ in PROCESSES])
def test_jobs_come_as_the_process_says(entry: dict[str, Any], description: OpenArrivals) -> None:
    jobs = load_scenario(scenario(entry)).jobs
    assert [job.arrival for job in jobs] == list(arrivals(description, 6, 100, (0, "model-rnn-16", 0)))


def test_another_seed_and_another_name_come_otherwise() -> None:
    process = {"kind": "poisson", "rate_per_second": 1e5}
    plain = [job.arrival for job in load_scenario(scenario(process)).jobs]
    assert plain != [job.arrival for job in load_scenario(scenario({**process, "seed": 1})).jobs]
    assert plain != [job.arrival for job in load_scenario(scenario(process, name="other")).jobs]


def test_a_frame_of_a_stream_is_due_before_the_next() -> None:
    jobs = load_scenario(scenario({"kind": "stream", "frame_ms": 0.01})).jobs
    assert {job.deadline for job in jobs} == {1000}
    assert load_scenario(scenario({"kind": "stream", "frame_ms": 0.01}, deadline=7)).jobs[0].deadline == 7


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_clients_think_from_their_answer_on(engine: str) -> None:
    closed = {"kind": "closed", "clients": 2, "think_ms": 0.001, "think": "fixed"}
    jobs = simulate(scenario(closed, count=8), engine=engine).jobs
    assert [job.arrival for job in jobs[:2]] == [100, 100]
    assert [job.arrival for job in jobs[2:]] == [job.finish + 100 for job in jobs[:-2]]


def test_arrivals_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "come.csv").write_text("arrival_cycles\n5\n5\n900\n")
    entry = {"kind": "file", "path": str(tmp_path / "come.csv")}
    assert [job.arrival for job in load_scenario(scenario(entry, count=3)).jobs] == [5, 5, 900]
    with pytest.raises(InputError, match="the file has 3 arrivals, there are 4 jobs"):
        load_scenario(scenario(entry, count=4))


@pytest.mark.parametrize(
    ("arrival", "sentence"),
    [
        ({"kind": "poison"}, "jobs.0.arrival.kind: must be .* did you mean 'poisson'"),
        ({"kind": "poisson"}, "jobs.0.arrival.rate_per_second: required key is missing for poisson"),
        ({"kind": "poisson", "rate_per_second": 1, "frame_ms": 2}, "jobs.0.arrival.frame_ms: is no key of poisson"),
        ({"kind": "poisson", "rate_per_second": float("nan")}, "rate_per_second: must be a finite number"),
        ({"kind": "poisson", "rate_per_second": 1e-9}, "comes as late as cycle"),
        ({"kind": "poisson", "rate": 1}, "unknown key"),
        ("soon", "jobs.0.arrival: must be a whole number, got 'soon'"),
    ],
)
def test_mistakes_are_named(arrival: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_scenario(scenario(arrival))
