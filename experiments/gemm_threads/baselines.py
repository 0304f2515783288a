"""Reliefs for threads that add into the same block of C, and one LSTM on three kinds of machines."""

from __future__ import annotations

from collections.abc import Sequence

import lstmsim
from experiments.gemm_threads.study import Case, figures, plan_of
from lstmsim.machines.gemm import RELIEFS

__all__ = [
    "ABOUT_MACHINES",
    "ABOUT_RELIEFS",
    "CUTS",
    "Machines",
    "machine_table",
    "machines",
    "relief_table",
    "reliefs",
]

#: A product on so many threads with a cut of K: threads, M, N, K, kind, p_k.
CUTS: Sequence[tuple[int, int, int, int, str, int]] = (
    (64, 1, 512, 1024, "NK", 2),
    (16, 64, 64, 4096, "MK", 16),
    (64, 8, 512, 4096, "NK", 16),
    (64, 8, 512, 4096, "NK", 4),
    (64, 64, 32, 8192, "MK", 8),
    (4, 256, 256, 64, "MK", 4),
    (16, 256, 256, 128, "MK", 16),
)
ABOUT_RELIEFS = (
    "Makespan with warm caches (waiting for pieces of C, cycles of all threads; makespan with cold caches). `none` is "
    "a lock round the whole block while it is computed: it is no state of the art. Sub-blocks and buffers both take "
    "most of the waiting away, and both together are best as long as blocks of C are small against the work. Where "
    "they are large (the last two rows) sub-blocks alone are best, and buffers lose: adding them into C costs more "
    "than the waiting that is left. The rule of section 3.2 recommends a buffer there all the same, because a block "
    "just fits half of L2: it is no optimum. Blocks that are too small for p_k sub-blocks have buffers only."
)
ABOUT_MACHINES = (
    "25 time steps of one sequence, hidden = input, simulated on each machine at its own clock; the CPUs with all "
    "their cores, the EPYC also with fewer. Caches are cold at the first step. The NPUs are FPGAs with their weights "
    "on the chip. The 33.5 MB of weights of LSTM-1024 fit neither the last-level cache of the Xeon (16.5 MB) nor that "
    "of 4 cores of the EPYC (16 MB); 16 cores have 64 MB. The models are bounds of machines, no frameworks: TensorFlow "
    "on two Skylake cores took 105, 460 and 4,306 us for a step (published/deepbench.csv). Plans of jobs have the "
    "parameters of section 2; all of these cut rows and columns alone, because 4H columns are enough for 64 threads."
)
_CHIPS = ("column-npu-64k", "intel-npu-rtl", "epyc-7742", "xeon-gold-5122")
_FEWER = (1, 4, 16)

#: Microseconds and utilization by machine and model.
Machines = dict[str, dict[str, tuple[float, float]]]


def reliefs(small: bool = False) -> dict[str, dict[str, tuple[int, int, int]]]:
    """Warm makespan, waits for C, cold makespan, by case and relief; `small`: of the first case."""
    return {_name(each): _under(each) for each in (CUTS[:1] if small else CUTS)}


def _name(of: tuple[int, int, int, int, str, int]) -> str:
    threads, m, n, k, kind, p_k = of
    return f"{m} x {n} x {k}, {threads} threads, {kind} {p_k}"


def _under(of: tuple[int, int, int, int, str, int]) -> dict[str, tuple[int, int, int]]:
    threads, m, n, k, kind, p_k = of
    case = Case("epyc-7742", threads, m, n, k)
    cut = next(each.cut for each in plan_of(case, "warm").ranked if (each.cut.kind, each.cut.p_k) == (kind, p_k))
    rows = {}
    for relief in (*RELIEFS[1:], RELIEFS[0]):
        warm, cold = (figures(case, cut, caches, relief) for caches in ("warm", "cold"))
        rows[relief] = warm.makespan, warm.waits["contention"], cold.makespan
    return rows


def relief_table(rows: dict[str, dict[str, tuple[int, int, int]]]) -> list[str]:
    """A row for each case, a column for each relief; that of the plan is bold."""
    names = RELIEFS[1:]
    lines = [_row("epyc-7742", *names, "planner says"), "| --- |" + " ---: |" * (len(names) + 1)]
    for case, by_relief in rows.items():
        cells = [f"{warm:,} ({waits:,}; {cold:,})" for warm, waits, cold in (by_relief[each] for each in names)]
        lines.append(_row(case, *cells, " = ".join(each for each in names if by_relief[each] == by_relief["plan"])))
    return lines


def machines(small: bool = False) -> Machines:
    """One LSTM on each machine; `small`: one model and two threads' numbers less."""
    models = ("lstm-256",) if small else ("lstm-256", "lstm-512", "lstm-1024")
    rows: Machines = {}
    for model in models:
        job = {"model": model, "steps": 25}
        of = lstmsim.compare({"chip": _CHIPS[0], "jobs": [job]}, _CHIPS[1:])
        for machine, entry in zip(of.machines, of.entries[0], strict=True):
            assert entry.ms is not None
            assert entry.utilization is not None
            rows.setdefault(machine.name, {})[model] = 1000 * entry.ms, entry.utilization
        for threads in _FEWER:
            name = f"epyc-7742, {threads} thread{'s' * (threads > 1)}"
            report = lstmsim.run({"chip": "epyc-7742", "jobs": [job | {"threads": threads}]}).report
            # the report's is of all 64 cores
            rows.setdefault(name, {})[model] = report.makespan_cycles / 2250, report.utilization * 64 / threads
    return rows


def machine_table(rows: Machines) -> list[str]:
    """A row for each machine."""
    models = list(next(iter(rows.values())))
    lines = [_row("us for 25 steps (utilization)", *models), "| --- |" + " ---: |" * len(models)]
    for name, by_model in rows.items():
        lines.append(_row(name, *(f"{us:,.1f} ({100 * part:.1f} %)" for us, part in by_model.values())))
    return lines


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
