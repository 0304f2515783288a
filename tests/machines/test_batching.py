"""Batches of requests: the recorded cases of docs/batching.md on both engines, and what must hold (its section 12)."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import pytest

from lstmsim import Job, Scenario, compare, run, serve, simulate, sweep
from lstmsim.base.errors import InputError
from lstmsim.engines import ENGINES
from lstmsim.machines.column.hardware import Sizes, vectors
from lstmsim.machines.hardware import Stored
from lstmsim.studies.shared.loading import load_scenario
from tools.contract import differences, read_cases

CASES = read_cases(str(Path(__file__).parents[1] / "data" / "contract_cases_batching.json"))
#: Recorded with an earlier version of the CPU's timing: its durations are not those of today.
DURATIONS = {"table-xeon-gold-5122-5"}


def _simulated(case: dict[str, Any]) -> bool:
    own = [job["batching"] for job in case["scenario"]["jobs"] if "batching" in job]
    ragged = any(each.get("lengths") == "ragged" for each in own)
    return not ragged and all(each.get("policy") != "continuous" for each in own)


@pytest.mark.parametrize("engine", ENGINES)
def test_recorded_cases(engine: str) -> None:
    cases = [case for case in CASES if _simulated(case) and case["name"] not in DURATIONS]
    assert len(cases) >= 50
    assert {case["name"]: lines for case in cases if (lines := differences(case, engine))} == {}


def _scenario(batching: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    core = {"npe": 64, "ep": 4, "vp": 16, "threads": 2}
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [core, core]}
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
    arrival = {"kind": "poisson", "rate_per_second": 2e6, "seed": 3}
    job = {"name": "a", "model": model, "steps": [1, 2, 3, 4] * 10, "count": 40, "arrival": arrival} | keys
    return {"chip": chip, "jobs": [job | ({} if batching is None else {"batching": batching})]}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", ["dynamic", "window"])
@pytest.mark.parametrize("lengths", ["pad", "equal"])
def test_batches_of_one_are_no_batches(engine: str, policy: str, lengths: str) -> None:
    alone = run(_scenario(None), engine=engine).trace
    own = {"max_batch_size": 1, "policy": policy, "max_wait_cycles": 90, "lengths": lengths}
    trace = run(_scenario(own), engine=engine).trace
    assert (trace.issues == alone.issues).all()
    assert (trace.tasks[:, :-1] == alone.tasks[:, :-1]).all()


@pytest.mark.parametrize("policy", ["dynamic", "window"])
@pytest.mark.parametrize("lengths", ["pad", "equal"])
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
        ("batching.policy", {}, {"policy": "continuous"}),
        ("batching.lengths", {}, {"lengths": "ragged"}),
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


def test_entries_of_a_pool_are_equal() -> None:
    scenario = _scenario({"max_batch_size": 2, "pool": "p"})
    other = {**scenario["jobs"][0], "name": "b", "batching": {"max_batch_size": 3, "pool": "p"}}
    with pytest.raises(InputError, match=r"jobs\.1\.batching\.pool: .*batching\.max_batch_size of entry 1"):
        simulate(scenario | {"jobs": [scenario["jobs"][0], other]})


def test_a_device_forms_batches_where_its_jobs_are_served_as_whole_ones() -> None:
    """A simulation of all its kernels must not leave the key out in silence."""
    jobs = [{"model": "lstm-512", "steps": 1, "count": 4, "batching": {"max_batch_size": 2}}]
    with pytest.raises(InputError, match="a parallel device forms batches in serve"):
        simulate({"chip": "edge", "jobs": jobs})
    assert serve({"chip": "edge", "jobs": jobs}).serving.requests == 4


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
    with pytest.raises(InputError, match="continuous is not simulated yet"):
        Job("a", model, 2, batching={**own, "policy": "continuous"})
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
    assert "nobody was served" in report.to_text()
    with pytest.raises(InputError, match="nobody was served"):
        compare(scenario, chips=["column-npu-16k"])
    with pytest.raises(InputError, match="all 2 were rejected"):
        serve(scenario)


def test_a_point_at_which_nobody_is_served_is_infeasible(tmp_path: Path) -> None:
    scenario = _scenario({"max_batch_size": 4, "max_wait_cycles": 10}, steps=2, count=2, patience=0, arrival=[0, 50])
    axes = {"wait": {"path": "jobs.0.batching.max_wait_cycles", "values": [0, 10]}}
    found = sweep({"scenario": scenario, "axes": axes, "objectives": {"minimise": ["latency_ms_p99"]}}, tmp_path)
    assert [each["status"] for each in found.to_records()] == ["done", "infeasible"]
