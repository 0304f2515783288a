"""Jobs that come as a process says: the same as its own arrivals, clients that wait for their answers, mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lstmsim import simulate
from lstmsim.base.errors import InputError
from lstmsim.files.scenario import arrival_file, entries
from lstmsim.files.scenario.arrival_file import ArrivalFile, Wanted, read_arrivals
from lstmsim.files.scenario.requests import load_requests
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines import assembly as sizes
from lstmsim.traffic import arrivals as drawing
from lstmsim.traffic.arrivals import Bursty, ClosedLoop, OpenArrivals, Periodic, Poisson, Stream, arrivals, think_cycles
from lstmsim.traffic.streams import StreamKey

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}


def scenario(arrival: Any, count: int = 6, **more: Any) -> dict[str, Any]:
    return {"chip": CHIP, "jobs": [{"model": MODEL, "steps": 2, "count": count, "arrival": arrival, **more}]}


FILE = """\
chip: {kind: column-npu, frequency_mhz: 100, cores: [{npe: 64, ep: 4, vp: 16}]}
jobs:
  - model: {layers: [{cell: rnn, hidden: 4, input: 4}]}
    steps: 1
    count: 3
"""

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


def test_entries_of_one_name_come_each_in_its_own_way() -> None:
    job = scenario({"kind": "poisson", "rate_per_second": 1e5}, count=3)["jobs"][0]
    jobs = load_scenario({"chip": CHIP, "jobs": [job, {**job, "arrival": 0}, {**job, "name": "b"}, job]}).jobs
    each = [tuple(job.arrival for job in jobs[first : first + 3]) for first in (0, 6, 9)]
    assert len(set(each)) == 3
    keys = [(0, "model-rnn-16", 0), (0, "b", 0), (0, "model-rnn-16", 2)]
    assert each == [tuple(arrivals(Poisson(1e5), 3, 100, key)) for key in keys]


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
    assert [job.arrival for job in load_scenario(scenario(entry, count=2)).jobs] == [5, 5]
    with pytest.raises(InputError, match=r"jobs\.0\.arrival\.path: the file has 3 arrivals, there are 4 jobs"):
        load_scenario(scenario(entry, count=4))


def test_without_a_count_all_rows_of_a_file_come(tmp_path: Path) -> None:
    (tmp_path / "come.csv").write_text("arrival_ms\n0.1\n0.2\n0.2\n")
    data = scenario({"kind": "file", "path": str(tmp_path / "come.csv")}, name="a")
    del data["jobs"][0]["count"]
    closed = {"kind": "closed", "clients": 1, "think_ms": 0.001}
    data["jobs"].append({**data["jobs"][0], "count": 2, "arrival": closed, "name": "b"})
    jobs = load_scenario(data).jobs
    assert [(job.name, job.arrival) for job in jobs[:3]] == [("a #1", 10_000), ("a #2", 20_000), ("a #3", 20_000)]
    # positions behind those of the file
    assert [job.after for job in jobs[3:]] == [None, 3]


def test_rows_of_a_file_count_as_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "come.csv").write_text("arrival_cycles\n1\n2\n3\n")
    data = scenario({"kind": "file", "path": str(tmp_path / "come.csv")})
    del data["jobs"][0]["count"]
    monkeypatch.setattr(entries, "MAX_JOBS", 5)
    assert len(load_scenario(data).jobs) == 3
    with pytest.raises(InputError, match=r"jobs\.1\.arrival: more than 5 jobs in all"):
        load_scenario({**data, "jobs": data["jobs"] * 2})
    # the bound itself is no mistake, and a stream of requests keeps one job for each entry
    monkeypatch.setattr(entries, "MAX_JOBS", 6)
    assert len(load_scenario({**data, "jobs": [data["jobs"][0], {**data["jobs"][0], "name": "b"}]}).jobs) == 6
    monkeypatch.setattr(entries, "MAX_JOBS", 2)
    assert sum(len(each.arrival) for each in load_requests(data).coming) == 3
    monkeypatch.setattr(sizes, "MAX_OPERATIONS", 10)
    with pytest.raises(InputError, match="takes up to 26 operations"):
        load_scenario(data)


def test_a_file_is_read_once_and_its_mistakes_come_with_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counting(path: str, frequency_mhz: float, wanted: Wanted) -> ArrivalFile:
        read.append(path)
        return read_arrivals(path, frequency_mhz, wanted=wanted)

    monkeypatch.setattr(arrival_file, "read_arrivals", counting)
    (tmp_path / "come.csv").write_text("arrival_ms\n1\nsoon\n")
    job = scenario({"kind": "file", "path": str(tmp_path / "come.csv")})["jobs"][0]
    gone = {**job, "arrival": {"kind": "file", "path": "gone.csv"}}
    wide = {"model": MODEL, "steps": 1, "core": 1}
    with pytest.raises(InputError) as error:
        load_scenario({"chip": CHIP, "jobs": [job, gone, job, wide]})
    assert [str(each) for each in error.value.mistakes] == [
        f"{tmp_path / 'come.csv'}:3: arrival_ms: must be a number of milliseconds, such as 2.5, got 'soon'",
        "jobs.1.arrival.path: gone.csv: no such file or folder",
        "jobs.3.core: must be 0, the chip's only core, got 1",
    ]
    assert len(read) == 2


def test_what_comes_too_late_is_refused_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0

    def counting(*arguments: Any) -> Iterator[int]:
        nonlocal drawn
        for cycle in arrivals(*arguments):
            drawn += 1
            yield cycle

    monkeypatch.setattr(drawing, "arrivals", counting)
    for process in ({"kind": "fixed", "interval_cycles": 10**9}, {"kind": "stream", "frame_ms": 10**4}):
        drawn = 0
        with pytest.raises(
            InputError, match=r"^jobs\.0\.arrival: job 1,002 of this entry comes as late as cycle 1,001,"
        ):
            load_scenario(scenario(process, count=10**6, steps=1))
        # of a frame it is drawn twice: when it comes, and when the one before it is due
        assert 1002 <= drawn <= 1003 * (1 + (process["kind"] == "stream"))


def test_only_clients_that_ask_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counting(loop: ClosedLoop, client: int, frequency_mhz: float, key: StreamKey) -> Iterator[int]:
        made.append(client)
        return think_cycles(loop, client, frequency_mhz, key)

    monkeypatch.setattr(drawing, "think_cycles", counting)
    closed = {"kind": "closed", "clients": 10**6, "think_ms": 0.01}
    few = load_scenario(scenario(closed, count=3)).jobs
    assert few == load_scenario(scenario({**closed, "clients": 3}, count=3)).jobs
    assert made == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("process", "place", "sentence"),
    [
        ("kind: poisson, rate_per_second: 1e-9", "6:14: jobs.0.arrival", "job 1 of this entry comes as late as cycle"),
        ("kind: poisson, rate_per_second: 1e-12", "6:14: jobs.0.arrival", "would go on to cycle"),
        (
            "kind: stream, frame_ms: 1e-6",
            "6:39: jobs.0.arrival.frame_ms",
            "is shorter than a cycle, which takes 1e-05 ms",
        ),
    ],
)
def test_the_place_in_the_file_is_named(tmp_path: Path, process: str, place: str, sentence: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{FILE}    arrival: {{{process}}}\n")
    with pytest.raises(InputError) as error:
        load_scenario(path)
    assert str(error.value).startswith(f"{path}:{place}: {sentence}")


@pytest.mark.parametrize(
    ("arrival", "sentence"),
    [
        ({"kind": "poison"}, "jobs.0.arrival.kind: must be .* did you mean 'poisson'"),
        ({"kind": "poisson"}, "jobs.0.arrival.rate_per_second: required key is missing for poisson"),
        ({"kind": "poisson", "rate_per_second": 1, "frame_ms": 2}, "jobs.0.arrival.frame_ms: is no key of poisson"),
        ({"kind": "poisson", "rate_per_second": float("nan")}, "rate_per_second: must be a finite number"),
        ({"kind": "poisson", "rate_per_second": 1e-9}, "comes as late as cycle"),
        ({"kind": "poisson", "rate": 1}, "rate: unknown key; did you mean 'rate_per_second'?"),
        ("soon", "jobs.0.arrival: must be a whole number, got 'soon'"),
    ],
)
def test_mistakes_are_named(arrival: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_scenario(scenario(arrival))
