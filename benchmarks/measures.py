"""How the benchmarks measure: processor seconds, the least of several runs, beside SimPy's timeouts in the same run.

They measure the package of the Python that runs them, not the checkout around them: nothing here puts the checkout on
the path of modules, and a new process that runs a module gets `-P`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import simpy

__all__ = ["Cost", "cpu_seconds", "measured_package", "new_process", "table", "timeouts_per_second"]


#: Set where a process above has said what is measured.
_SAID = "LSTMSIM_BENCHMARKS_SAID"


def measured_package() -> None:
    """Print which package and engine are measured; without the native core there is nothing to measure: exit code 2."""
    import lstmsim
    from lstmsim.engines.fast.run import OWN

    where = f"lstmsim {lstmsim.__version__} of {Path(lstmsim.__file__).parent}"
    if OWN.absence is not None:
        print(f"{where}: nothing to measure, the fast engine has no native core: {OWN.absence}", file=sys.stderr)
        raise SystemExit(2)
    if _SAID not in os.environ:
        os.environ[_SAID] = "1"
        print(f"measured: {where}, fast engine with its native core", file=sys.stderr)


class Cost(NamedTuple):
    """What a process has cost.

    wall_s: seconds from its start to its end.
    cpu_s: processor seconds of it and of those that it has waited for.
    memory_mb: its peak memory, MB.
    """

    wall_s: float
    cpu_s: float
    memory_mb: float


def cpu_seconds(work: Callable[[], object], times: int = 7) -> float:
    """Give the least processor time of some runs, so that others on the machine count little."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def timeouts_per_second(count: int = 100_000, times: int = 7) -> float:
    """Give how many timeouts bare SimPy does in a processor second: one process that waits `count` times."""

    def run() -> None:
        environment = simpy.Environment()

        def clock() -> simpy.events.ProcessGenerator:
            for _ in range(count):
                yield environment.timeout(1)

        environment.process(clock())
        environment.run()

    return count / cpu_seconds(run, times)


def new_process(*words: str) -> Cost:
    """Run Python with these arguments in a new process; `RuntimeError` if it fails."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"python {' '.join(words)!r} ended with exit code {process.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def table(head: list[str], rows: list[list[str]], names: int = 2) -> str:
    """Give a Markdown table; its first `names` columns are words, the others numbers."""
    lines = [head, ["---"] * names + ["---:"] * (len(head) - names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
