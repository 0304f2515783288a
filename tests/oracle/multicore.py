"""The multi-core CPU once more (docs/multicore.md), from the text alone: plain and slow, for small products.

`run` is a product alone; `multicore_jobs.simulate` has recurrent jobs. It shares nothing with lstmsim.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.oracle.multicore_caches import COUNTS
from tests.oracle.multicore_lines import Counted, traced
from tests.oracle.multicore_steps import Product
from tests.oracle.multicore_time import CAUSES, Barrier, Clock, Group, Timed, barrier_cycles

__all__ = ["run", "section", "total_counts"]


def section(
    m: Any, work: list[Counted], first_core: int, last: dict[int, Timed], gate: Barrier | None, frame: int
) -> list[Timed]:
    """Steps in time of what lies between two barriers, in the order of each thread; `last` step of each so far."""
    timed: dict[int, Timed] = {}
    steps = []
    fresh = set()
    for each in work:
        step = Timed(first_core + each.thread, each.x, dict(each.memory), last.get(each.thread), frame)
        if gate is not None and each.thread not in fresh:
            step.needs.append((gate, 0, "barrier"))
        fresh.add(each.thread)
        if each.step is not None:
            timed[id(each.step)] = step
            if each.step.after is not None:
                step.needs.append((timed[id(each.step.after)], m.handover_cycles, "contention"))
        if each.thread in last:
            last[each.thread].later = True
        last[each.thread] = step
        steps.append(step)
    return steps


def total_counts(work: list[Counted]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    memory: Counter[int] = Counter()
    for each in work:
        counts.update(each.counts)
        memory.update(each.memory)
    lines = {str(domain): lines for domain, lines in sorted(memory.items()) if lines}
    return {**{name: counts[name] for name in COUNTS}, "memory": lines}


def run(m: Any, product: Product, caches: str) -> dict[str, Any]:
    """What a golden case expects of one candidate."""
    work = traced(m, product, caches == "warm")
    last: dict[int, Timed] = {}
    steps = section(m, work, 0, last, None, 0)
    group = Group(steps, [])
    clock = Clock(m)
    clock.add(group)
    clock.run()
    used = product.buffer and product.cut[3] > 1
    _, _, _, _, mb, nb, _ = product.cut
    return {
        "makespan": max(step.end for step in steps) + barrier_cycles(m, product.threads),
        "finish": [last[thread].end if thread in last else 0 for thread in range(product.threads)],
        "waits": {name: group.waits[name] for name in CAUSES},
        "counts": total_counts(work),
        "compute": sum(each.compute for each in work),
        "buffer_bytes": product.threads * mb * nb * m.element_bytes if used else 0,
    }
