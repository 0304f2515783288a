"""`lstmsim diff`: differences that are known by hand, kept programs, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.diff.described import changed
from lstmsim.studies.diff.events import first_issue
from lstmsim.studies.diff.result import Parting
from lstmsim.studies.diff.sides import of_run
from tests.cli.runner import call

JOB = {"model": "lstm-256", "steps": 5}
ONE: dict[str, Any] = {"name": "one", "chip": "column-npu-16k", "jobs": [JOB]}
TWO: dict[str, Any] = {**ONE, "jobs": [{"name": "a", **JOB}, {"name": "b", **JOB}]}
DEMO = Path(__file__).parents[3] / "experiments" / "scenarios" / "demo.yaml"


def write(path: Path, data: dict[str, Any]) -> str:
    path.write_text(json.dumps(data))
    return str(path)


def refused(*arguments: str) -> str:
    done = call("diff", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_command_gives_the_contract(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.json", TWO), write(tmp_path / "b.json", ONE)
    done = call("diff", a, b, "--json", "-")
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    sides = [json.loads(call("simulate", each, "--json", "-").stdout) for each in (a, b)]
    assert data["makespan_cycles"] == [each["makespan_cycles"] for each in sides]
    for at in (0, 1):
        assert sum(row["cycles"][at] for row in data["path"]) == data["makespan_cycles"][at]
        assert {name: pair[at] for name, pair in data["cores"][0]["cycles"].items()} == sides[at]["cores"][0]["cycles"]
    assert data["cores"][0]["ways"] == [1, 1]
    jobs = {row["job"]: row for row in data["jobs"]}
    assert jobs["a"]["latency_cycles"][1] is jobs["a"]["cycles"]["array"][1] is None
    assert jobs["lstm-256"]["latency_cycles"] == [None, 364]
    assert data["time"].keys() == {"clock_ms", "cycles_ms"}
    assert data["parts_at"].keys() == {"cycle", "core", "a", "b", "why"}
    assert data["verdict"] in ("faster", "slower", "same", "cannot tell")
    assert all(row.keys() == {"key", "values", "cores"} for row in data["changed"])


def test_twice_the_cores_take_half_the_time() -> None:
    single = "chip.cores.0.threads=1"
    found = lstmsim.diff(TWO, overrides=[single, "chip.cores.0.count=2"], overrides_a=[single])
    # a job takes 364 cycles; on one core and thread the second comes after the first
    assert found.makespan_cycles == (728, 364)
    assert [row.cycles.get("queue", (0, 0)) for row in found.jobs] == [(0, 0), (364, 0)]
    assert found.cores[1].ways == (None, 1)
    assert found.cores[1].cycles["busy"] == (None, found.cores[0].cycles["busy"][1])
    assert found.verdict == "faster"
    why = "in A b is in the queue, with no thread free, until cycle 364; the one key that changed is chip.cores.0.count"
    assert found.parts_at == Parting(0, 1, "b waits in the queue", "b begins on core 1", why)
    assert "only B has it" in found.to_text()


def test_cores_that_change_alike_are_one_change() -> None:
    jobs = [{"name": name, **JOB} for name in "abcdefghijkl"]
    found = lstmsim.diff(
        {**ONE, "jobs": jobs}, overrides=["chip.cores.0.threads=1"], overrides_a=["chip.cores.0.count=4"]
    )
    # one core for four with other threads: three have gone, one has changed
    assert [(each.key, each.cores) for each in found.changed] == [
        ("chip.cores.0.threads", (0,)),
        ("chip.cores.0.count", ()),
    ]
    four = "chip.cores.0.count=4"
    found = lstmsim.diff({**ONE, "jobs": jobs}, overrides=[four, "chip.cores.0.threads=1"], overrides_a=[four])
    assert [(each.key, each.values, each.cores) for each in found.changed] == [
        ("chip.cores.0.threads", (2, 1), (0, 1, 2, 3))
    ]
    assert found.parts_at is not None
    assert found.parts_at.why.endswith("; the one key that changed is chip.cores.0.threads in 4 cores")
    assert "chip.cores.0.threads in 4 cores  2  1" in found.to_text()


def test_a_latency_costs_its_cycles_in_every_step() -> None:
    found = lstmsim.diff(ONE, overrides=["chip.cores.0.latency.writeback=6"])
    # two cycles more in each of five steps: four times before the next step, once before the end
    assert [(row.what, row.why, row.cycles[1] - row.cycles[0]) for row in found.path[:2]] == [
        ("tail pipeline", "hazard", 8),
        ("tail pipeline", "result", 2),
    ]
    assert found.makespan_cycles == (364, 374)
    assert found.parts_at is not None
    assert found.parts_at.a.startswith("array issues lstm-256, layer 0, step 1")
    assert found.parts_at.b == "array issues nothing"
    assert "in B lstm-256 waits for results (hazard) until cycle" in found.parts_at.why
    assert found.lag is not None
    assert (found.lag.step, found.lag.cycles, found.lag.behind) == (1, 2, 2)


def test_twice_the_clock_is_half_the_time_and_no_cycle() -> None:
    found = lstmsim.diff(ONE, overrides=["chip.frequency_mhz=520"])
    assert (found.makespan_cycles, found.parts_at, found.cycles_ms) == ((364, 364), None, 0.0)
    assert found.clock_ms == -364 / 520 / 1000
    assert found.verdict == "faster"
    text = found.to_text()
    first = " ".join(text.split("\n\n")[0].split())
    assert (
        first == "B is faster: 0.0007 ms, A 0.0014 (50.0 % less); 364 cycles on both sides; by the clock: -0.0007 ms."
    )
    assert "Clock is the price of a period at the cycles taken" in text
    assert "Both sides do the same in every cycle." in text


@pytest.mark.skipif(not DEMO.is_file(), reason="the example scenarios are not beside the tests")
def test_a_job_that_loses_is_in_the_first_sentence() -> None:
    text = lstmsim.diff(DEMO, overrides=["chip.cores.0.threads=4"]).to_text()
    first = " ".join(text.split("\n\n")[0].split())
    assert first.startswith("B is faster: 7,015 cycles, A 7,488 (6.3 % less); the critical path: tail pipeline, for")
    assert first.endswith("but job speech takes 3,090 cycles longer, the most of 2 that lose.")


def test_a_path_that_is_one_of_several_is_called_so() -> None:
    found = lstmsim.diff(ONE, TWO, overrides=["chip.cores.0.count=2"])
    # one job has one chain; of two equal jobs, each on a core, either could be called critical
    assert found.several_paths == (False, True)
    assert "The path of B is one of several of equal length" in " ".join(found.to_text().split())
    assert "one of several" not in lstmsim.diff(ONE, ONE).to_text()


def test_another_policy_is_named() -> None:
    jobs = [{"model": "lstm-512", "steps": 3}, {"model": "lstm-256", "steps": 3}]
    found = lstmsim.diff({**ONE, "jobs": jobs}, overrides=["chip.cores.0.thread_policy=fine"])
    assert found.parts_at is not None
    assert "could issue: by its policy (" in found.parts_at.why


def test_other_tiles_are_not_compared_one_by_one() -> None:
    found = lstmsim.diff(ONE, overrides=["chip.cores.0.ep=8"])
    assert found.apart == ("lstm-256",)
    assert found.lag is not None
    assert "only starts and finishes are aligned" in found.to_text().replace("\n", " ")


def test_names_of_equal_models_do_not_count() -> None:
    layers = [{"cell": "lstm", "hidden": 256, "input": 256}]
    models = [{"name": name, "layers": layers} for name in ("m", "n")]
    sides = [
        {**ONE, "name": str(number), "jobs": [{"name": "j", "model": each, "steps": 5}]}
        for number, each in enumerate(models)
    ]
    assert lstmsim.diff(*sides).changed == ()
    other = {"name": "n", "layers": [{**layers[0], "hidden": 128}]}
    keys = [
        each.key
        for each in lstmsim.diff(sides[0], {**sides[1], "jobs": [{**sides[1]["jobs"][0], "model": other}]}).changed
    ]
    assert keys == ["jobs.0.model.name", "jobs.0.model.layers.0.hidden"]


def test_jobs_of_entries_with_other_counts_are_paired() -> None:
    found = lstmsim.diff(ONE, overrides=["jobs.0.count=3"])
    assert [row.numbers for row in found.jobs] == [(0, 0), (None, 1), (None, 2)]
    assert "only in B: lstm-256 #2, lstm-256 #3" in found.to_text()


def test_rejected_jobs_have_no_latency() -> None:
    found = lstmsim.diff({**TWO, "jobs": [*TWO["jobs"], {"name": "c", **JOB}]}, overrides=["jobs.2.queue_limit=0"])
    assert found.jobs[2].latency_cycles[1] is None
    assert found.jobs[2].latency_cycles[0] is not None
    assert "B rejects 1 job: c" in found.to_text()
    # who serves fewer has less to do
    assert found.makespan_cycles[1] < found.makespan_cycles[0]
    assert found.verdict == "cannot tell"
    assert "; one side serves fewer jobs" in " ".join(found.to_text().split())
    assert found.parts_at is not None
    assert found.parts_at.b == "c is rejected"


def test_path_and_jobs_are_those_that_simulate_explains() -> None:
    runs = [lstmsim.run(TWO), lstmsim.run(TWO, overrides=["chip.cores.0.threads=1"])]
    found = lstmsim.diff(*runs)
    for side, each in enumerate(runs):
        data = lstmsim.explain(each).to_dict()
        parts = {(part["what"], part["why"]): part["cycles"] for part in data["parts"]}
        assert {(row.what, row.why): row.cycles[side] for row in found.path if row.cycles[side]} == parts
        cycles = [{name: pair[side] for name, pair in row.cycles.items() if pair[side]} for row in found.jobs]
        assert cycles == [one["cycles"] for one in data["requests"]]


def test_kept_programs(tmp_path: Path) -> None:
    runs = [lstmsim.run(ONE), lstmsim.run(ONE, overrides=["chip.cores.0.latency.writeback=6"])]
    names = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    for each, name in zip(runs, names, strict=True):
        lstmsim.save_program(each, name)
    found, whole = lstmsim.diff(*names), lstmsim.diff(*runs)
    assert (found.makespan_cycles, found.path, found.lag) == (whole.makespan_cycles, whole.path, whole.lag)
    assert [(row.job, row.latency_cycles, row.cycles) for row in found.jobs] == [
        (row.job, row.latency_cycles, row.cycles) for row in whole.jobs
    ]
    assert {each.key.partition(",")[0] for each in found.changed} == {"operations.result_cycles", "needs.delay"}
    assert lstmsim.diff(lstmsim.load_program(names[0]), names[0]).verdict == "same"
    assert call("diff", *names).exit_code == 0


def test_only_merged_differently_is_no_difference() -> None:
    run = lstmsim.run(ONE)
    import numpy as np

    rows = np.array([[0, 0, 0, 0, 0, 0, 0, 3, 2]])
    cut = np.array([[0, 0, 0, 0, 0, 0, 0, 1, 2], [2, 0, 0, 0, 0, 0, 0, 2, 2]])
    late = np.array([[0, 0, 0, 0, 0, 0, 0, 1, 2], [3, 0, 0, 0, 0, 0, 0, 2, 2]])
    assert first_issue(rows, cut) is None
    assert first_issue(rows, late) == (0, [2, 0, 0, 0, 0, 0, 0])
    assert first_issue(late, rows) == (1, [2, 0, 0, 0, 0, 0, 0])
    assert changed(of_run("a", run), of_run("b", run)) == ()


def test_what_is_refused(tmp_path: Path) -> None:
    one, program = write(tmp_path / "one.json", ONE), str(tmp_path / "p.npz")
    lstmsim.save_program(lstmsim.run(ONE), program)
    assert "no-such.yaml" in refused("no-such.yaml", one)
    assert (
        refused(one) == "Error: expected a second scenario or program, or a change of the first (--set), got neither\n"
    )
    assert "compares two scenarios, or two programs" in refused(one, program)
    assert "changes scenarios, not a kept program" in refused(program, program, "--set", "jobs.0.steps=1")
    assert "nonsense" in refused(one, "--set", "chip.nonsense=1")
    assert "is also the input" in refused(one, one, "--json", one)
    (tmp_path / "bad.npz").write_bytes(b"PK")
    assert "bad.npz" in refused(str(tmp_path / "bad.npz"), program)
    assert call("diff", one, one).stdout.startswith("B is as fast as A: 364 cycles on both sides.")
    with pytest.raises(lstmsim.InputError, match="must be a file's path"):
        lstmsim.diff(5, ONE)


@pytest.mark.slow
def test_picture_and_page(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("d.svg", "d.html", "d.json")]
    one = write(tmp_path / "one.json", {**TWO, "name": "<b>"})
    options = ("--picture", files[0], "--report", files[1], "--json", files[2])
    done = call("diff", one, "--set", "chip.cores.0.threads=1", *options)
    assert done.exit_code == 0, done.stderr
    drawn, page = (Path(each).read_text() for each in files[:2])
    assert "they part at cycle 0" in drawn
    assert "B: one.json chip.cores.0.threads=1, 728 cycles" in drawn
    assert page.count('src="data:image/svg+xml;base64,') == 1
    assert "<b>" not in page
    assert "THE CRITICAL PATH" in page
    assert 'B is slower: <a href="#rows">728</a> cycles' in page


@pytest.mark.slow
def test_stamps_are_those_of_both_sides() -> None:
    short = {**ONE, "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}, "steps": 1}]}
    sides = [lstmsim.run(short), lstmsim.run({**short, "chip": "v100"})]
    found = lstmsim.diff(*sides)
    assert found.stamps == tuple(each.report.stamp for each in sides)
    data = found.to_dict()
    assert [data["stamp"]["chip"], *(each["chip"] for each in data["stamps"])] == [
        "column-npu-16k",
        "column-npu-16k",
        "v100",
    ]
    assert found.to_text().count("Compared with: ") == 2
    same = lstmsim.diff(short, short)
    assert same.stamps == (sides[0].report.stamp,)
    assert "stamps" not in same.to_dict()
