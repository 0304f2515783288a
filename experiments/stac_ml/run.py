"""How does the 99th percentile of latency grow with the number of instances of one LSTM that run at once?

That is the form of STAC-ML Markets (Inference), suite Tacana: each instance has a stream of its own, asks for a step,
waits for the answer, and asks again. What was published of Vollo (four FPGA cards) and of an A100 stands in
published.csv. The sizes of the models LSTM_A, B and C are not public: those of Vollo's own benchmark (2 layers of
128, 3 of 256, 3 of 960) are an assumption. So latencies are not compared, only their shape: the p99 of n instances
over that of one. Two null models stand beside: "no growth" (instances do not meet) and "one after another" (n times as
long).

Run `python experiments/stac_ml/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from experiments.holds import as_it_is, held_paragraph
from lstmsim import engines
from lstmsim.model.scenario import Chip
from lstmsim.program.trace import TASKS
from lstmsim.report.stability import Conclusions
from lstmsim.studies.serve.programs import serving_program
from lstmsim.studies.shared.loading import load_chip, load_scenario
from lstmsim.studies.shared.stability import Vary

#: Layers and hidden size, assumed.
MODELS = {"A": (2, 128), "B": (3, 256), "C": (3, 960)}
INSTANCES = (1, 2, 4, 8, 16, 24, 32)
#: So many requests of each instance are simulated.
ROUNDS = 20


@dataclass(frozen=True)
class Machine:
    """A chip, and the most requests of a batch; `like`: the published stack that is of its kind; `models`: tried."""

    title: str
    chip: str
    batch: int
    like: str
    models: str = "ABC"


MACHINES = (
    Machine("column-npu-16k, 2 threads", "column-npu-16k", 1, "Vollo"),
    Machine("column-npu-4x16k, 8 threads", "column-npu-4x16k", 1, "Vollo"),
    Machine("intel-npu-rtl, batches of up to 32", "intel-npu-rtl", 32, "Vollo"),
    Machine("v100, one after another", "v100", 1, "A100", "AB"),
    Machine("v100, batches of up to 32", "v100", 32, "A100", "AB"),
)


def published() -> dict[tuple[str, str], dict[int, float]]:
    """The published percentiles in us: stack and model -> instances -> p99."""
    rows: dict[tuple[str, str], dict[int, float]] = {}
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault((row["stack"], row["model"]), {})[int(row["instances"])] = float(row["p99_us"])
    return rows


@cache
def p99_us(machine: Machine, name: str, instances: int, vary: Vary = as_it_is) -> float:
    """The 99th percentile of latency in us of so many instances that always have one request on its way."""
    layers, hidden = MODELS[name]
    model = {"name": name, "layers": [{"cell": "lstm", "hidden": hidden, "input": hidden}] * layers}
    job: dict[str, Any] = {"model": model, "steps": 1, "count": ROUNDS * instances, "weights": "warm"}
    job["arrival"] = {"kind": "closed", "clients": instances, "think_ms": 0}
    if machine.batch > 1:
        job["batching"] = {"max_batch_size": machine.batch}
    scenario = load_scenario({"chip": machine.chip, "jobs": [job]})
    chip: Chip = vary(scenario.chip)
    tasks = engines.totals(serving_program(chip, replace(scenario, chip=chip).jobs)).tasks
    latency = TASKS.of(tasks, "finish") - TASKS.of(tasks, "arrived")
    return float(np.sort(latency)[int(0.99 * len(latency))]) / chip.frequency_mhz


def off(stack: str, models: str, growth: Callable[[str, int], float]) -> float:
    """By which factor, on geometric average over the published points of models, a growth is off that of a stack."""
    logs = [
        abs(log(growth(model, number) / (value / points[1])))
        for (of, model), points in published().items()
        for number, value in points.items()
        if of == stack and model in models and number > 1
    ]
    return exp(sum(logs) / len(logs))


def growth(machine: Machine, vary: Vary = as_it_is) -> Callable[[str, int], float]:
    """The p99 of n instances of a model over that of one."""
    return lambda name, number: p99_us(machine, name, number, vary) / p99_us(machine, name, 1, vary)


def errors(machines: tuple[Machine, ...] = MACHINES, vary: Vary = as_it_is) -> dict[tuple[str, str], float]:
    """By which factor each machine and each null model is off the stack of its kind: (stack, title) -> factor."""
    found = {(each.like, each.title): off(each.like, each.models, growth(each, vary)) for each in machines}
    for each in machines:
        found[each.like, "null: no growth"] = off(each.like, each.models, lambda _, number: 1.0)
        found[each.like, "null: one after another"] = off(each.like, each.models, lambda _, number: float(number))
    return found


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Which of the column-wise NPUs and null models is nearest to Vollo's shape."""
    found = errors(MACHINES[:2], vary)
    return {"nearest to Vollo's shape": min(found, key=lambda key: found[key])[1]}


def _latencies(machines: tuple[Machine, ...]) -> list[str]:
    heads = " | ".join(map(str, INSTANCES))
    lines = [f"| machine | model | {heads} |", "| --- | --- |" + " ---: |" * len(INSTANCES)]
    for machine in machines:
        for name in machine.models:
            values = " | ".join(f"{p99_us(machine, name, number):.3g}" for number in INSTANCES)
            lines.append(f"| {machine.title} | {name} | {values} |")
    for (stack, name), points in published().items():
        values = " | ".join(f"{points[number]:.3g}" if number in points else "-" for number in INSTANCES)
        lines.append(f"| published: {stack} | {name} | {values} |")
    return lines


def _shapes(machines: tuple[Machine, ...]) -> list[str]:
    lines = ["| off the shape of | model of it | by a factor of |", "| --- | --- | ---: |"]
    found = sorted(errors(machines).items(), key=lambda item: (item[0][0], item[1]))
    return [*lines, *(f"| {stack} | {title} | {value:.2f} |" for (stack, title), value in found)]


def text(small: bool = False) -> str:
    """The summary; `small`: of the column-wise NPUs alone."""
    machines = MACHINES[: 2 if small else None]
    found = errors(machines)
    verdicts = []
    for stack in dict.fromkeys(each.like for each in machines):
        own = {title: value for (of, title), value in found.items() if of == stack}
        nearest = min(own, key=lambda title: own[title])
        few = " (two points: cannot tell)" if stack == "A100" else ""
        verdicts.append(f"nearest to the shape of {stack}{few} is {nearest}, off by a factor of {own[nearest]:.2f}")
    lines = [
        "# The p99 against the number of instances, in the form of STAC-ML",
        "",
        f"By shape, {'; '.join(verdicts)}.",
        "",
        f"99th percentile of latency in us by number of instances; {ROUNDS} requests of each instance, each asks again",
        "at once. Sizes of the models are assumed; published latencies include the way over PCIe and the host, ours do",
        "not: only shapes are compared.",
        "",
        *_latencies(machines),
        "",
        "How far the growth (p99 of n instances over that of one) is from the published one, as the geometric mean of",
        "the factors over the published points with more than one instance: 6 of Vollo; of the A100 only those of",
        "LSTM_A and B, for LSTM_C takes minutes on `v100`:",
        "",
        *_shapes(machines),
        "",
        "Vollo ran on four cards with three cores each: 8 instances may each have a core, 24 share 12. A machine that",
        "is no nearer than a null model is not confirmed by these figures, and so few points tell no mechanism.",
        "",
    ]
    left = "Latencies of the parallel device were not varied."
    return "\n".join(lines) + ("" if small else _holds(left))


def _holds(said: str) -> str:
    chips = [load_chip(each.chip) for each in MACHINES[:2]]
    return held_paragraph(chips, conclusions, said=said)


if __name__ == "__main__":
    from experiments.run import main

    main("stac_ml")
