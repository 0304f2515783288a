"""How does the time of large scenarios grow? Ratios of a size and twice that size, in one run.

Run as `python benchmarks/large_scenarios.py`. A ratio near 2 is in proportion, a ratio near 4 is quadratic. Each time
is the least of three, of reading (file to scenario), of lowering (scenario to program) and of the run (program to
report).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measures import measured_package

import lstmsim as api
from lstmsim import machines
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_scenario

CORE = {"npe": 1024, "ep": 16, "vp": 64}


def crowd(size: int) -> dict[str, Any]:
    """So many cores of their own entry, and twice as many jobs."""
    jobs = [{"name": f"j{number}", "model": "lstm-256", "steps": 2} for number in range(2 * size)]
    return {"chip": {"kind": "column-npu", "name": "c", "frequency_mhz": 260, "cores": [CORE] * size}, "jobs": jobs}


def batch(size: int) -> dict[str, Any]:
    """One job of so many inferences on a row-wise chip."""
    return {"chip": "brainwave-s10", "jobs": [{"model": "gru-512", "steps": 2, "batch": size}]}


def mistakes(size: int) -> dict[str, Any]:
    """So many unknown keys."""
    return {**crowd(1), **{f"key{number}": 1 for number in range(size)}}


def least(work: Callable[[], Any]) -> tuple[float, Any]:
    """Give the seconds of the quickest of three runs, and the last outcome."""
    best, outcome = float("inf"), None
    for _ in range(3):
        began = time.perf_counter()
        try:
            outcome = work()
        except InputError as error:
            outcome = error
        best = min(best, time.perf_counter() - began)
    return best, outcome


def stages(data: dict[str, Any]) -> dict[str, float]:
    """Seconds of each stage."""
    from lstmsim.machines.row.target import _phases

    def lowered() -> Any:
        _phases.cache_clear()
        return machines.lower(scenario.chip, scenario.jobs)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.json")
        path.write_text(json.dumps(data))
        reading, scenario = least(lambda: load_scenario(path))
    if isinstance(scenario, InputError):
        return {"reading": reading}
    lowering, program = least(lowered)
    running, _ = least(lambda: api.Run(scenario, "fast", program).report)
    return {"reading": reading, "lowering": lowering, "run": running}


def main() -> int:
    print(
        "| scenario | size | stage | seconds | of twice the size | ratio |\n| --- | ---: | --- | ---: | ---: | ---: |"
    )
    for name, make, size in (("crowd", crowd, 1024), ("batch", batch, 60), ("mistakes", mistakes, 20_000)):
        one, two = stages(make(size)), stages(make(2 * size))
        for stage, seconds in one.items():
            print(f"| {name} | {size:,} | {stage} | {seconds:.3f} | {two[stage]:.3f} | {two[stage] / seconds:.1f} |")
    return 0


if __name__ == "__main__":
    measured_package()
    sys.exit(main())
