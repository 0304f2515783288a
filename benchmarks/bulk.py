"""A program of ten million operations, written with NumPy and run by the fast engine: seconds and memory.

Run as `python benchmarks/bulk.py`; `--tasks` and `--operations` change the size. The machine is like a GPU: 80 cores of
64 contexts, and 4 fine units beside one that all threads of a core share. Tasks share a body of 20 operations, each on
the next unit and after the one before it.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lstmsim.engines import totals
from lstmsim.program.flat import FLAT_TABLES, FlatProgram, flat_program
from lstmsim.program.flatten import CYCLE_TABLES
from lstmsim.program.policy import POLICIES

T = TypeVar("T")
CORES, CONTEXTS, UNITS = 80, 64, 5
BODY = 20


def rows(table: str, number: int, /, **columns: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Some rows of a table with these columns, each a number or an array; the others are 0."""
    made = np.zeros((number, FLAT_TABLES[table].width), dtype=np.int64)
    for name, values in columns.items():
        made[:, FLAT_TABLES[table].place(name)] = values
    return made


def bulk(tasks: int, iterations: int) -> FlatProgram:
    """A program of `tasks` tasks that run one body so often; they come at intervals that keep the machine full."""
    fine, fifo = (list(POLICIES).index(name) for name in ("fine", "fifo"))
    numbers = np.arange(BODY)
    units = numbers % UNITS
    cycles = np.where(units == UNITS - 1, 2, 1)
    # each but the first operation has a need
    chain = {"needs": np.minimum(numbers, 1), "first_need": np.maximum(numbers - 1, 0)}
    chain |= {name: np.full(BODY, -1) for name in ("takes", "frees", "extra", "arrives")}
    operations = rows("operations", BODY, unit=units, cycles=cycles, count=1, result_cycles=cycles, **chain)
    each = np.arange(CORES)
    no_others = dict.fromkeys(("after", "behind", "starts", "ends", "until"), -1)
    return flat_program(
        {
            **CYCLE_TABLES,
            "cores": rows("cores", CORES, contexts=CONTEXTS, units=UNITS, capacity=-1),
            "units": rows("units", UNITS, policy=[fine] * (UNITS - 1) + [fifo], instances=1),
            "groups": rows("groups", 1, places=CORES),
            "places": rows("places", CORES, first_thread_slot=each, thread_slots=1),
            "thread_slots": rows("thread_slots", CORES, core=each),
            "profiles": rows("profiles", 1, weight_set=-1, queue_limit=-1, patience=-1, pool=-1, variants=1),
            "variants": rows("variants", 1, members=1, phases=1),
            "phases": rows("phases", 1, repeat=iterations),
            "bodies": rows("bodies", 1, operations=BODY, first_word=-1),
            "operations": operations,
            "needs": rows("needs", BODY - 1, operation=numbers[:-1], delay=4, cause=1, phase=-1),
            "tasks": rows("tasks", tasks, release=np.arange(tasks) // CORES, **no_others),
        }
    )


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """A result and the CPU seconds that it took."""
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def megabytes() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print how long writing and running take, and how much memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--operations", type=int, default=1_000, help="operations of each task")
    chosen = parser.parse_args()
    iterations = max(chosen.operations // BODY, 1)
    totals(bulk(1, 1))
    before = megabytes()
    flat, writing = timed(lambda: bulk(chosen.tasks, iterations))
    counted, running = timed(lambda: totals(flat))
    operations = chosen.tasks * iterations * BODY
    assert int(counted.issues.sum()) == operations
    print(f"{chosen.tasks:,} tasks, {operations:,} operations on {CORES} cores of {CONTEXTS} contexts")
    print(f"makespan {counted.makespan_cycles:,} cycles; the flat program has {flat.words.nbytes / 2**20:.2f} MB")
    print(
        f"written in {1000 * writing:.1f} ms, run in {running:.2f} s: {operations / running / 1e6:.1f} million a second"
    )
    print(f"memory: {before:.0f} MB before, {megabytes():.0f} MB at most")


if __name__ == "__main__":
    from measures import measured_package

    measured_package()
    main()
