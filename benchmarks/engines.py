"""How fast are the engines? Issues and operations a second, against the raw speed of SimPy's clock in the same run.

Run as `python benchmarks/engines.py`; prints a Markdown table. Ratios carry over to other machines, seconds do not.
"""

from __future__ import annotations

import resource
import time

import simpy

from lstmsim import engines, load_scenario, targets

#: DeepBench tasks of different length and width, on the 64k preset.
MODELS = ("deepbench-lstm-512-25", "deepbench-gru-1024-1500", "deepbench-gru-2816-750")


def timeouts_per_second(count: int = 200_000) -> float:
    """Bare SimPy: one process that waits `count` times."""
    environment = simpy.Environment()

    def clock() -> simpy.events.ProcessGenerator:
        for _ in range(count):
            yield environment.timeout(1)

    environment.process(clock())
    begin = time.perf_counter()
    environment.run()
    return count / (time.perf_counter() - begin)


def main() -> None:
    raw = timeouts_per_second()
    print(f"SimPy alone: {raw / 1e6:.2f} million timeouts a second.\n")
    print("| task | engine | seconds | million issues/s | issues per SimPy timeout | times reference |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for model in MODELS:
        scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model}]})
        program = targets.lower(scenario.chip, scenario.jobs)
        seconds, issues = {}, 0
        for engine in ("reference", "fast"):
            begin = time.perf_counter()
            trace = engines.run(program, engine)
            seconds[engine] = time.perf_counter() - begin
            issues = int(trace.issue("count").sum())
        for engine, taken in seconds.items():
            rate, ratio = issues / taken, seconds["reference"] / taken
            print(f"| {model} | {engine} | {taken:.3f} | {rate / 1e6:.2f} | {rate / raw:.2f} | {ratio:.1f} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of this process: {peak:.0f} MB.")


if __name__ == "__main__":
    main()
