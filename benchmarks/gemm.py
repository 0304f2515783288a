"""Threads for matrix products, and jobs, on the multi-core CPU: seconds to plan, trace and simulate them.

Run as `python benchmarks/gemm.py`, it prints its tables; `gemm_rows` and `walk_rows` are what they are made of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from measures import Cost, cpu_seconds, measured_package, new_process, table

from lstmsim import engines, load_chip, run_gemm, simulate
from lstmsim.machines.gemm import Division, GemmTask, Product
from lstmsim.machines.multicore import gemm
from lstmsim.machines.multicore.lines.caches import Caches, NativeCaches, PlainCaches
from lstmsim.machines.multicore.lines.space import COLUMNS, Space, operands, runs_of
from lstmsim.machines.multicore.steps import in_rounds, steps_of

__all__ = ["GEMM_HEAD", "GEMM_NOTE", "TASKS", "WALK_HEAD", "gemm_rows", "walk_rows"]

_CHIP: Any = load_chip("epyc-7742")
_PRODUCT = Product(1024, 1024, 1024)
#: What the tables show.
GEMM_NOTE = """The product 1024 x 1024 x 1024 on 64 threads has 18 to 26 million accesses of lines, by its cut.
Warm caches need it twice. The first table is of new processes, the least of three each; beside a plan stand all its
other candidates, which threads simulate side by side. In the second table steps become runs of bytes, and caches count
their lines, both cold.
Bounds: the product in less than 10 s, LSTM-512 in less than 3 s."""
GEMM_HEAD = ["what, on `epyc-7742`", "seconds", "CPU seconds", "MB"]
WALK_HEAD = ["cut of 1024 x 1024 x 1024", "million accesses", "runs: CPU ms", "caches: CPU ms", "accesses/CPU s"]


def alone() -> None:
    """The product planned, and the plan traced cold and simulated."""
    task = GemmTask(_PRODUCT, 64, "cold")
    work = gemm.lower(_CHIP, task, gemm.plan(_CHIP, task).division)
    engines.run(work.program)


#: What `main` can do, by the words of its row.
TASKS: dict[str, Callable[[], object]] = {
    "1024 x 1024 x 1024 on 64 threads: planned, the plan traced cold and simulated": alone,
    "the same with everything that stands beside a plan, cold and warm": lambda: run_gemm(
        1024, 1024, 1024, threads=64, chip="epyc-7742", baselines=True
    ),
    "a step of LSTM-512 (1 x 2048 x 1024) on 64 threads, with everything": lambda: run_gemm(
        1, 2048, 1024, threads=64, chip="epyc-7742"
    ),
    "LSTM-512, 25 steps, on 64 threads": lambda: simulate(
        {"chip": "epyc-7742", "jobs": [{"model": "lstm-512", "steps": 25}]}
    ),
}


def gemm_rows() -> list[list[str]]:
    """Measure each in a new process: the least of three runs."""
    rows = []
    for number, name in enumerate(TASKS):
        runs = [new_process(__file__, str(number)) for _ in range(3)]
        cost = Cost(*map(min, zip(*runs, strict=True)))
        rows.append([name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}", f"{cost.memory_mb:.0f}"])
    return rows


def walk_rows() -> list[list[str]]:
    """Measure runs and caches of some cuts, cold; of a smaller product also the plain caches."""
    task = GemmTask(_PRODUCT, 64)
    ranked = gemm.plan(_CHIP, task).ranked
    wanted = ((8, 8, 1), (16, 1, 4), (1, 8, 8), (1, 1, 64))
    cuts = [each.cut for each in ranked if (each.cut.p_m, each.cut.p_n, each.cut.p_k) in wanted]
    rows = [_walked(gemm.division(_CHIP, task, cut), NativeCaches, "") for cut in cuts]
    small = GemmTask(Product(128, 128, 128), 64)
    division = gemm.plan(_CHIP, small).division
    return [*rows, *(_walked(division, *each) for each in ((NativeCaches, "128^3, "), (PlainCaches, "128^3, plain, ")))]


def _walked(division: Division, kind: Callable[..., Caches], name: str) -> list[str]:
    """A row."""
    machine, space = _CHIP, Space(_CHIP)
    places = operands(space, machine, division)
    steps = in_rounds(steps_of(machine, division))
    cores = [each.thread for each in steps]

    @lru_cache(maxsize=1)
    def runs() -> list[Any]:
        return [runs_of(machine, division, places, each) for each in steps]

    def walk() -> None:
        runs.cache_clear()
        runs()

    walking = cpu_seconds(walk, 3)
    accesses = int(kind(machine, space.arrays).drive(cores, runs())[:, COLUMNS.index("l1")].sum())
    driving = cpu_seconds(lambda: kind(machine, space.arrays).drive(cores, runs()), 3)
    cut = division.cut
    named = f"{name}{cut.kind} {cut.p_m} x {cut.p_n} x {cut.p_k}"
    return [
        *(named, f"{accesses / 1e6:.2f}", f"{1e3 * walking:.0f}", f"{1e3 * driving:.0f}"),
        f"{accesses / driving:,.0f}",
    ]


def main() -> None:
    """Print the tables."""
    print(table(GEMM_HEAD, gemm_rows(), names=1), table(WALK_HEAD, walk_rows(), names=1), sep="\n\n")


if __name__ == "__main__":
    measured_package()
    if len(sys.argv) > 1:
        [*TASKS.values()][int(sys.argv[1])]()
    else:
        main()
