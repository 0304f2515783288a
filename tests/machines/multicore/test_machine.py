"""What users see of a multi-core CPU: reports, timelines, traces, explanations, sweeps, comparisons, requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.written import resolved_data
from lstmsim.machines.registry import capability, target_of
from lstmsim.program.stall_reasons import CYCLE_NAMES

#: Two groups of two cores, each with a memory; small caches, so that lines come from the memories again and again.
CHIP: dict[str, Any] = {
    "kind": "multicore",
    "frequency_mhz": 1000,
    "cores": [{"count": 4, "l1_sets": 8, "l2_sets": 16, "nr": 8, "mr": 2, "core_memory_cycles_per_line": 0}],
    "cores_per_llc": 2,
    "cores_per_domain": 2,
    "llc_sets": 64,
}
JOB: dict[str, Any] = {
    "model": {"name": "m", "layers": [{"cell": "lstm", "hidden": 24, "input": 40}]},
    "steps": 4,
    "threads": 2,
}


def scenario(*jobs: dict[str, Any], **chip: Any) -> dict[str, Any]:
    return {"chip": {**CHIP, **chip}, "jobs": list(jobs or [JOB])}


@pytest.fixture(scope="module")
def ran() -> lstmsim.Run:
    return lstmsim.run(scenario({**JOB, "count": 3}))


def test_a_job_says_on_which_cores_it_ran(ran: lstmsim.Run) -> None:
    assert [(job.core, job.cores, job.places) for job in ran.report.jobs] == [
        (0, (0, 1), "0,1"),
        (2, (2, 3), "2,3"),
        (0, (0, 1), "0,1"),
    ]
    alone = lstmsim.simulate(scenario({**JOB, "threads": 1}, JOB | {"threads": None}))
    assert [job.cores for job in alone.jobs] == [(), (0, 1, 2, 3)]


def test_every_cycle_of_a_core_has_a_name_of_this_machine(ran: lstmsim.Run) -> None:
    own = {"busy", "memory", "contention", "barrier", "input", "drain", "idle"}
    for core in ran.report.cores:
        assert sum(core.cycles.values()) == ran.report.makespan_cycles
        assert {name for name, count in core.cycles.items() if count} <= own
        assert core.cycles["memory"]
        assert core.cycles["barrier"]
    assert own <= set(CYCLE_NAMES)
    # the third job has the first two cores, while the others have nothing to do
    assert [bool(core.cycles["idle"]) for core in ran.report.cores] == [False, False, True, True]
    assert sum(core.macs for core in ran.report.cores) == 3 * 4 * 4 * 24 * 64
    frames = lstmsim.simulate(scenario({**JOB, "frame_interval": 100_000}))
    assert frames.cores[0].cycles["input"] > 200_000


def test_rows_are_cores_their_threads_and_each_memory(ran: lstmsim.Run) -> None:
    timeline = ran.timeline
    names = [row.name for row in timeline.rows]
    assert names == [
        *(f"core {core}{part}" for core in range(4) for part in ("", " thread 0")),
        *("memory 0", "memory 1"),
    ]
    assert timeline.unit == "core"
    busy = {row.name: 0 for row in timeline.rows}
    for row, start, end in zip(timeline.row.tolist(), timeline.start.tolist(), timeline.end.tolist(), strict=True):
        busy[timeline.rows[row].name] += end - start
    # each memory is one server: it is never busier than the run is long
    assert 0 < busy["memory 0"] <= timeline.makespan_cycles


@pytest.mark.parametrize("suffix", [".json", ".csv", ".vcd", ".kanata"])
def test_traces_are_written_in_every_format(ran: lstmsim.Run, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"trace{suffix}"
    lstmsim.save_trace(ran.timeline, path)
    text = path.read_bytes().decode("utf-8", "replace")
    assert "memory" in text
    assert "array" not in text.replace("array_", "")
    if suffix == ".vcd":
        assert "$scope module memory_1 $end" in text
        assert "$scope module core4 $end" not in text
        assert "-memory\n" in path.with_suffix(".gtkw").read_text(encoding="utf-8")
    if suffix in (".json", ".csv"):
        again = lstmsim.load_trace(path)
        assert [row.name for row in again.rows] == [row.name for row in ran.timeline.rows]


@pytest.mark.slow
def test_texts_speak_of_cores_and_lanes(ran: lstmsim.Run) -> None:
    text = ran.report.to_text()
    for word in ("FMA lane-cycles", "threads wait for others at a barrier", "macs  lanes"):
        assert word in text
    explanation = lstmsim.explain(lstmsim.run(scenario({**JOB, "count": 2})))
    assert "the unit that counts the threads" in str(explanation.to_dict()["glossary"])
    explained = explanation.to_text()
    for word in ("threads halved", "threads 2 -> 1", "core busy", "barrier pipeline"):
        assert word in explained
    for each in (text, explained):
        assert "PE" not in each.split()
        assert "array" not in each


def test_one_thread_has_no_barrier_and_more_threads_are_a_key_to_sweep(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(scenario({**JOB, "threads": None})))
    axes = {
        "threads": {"path": "jobs.0.threads", "values": [1, 2, 4]},
        "nr": {"path": "chip.cores.0.nr", "values": [8]},
    }
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"name": "t", "scenario": "s.json", "axes": axes}))
    points = lstmsim.sweep(spec, tmp_path / "out").to_records()
    assert [point["threads"] for point in points] == [1, 2, 4]
    assert [point["status"] for point in points] == ["done"] * 3
    assert [bool(point["barrier"]) for point in points] == [False, True, True]
    for point in points:
        alone = lstmsim.simulate(scenario({**JOB, "threads": point["threads"]}))
        assert point["makespan_cycles"] == alone.makespan_cycles
    assert [point["chip_threads"] for point in points] == [4] * 3
    # a point that cannot be says why
    axes["threads"]["values"] = [5]
    spec.write_text(json.dumps({"name": "u", "scenario": "s.json", "axes": axes}))
    (point,) = lstmsim.sweep(spec, tmp_path / "out").to_records()
    assert point["status"] == "infeasible"
    assert "threads=5: must be at most the chip's 4 cores, got 5" in point["reason"]


def test_other_machines_are_compared_without_the_number_of_threads(tmp_path: Path) -> None:
    Path(tmp_path / "s.json").write_text(json.dumps(scenario({**JOB, "batch": 2})))
    compared = lstmsim.compare(tmp_path / "s.json", chips=["column-npu-16k", "v100"], each=True)
    (entries,) = compared.entries
    assert all(entry.known for entry in entries)
    assert [any("`threads` of jobs is left out" in text for text in entry.remarks) for entry in entries] == [
        False,
        True,
        True,
    ]
    one = lstmsim.compare(tmp_path / "s.json", overrides=["jobs.0.threads=4"], chips=["xeon-gold-5122"])
    assert one.entries[0][1].known
    two = lstmsim.compare(scenario(JOB, cores=[{"count": 8}]), overrides=["jobs.0.threads=8"], chips=["xeon-gold-5122"])
    assert "threads: must be at most the chip's 4 cores, got 8" in two.entries[0][1].reason


def test_requests_that_keep_coming_are_served_to_the_cycle_as_jobs_are() -> None:
    warm = {**JOB, "weights": "warm"}
    offered = scenario({**warm, "arrival": {"kind": "poisson", "rate_per_second": 2000, "seed": 3}})
    served = lstmsim.serve(offered, requests=200)
    offered["jobs"][0]["count"] = 200
    report = lstmsim.simulate(offered)
    serving = served.serving
    assert serving.servers == 4
    assert serving.last_finish == report.makespan_cycles
    assert serving.service_cycles == sum(2 * (job.finish - job.start) for job in report.jobs)
    assert serving.load is not None
    # two of the four cores are taken for as long as a job alone takes
    alone = lstmsim.simulate(scenario(warm)).makespan_cycles
    assert serving.load.parts["threads"] == pytest.approx(2000 * alone * 1e-9 * 2 / 4, rel=1e-6)


def test_a_scenario_that_is_written_out_comes_back() -> None:
    loaded = lstmsim.load_scenario(scenario(JOB, {**JOB, "threads": None, "name": "all"}))
    data = resolved_data(loaded)
    assert [entry["threads"] for entry in data["jobs"]] == [2, None]
    assert lstmsim.load_scenario(data).jobs == loaded.jobs


@pytest.mark.parametrize("first", [{"threads": 2}, {}])
def test_a_job_without_threads_takes_all_cores_whatever_stands_before_it(first: dict[str, Any]) -> None:
    data = scenario()
    data["jobs"] = [{**JOB, "threads": 2} | first, {key: value for key, value in JOB.items() if key != "threads"}]
    assert any("all cores" in text for text in lstmsim.load_scenario(data).remarks)


def test_what_it_has_not_is_said() -> None:
    loaded = lstmsim.load_scenario(scenario())
    machine = target_of("multicore")
    assert machine.structural_model() is None
    assert machine.hardware() is None
    assert capability("multicore", "array_search") is None
    assert capability("multicore", "sparse") is None
    assert [text.partition(":")[0] for text in loaded.remarks] == [
        "left out",
        "each job begins with empty caches, so its time includes loading its weights, which machines that keep theirs "
        "on the chip do not pay; the planner of threads is a reconstruction",
    ]
    with pytest.raises(InputError, match="cell 'gru-lbr0' multiplies in 2 stages"):
        lstmsim.simulate(scenario({**JOB, "model": {"layers": [{"cell": "gru-lbr0", "hidden": 8, "input": 8}]}}))
