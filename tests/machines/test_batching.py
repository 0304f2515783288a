"""Batches of requests: the recorded cases of docs/batching.md on both engines, and what must hold (its section 12)."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from lstmsim import Job, Scenario, compare, explain, run, serve, simulate, sweep
from lstmsim.base.errors import InputError, ReplayError
from lstmsim.engines import ENGINES
from lstmsim.machines.column.hardware import vectors
from lstmsim.machines.column.sizes import Sizes
from lstmsim.machines.hardware import Stored
from lstmsim.model.batching import Batching
from lstmsim.program.accounts import totals_of
from lstmsim.program.trace import PAUSES, TASKS
from lstmsim.studies.serve.metrics import served as served_by
from lstmsim.studies.serve.request import Row
from lstmsim.studies.shared.loading import load_scenario
from lstmsim.studies.simulate.page.page import report_page
from lstmsim.studies.simulate.run import check_numerics
from tools.contract import differences, read_cases

CASES = read_cases(str(Path(__file__).parents[1] / "data" / "contract_cases_batching.json"))
#: Recorded when packing took 16 elements a cycle and products with one row packed, too (docs/multicore.md, section 9).
DURATIONS = {"table-xeon-gold-5122-5": ["chip.cores.0.pack_per_cycle=16", "chip.cores.0.gemv=false"]}


@pytest.mark.parametrize("name", DURATIONS)
def test_recorded_durations_are_those_of_the_keys_of_then(name: str) -> None:
    case = next(case for case in CASES if case["name"] == name)
    report = run(case["scenario"], overrides=DURATIONS[name]).report
    expected = case["expected"]
    assert [(job.start, job.finish) for job in report.jobs] == [
        (job["start"], job["finish"]) for job in expected["jobs"]
    ]
    assert [list(each.members) for each in report.batches] == [members for *_, members in expected["batches"]]


SMALL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
TWO_WAYS = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8, "bidirectional": True}]}


@pytest.mark.parametrize(
    ("engine", "part"), [("fast", 1), ("reference", 5), pytest.param("reference", 1, marks=pytest.mark.long)]
)
def test_recorded_cases(engine: str, part: int) -> None:
    """The reference engine, which takes nine times as long, runs every fifth one in the usual run."""
    cases = [case for case in CASES if case["name"] not in DURATIONS]
    assert len(cases) >= 88
    cases = cases[::part]
    assert {case["name"]: lines for case in cases if (lines := differences(case, engine))} == {}


def _scenario(batching: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    core = {"npe": 64, "ep": 4, "vp": 16, "threads": 2}
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [core, core]}
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
    arrival = {"kind": "poisson", "rate_per_second": 2e6, "seed": 3}
    job = {"name": "a", "model": model, "steps": [1, 2, 3, 4] * 10, "count": 40, "arrival": arrival} | keys
    return {"chip": chip, "jobs": [job | ({} if batching is None else {"batching": batching})]}


@pytest.mark.halved
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", ["dynamic", "window"])
@pytest.mark.parametrize("lengths", ["pad", "equal", "ragged"])
def test_batches_of_one_are_no_batches(engine: str, policy: str, lengths: str) -> None:
    alone = run(_scenario(None), engine=engine).trace
    own = {"max_batch_size": 1, "policy": policy, "max_wait_cycles": 90, "lengths": lengths}
    trace = run(_scenario(own), engine=engine).trace
    assert (trace.issues == alone.issues).all()
    assert (trace.tasks[:, :-1] == alone.tasks[:, :-1]).all()


@pytest.mark.halved
@pytest.mark.parametrize(
    ("policy", "lengths"),
    [(policy, lengths) for policy in ("dynamic", "window") for lengths in ("pad", "equal", "ragged")]
    + [("continuous", "pad")],
)
@pytest.mark.parametrize("wait", [0, 60])
def test_engines_agree(policy: str, lengths: str, wait: int) -> None:
    own = {"max_batch_size": 3, "policy": policy, "max_wait_cycles": wait, "lengths": lengths}
    keys = {"queue_limit": 2, "patience": 400}
    fast, reference = (run(_scenario(own, **keys), engine=engine) for engine in ("fast", "reference"))
    assert fast.trace == reference.trace
    assert fast.totals == reference.totals
    assert fast.report.batches == reference.report.batches


def test_padding_is_no_useful_work() -> None:
    report = simulate(_scenario({"max_batch_size": 4}, steps=[1, 3], count=2, arrival=0))
    assert sum(core.macs for core in report.cores) == 4 * 4 * 8 * 16
    assert report.batching is not None
    assert report.batching.padding_steps == pytest.approx(2 / 6)
    assert report.batching.sizes == (0, 1, 0, 0)


@pytest.mark.parametrize(
    ("key", "keys", "own"),
    [
        ("batching.policy", {"model": TWO_WAYS}, {"policy": "continuous"}),
        ("batching.max_batch_size", {}, {"max_batch_size": 65}),
        ("batching.max_batch_size", {}, {"max_batch_size": 0}),
        ("batch", {"batch": 2}, {}),
        ("split", {"split": "rows"}, {}),
        ("frame_interval", {"frame_interval": 3}, {}),
    ],
)
def test_refused(key: str, keys: dict[str, Any], own: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"jobs\.0\.{key}"):
        simulate(_scenario({"max_batch_size": 2} | own, **keys))


@pytest.mark.parametrize(
    ("chip", "key", "own"),
    [
        ("intel-npu-rtl", "lengths", {"lengths": "ragged"}),
        ("epyc-7742", "lengths", {"lengths": "ragged"}),
        ("epyc-7742", "policy", {"policy": "continuous"}),
    ],
)
def test_what_a_machine_does_not_have_is_refused_at_its_key(chip: str, key: str, own: dict[str, Any]) -> None:
    job = {"model": "lstm-256", "steps": 1, "count": 2, "batching": {"max_batch_size": 2} | own}
    with pytest.raises(InputError, match=rf"jobs\.0\.batching\.{key}: a .* has no"):
        simulate({"chip": chip, "jobs": [job]})
    # in Python, too
    loaded = load_scenario({"chip": chip, "jobs": [{"model": "lstm-256", "steps": 1}]})
    with pytest.raises(InputError, match=rf"job lstm-256: batching\.{key}: a .* has no"):
        simulate(Scenario(loaded.chip, [replace(loaded.jobs[0], batching=Batching(2, **own))]))


@pytest.mark.parametrize("hidden", [8, 16])
def test_no_rounds_where_weights_move(hidden: int) -> None:
    """They take turns, or are streamed: 0.5 or 2 KiB beside 0.75 KiB, with room for 1 KiB."""
    own = {"max_batch_size": 1, "policy": "continuous"}
    scenario = _scenario(own)
    scenario["chip"] |= {"memory": {"gb_per_s": 1}, "cores": [{"npe": 64, "ep": 4, "vp": 16, "weight_kib": 1}]}
    scenario["jobs"][0]["model"] = {"name": "m", "layers": [{"cell": "lstm", "hidden": hidden, "input": hidden}]}
    other = {"name": "n", "layers": [{"cell": "lstm", "hidden": 8, "input": 16}]}
    with pytest.raises(InputError, match=r"job a #1: batching\.policy: continuous is not simulated where weights"):
        simulate(scenario | {"jobs": [scenario["jobs"][0], {"name": "b", "model": other, "steps": 1}]})


def test_no_member_leaves_where_row_blocks_are_streamed() -> None:
    """2 KiB of weights beside room for 1 KiB; where they are loaded as a whole, members leave."""
    scenario = _scenario({"max_batch_size": 2, "lengths": "ragged"})
    scenario["chip"] |= {"memory": {"gb_per_s": 1, "prefetch_blocks": 1}}
    scenario["chip"]["cores"] = [{"npe": 64, "ep": 4, "vp": 16, "weight_kib": 1}]
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}
    scenario["jobs"] = [scenario["jobs"][0] | {"model": model}]
    with pytest.raises(InputError, match=r"job a #1: batching\.lengths: ragged is not simulated where weights are st"):
        simulate(scenario)
    scenario["jobs"][0]["batching"]["lengths"] = "pad"
    assert simulate(scenario).memory_busy_cycles


def test_keys_without_effect_are_remarked() -> None:
    own = {"max_batch_size": 2, "policy": "continuous", "max_wait_cycles": 9, "lengths": "equal"}
    report = simulate(_scenario(own, count=4, steps=1))
    text = "job a: `max_wait_cycles` and `lengths` of `batching` mean nothing where `policy` is continuous"
    assert report.remarks == (text,)
    assert simulate(_scenario({"max_batch_size": 2, "policy": "continuous"}, count=4, steps=1)).jobs == report.jobs


def test_a_round_is_a_batch_of_one_step() -> None:
    """Equal requests that come together take as long as so many rounds of them (section 12, point 6)."""
    for chip in ("column-npu-16k", "intel-npu-rtl"):
        job = {"model": "lstm-256", "steps": 5, "count": 4}
        whole = simulate({"chip": chip, "jobs": [job | {"batching": {"max_batch_size": 4, "policy": "continuous"}}]})
        round_ = simulate({"chip": chip, "jobs": [{"model": "lstm-256", "steps": 1, "batch": 4}]})
        assert whole.makespan_cycles == 5 * round_.makespan_cycles
        assert whole.batching is not None
        assert whole.batching.sizes == (0, 0, 0, 5)


@pytest.mark.parametrize(
    "own", [{}, {"policy": "continuous"}, {"lengths": "ragged"}, {"policy": "window", "max_wait_cycles": 90}]
)
def test_served_as_simulated(own: dict[str, Any]) -> None:
    """Figures of batches, threads and queues are those of a simulation of the same requests; Little's law is exact."""
    scenario = _scenario({"max_batch_size": 3} | own)
    pool = scenario["jobs"][0]
    scenario["jobs"] = [
        pool | {"batching": {"max_batch_size": 3, "pool": "p"} | own},
        pool | {"name": "b", "count": 20, "steps": 2, "batching": {"max_batch_size": 3, "pool": "p"} | own},
    ]
    whole = run(scenario)
    served = serve(scenario).serving
    simulated = served_by(whole.scenario, whole.program, whole.report, whole.totals, slowdowns=True)
    assert served.batching == simulated.batching is not None
    assert {n: each.batching for n, each in served.tenants.items()} == {
        n: each.batching for n, each in simulated.tenants.items()
    }
    assert served.service_cycles == simulated.service_cycles
    assert (served.little, served.little_waiting) == (simulated.little, simulated.little_waiting)
    assert served.little.difference == served.little_waiting.difference == 0
    assert served.service_cycles == sum(each.finish - each.start for each in whole.report.batches)


def test_requests_of_rounds_are_told_the_thread_of_the_first_one() -> None:
    """As docs/batching.md, section 2, says; with two threads later rounds often have the other one."""
    scenario, rows = _scenario({"max_batch_size": 2, "policy": "continuous"}), list[Any]()
    threads = {(job.arrival, job.start, job.finish, job.thread) for job in simulate(scenario).jobs}
    serve(scenario, rows=rows.extend)
    assert {(row.arrival, row.start, row.finish, row.thread) for row in rows} == threads


def test_step_by_step_a_request_alone_is_another_one() -> None:
    """Of two entries with one model, the time alone of each is its own: 2 steps take 115 cycles, 2 rounds of 59 118."""
    scenario = _scenario(None)
    entry = scenario["jobs"][0] | {"steps": 2, "count": 1}
    rounds = {"name": "b", "arrival": 5000, "batching": {"max_batch_size": 4, "policy": "continuous"}}
    scenario["jobs"] = [entry | {"arrival": 0}, entry | rounds]
    whole = run(scenario)
    simulated = served_by(whole.scenario, whole.program, whole.report, whole.totals, slowdowns=True)
    assert [job.latency for job in whole.report.jobs] == [115, 118]
    for each in (simulated, serve(scenario).serving):
        assert [tenant.slowdown for tenant in each.tenants.values()] == [1, 1]


def test_a_model_alone_waits_for_nobody() -> None:
    """`compare --each` once counted 5,000 cycles of a wait for company as the model's."""
    scenario = _scenario({"max_batch_size": 4, "max_wait_cycles": 5000}, steps=2, count=1, arrival=0)
    rounds = {"name": "b", "batching": {"max_batch_size": 4, "policy": "continuous"}}
    scenario["jobs"].append(scenario["jobs"][0] | rounds)
    made = compare(scenario, chips=["brainwave-s10"], each=True)
    assert [(each.name, row[0].cycles) for each, row in zip(made.workloads, made.entries, strict=True)] == [
        ("m, 2 steps", 115),
        ("m, 2 steps one by one", 118),
    ]


def test_a_batch_may_have_more_phases_than_a_request_alone() -> None:
    """On a row-wise NPU, of more than `vectors`: its trace once could not be read."""
    row = {"tiles": 2, "engines": 4, "lanes": 4, "native_dimension": 4}
    scenario = _scenario({"max_batch_size": 4}, steps=2, count=4, arrival=0)
    scenario["chip"] = {"kind": "row-npu", "frequency_mhz": 300, "cores": [row]}
    result = run(scenario)
    assert run(scenario, engine="reference").report.cores == result.report.cores
    assert totals_of(result.program, result.trace).work.sum() == sum(job.macs for job in result.report.jobs)


def test_entries_of_a_pool_are_equal() -> None:
    scenario = _scenario({"max_batch_size": 2, "pool": "p"})
    other = {**scenario["jobs"][0], "name": "b", "batching": {"max_batch_size": 3, "pool": "p"}}
    with pytest.raises(InputError, match=r"jobs\.1\.batching\.pool: .*batching\.max_batch_size of entry 1"):
        simulate(scenario | {"jobs": [scenario["jobs"][0], other]})


@pytest.mark.parametrize(("key", "other"), [("max_wait_us", 2), ("max_wait_cycles", 7), ("policy", "window")])
def test_entries_of_a_pool_wait_as_long(key: str, other: object) -> None:
    own = {"max_batch_size": 2, "pool": "p", "policy": "dynamic"} | ({} if key == "policy" else {key: 1})
    scenario = _scenario(own)
    second = {**scenario["jobs"][0], "name": "b", "batching": own | {key: other}}
    with pytest.raises(InputError, match=rf"jobs\.1\.batching\.pool: .*batching\.{key} of entry 1"):
        simulate(scenario | {"jobs": [scenario["jobs"][0], second]})


#: Requests of two models on the smallest device; what is padded is no useful work.
DEVICE = {
    "chip": "edge",
    "dispatch": "priority",
    "jobs": [
        {
            "model": {"name": "m", "layers": [{"cell": "lstm", "input": 8, "hidden": 8}]},
            "steps": [1, 2, 1, 2],
            "count": 4,
            "arrival": [0, 10, 30000, 250000],
            "weights": "warm",
            "batching": {"max_batch_size": 2, "max_wait_cycles": 100},
        },
        {
            "model": {"name": "n", "layers": [{"cell": "gru", "input": 8, "hidden": 4}]},
            "steps": 2,
            "count": 2,
            "priority": 1,
            "weights": "cold",
        },
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_device_runs_its_batches_as_served(engine: str) -> None:
    """Each as it runs alone; the cores' cycles are those of the batches, and idle between them."""
    result, rows = run(DEVICE, engine=engine), list[Row]()
    serve(DEVICE, rows=rows.extend)
    report = result.report
    assert sorted((each.start, each.finish) for each in report.jobs) == sorted(
        (each.start, each.finish) for each in rows
    )
    assert [len(each.members) for each in report.batches] == [1, 1, 2, 1, 1]
    assert sum(core.macs for core in report.cores) == sum(job.macs for job in report.jobs)
    assert {sum(core.cycles.values()) for core in report.cores} == {4 * report.makespan_cycles}
    alone = [
        simulate({"chip": "edge", "jobs": [_of_device(report.jobs[first].number) | {"batch": size, "steps": steps}]})
        for first, size, steps in ((0, 2, 2), (2, 1, 1), (3, 1, 2), (4, 1, 2), (4, 1, 2))
    ]
    busy = sum(one.cores[0].cycles["busy"] for one in alone)
    assert report.cores[0].cycles["busy"] == busy
    assert any("run nothing before" in each for each in report.remarks)
    assert compare(DEVICE, chips=["column-npu-16k"]).entries[0][0].cycles == report.makespan_cycles
    with pytest.raises(InputError, match="batching: batches of this chip are simulated each alone"):
        _ = result.trace


def _of_device(number: int) -> dict[str, Any]:
    job: dict[str, Any] = DEVICE["jobs"][number > 3]  # type: ignore[index]
    return {key: value for key, value in job.items() if key in ("model", "weights")}


def test_cores_with_delta_columns_have_no_batches() -> None:
    scenario = _scenario({"max_batch_size": 2}, density={"x": 0.5, "h": 0.5})
    scenario["chip"]["cores"] = [
        {**core, "delta": {"x": 0.1, "h": 0.1, "group": 4}} for core in scenario["chip"]["cores"]
    ]
    with pytest.raises(InputError, match=r"a batch is refused: .*no batches with `delta`"):
        simulate(scenario)


def test_comparisons_deal_the_inferences_of_a_batch_out_to_threads() -> None:
    """As before column-wise NPUs had batches, and as they are used: four threads' worth of single inferences."""
    jobs = [{"name": "a", "model": "lstm-512", "steps": 10, "batch": 4}]
    column = compare({"chip": "intel-npu-rtl", "jobs": jobs}, chips=["column-npu-64k"]).entries[0][1]
    four = simulate({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 10, "count": 4}]})
    assert column.cycles == four.makespan_cycles == 1504
    assert simulate({"chip": "column-npu-64k", "jobs": jobs}).makespan_cycles == 1341


@pytest.mark.parametrize("keys", [{"batch": 4}, {"batching": {"max_batch_size": 4}}])
def test_fit_counts_the_vectors_of_each_inference(keys: dict[str, Any]) -> None:
    loaded = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2, **keys}]})
    stored = Stored.of(loaded.jobs)
    assert stored.inferences == 4
    core, models = loaded.chip.cores[0], (loaded.jobs[0].model,)
    one, four = (vectors(Sizes(core, models, loaded.precision, each)).memories for each in (Stored(), stored))
    # h of 512 elements, of this step and the one before, in each of the threads; words of 64 banks, and one more
    own = [2 * 512 * core.threads * inferences // 64 + 1 for inferences in (1, 4)]
    assert [each[0].bits for each in (one, four)] == [words * 64 * 8 for words in own]


def test_jobs_in_python_have_batching_as_those_of_files() -> None:
    chip = load_scenario(_scenario(None)).chip
    model = load_scenario(_scenario(None)).jobs[0].model
    own = {"max_batch_size": 2, "pool": "p"}
    jobs = [Job("a", model, 2, batching=own), Job("b", model, 2, batching=own)]
    assert Job("a", model, 2, batching=jobs[0].batching) == jobs[0]
    assert simulate(Scenario(chip, jobs)).batching.sizes == (0, 1)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="a job knows no clock"):
        Job("a", model, 2, batching={**own, "max_wait_us": 3})
    other = Job("c", model, 2, cores=[1], batching=own)
    with pytest.raises(InputError, match=r"job c: batching\.pool: names the pool of job a, whose `cores` differs"):
        simulate(Scenario(chip, [*jobs, other]))
    larger = Job("d", model, 2, batching={**own, "max_batch_size": 3})
    with pytest.raises(InputError, match=r"job d: batching\.pool: names the pool of job a, whose `batching` differs"):
        simulate(Scenario(chip, [*jobs, larger]))


def test_served_padding_is_no_useful_work() -> None:
    scenario = _scenario({"max_batch_size": 2}, steps=[1, 9], count=2, arrival=0)
    whole, report = serve(scenario), simulate(scenario)
    assert whole.makespan_cycles == report.makespan_cycles
    assert (whole.utilization, whole.tops) == (report.utilization, report.tops)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["epyc-7742", "intel-npu-rtl"])
@pytest.mark.parametrize("hidden", [4, 64])
def test_cores_do_the_useful_work_of_the_jobs(chip: str, hidden: int) -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": hidden, "input": hidden}]}
    job = {"model": model, "steps": [1, 3] * 3, "count": 6, "batching": {"max_batch_size": 2}}
    report = simulate({"chip": chip, "jobs": [job]})
    assert sum(core.macs for core in report.cores) == 12 * 4 * hidden * 2 * hidden


def test_weights_of_a_pool_are_one_word() -> None:
    own = {"model": "lstm-256", "steps": 1, "threads": 8, "batching": {"max_batch_size": 2, "pool": "p"}}
    jobs = [{"name": "a", "weights": "warm", **own}, {"name": "b", "weights": "cold", **own}]
    with pytest.raises(InputError, match=r"jobs\.1\.batching\.pool: .* weights of entry 1 is not that of entry 0"):
        simulate({"chip": "epyc-7742", "jobs": jobs})


def test_where_nobody_is_served_there_is_no_latency_and_no_best() -> None:
    """All lose patience before their pool is ripe. A latency of 0 would be the best of a sweep."""
    scenario = _scenario({"max_batch_size": 4, "max_wait_cycles": 10}, steps=2, count=2, patience=0, arrival=[0, 50])
    report = simulate(scenario)
    assert not report.jobs
    assert isnan(report.latency_ms.mean)
    assert report.to_dict()["latency_ms"] is None
    assert "every multiplier" not in report.to_text()
    assert "Nobody was served" in report.to_text()
    assert explain(scenario).to_text().startswith("WHY NOT 100 %: utilization is 0.0 %\nNothing ran.")
    assert "Latency" not in report_page(run(scenario))
    with pytest.raises(InputError, match="nobody was served"):
        compare(scenario, chips=["column-npu-16k"])
    with pytest.raises(InputError, match="all 2 were rejected"):
        serve(scenario)


def test_a_point_at_which_nobody_is_served_is_infeasible(tmp_path: Path) -> None:
    scenario = _scenario({"max_batch_size": 4, "max_wait_cycles": 10}, steps=2, count=2, patience=0, arrival=[0, 50])
    axes = {"wait": {"path": "jobs.0.batching.max_wait_cycles", "values": [0, 10]}}
    found = sweep({"scenario": scenario, "axes": axes, "objectives": {"minimise": ["latency_ms_p99"]}}, tmp_path)
    assert [each["status"] for each in found.to_records()] == ["done", "infeasible"]


def _model(**keys: Any) -> dict[str, Any]:
    return {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8} | keys] * 2}


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(
    ("own", "keys"),
    [
        ({}, {"bidirectional": True, "input": 16}),
        ({"policy": "window", "max_wait_cycles": 90, "lengths": "equal"}, {}),
        ({"policy": "continuous"}, {}),
        ({"lengths": "ragged"}, {"bidirectional": True, "input": 16}),
    ],
)
def test_numbers_of_members_are_those_of_the_request_alone(own: dict[str, Any], keys: dict[str, Any]) -> None:
    result = run(_scenario({"max_batch_size": 3} | own, model=_model(**keys), count=6, steps=[1, 3, 2] * 2))
    checks = check_numerics(result, random_weights=0)
    assert [check.job for check in checks] == [job.name for job in result.scenario.jobs]
    assert all(check.values for check in checks)


@pytest.mark.parametrize(("own", "column"), [({"lengths": "ragged"}, "finish"), ({}, "finish"), ({}, "batch")])
def test_wrong_traces_of_batches_are_found(own: dict[str, Any], column: str) -> None:
    """A member that ends a cycle early has not all of its results; one of no batch is on a thread of another."""
    result = run(_scenario({"max_batch_size": 3} | own, count=3, arrival=0, steps=[2, 3, 3]))
    tasks = result.trace.tasks.copy()
    place = TASKS.place(column)
    tasks[2, place] = tasks[2, place] - 1 if column == "finish" else -1
    result.__dict__["trace"] = replace(result.trace, tasks=tasks)
    with pytest.raises(ReplayError):
        check_numerics(result, random_weights=0)


def test_rounds_of_other_requests_are_found() -> None:
    """A round that another request led is not of this one's states: its step is not there yet."""
    result = run(_scenario({"max_batch_size": 2, "policy": "continuous"}, count=4, arrival=0, steps=[2, 3, 2, 3]))
    pauses = result.trace.pauses.copy()
    place = PAUSES.place("batch")
    pauses[0, place] = pauses[-1, place] + 1 if pauses[0, place] == 0 else 0
    result.__dict__["trace"] = replace(result.trace, pauses=pauses)
    with pytest.raises(ReplayError):
        check_numerics(result, random_weights=0)


@pytest.mark.usefixtures("no_other_machines")
def test_cycles_of_members_are_counted_once_where_a_batch_has_several_threads() -> None:
    """Members beside the first one had those of each thread, and a negative rest."""
    job = {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}, "steps": 2, "count": 3, "threads": 2}
    scenario = {"chip": "xeon-gold-5122", "jobs": [job | {"arrival": [0, 0, 5], "batching": {"max_batch_size": 2}}]}
    first, other, late = explain(scenario).requests
    assert first.cycles == other.cycles
    assert [sum(each.cycles.values()) for each in (first, late)] == [first.latency_cycles, late.latency_cycles]
    assert min(late.cycles.values()) > 0


@pytest.mark.slow
def test_sizes_of_batches_compete_in_a_sweep(tmp_path: Path) -> None:
    """They do the same work: which batch is best is what such a sweep asks (docs/sweeps.md)."""
    scenario = _scenario({"max_batch_size": 2}, steps=2, count=4, arrival=0)
    axes = {
        "size": {"path": "jobs.0.batching.max_batch_size", "values": [1, 4]},
        "policy": {"path": "jobs.0.batching.policy", "values": ["dynamic", "continuous"]},
    }
    points = sweep({"scenario": scenario, "axes": axes}, tmp_path).to_records()
    least = min(each["latency_ms_mean"] for each in points)
    assert [each["pareto"] for each in points] == [int(each["latency_ms_mean"] == least) for each in points]
    assert sum(each["pareto"] for each in points) < 4


@pytest.mark.parametrize("policy", ["dynamic", "continuous"])
def test_jobs_name_their_batch_and_bars_its_size(policy: str) -> None:
    result = run(_scenario({"max_batch_size": 3, "policy": policy}, steps=3))
    report = result.report
    for job in report.jobs:
        assert job.batch == next(at for at, batch in enumerate(report.batches) if job.number in batch.members)
    named = {each["name"]: each["batch"] for each in report.to_dict()["jobs"]}
    assert named == {job.name: job.batch for job in report.jobs}
    # of members with equal steps the first in turn leads
    led: dict[int, set[int]] = {}
    for batch in report.batches:
        led.setdefault(batch.members[0], set()).add(len(batch.members))
    expected = []
    for number, job in enumerate(result.scenario.jobs):
        sizes = led.get(number, {1})
        how = f"{max(sizes)}" if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
        expected.append(job.name if max(sizes) == 1 else f"{job.name} x {how}")
    assert list(result.timeline.jobs) == expected
    assert any(" x " in name for name in expected)
    assert any(" to " in name for name in expected) == (policy == "continuous")
