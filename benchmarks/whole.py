"""Whole tasks of BENCHMARKS.md: from a file or a scenario to a report, requests, sweeps.

Run as `python benchmarks/whole.py WHAT`, it does one of them in a process of its own (`TASKS`).
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from build_cost import build_cost
from cold_start import cold_start
from lowering import design_points, point_rates
from measures import Cost, cpu_seconds, measured_package, new_process
from programs import one_layer

from lstmsim import load_scenario, serve, simulate, sweep
from lstmsim.engines.fast import run as fast
from lstmsim.files.catalog import list_models
from lstmsim.machines.row import target as lowering

__all__ = ["TASKS", "whole_rows"]

#: Two LSTMs of 481 sizes on 6 arrays of 65,536 multipliers, on one thread and on two.
_POINTS = 481 * 6 * 2
_CORE = {"npe": 65536, "ep": 16, "vp": 4096}
_SPACE: dict[str, Any] = {
    "scenario": {
        "chip": {"kind": "column-npu", "name": "c", "frequency_mhz": 260, "cores": [_CORE]},
        "jobs": [{"model": "lstm-512", "steps": 25, "count": 2}],
    },
    "axes": {
        "hidden": {
            "path": ["jobs.0.model.layers.0.hidden", "jobs.0.model.layers.0.input"],
            "values": list(range(128, 2049, 4)),
        },
        "ep": {"path": "chip.cores.0.ep", "from": 4, "to": 128, "factor": 2},
        "vp": {"path": "chip.cores.0.vp", "expression": "65536 // ep"},
        "threads": {"path": "chip.cores.0.threads", "values": [1, 2]},
    },
}


def many_jobs(count: int = 100_000) -> None:
    """So many LSTM-512 jobs of 25 steps, Poisson arrivals at 90 % load, on 4 cores with 2 threads."""
    draw = random.Random(1)
    arrivals = [int(each) for each in accumulate(draw.expovariate(1 / 900) for _ in range(count))]
    jobs = [{"model": "lstm-512", "steps": 25, "count": count, "arrival": arrivals}]
    simulate({"chip": "column-npu-4x16k", "jobs": jobs})


def crowd() -> None:
    """2,048 jobs of LSTM-256, 2 steps, on 1,024 cores."""
    cores = [{"npe": 1024, "ep": 16, "vp": 64, "count": 1024}]
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 260, "cores": cores}
    simulate({"chip": chip, "jobs": [{"model": "lstm-256", "steps": 2, "count": 2048}]})


def served(count: int) -> None:
    """So many requests for LSTM-512 and LSTM-256 of 5 steps."""
    arrival = {"kind": "poisson", "rate_per_second": 2.5e5}
    jobs = [{"model": f"lstm-{size}", "steps": 5, "arrival": arrival} for size in (512, 256)]
    serve({"chip": "column-npu-4x16k", "jobs": jobs}, requests=count)


#: What the points of a sweep run: two LSTMs, one, one of two layers, and four jobs of three models.
_JOBS: dict[str, list[dict[str, Any]]] = {
    "two": _SPACE["scenario"]["jobs"],
    "one": [{"model": "lstm-512", "steps": 25}],
    "layers": [{"model": {"layers": [{"cell": "lstm", "input": 512, "hidden": 512}] * 2}, "steps": 25}],
    "four": [
        {"model": "lstm-512", "steps": 25},
        {"model": "gru-1024", "steps": 5},
        {"model": "lstm-256", "steps": 25, "arrival": 500},
        {"model": "gru-1024", "steps": 5, "arrival": 1000},
    ],
}


def swept(processes: int, times: int = 1, what: str = "two") -> None:
    """A whole sweep of 5,772 points, with its tables; or of so many times as many, each time with a step more."""
    axes = {**_SPACE["axes"], "steps": {"path": "jobs.0.steps", "values": list(range(25, 25 + times))}}
    if what == "layers":
        more = [f"jobs.0.model.layers.1.{each}" for each in ("hidden", "input")]
        axes["hidden"] = {**axes["hidden"], "path": [*axes["hidden"]["path"], *more]}
    space = {"scenario": {**_SPACE["scenario"], "jobs": _JOBS[what]}, "axes": axes}
    with tempfile.TemporaryDirectory() as folder:
        result = sweep(space, folder, jobs=processes)
        if result.progress.done - result.progress.infeasible - result.progress.failed != times * _POINTS:
            raise RuntimeError(f"not every point was simulated: {result.progress}")


#: What `main` can do.
TASKS: dict[str, Callable[[], None]] = {
    "jobs": many_jobs,
    "crowd": crowd,
    "served-250000": lambda: served(250_000),
    "served-1000000": lambda: served(1_000_000),
    "sweep-1": lambda: swept(1),
    **{f"{what}-2": partial(swept, 2, what=what) for what in _JOBS},
    **{f"{what}-2-more": partial(swept, 2, 10, what) for what in _JOBS},
}


def from_file(model: str) -> Cost:
    """A whole `lstmsim simulate` in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.json")
        path.write_text(f'{{"chip": "column-npu-64k", "jobs": [{{"model": "{model}"}}]}}')
        return new_process("-P", "-m", "lstmsim", "simulate", str(path))


def of_task(name: str, times: int = 1) -> Cost:
    """A task in a new process: the least of each number of some runs."""
    costs = [new_process(__file__, name) for _ in range(times)]
    return Cost(*map(min, zip(*costs, strict=True)))


def sweep_rows() -> list[list[str]]:
    """Whole sweeps in new processes, and rates without the start: of the further points of a larger space."""
    what, whole = f"a whole sweep of {_POINTS:,} points", "with its tables, a new process"
    rates: dict[str, tuple[Cost, Cost | None]] = {f"{what} of two LSTMs {whole}": (of_task("sweep-1", 2), None)}
    names = {"two": "two LSTMs", "one": "one LSTM", "layers": "one LSTM of two layers", "four": "four jobs"}
    for key, name in names.items():
        few, more = of_task(f"{key}-2", 2), of_task(f"{key}-2-more")
        rates[f"{what} of {name} {whole}, in 2 threads"] = (few, None)
        rates[f"each further point of 10 times as many, of {name}"] = (few, more)
    rows = []
    for name, (cost, larger) in rates.items():
        wall, cpu = (
            end - begin for begin, end in zip(cost[:2] if larger else (0, 0), (larger or cost)[:2], strict=True)
        )
        points = 9 * _POINTS if larger else _POINTS
        rows.append([name, "points/s", f"{points / wall:,.0f}"])
        rows.append([name, "points/CPU s", f"{points / cpu:,.0f}"])
    return rows


def vendor_rows() -> list[list[str]]:
    """LSTM-1024, 8 steps, on the vendor's NPU, again and again in this process."""
    data = {"chip": "intel-npu-rtl", "jobs": [{"model": "lstm-1024", "steps": 8}]}
    scenario = load_scenario(data)
    cycles = simulate(scenario).makespan_cycles

    def anew() -> None:
        lowering._phases.cache_clear()
        simulate(scenario)

    again, new, named = (
        cpu_seconds(work, times=50) for work in (lambda: simulate(scenario), anew, lambda: simulate(data))
    )
    return [
        [
            "LSTM-1024, 8 steps, on `intel-npu-rtl`, scenario to report, in a warm process",
            "CPU ms",
            f"{1e3 * again:.2f}",
        ],
        ["its simulated cycles", "cycles/CPU s", f"{cycles / again:,.0f}"],
        ["the same, nothing kept of lowering", "CPU ms", f"{1e3 * new:.2f}"],
        ["the same, names to report", "CPU ms", f"{1e3 * named:.2f}"],
    ]


def whole_rows() -> list[list[str]]:
    """Measure all of it."""
    # first: the system counts what this process holds to the memory of those that it starts
    small, start = from_file("deepbench-lstm-2048-25"), cold_start()
    jobs, many = of_task("jobs", 2), of_task("crowd", 3)
    few, million = of_task("served-250000"), of_task("served-1000000")
    names = [each.name for each in list_models() if each.name.startswith("deepbench-")]
    eleven = cpu_seconds(lambda: [simulate({"chip": "column-npu-64k", "jobs": [{"model": each}]}) for each in names])
    short, middle, long = (
        cpu_seconds(partial(fast.totals, one_layer("gru-1024", steps)), times=5) for steps in (150, 1_500, 100_000)
    )
    first, again = point_rates(design_points())
    built, size, packed = build_cost()
    return [
        ["LSTM-2048, 25 steps, a new process, file to report", "seconds", f"{small.wall_s:.2f}"],
        ["the same", "MB", f"{small.memory_mb:.0f}"],
        ["LSTM-512, 20 steps, a new process against one that imports numpy", "times", f"{start.times:.2f}"],
        ["the same, numpy with one thread of BLAS, as the command has it", "times", f"{start.times_one:.2f}"],
        ["all 11 DeepBench tasks in one process, name to report", "CPU ms", f"{1e3 * eleven:.1f}"],
        *vendor_rows(),
        ["GRU-1024, 1,500 steps against 150, totals", "times", f"{middle / short:.1f}"],
        ["GRU-1024, 100,000 steps, totals", "CPU ms", f"{1e3 * long:.1f}"],
        [
            "100,000 LSTM-512 jobs on 4 cores x 2 threads, a new process, data to report",
            "seconds",
            f"{jobs.wall_s:.2f}",
        ],
        ["the same", "CPU seconds", f"{jobs.cpu_s:.2f}"],
        ["the same", "MB", f"{jobs.memory_mb:.0f}"],
        ["1,000,000 requests by serve, a new process", "seconds", f"{million.wall_s:.2f}"],
        ["the same", "CPU seconds", f"{million.cpu_s:.2f}"],
        ["the same", "MB", f"{million.memory_mb:.0f}"],
        ["its memory against that of 250,000 requests", "times", f"{million.memory_mb / few.memory_mb:.2f}"],
        ["1,024 cores, 2,048 jobs of LSTM-256, a new process", "CPU seconds", f"{many.cpu_s:.2f}"],
        ["design points from description to row, in one process, for the first time", "points/CPU s", f"{first:,.0f}"],
        ["the same points again", "points/CPU s", f"{again:,.0f}"],
        *sweep_rows(),
        ["building the native core", "CPU seconds", f"{built:.1f}"],
        ["its library", "kB", f"{size:.0f}"],
        ["the same, packed as in a wheel", "kB", f"{packed:.0f}"],
    ]


if __name__ == "__main__":
    measured_package()
    TASKS[sys.argv[1]]()
