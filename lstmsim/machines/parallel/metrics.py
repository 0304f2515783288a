"""Counts of a run that need no clock: requests, and the sectors that they bring from L2, L1 and DRAM."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.machines.parallel.kernel import CLASS, CLASSES, Kernel, Priced, Run
from lstmsim.model.sparse.ranges import firsts

__all__ = ["Loads", "Traffic", "issues_by_class", "traffic_of"]

_LDG, _STG, _ATOM = (CLASS[name] for name in ("ldg", "stg", "atom"))


@record
class Loads:
    """What the loads of an array bring, in sectors of 32 bytes.

    requests: `ldg` instructions.
    l2: sectors that go through the ports of the multiprocessors.
    l1: sectors that L1 answers.
    dram: sectors that L2 has not.
    """

    requests: int
    l2: int
    l1: int
    dram: int


@record
class Traffic:
    """What the accesses of a run bring, in sectors of 32 bytes.

    load_requests: `ldg` instructions; requests: these, `stg` and `atom`.
    l2_sectors: through the ports, stores and atomics included.
    l1_sectors: loaded sectors that L1 answers.
    dram_sectors: sectors that L2 has not, stores included; atomics have none.
    loads_by_array: in the order in which the arrays are declared, those that nobody loads included.
    """

    load_requests: int
    requests: int
    l2_sectors: int
    l1_sectors: int
    dram_sectors: int
    loads_by_array: dict[str, Loads]

    @property
    def counts(self) -> dict[str, int]:
        """The sums over all arrays by their names, as reports have them."""
        names = ("load_requests", "requests", "l1_sectors", "l2_sectors", "dram_sectors")
        return {name: getattr(self, name) for name in names}


def traffic_of(run: Run, kernels: tuple[Priced, ...]) -> Traffic:
    """The traffic of a run, summed over its kernels.

    kernels: those of `run`, priced.
    """
    arrays = len(run.arrays)
    loads, others = np.zeros((4, arrays), np.int64), np.zeros((4, arrays), np.int64)
    times = Counter(id(each) for each in kernels)
    # A kernel that is priced once stands in the run under one object.
    for kernel, each in {id(each): (kernel, each) for kernel, each in zip(run.kernels, kernels, strict=True)}.values():
        load = kernel.instructions.kind == _LDG
        other = (kernel.instructions.kind == _STG) | (kernel.instructions.kind == _ATOM)
        often = times[id(each)]
        loads += often * _by_array(kernel, each, np.flatnonzero(load), arrays)
        others += often * _by_array(kernel, each, np.flatnonzero(other), arrays)
    rows = {memory.name: Loads(*each) for memory, each in zip(run.arrays, loads.T.tolist(), strict=True)}
    requests, l2, l1, dram = loads.sum(axis=1).tolist()
    more_requests, more_l2, _, more_dram = others.sum(axis=1).tolist()
    return Traffic(requests, requests + more_requests, l2 + more_l2, l1, dram + more_dram, rows)


def _by_array(kernel: Kernel, each: Priced, rows: NDArray[np.int64], arrays: int) -> NDArray[np.int64]:
    """Shape (4, arrays); requests, sectors of L2, L1 and DRAM of some accesses."""
    numbers, array = each.numbers, kernel.array[rows]
    touched = kernel.first_sector[rows + 1] - kernel.first_sector[rows]
    dram = firsts(numbers.missing)
    missed = dram[numbers.first_miss[rows + 1]] - dram[numbers.first_miss[rows]]
    missed[kernel.instructions.kind[rows] == _ATOM] = 0  # Its numbers are lanes.
    sectors = numbers.sectors[rows]
    columns = (np.ones(len(rows)), sectors, touched - sectors, missed)
    return np.stack([np.bincount(array, column, arrays) for column in columns]).astype(np.int64)


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
