"""Random scenarios of pools against the plain model of `tests/oracle/batching.py`, on both engines."""

from __future__ import annotations

import os
from functools import cache
from random import Random
from typing import Any

import pytest

from lstmsim import simulate
from lstmsim.engines import ENGINES
from tests.oracle.batching import Model

CORE = {"npe": 64, "ep": 4, "vp": 16}
MODELS: dict[str, dict[str, Any]] = {
    "p": {"name": "p", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]},
    "q": {"name": "q", "layers": [{"cell": "gru", "hidden": 4, "input": 4}]},
}
#: Multiply-accumulates of a step.
MACS = {"p": 4 * 8 * 16, "q": 3 * 4 * 8}
NEVER = 1 << 59


@cache
def cycles_of(model: str, steps: int, batch: int) -> int:
    job = {"model": MODELS[model], "steps": steps, "batch": batch}
    return simulate({"chip": chip(1), "jobs": [job]}).makespan_cycles


def chip(cores: int) -> dict[str, Any]:
    return {"kind": "column-npu", "frequency_mhz": 1, "cores": [CORE] * cores}


def drawn(random: Random, cores: int) -> dict[str, Any]:
    return {
        "most": random.randint(1, 4),
        "wait": random.choice([0, 0, 20, 90, 300]),
        "policy": random.choice(["dynamic", "window"]),
        "lengths": random.choice(["pad", "equal"]),
        "pool": "",
        "cores": sorted(random.sample(range(cores), random.randint(1, cores))),
        "model": random.choice("pq"),
    }


def entries_of(random: Random, cores: int, dispatch: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for index in range(random.choice([1, 1, 2, 3])):
        own = drawn(random, cores)
        if entries and random.random() < 0.4:
            like = random.randrange(index)
            entries[like]["pool"] = entries[like]["pool"] or f"pool {like}"
            own = dict(entries[like])
        count, span = random.randint(1, 9), random.choice([1, 100, 600])
        own["arrivals"] = [random.randrange(span) for _ in range(count)]
        own["steps"] = [random.randint(1, 3) for _ in range(count)]
        own["priority"], own["deadline"] = random.randint(0, 2), random.choice([None, 200, 900])
        own["limit"], own["patience"] = random.choice([None, None, 0, 1, 3]), random.choice([None, None, 10, 150])
        own["rank"] = rank(dispatch, own["priority"], own["deadline"], MACS[own["model"]])
        entries.append(own)
    return entries


def rank(dispatch: str, priority: int, deadline: int | None, macs: int) -> Any:
    ranks = {
        "fcfs": lambda steps, arrival: 0,
        "priority": lambda steps, arrival: -priority,
        "sjf": lambda steps, arrival: macs * steps,
        "edf": lambda steps, arrival: NEVER if deadline is None else arrival + deadline,
    }
    return ranks[dispatch]


def job_of(name: str, own: dict[str, Any]) -> dict[str, Any]:
    keys = {"max_batch_size": own["most"], "max_wait_cycles": own["wait"]}
    batching = (
        keys | {"policy": own["policy"], "lengths": own["lengths"]} | ({"pool": own["pool"]} if own["pool"] else {})
    )
    limits = {"queue_limit": own["limit"], "patience": own["patience"], "deadline": own["deadline"]}
    job = {"name": name, "model": MODELS[own["model"]], "count": len(own["steps"]), "batching": batching}
    job |= {"steps": own["steps"], "arrival": own["arrivals"], "priority": own["priority"], "cores": own["cores"]}
    return job | {key: value for key, value in limits.items() if value is not None}


@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "25"))))
def test_random_pools(seed: int) -> None:
    random = Random(seed)
    cores, dispatch = random.choice([1, 2, 3]), random.choice(["fcfs", "priority", "sjf", "edf"])
    entries = entries_of(random, cores, dispatch)
    sizes = [(steps, batch) for steps in (1, 2, 3) for batch in (1, 2, 3, 4)]
    cycles = {(n, *size): cycles_of(own["model"], *size) for n, own in enumerate(entries) for size in sizes}
    model = Model(entries, cores, cycles)
    model.run()
    expected = {
        each.number: (each.left,) if each.left >= 0 else (each.start, each.finish, each.core) for each in model.requests
    }
    jobs = [job_of(f"e{number}", own) for number, own in enumerate(entries)]
    for engine in ENGINES:
        report = simulate({"chip": chip(cores), "dispatch": dispatch, "jobs": jobs}, engine=engine)
        found: dict[int, tuple[int, ...]] = {job.number: (job.start, job.finish, job.core) for job in report.jobs}
        found |= {each.number: (each.at,) for each in report.rejected}
        assert found == expected
        assert [[each.start, each.core, each.thread, list(each.members)] for each in report.batches] == model.batches
