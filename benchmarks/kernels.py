"""Sparse kernels of the parallel device: seconds and memory to write, price, lower and simulate them.

Run as `python benchmarks/kernels.py WHAT`, it does one of them in a process of its own and prints a line of JSON
(`TASKS`); `kernel_rows` runs all. Numbers are computed by the lanes in all of them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measures import measured_package

from lstmsim import engines, load_chip
from lstmsim.machines.kernels import SparseTask
from lstmsim.machines.parallel.lowering.program import program_of_kernels
from lstmsim.machines.parallel.sparse import METHODS
from lstmsim.machines.parallel.traffic import priced
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.made import drawn_operands, largest_error

__all__ = ["KERNELS_HEAD", "TASKS", "kernel_rows"]

#: Heads of the columns of `kernel_rows`.
KERNELS_HEAD = [
    *("product on `v100`", "million entries", "million issues", "write: s (MB)", "price", "lower", "simulate"),
    *("seconds in all", "million issues/s"),
]
#: What the table shows.
KERNELS_NOTE = """Products on the preset `v100`, each in a new process. Lanes compute the numbers, which are then
compared with 64-bit products.
Seconds are of the clock; behind them the most memory in MB that the process had had by then.
SpMM: 8,192 x 2,048 with 550 entries a row, 64 columns. SpMV: 100,000 rows of 50; one row; 200,000 rows by a power law.
Bounds: 20 million issues in less than 60 s and 4 GB; SpMV of 5 million entries in less than 30 s."""
_ENTRIES = 5_000_000


def drawn(lengths: np.ndarray[Any, np.dtype[np.int64]], columns: int, seed: int = 1) -> Csr:
    """A matrix with rows of these lengths: each row has every so-many-th column from a drawn one on."""
    draw = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    ends = np.cumsum(lengths)
    place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    # one column out of each of `length` equal parts of the row
    part = columns / np.repeat(lengths, lengths)
    cols = np.minimum((part * (place + draw.random(len(row)))).astype(np.int64), columns - 1)
    keep = np.append(True, (np.diff(cols) > 0) | (np.diff(row) > 0))
    counts = np.bincount(row[keep], minlength=len(lengths))
    values = draw.standard_normal(int(keep.sum())).astype(np.float32)
    return Csr(len(lengths), columns, np.append(0, np.cumsum(counts)), cols[keep], values)


def uniform() -> Csr:
    """100,000 rows of 50 entries."""
    return drawn(np.full(_ENTRIES // 50, 50), 100_000)


def one_row() -> Csr:
    """All entries in one row."""
    return drawn(np.array([_ENTRIES]), _ENTRIES)


def power_law() -> Csr:
    """200,000 rows whose lengths fall with a power of their rank, in random order."""
    lengths = 1.0 / np.arange(1, 200_001) ** 0.8
    lengths = np.maximum((lengths * _ENTRIES / lengths.sum()).astype(np.int64), 1)
    return drawn(np.random.default_rng(2).permutation(lengths), 200_000)


def measured(make: Callable[[], Csr], kernel: str, columns: int) -> dict[str, float]:
    """Seconds of each part of a product on the preset `v100`, issues, peak memory in MB after each part.

    make: gives the matrix.
    kernel: `spmm` or `spmv`.
    columns: of the dense operand.
    """
    matrix = make()
    device: Any = load_chip("v100")
    method = METHODS[kernel]["csr"]
    task = SparseTask(kernel, "csr", matrix, drawn_operands(kernel, matrix, columns, 0))
    result: dict[str, float] = {"entries": matrix.entries, "MB before": _megabytes()}

    def part(name: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        made = work()
        result[name], result[f"MB {name}"] = time.perf_counter() - begin, _megabytes()
        return made

    made = part("write", lambda: method.make(task, method.of(task, device), device))
    kernels = part("price", lambda: priced(made.run, device))
    lowered = part("lower", lambda: program_of_kernels(device, kernels))
    totals = part("simulate", lambda: engines.totals(lowered.flat, check=False))
    if largest_error(kernel, matrix, task.operands, made.result) > 1e-4:
        raise RuntimeError("the result is wrong")
    result["issues"] = int(totals.issues.sum())
    result["makespan"] = totals.makespan_cycles
    result["all"] = sum(result[name] for name in _PARTS)
    return result


_PARTS = ("write", "price", "lower", "simulate")
#: What `main` can do.
TASKS: dict[str, Callable[[], dict[str, float]]] = {
    "spmm": partial(measured, partial(drawn, np.full(8192, 550), 2048), "spmm", 64),
    "spmv, uniform": partial(measured, uniform, "spmv", 1),
    "spmv, one row": partial(measured, one_row, "spmv", 1),
    "spmv, power law": partial(measured, power_law, "spmv", 1),
}


def _megabytes() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kernel_rows() -> list[list[str]]:
    """Measure all of it, each in a new process."""
    rows = []
    for name in TASKS:
        text = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True).stdout
        of = json.loads(text)
        parts = [f"{of[part]:.1f} ({of[f'MB {part}']:,.0f})" for part in _PARTS]
        sizes = [f"{of['entries'] / 1e6:.1f}", f"{of['issues'] / 1e6:.1f}"]
        rows.append([name, *sizes, *parts, f"{of['all']:.1f}", f"{of['issues'] / of['all'] / 1e6:.2f}"])
    return rows


if __name__ == "__main__":
    measured_package()
    print(json.dumps(TASKS[sys.argv[1]]()))
