"""`lstmsim serve`: the same as a simulation of all requests, in any number; mistakes, JSON, rows."""

from __future__ import annotations

import csv
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import run, serve, serving
from lstmsim.base.errors import InputError
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.serve.run import Row
from tests.cli.runner import call

#: More by LSTMSIM_EXAMPLES=500.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "0"))
POISSON = {"kind": "poisson", "rate_per_second": 2_000_000}
SCENARIO: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [
        {"model": "lstm-256", "steps": 2, "count": 400, "arrival": POISSON, "queue_limit": 0},
        {"model": "lstm-512", "steps": 1, "count": 300, "arrival": {"kind": "stream", "frame_ms": 0.01}},
        {"model": "lstm-512", "name": "late", "steps": 3, "count": 2, "arrival": [5_000, 9_000], "deadline": 800},
    ],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCENARIO))


MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
ARRIVALS = (
    0,
    {"kind": "fixed", "interval_cycles": 40},
    {"kind": "periodic", "interval_cycles": 50, "jitter_cycles": 30},
    {"kind": "poisson", "rate_per_second": 2e6},
    {"kind": "bursty", "on_rate_per_second": 5e6, "mean_on_ms": 0.001, "mean_off_ms": 0.001},
    {"kind": "stream", "frame_ms": 0.0005},
)
STEPS: tuple[dict[str, Any], ...] = (
    {"kind": "uniform", "low": 1, "high": 6},
    {"kind": "geometric", "mean": 2.5, "most": 9},
    {"kind": "list", "values": [1, 7], "weights": [3, 1], "seed": 5},
)
ENTRIES = st.fixed_dictionaries(
    {
        "model": st.just(MODEL),
        "steps": st.integers(1, 3) | st.sampled_from(STEPS),
        "count": st.integers(1, 8),
        "arrival": st.sampled_from(ARRIVALS),
    },
    optional={
        "cores": st.sampled_from([[0], [1], [1, 0]]),
        "deadline": st.integers(50, 400),
        "priority": st.integers(0, 2),
        "queue_limit": st.integers(0, 3),
        "patience": st.sampled_from([0, 30, 200]),
        "frame_interval": st.sampled_from([0, 60]),
    },
)


@pytest.mark.slow
@pytest.mark.needs_core
@settings(max_examples=max(30, EXAMPLES))
@given(
    st.lists(ENTRIES, min_size=1, max_size=4),
    st.sampled_from(["fcfs", "sjf", "edf", "priority", "sjf+preempt", "edf+preempt", "priority+preempt"]),
    st.booleans(),
)
def test_it_is_the_simulation_of_all(entries: list[dict[str, Any]], order: str, split: bool) -> None:
    dispatch, _, preempts = order.partition("+")
    core = {"npe": 64, "ep": 4, "vp": 16, "count": 2, "threads": 2}
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [core]}
    jobs = [*entries, {**entries[0], "split": "rows", "cores": [0, 1]}] if split else entries
    data = {"chip": chip, "dispatch": dispatch, "preemption": bool(preempts), "jobs": jobs}
    whole = run(data)
    rows: list[Row] = []
    answer = serve(data, rows=rows.extend, window=64)
    assert Serving.to_dict(answer.serving) == Serving.to_dict(serving(whole))
    assert answer.makespan_cycles == whole.report.makespan_cycles
    assert answer.utilization == pytest.approx(whole.report.utilization, rel=1e-12)
    assert answer.tops == pytest.approx(whole.report.tops, rel=1e-12)
    served = sorted((row.arrival, row.start, row.finish, row.core, row.thread) for row in rows if row.core >= 0)
    assert served == sorted((job.arrival, job.start, job.finish, job.core, job.thread) for job in whole.report.jobs)
    assert sum(row.core < 0 for row in rows) == len(whole.report.rejected)


def test_frames_that_are_due_wait_in_their_turn() -> None:
    jobs = [
        {"model": "lstm-512", "name": "x", "steps": 25, "count": 8, "arrival": 31000, "deadline": 8000},
        {"model": "lstm-256", "steps": 25, "count": 10, "arrival": {"kind": "stream", "frame_ms": 0.04}},
    ]
    data = {"chip": "column-npu-16k", "dispatch": "edf", "jobs": jobs}
    for threads in (1, 2):
        change = [f"chip.cores.0.threads={threads}"]
        whole = serving(run(data, overrides=change))
        assert Serving.to_dict(serve(data, overrides=change).serving) == Serving.to_dict(whole)
        assert whole.misses


def test_one_trace_with_tenants_and_steps_of_its_own() -> None:
    rows = "".join(
        f"{40 * number // 3},{'ab'[number % 3 == 0]},t{number % 4},{number % 7 + 1}\n" for number in range(90)
    )
    Path("t.csv").write_text("arrival_cycles,job,tenant,steps\n" + rows)
    jobs = [{"name": name, "model": MODEL} for name in "ab"]
    drawn = {"model": MODEL, "name": "c", "steps": STEPS[0], "count": 40, "arrival": ARRIVALS[3], "queue_limit": 1}
    core = {"npe": 64, "ep": 4, "vp": 16, "threads": 2}
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [core]}
    for dispatch in ("fcfs", "sjf"):
        data = {"chip": chip, "dispatch": dispatch, "arrivals": {"path": "t.csv"}, "jobs": [*jobs, drawn]}
        whole = run(data)
        done: list[Row] = []
        served = serve(data, rows=done.extend)
        assert Serving.to_dict(served.serving) == Serving.to_dict(serving(whole))
        assert list(served.serving.tenants) == [
            *(f"a/t{n}" for n in (1, 2, 0, 3)),
            *(f"b/t{n}" for n in (0, 3, 2, 1)),
            "c",
        ]
        jobs_of = [(job, whole.scenario.jobs[job.number]) for job in whole.report.jobs]
        assert sorted(row[4:] for row in done if row.core >= 0) == sorted(
            (job.arrival, job.start, job.finish, asked.steps, asked.tenant) for job, asked in jobs_of
        )


def test_what_is_shown_and_written() -> None:
    result = call("serve", "s.json", "--json", "r.json", "--csv", "r.csv")
    expected = serving(run("s.json"))
    assert result.stdout.startswith(Serving.to_text(expected) + "\n\nmakespan ")
    content = json.loads(Path("r.json").read_text())
    assert {key: content[key] for key in Serving.to_dict(expected)} == Serving.to_dict(expected)
    with open("r.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["request"]) for row in rows) == list(range(702))
    assert {row["job"] for row in rows} == {"lstm-256", "lstm-512", "late"}
    away = [row for row in rows if row["core"] == "-1"]
    assert len(away) == expected.rejected == content["rejected"] > 0
    assert all(row["finish"] == "-1" for row in away)


def test_processes_go_on_as_long_as_it_takes() -> None:
    served = serve(SCENARIO, requests=3000)
    assert served.serving.requests + served.serving.rejected == 3000
    assert served.serving.little.difference == 0
    assert serve(SCENARIO, requests=100).serving.requests < 101


@pytest.mark.slow
@pytest.mark.needs_core
def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    data = {**SCENARIO, "jobs": SCENARIO["jobs"][:1]}

    def peak(requests: int) -> int:
        tracemalloc.start()
        serve(data, requests=requests, window=256)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(100)
    # what grows are the latencies, 16 bytes a request until there are too many to keep (2^20), copied once or twice
    assert peak(1_500) - peak(600) < 900 * 100


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--requests", "0"), "requests: must be from 1 to 1,000,000,000, got 0"),
        (("--requests", "many"), "is not a valid integer"),
        (("--set", 'jobs.0.arrival={"kind": "closed", "clients": 2, "think_ms": 1}'), "clients wait for their answers"),
        (("--until-half-width", "much"), "'much' is not a share above 0 and below 1, like 5% or 0.05"),
        (("--until-half-width", "100%"), "'100%' is not a share above 0 and below 1, like 5% or 0.05"),
        (("--until-half-width", "200%"), "'200%' is not a share above 0 and below 1, like 5% or 0.05"),
        (("--percentile", "100"), "--percentile: must be above 0 and below 100, got 100\n"),
        (("--percentile", "nan"), "--percentile: must be above 0 and below 100, got nan\n"),
        (("--set", "jobs.0.arrival.rate_per_second=-1"), "must be greater than 0"),
        (("--csv", "r.txt"), "expected a file name that ends in .csv"),
        (("--csv", "no/r.csv"), "there is no folder"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], sentence: str) -> None:
    # a queue of one would turn most of the many away
    result = call("serve", "s.json", "--set", "jobs.0.queue_limit=null", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert not Path("r.csv").exists()


def test_only_the_wrong_percentile_is_named() -> None:
    with pytest.raises(InputError, match=r"^percentile: must be above 0 and below 100, got 0, -1$"):
        serve("s.json", percentiles=(50.0, 0.0, 99.0, -1.0))


OVERLOAD: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [{"model": "lstm-256", "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e8}}],
}


@pytest.mark.needs_core
def test_a_machine_that_is_full_says_what_it_has_counted() -> None:
    Path("o.json").write_text(json.dumps(OVERLOAD))
    result = call("serve", "o.json", "--requests", "20000", "--json", "o.out.json")
    served = json.loads(Path("o.out.json").read_text())
    assert result.exit_code == 0
    assert (served["ended"], served["verdict"]) == ("full", "unstable")
    assert 8192 <= served["requests"] < 20_000
    assert served["full_at_cycle"] > 0
    assert "unstable: more requests than there is room for (8,192) were in the machine at once" in result.stdout
    assert f"stopped after {served['requests']:,} requests" in result.stderr


def test_what_is_counted_then_is_what_a_run_of_so_many_counts() -> None:
    full = serve(OVERLOAD, requests=2000, window=64)
    again = serve(OVERLOAD, requests=full.serving.requests)
    assert (full.ended, again.ended) == ("full", "all")
    assert 64 <= full.serving.requests < 2000
    assert (again.serving.little, again.serving.windows) == (full.serving.little, full.serving.windows)


@pytest.mark.needs_core
def test_one_giant_burst_cannot_go_on() -> None:
    Path("o.json").write_text(json.dumps(OVERLOAD))
    result = call("serve", "o.json", "--set", "jobs.0.arrival=0", "--set", "jobs.0.count=9000")
    assert result.exit_code == 0
    assert "cannot go on: more requests than there is room for" in result.stdout


@pytest.mark.needs_core
def test_serving_goes_on_until_the_intervals_are_narrow() -> None:
    job = {"model": "lstm-256", "steps": 2, "arrival": {"kind": "poisson", "rate_per_second": 300_000}}
    data = {"chip": "column-npu-16k", "jobs": [job]}
    Path("u.json").write_text(json.dumps(data))
    result = call("serve", "u.json", "--until-half-width", "8%", "--percentile", "90", "--json", "u.out.json")
    served = json.loads(Path("u.out.json").read_text())
    assert (result.exit_code, served["ended"], served["until_half_width"]) == (0, "half width", 0.08)
    for name in ("mean", "p90"):
        own = served["latency_cycles"][name]
        assert own["half_width"] <= 0.08 * own["value"] * 1.05, "the last ones were under way when it was decided"
    assert f"intervals within 8 % after {served['requests']:,} requests" in result.stdout
    limited = serve(data, requests=300, until_half_width=0.01)
    assert (limited.ended, limited.serving.requests) == ("limit", 300)


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "--requests", "200"),
        ("saturate", "--bound-ms", "1", "--most-requests", "200"),
        ("load-latency", "--loads", "0.3", "--requests", "200"),
    ],
)
def test_what_a_preset_was_not_fitted_to_is_said(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "chip: brainwave-s10\njobs:\n  - model: {layers: [{cell: gru-lbr0, hidden: 512, input: 512}]}\n    steps: 1\n"
        "    count: 5\n    arrival: {kind: poisson, rate_per_second: 10000}\n"
    )
    result = call(command[0], str(path), *command[1:])
    assert result.exit_code == 0, result.output
    assert result.stderr.count("has cell gru-lbr0, and fitted are lstm and gru only") == 1
