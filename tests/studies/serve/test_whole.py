"""Whole jobs in place of their operations: the same cycles wherever they are put there."""

from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.program.trace import TASKS
from lstmsim.studies.serve.programs import serving_program
from lstmsim.studies.serve.request import Row
from lstmsim.studies.serve.whole import condensed
from lstmsim.studies.shared.loading import load_scenario
from tests.conftest import EXAMPLES

#: Columns of tasks that serving reads.
READ = ("core", "context", "admitted", "finish", "arrived", "batch")

#: A model whose weights every cache of the tests holds.
SMALL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 64, "input": 32}]}


def _chip(random: np.random.Generator) -> dict[str, Any]:
    count = int(random.integers(1, 4))
    if random.random() < 0.5:
        row = {"count": count, "tiles": int(random.integers(1, 4)), "engines": 4, "lanes": 4, "native_dimension": 4}
        return {"kind": "row-npu", "frequency_mhz": 300, "cores": [row | {"start_cycles": int(random.integers(9))}]}
    cores = [
        {"npe": 64 * each, "ep": 4, "vp": 16 * each, "threads": 1, "switch_cycles": int(random.integers(3))}
        for each in random.integers(1, 3, size=count).tolist()
    ]
    return {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}


def _job(random: np.random.Generator, number: int) -> dict[str, Any]:
    layer = {"cell": str(random.choice(["lstm", "gru", "rnn"])), "hidden": 8, "input": 8}
    layers = [layer, *[layer] * int(random.integers(2))]
    job: dict[str, Any] = {"name": f"j{number}", "model": {"name": "m", "layers": layers}, "count": 12}
    job["steps"] = {"kind": "uniform", "low": 1, "high": 3, "seed": int(random.integers(99))}
    job["arrival"] = {"kind": "periodic", "interval_cycles": int(random.integers(40, 400)), "jitter_cycles": 30}
    job["priority"] = int(random.integers(3))
    for key, value in (("deadline", 300), ("queue_limit", 2), ("patience", 200)):
        if random.random() < 0.4:
            job[key] = value
    if random.random() < 0.4:
        policy, lengths = str(random.choice(["dynamic", "window"])), str(random.choice(["pad", "equal"]))
        job["batching"] = {"max_batch_size": 3, "max_wait_cycles": 60, "policy": policy, "lengths": lengths}
    return job


@pytest.mark.parametrize("seed", range(min(EXAMPLES, 500)))
def test_jobs_that_never_meet_have_the_cycles_of_their_operations(seed: int) -> None:
    random = np.random.default_rng(seed)
    jobs = [_job(random, number) for number in range(int(random.integers(1, 4)))]
    dispatch = str(random.choice(["fcfs", "sjf", "edf", "priority"]))
    scenario = load_scenario({"chip": _chip(random), "dispatch": dispatch, "jobs": jobs})
    program = machines.lower(scenario.chip, scenario.jobs)
    whole = condensed(program)
    assert whole is not program
    assert all(len(core.units) == 1 for core in whole.cores)
    full, short = engines.totals(program), engines.totals(whole)
    for name in READ:
        assert TASKS.of(full.tasks, name).tolist() == TASKS.of(short.tasks, name).tolist(), name
    assert full.makespan_cycles == short.makespan_cycles
    assert full.work.sum() == short.work.sum()


def _cpu(random: np.random.Generator) -> dict[str, Any]:
    """Up to three models on a small CPU, each with threads of its own; some find no line of theirs in its caches."""
    jobs = [_job(random, number) | {"model": SMALL} for number in range(int(random.integers(1, 4)))]
    for job in jobs:
        job["weights"] = str(random.choice(["warm", "cold"], p=[0.8, 0.2]))
        job["threads"] = int(random.integers(1, 9))
        job["arrival"] = {"kind": "periodic", "interval_cycles": int(random.integers(1000, 9000)), "jitter_cycles": 900}
        job.pop("batching", None) if random.random() < 0.5 else None
    changes = {"cores.0.count": 8, "cores_per_llc": 4, "cores_per_domain": int(random.choice([4, 8]))}
    return {"chip": "epyc-7742", "jobs": jobs} | {f"chip.{name}": value for name, value in changes.items()}


@pytest.mark.slow
def test_jobs_of_cpus_that_find_all_in_their_caches_are_served_as_a_whole() -> None:
    served = 0
    for seed in range(8 if EXAMPLES <= 20 else min(EXAMPLES, 400)):
        asked = _cpu(np.random.default_rng(seed))
        overrides = [f"{name}={value}" for name, value in asked.items() if name.startswith("chip.")]
        scenario = load_scenario({name: asked[name] for name in ("chip", "jobs")}, overrides)
        program = machines.lower(scenario.chip, scenario.jobs)
        whole = condensed(program)
        served += whole is not program
        full, short = engines.totals(program), engines.totals(whole)
        for name in (*READ, "taken"):
            assert TASKS.of(full.tasks, name).tolist() == TASKS.of(short.tasks, name).tolist(), (seed, name)
        assert full.makespan_cycles == short.makespan_cycles
    assert served >= 3


@pytest.mark.slow
def test_what_two_jobs_want_of_one_memory_is_not_served_as_a_whole() -> None:
    job = {"model": SMALL, "steps": 2, "threads": 4, "weights": "cold"}
    scenario = load_scenario({"chip": "epyc-7742", "jobs": [job]})
    program = machines.lower(scenario.chip, scenario.jobs)
    assert condensed(program) is program
    # alone on all cores it meets nobody
    scenario = load_scenario({"chip": "epyc-7742", "jobs": [job | {"threads": 64}]})
    whole = condensed(program := machines.lower(scenario.chip, scenario.jobs))
    assert whole is not program
    assert whole.tasks[0].gang == ()
    assert engines.totals(whole).makespan_cycles == engines.totals(program).makespan_cycles


def test_memories_and_links_of_whole_jobs_keep_their_names_in_the_load() -> None:
    arrival = {"kind": "poisson", "rate_per_second": 50_000}
    job = {"model": SMALL, "steps": 2, "arrival": arrival}
    npu = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 64, "ep": 4, "vp": 16, "count": 2}]}
    linked = npu | {"devices": {"count": 2, "latency_cycles": 9, "width": 4}}
    for chip, how, name in (
        ("xeon-gold-5122", {"threads": 4, "weights": "cold"}, "memory"),
        (linked, {"split": "rows"}, "link"),
    ):
        scenario = load_scenario({"chip": chip, "jobs": [{**job, **how}]})
        whole = serving_program(scenario.chip, scenario.jobs)
        assert whole.cores[0].units[0].name == "job"
        load = lstmsim.serve({"chip": chip, "jobs": [{**job, **how}]}, requests=200).serving.load
        assert load is not None
        assert name in load.parts
        assert "job" not in load.parts


@pytest.mark.parametrize(
    "changes",
    [
        {"chip": {"cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}},
        {"jobs": {"frame_interval": 50}},
        {"chip": {"cores": [{"npe": 64, "ep": 4, "vp": 16, "weight_kib": 1}], "memory": {"gb_per_s": 10}}},
    ],
    ids=["threads", "frames that come", "weights that come"],
)
def test_jobs_that_may_meet_are_left_as_they_are(changes: dict[str, Any]) -> None:
    chip = {
        "kind": "column-npu",
        "frequency_mhz": 260,
        "cores": [{"npe": 64, "ep": 4, "vp": 16}],
        **changes.get("chip", {}),
    }
    job = {"model": {"name": "m", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 2}
    scenario = load_scenario({"chip": chip, "jobs": [{**job, **changes.get("jobs", {})}]})
    program = machines.lower(scenario.chip, scenario.jobs)
    assert condensed(program) is program


@pytest.mark.slow
def test_a_device_forms_batches_and_a_batch_takes_its_cycles_alone() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}
    batching = {"max_batch_size": 4, "max_wait_cycles": 100}
    job = {"model": model, "steps": 2, "batching": batching, "weights": "warm"}
    arrival = {"kind": "fixed", "interval_cycles": 1000}
    rows: list[Row] = []
    lstmsim.serve({"chip": "edge", "jobs": [{**job, "arrival": arrival}]}, requests=60, rows=rows.extend)
    starts, sizes = np.unique([each.start for each in rows], return_counts=True)
    assert set(sizes.tolist()) > {1, 4}
    alone = {
        size: lstmsim.simulate(
            {"chip": "edge", "jobs": [{"model": model, "steps": 2, "batch": size, "weights": "warm"}]}
        ).makespan_cycles
        for size in set(sizes.tolist())
    }
    size_of = dict(zip(starts.tolist(), sizes.tolist(), strict=True))
    assert {(size_of[each.start], each.finish - each.start) for each in rows} == set(alone.items())


def test_both_engines_form_the_batches_of_a_device() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}
    job = {"model": model, "steps": 2, "count": 9, "batching": {"max_batch_size": 3}}
    scenario = load_scenario({"chip": "edge", "jobs": [job]})
    program = serving_program(scenario.chip, scenario.jobs)
    fast, reference = (engines.totals(program, engine) for engine in ("fast", "reference"))
    assert fast.tasks.tolist() == reference.tasks.tolist()
    assert len(set(TASKS.of(fast.tasks, "batch").tolist())) == 3
