"""Measures lstmsim's speed and writes BENCHMARKS.md: everything in one run, so that the ratios carry over.

Run as `make bench`; it takes about two minutes and wants an idle machine. Seconds belong to the machine, ratios do not.
"""

from __future__ import annotations

import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

import simpy
from cold_start import cold_start
from lowering import HEAD, design_points, point_rates, ratios

from lstmsim import engines, load_scenario, simulate, targets
from lstmsim.engines.fast import compiled
from lstmsim.engines.fast import run as fast
from lstmsim.engines.reference import run as reference
from lstmsim.formats.catalog import list_models
from lstmsim.program.program import Program

HOME = Path(__file__).resolve().parents[1]
UNCOMPILED = 1 << 60
TASKS = ("deepbench-gru-1024-1500", "deepbench-gru-2816-750", "deepbench-lstm-2048-25")


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of a few runs."""
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def timeouts_per_second(count: int = 200_000) -> float:
    """Bare SimPy: one process that waits `count` times."""

    def run() -> None:
        environment = simpy.Environment()

        def clock() -> simpy.events.ProcessGenerator:
            for _ in range(count):
                yield environment.timeout(1)

        environment.process(clock())
        environment.run()

    return count / seconds(run)


def program_of(model: str, **core: object) -> Program:
    """A DeepBench task on the 64k preset."""
    overrides = [f"chip.cores.0.{key}={value}" for key, value in core.items()]
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model}]}, overrides)
    return targets.lower(scenario.chip, scenario.jobs)


def engine_rows() -> list[list[str]]:
    """Issues a second of every engine, nothing skipped."""
    rows = []
    for model in TASKS:
        program = program_of(model)
        issues = int(engines.totals(program).issues.sum())
        operations = sum(len(phase.body.operations) * phase.repeat for phase in program.tasks[0].phases(0))
        slow = seconds(partial(reference.run, program), times=1)
        runs = {
            "reference, trace": slow,
            "fast as it stands, totals": seconds(partial(fast.totals, program, skipping=False, budget=UNCOMPILED)),
            "fast compiled, trace": seconds(partial(fast.run, program)),
            "fast compiled, totals": seconds(partial(fast.totals, program, skipping=False)),
            "fast compiled, totals, skipping": seconds(partial(fast.totals, program)),
        }
        for name, taken in runs.items():
            rate = f"{issues / taken / 1e6:,.2f}"
            rows.append(
                [model, name, f"{1e3 * taken:,.1f}", rate, f"{operations / taken / 1e6:,.2f}", f"{slow / taken:,.0f}"]
            )
    return rows


def cold_process(model: str) -> tuple[float, float]:
    """Seconds and MB of a whole `lstmsim simulate` in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.json")
        path.write_text(f'{{"chip": "column-npu-64k", "jobs": [{{"model": "{model}"}}]}}')
        command = [sys.executable, "-m", "lstmsim", "simulate", str(path), "--json", os.devnull]
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        return time.perf_counter() - begin, usage.ru_maxrss / 1024


def all_deepbench(steps: int | None = None) -> float:
    """Seconds for all eleven DeepBench tasks from name to report, in one process."""
    names = [each.name for each in list_models() if each.name.startswith("deepbench-")]
    overrides = [f"jobs.0.steps={steps}"] if steps else []
    return seconds(
        lambda: [simulate({"chip": "column-npu-64k", "jobs": [{"model": each}]}, overrides=overrides) for each in names]
    )


def crowd(numba: bool) -> float:
    """CPU seconds of a new process with 1,024 cores and 2,048 jobs of LSTM-256, 2 steps, data to report."""
    without = "" if numba else "import importlib.util as u; u.find_spec = lambda *_: None; "
    code = (
        f"import lstmsim; from lstmsim import simulate; {without}"
        "cores = [{'npe': 1024, 'ep': 16, 'vp': 64, 'count': 1024}];"
        "chip = {'kind': 'column-npu', 'name': 'c', 'frequency_mhz': 260, 'cores': cores};"
        "simulate({'chip': chip, 'jobs': [{'model': 'lstm-256', 'steps': 2, 'count': 2048}]})"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def many_jobs(count: int = 100_000) -> float:
    """Seconds for that many LSTM-512 jobs of 25 steps, Poisson arrivals at 90 % load, 4 cores with 2 threads."""
    draw = random.Random(1)
    arrivals = [int(each) for each in accumulate(draw.expovariate(1 / 900) for _ in range(count))]
    jobs = [{"model": "lstm-512", "steps": 25, "count": count, "arrival": arrivals}]
    return seconds(lambda: simulate({"chip": "column-npu-4x16k", "jobs": jobs}), times=1)


def served(count: int) -> tuple[float, float]:
    """Seconds and MB of a new process that serves so many requests for LSTM-512 and LSTM-256 of 5 steps."""
    code = (
        "import resource; from lstmsim import serve; from lstmsim.engines import warm_up; warm_up();"
        "jobs = [{'model': f'lstm-{size}', 'steps': 5,"
        " 'arrival': {'kind': 'poisson', 'rate_per_second': 2.5e5}} for size in (512, 256)];"
        f"serve({{'chip': 'column-npu-4x16k', 'jobs': jobs}}, requests={count});"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    start = time.perf_counter()
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, float(shown)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * 2 + ["---:"] * (len(head) - 2), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    # first: the system counts what this process holds to the memory of those that it starts
    cold, memory = cold_process("deepbench-lstm-2048-25")
    start_times = cold_start().times
    compiled.compiled()
    fast.totals(program_of("deepbench-lstm-256-150"))
    served(1000)
    _, few = served(250_000)
    serving, million = served(1_000_000)
    raw = timeouts_per_second()
    rows = engine_rows()
    eleven = all_deepbench()
    short, long = (seconds(partial(fast.totals, _gru(steps)), times=20) for steps in (150, 1500))
    points = design_points()
    first, again = point_rates(points)
    beside = ratios(points)
    plain, loaded = crowd(numba=False), crowd(numba=True)
    many = many_jobs()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = [
        ["LSTM-2048, 25 steps, a new process, file to report", "seconds", f"{cold:.2f}"],
        ["the same", "MB", f"{memory:.0f}"],
        ["LSTM-512, 20 steps, a new process against one that imports numpy", "times", f"{start_times:.2f}"],
        ["all 11 DeepBench tasks in one process, name to report", "seconds", f"{eleven:.2f}"],
        ["GRU-1024: 1,500 steps against 150", "times", f"{long / short:.2f}"],
        [
            "design points from description to row, one process, for the first time",
            "points/CPU s",
            f"{first:,.0f}",
        ],
        ["the same points again", "points/CPU s", f"{again:,.0f}"],
        ["1,024 cores, 2,048 jobs of LSTM-256, a new process, not compiled", "CPU seconds", f"{plain:.1f}"],
        ["the same, compiled before", "CPU seconds", f"{loaded:.1f}"],
        ["100,000 LSTM-512 jobs on 4 cores x 2 threads, data to report", "seconds", f"{many:.1f}"],
        ["1,000,000 requests by serve, a new process", "seconds", f"{serving:.1f}"],
        ["its memory against that of 250,000 requests", "times", f"{million / few:.2f}"],
        ["peak memory of all of this", "MB", f"{peak:.0f}"],
    ]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    text = f"""# Benchmarks

Written by `make bench` (benchmarks/table.py) on {machine}.
Ratios carry over to other machines, seconds do not.
SimPy alone: {raw / 1e6:.2f} million timeouts a second in the same run.

An *issue* is one tile or one row block in the tail; an *operation* is a run of issues that wait for the same.
Programs are lowered before the clock starts; validation and the building of tables count.

{table(["task", "engine", "ms", "million issues/s", "million operations/s", "times reference"], rows)}

{table(["what", "unit", "measured"], whole)}

{table(HEAD, beside)}
"""
    (HOME / "BENCHMARKS.md").write_text(text, encoding="utf-8")
    print(text)


def _gru(steps: int) -> Program:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "gru-1024", "steps": steps}]})
    return targets.lower(scenario.chip, scenario.jobs)


if __name__ == "__main__":
    main()
