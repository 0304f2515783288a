"""What accesses cost, in the form in which the golden cases show it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASSES, Priced, Run
from lstmsim.machines.parallel.lowering.program import Traffic, traffic_of
from lstmsim.machines.parallel.traffic import priced
from tools.parallel_outcome import fits


def loads_by_array(traffic: Traffic) -> dict[str, list[int]]:
    """Requests, and sectors from L2, L1 and DRAM, of each array."""
    return {each.array: [each.requests, *(each.sectors[at] for at in ("L2", "L1", "DRAM"))] for each in traffic.loads}


def shown_traffic(run: Run, device: ParallelDevice) -> dict[str, Any]:
    """What the cases say of the traffic of a run: what is summed, and the streams as they show them."""
    kernels = priced(run, device)
    traffic = traffic_of(run, kernels)
    return {
        **traffic.counts,
        "loads_by_array": loads_by_array(traffic),
        "kinds": issues_by_class(kernels),
        "fits": fits(run, device),
        "streams": [_streams(each) for each in kernels],
    }


def expected_traffic(expect: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """The same of a case; without streams where it shows none."""
    return {name: expect.get(name, value) if name == "streams" else expect[name] for name, value in run.items()}


def _streams(kernel: Priced) -> list[list[list[list[Any]]]]:
    """By block and warp: class, count, waits, cycles of the load/store unit, sectors, misses, whether in L1 and L2."""
    text, numbers, warps = kernel.instructions, kernel.numbers, kernel.shape.warps
    rows = []
    for row in range(len(text.kind)):
        part = slice(numbers.first_miss[row], numbers.first_miss[row + 1])
        partitions, missing = numbers.partition[part].tolist(), numbers.missing[part].tolist()
        rows.append(
            [
                CLASSES[text.kind[row]],
                int(text.count[row]),
                text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist(),
                int(numbers.lsu[row]),
                int(numbers.sectors[row]),
                {str(partition): count for partition, count in zip(partitions, missing, strict=True)},
                int(numbers.in_l1[row]),
                int(numbers.in_l2[row]),
            ]
        )
    streams = [rows[start:stop] for start, stop in zip(text.first, text.first[1:], strict=False)]
    return [streams[start : start + warps] for start in range(0, len(streams), warps)]


def issues_by_class(kernels: tuple[Priced, ...]) -> dict[str, int]:
    """How many issues of each class the kernels have, those that occur, in the order of `CLASSES`.

    An instruction with a count of n counts n. A kernel that stands in the run twice counts twice.
    """
    total = np.zeros(len(CLASSES), np.int64)
    times = Counter(id(each) for each in kernels)
    for each in {id(each): each for each in kernels}.values():
        text = each.instructions
        total += times[id(each)] * np.bincount(text.kind, text.count, len(CLASSES)).astype(np.int64)
    return {name: count for name, count in zip(CLASSES, total.tolist(), strict=True) if count}
