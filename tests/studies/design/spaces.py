"""Random scenarios and spaces of designs, and what becomes of every design when each is simulated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from lstmsim.base.errors import InputError
from lstmsim.model.scenario import Scenario
from lstmsim.studies.design.judge import Judge, energy_of
from lstmsim.studies.design.request import OBJECTIVES
from lstmsim.studies.design.space import Space
from lstmsim.studies.sweep.columns import NUMBERS
from lstmsim.studies.sweep.evaluate import Outcome
from lstmsim.studies.sweep.resolve import Resolver
from lstmsim.studies.sweep.run import results_of
from lstmsim.studies.sweep.table import front

CELLS = ("lstm", "lstm", "gru", "gru-lbr0", "rnn", "lstm-layernorm", "lstm-peephole", "mingru", "slstm", "dense")


def model(rng: random.Random, most: int = 48) -> dict[str, Any]:
    """A model of one to three layers."""
    order = rng.choice(["layer", "layer", "step"])
    layers: list[dict[str, Any]] = []
    width = rng.randint(1, most)
    for _ in range(rng.choice([1, 1, 2, 3])):
        one: dict[str, Any] = {"cell": rng.choice(CELLS), "hidden": rng.randint(1, most), "input": width}
        width = one["hidden"]
        if order == "layer" and rng.random() < 0.2:
            one["bidirectional"] = True
            width *= 2
        layers.append(one)
    return {"layers": layers, "layer_order": order}


def scenario(rng: random.Random) -> dict[str, Any]:
    """A scenario on a column-wise NPU of one or two kinds of cores."""
    cores = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        ep, vp = rng.choice([1, 4, 8, 16]), rng.choice([16, 24, 64, 200])
        core: dict[str, Any] = {"npe": ep * vp, "ep": ep, "vp": vp, "threads": rng.choice([1, 2, 3])}
        core |= {"tail_width": rng.choice([1, 4, 16]), "accumulator_banks": rng.choice([1, 2, 3])}
        core |= {"thread_policy": rng.choice(["coarse", "fine"]), "switch_cycles": rng.choice([0, 0, 3])}
        if rng.random() < 0.3:
            core["latency"] = {"read": rng.randint(0, 9), "add": rng.randint(1, 4), "activation": rng.randint(1, 20)}
        cores.append(core | {"count": rng.choice([1, 1, 2])})
    chip: dict[str, Any] = {"kind": "column-npu", "frequency_mhz": rng.choice([100, 260]), "cores": cores}
    if rng.random() < 0.2:
        for core in cores:
            core["weight_kib"] = rng.choice([2, 8, 40])
        chip["memory"] = {"gb_per_s": rng.choice([0.1, 1, 20])}
    jobs = []
    for number in range(rng.randint(1, 3)):
        job: dict[str, Any] = {"name": f"j{number}", "model": model(rng), "steps": rng.choice([1, 3, 9])}
        job |= {"count": rng.choice([1, 1, 2, 4]), "arrival": rng.choice([0, 0, 150])}
        if rng.random() < 0.3:
            job["frame_interval"] = rng.choice([20, 300])
        if rng.random() < 0.15:
            job["patience"] = rng.choice([0, 50, 400])
        if rng.random() < 0.15:
            job["arrival"] = {"kind": "poisson", "rate_per_second": 1e5}
        if rng.random() < 0.2:
            job |= {"count": rng.choice([2, 5, 9]), "batching": {"max_batch_size": rng.choice([1, 2, 3, 7])}}
            job["batching"] |= {"max_wait_cycles": rng.choice([0, 100, 1000]), "lengths": rng.choice(["pad", "equal"])}
            job["batching"]["policy"] = rng.choice(["dynamic", "window"])
        elif rng.random() < 0.1:
            job["batch"] = rng.choice([2, 5])
        jobs.append(job)
    made: dict[str, Any] = {"chip": chip, "jobs": jobs, "dispatch": rng.choice(["fcfs", "sjf"])}
    return made


def axes(rng: random.Random, base: dict[str, Any], most: int, least: int = 0) -> dict[str, list[Any]]:
    """Keys of the cores with values, some of which break rules; at least and at most so many designs."""
    made = _axes(rng, base, most)
    while prod(map(len, made.values())) < least:
        made = _axes(rng, base, most)
    return made


def _axes(rng: random.Random, base: dict[str, Any], most: int) -> dict[str, list[Any]]:
    known: dict[str, list[Any]] = {
        "ep": [1, 2, 4, 8, 16, 400],
        "vp": [3, 8, 16, 24, 64, 120],
        "npe": [64, 256, 1024, 3200],
        "threads": [1, 2, 3],
        "tail_width": [1, 3, 8, 32],
        "accumulator_banks": [1, 2, 3, 9],
        "thread_policy": ["coarse", "fine"],
        "block_order": ["row", "column"],
        "count": [1, 2],
        "switch_cycles": [0, 2],
        "latency.quantize": [0, 2, 9],
    }
    chosen: dict[str, list[Any]] = {}
    size = 1
    for key in rng.sample(list(known), rng.randint(2, 6)):
        values = rng.sample(known[key], rng.randint(1, len(known[key])))
        if size * len(values) <= most:
            size *= len(values)
            chosen[f"chip.cores.{rng.randrange(len(base['chip']['cores']))}.{key}"] = values
    if rng.random() < 0.15 and 2 * size <= most:
        chosen["chip.frequency_mhz"] = [100, 200]
    return chosen or {"chip.cores.0.threads": [1, 2]}


class Every(NamedTuple):
    """Every design: its outcome, what is minimised (None: it may not be chosen), and its scenario."""

    outcomes: list[Outcome]
    values: list[tuple[float, ...] | None]
    scenarios: list[Scenario | None]

    def front(self) -> list[int]:
        able = [point for point, each in enumerate(self.values) if each is not None]
        on = front([self.values[point] for point in able]) if able else []  # type: ignore[misc]
        chosen = [point for point, good in zip(able, on, strict=True) if good]
        return sorted(chosen, key=lambda point: (self.values[point], point))


def every(
    space: Space, minimise: Sequence[str], judge: Judge, column: str = "", most_ms: float = 0.0, jobs: int = 1
) -> Every:
    """Simulate all."""
    resolver = Resolver(space.setup)
    every_point = range(space.size)
    found = {}
    for rows in results_of(space.setup, every_point, space.size, jobs, None):
        for (key, status, *numbers, reason), (point, _, *row) in zip(rows.results, rows.points, strict=True):
            done = tuple(numbers) if status == "done" else None
            found[point] = Outcome(point, key, status, done, reason, 0.0, tuple(row))
    values: list[tuple[float, ...] | None] = []
    scenarios: list[Scenario | None] = []
    for point in every_point:
        outcome = found[point]
        try:
            one = resolver.scenario(space.setup.sweep.values(point))
        except InputError:
            one = None
        scenarios.append(one)
        if outcome.numbers is None or one is None or judge.out(one):
            values.append(None)
            continue
        named = dict(zip(NUMBERS, outcome.numbers, strict=True))
        if column and named[column] > most_ms:
            values.append(None)
            continue
        if "share" in minimise and judge.judged(one).share is None:
            # what is not known cannot be minimised, whatever is allowed
            values.append(None)
            continue
        own = []
        for each in minimise:
            if each == "ms":
                own.append(named["makespan_cycles"] / one.chip.frequency_mhz / 1000)
            elif each == "npe":
                own.append(float(sum(core.peak for core in one.chip.core_figures)))
            elif each == "energy_j":
                own.append(energy_of(one))
            elif each == "share":
                own.append(judge.judged(one).share or 0.0)
            else:
                own.append(float(named[OBJECTIVES[each]]))
        values.append(tuple(own))
    return Every([found[point] for point in every_point], values, scenarios)
