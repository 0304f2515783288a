"""Random scenarios of pools against the plain model of `tests/oracle/batching.py`, on both engines."""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

from lstmsim import check_numerics, run, simulate
from lstmsim.analysis.explanations.critical_path import critical_path
from lstmsim.analysis.explanations.slowest import SHARES, latency_shares
from lstmsim.engines import ENGINES
from lstmsim.program.accounts import totals_of
from lstmsim.studies.simulate.run import Run
from tests.oracle.batching import Model
from tests.oracle.ragged import Moved, finishes

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
        "policy": random.choice(["dynamic", "window", "continuous", "continuous"]),
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


@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "12"))))
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
        result = run({"chip": chip(cores), "dispatch": dispatch, "jobs": jobs}, engine=engine)
        report = result.report
        found: dict[int, tuple[int, ...]] = {job.number: (job.start, job.finish, job.core) for job in report.jobs}
        found |= {each.number: (each.at,) for each in report.rejected}
        assert found == expected
        assert [[each.start, each.core, each.thread, list(each.members)] for each in report.batches] == model.batches
    shares = latency_shares(result.program, result.trace)
    waited = shares[:, list(SHARES).index("batch")].tolist()
    assert waited == [0 if each.left >= 0 else each.company for each in model.requests]
    check_shares(result, shares)


def drawn_layers(random: Random) -> tuple[list[dict[str, Any]], list[list[tuple[int, int, bool]]]]:
    keys, passes, width = [], [], random.choice([3, 8])
    for _ in range(random.choice([1, 1, 2])):
        hidden, both = random.choice([3, 8, 10]), random.random() < 0.4
        keys.append({"cell": "lstm", "hidden": hidden, "input": width} | ({"bidirectional": True} if both else {}))
        passes.append([(width, hidden, False), *([(width, hidden, True)] if both else [])])
        width = hidden * (1 + both)
    return keys, passes


@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "13"))))
def test_random_ragged_batches(seed: int) -> None:
    """Finishes of members against a model that goes tile by tile, and both engines cycle by cycle."""
    random = Random(seed)
    keys, passes = drawn_layers(random)
    steps = [random.randint(1, 5) for _ in range(random.randint(1, 5))]
    by_column = random.random() < 0.3
    banks = random.randint(3 if by_column else 1, 4)
    members = sorted(range(len(steps)), key=lambda number: -steps[number])
    expected = finishes(passes, [steps[number] for number in members], banks, by_column)
    core = CORE | {"accumulator_banks": banks, "block_order": "column" if by_column else "row"}
    batching = {"max_batch_size": 5, "lengths": "ragged", "policy": random.choice(["dynamic", "window"])}
    job = {"model": {"name": "m", "layers": keys}, "count": len(steps), "steps": steps, "batching": batching}
    runs = [run({"chip": chip(1) | {"cores": [core]}, "jobs": [job]}, engine=engine) for engine in ENGINES]
    assert runs[0].trace == runs[1].trace
    assert [runs[0].report.jobs[number].finish for number in members] == expected
    assert runs[0].report.cores[0].macs == sum(each.macs for each in runs[0].report.jobs)


#: Bits that the memory gives in a cycle.
RATES = (1, 8, 64, 4096)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "9"))))
def test_random_batches_of_moved_weights(seed: int) -> None:
    """Batches of models that take turns or are streamed, against a model that goes tile by tile; and both engines."""
    random = Random(seed)
    models = [drawn_layers(random) for _ in range(random.choice([1, 2, 2, 3]))]
    sizes = [
        sum(4 * hidden * (width + hidden) for layer in passes for width, hidden, _ in layer) for _, passes in models
    ]
    bits, places = random.choice([8, 16]), random.choice([1, 2, 3])
    largest = [max(16 * (w + h) for layer in passes for w, h, _ in layer) for _, passes in models]
    least = max([size for size in sizes if size <= 8192 // bits] + [each * places for each in largest])
    kib = random.randint(-(-least * bits // 8192), max(-(-least * bits // 8192), sum(sizes) * bits // 8192))
    room, rate, latency = kib * 8192 // bits, random.choice(RATES), random.choice([0, 5, 64])
    banks, lengths = random.randint(1, 4), random.choice(["pad", "ragged"])
    tight = sum(sizes) > room
    held: list[int] = []
    for number, size in enumerate(sizes):
        if min(size, room) + sum(min(sizes[each], room) for each in held) <= room:
            held.append(number)
    # what was there at the start and never used goes first, of it the last of the list
    held.reverse()
    jobs, expected, start = [], [], 0
    for turn in range(random.randint(len(models), 5)):
        own = turn if turn < len(models) else random.randrange(len(models))
        steps = sorted([random.randint(1, 4) for _ in range(random.randint(1, 4))], reverse=True)
        streams = sizes[own] > room
        how = "pad" if streams else lengths
        members = steps if how == "ragged" else [steps[0]] * len(steps)
        there = own in held or not tight
        while own not in held and sum(min(sizes[each], room) for each in held) + min(sizes[own], room) > room:
            held.pop(0)
        held = [each for each in held if each != own] + [own]
        moved = Moved(room, Fraction(rate, bits), latency, places, there) if tight else None
        done = finishes(models[own][1], members, banks, False, moved)
        expected += [start + each for each in done] if how == "ragged" else [start + max(done)] * len(done)
        start += max(done)
        batching = {"max_batch_size": 4, "lengths": how, "policy": random.choice(["dynamic", "window"])}
        # arrivals tell the order
        model = {"name": f"m{own}", "layers": models[own][0]}
        arrivals = [turn] * len(steps)
        jobs.append({"model": model, "count": len(steps), "steps": steps, "arrival": arrivals, "batching": batching})
    core = CORE | {"accumulator_banks": banks, "weight_kib": kib, "weight_bits": bits}
    memory = {"gb_per_s": rate / 8, "latency_cycles": latency, "prefetch_blocks": places}
    told = {"kind": "column-npu", "frequency_mhz": 1000, "cores": [core], "memory": memory}
    runs = [run({"chip": told, "jobs": jobs}, engine=engine) for engine in ENGINES]
    assert runs[0].trace == runs[1].trace
    assert [each.finish for each in runs[0].report.jobs] == expected
    checked = check_numerics(runs[0], random_weights=seed)
    assert all(each.values for each in checked)
    check_shares(runs[0], latency_shares(runs[0].program, runs[0].trace))


def drawn_scenario(random: Random) -> dict[str, Any]:
    """Pools of every kind beside jobs without one, on threads of unequal cores, some after answers."""
    dispatch, cores = random.choice(["fcfs", "priority", "sjf", "edf"]), random.choice([1, 2])
    core = CORE | {"threads": random.choice([1, 2, 3]), "thread_policy": random.choice(["coarse", "fine"])}
    core |= {"switch_cycles": random.choice([0, 0, 3]), "block_order": random.choice(["row", "row", "column"])}
    core |= {"accumulator_banks": random.randint(2, 4), "tail_width": random.choice([1, 3, 64])}
    layers = {
        "p": [{"cell": "lstm", "hidden": 8, "input": 8}],
        "q": [{"cell": "gru", "hidden": 5, "input": 4}, {"cell": "lstm", "hidden": 4, "input": 5}],
        "r": [{"cell": "gru", "hidden": 8, "input": 3}, {"cell": "lstm", "hidden": 8, "input": 8}],
    }
    jobs = []
    for index in range(random.choice([1, 2, 3])):
        name, count = random.choice("pqr"), random.randint(1, 10)
        model = {"name": name, "layers": layers[name], "layer_order": random.choice(["layer", "step"])}
        job = {"name": f"e{index}", "model": model, "count": count, "priority": random.randint(0, 2)}
        job["steps"] = [random.randint(1, 4) for _ in range(count)]
        if random.random() < 0.3:
            job["arrival"] = {
                "kind": "closed",
                "clients": random.randint(1, 3),
                "think": "fixed",
                "think_ms": random.choice([0, 0.03]),
            }
        else:
            job["arrival"] = [random.randrange(random.choice([1, 200, 900])) for _ in range(count)]
        limits = {"queue_limit": [0, 2], "patience": [0, 99], "deadline": [300]}
        job |= {key: random.choice(values) for key, values in limits.items() if random.random() < 0.3}
        if random.random() < 0.85:
            job["batching"] = {
                "max_batch_size": random.randint(1, 4),
                "max_wait_cycles": random.choice([0, 0, 40, 300]),
                "policy": random.choice(["dynamic", "window", "continuous"]),
                "lengths": random.choice(["pad", "equal", "ragged"]),
            }
        jobs.append(job)
    chip = {"kind": "column-npu", "frequency_mhz": 1, "cores": [core, core | {"vp": 8, "npe": 32}][:cores]}
    return {"chip": chip, "dispatch": dispatch, "jobs": jobs}


@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "13"))))
def test_random_scenarios(seed: int) -> None:
    """Both engines: every event, every name of a cycle, with a trace and without."""
    scenario = drawn_scenario(Random(seed))
    fast, reference = (run(scenario, engine=engine) for engine in ENGINES)
    assert fast.trace == reference.trace
    assert fast.totals == reference.totals == totals_of(fast.program, fast.trace)
    assert simulate(scenario).to_dict()["jobs"] == reference.report.to_dict()["jobs"]
    check_counts(fast)
    check_shares(fast, latency_shares(fast.program, fast.trace))


def moving(random: Random) -> dict[str, Any]:
    """A drawn scenario whose weights take turns or are streamed: 512, 279 and 776, with room for 512 or 1,024."""
    scenario, bits = drawn_scenario(random), random.choice([8, 16])
    for core in scenario["chip"]["cores"]:
        core |= {"weight_kib": 1, "weight_bits": bits, "block_order": "row"}
    scenario["chip"]["memory"] = {
        "gb_per_s": random.choice([0.001, 0.008, 0.1]),
        "latency_cycles": random.choice([0, 64]),
        "prefetch_blocks": 1,
    }
    for job in scenario["jobs"]:
        batching = job.get("batching", {})
        if batching.get("policy") == "continuous":
            batching["policy"] = "dynamic"
        if job["model"]["name"] == "r":
            job |= {"cores": [0]}
            if batching.get("lengths") == "ragged":
                batching["lengths"] = "pad"
    return scenario


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "6"))))
def test_random_scenarios_of_moved_weights(seed: int) -> None:
    """Both engines, the names of cycles, and the numbers of every member."""
    scenario = moving(Random(seed))
    fast, reference = (run(scenario, engine=engine) for engine in ENGINES)
    assert fast.trace == reference.trace
    assert fast.totals == reference.totals == totals_of(fast.program, fast.trace)
    check_counts(fast)
    check_shares(fast, latency_shares(fast.program, fast.trace))
    check_numerics(fast, random_weights=seed)


def check_shares(one: Run, shares: Any) -> None:
    """Every cycle of a request that was served has one name; the critical path has no gap."""
    trace = one.trace
    served = trace.task("core") >= 0
    assert (shares.sum(axis=1) == (trace.task("finish") - trace.task("arrived")) * served).all()
    assert (shares >= 0).all()
    path = critical_path(one.program, trace)
    assert int(path.cycles.sum()) == trace.makespan_cycles
    assert (path.start[1:] == path.end[:-1]).all()


def check_counts(one: Run) -> None:
    """Padding is no useful work, and each request has a round for each of its steps (docs/batching.md, section 12)."""
    assert sum(core.macs for core in one.report.cores) == sum(job.macs for job in one.report.jobs)
    steps = Counter(number for batch in one.report.batches for number in batch.members)
    for job in one.report.jobs:
        batching = one.scenario.jobs[job.number].batching
        rounds = one.scenario.jobs[job.number].steps if batching is not None and batching.in_rounds else 1
        assert steps[job.number] == rounds or not one.report.batches
