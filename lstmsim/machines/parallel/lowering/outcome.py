"""What came of a run of kernels: its traffic, and what the totals of its run say, without a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from lstmsim.base.records import record
from lstmsim.machines.kernels import ArrayLoads, KernelFigures, KernelSpan
from lstmsim.machines.parallel.device import STALLS, ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, Ints, Kernel, Priced, Run
from lstmsim.machines.parallel.lowering.program import Lowered
from lstmsim.model.sparse.csr import firsts
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import TASKS, Totals

#: Names of scheduler-cycles -> the names of cycles that they are in a program.
ACCOUNTS: Mapping[str, str] = {"issue": "busy", **{name: name for name in (*STALLS, "drain")}, "empty": "idle"}


F = TypeVar("F", bound=KernelFigures)


def figures_of(kind: type[F], device: ParallelDevice, lowered: Lowered, totals: Totals, **more: Any) -> F:
    """What the run of a program came to.

    kind: the class of the figures. more: its further fields.
    """
    cycles = totals.cycles[: device.sms]
    accounts = {name: cycles[:, CYCLE_NAMES.index(own)] for name, own in ACCOUNTS.items()}
    kernels: list[KernelSpan] = []
    blocks: list[tuple[int, int, int]] = []
    for each in lowered.kernels:
        rows = totals.tasks[each.first : each.first + max(each.blocks, 1)]
        ends = TASKS.of(rows, "finish")
        arrives = int(TASKS.of(rows, "arrived").min())
        kernels.append(KernelSpan(each.kernel.shape.name, each.blocks, arrives, int(ends.max())))
        if each.blocks:
            columns = (TASKS.of(rows, "core"), TASKS.of(rows, "admitted"), ends)
            blocks += zip(*(column.tolist() for column in columns), strict=True)
    return kind(
        makespan=totals.makespan_cycles,
        kernels=tuple(kernels),
        busy=tuple(accounts["issue"].tolist()),
        accounts={name: int(cycles.sum()) for name, cycles in accounts.items()},
        account_cycles=device.sms * device.core.schedulers * totals.makespan_cycles,
        blocks=tuple(blocks),
        **more,
    )


_LDG, _STG, _ATOM = (CLASS[name] for name in ("ldg", "stg", "atom"))


@record
class Traffic:
    """What the accesses of a run bring, in sectors of 32 bytes.

    counts: `load_requests`, `ldg` instructions; `requests`, these, `stg` and `atom`; `l1_sectors`, loaded sectors that
        L1 answers; `l2_sectors`, through the ports, stores and atomics included; `dram_sectors`, sectors that L2 has
        not, stores included (atomics have none).
    loads: of each array, in the order in which arrays are declared, those that nobody loads included.
    """

    counts: Mapping[str, int]
    loads: tuple[ArrayLoads, ...]


def traffic_of(run: Run, kernels: tuple[Priced, ...]) -> Traffic:
    """The traffic of a run, summed over its kernels, which are priced."""
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
    levels = ("L1", "L2", "DRAM")
    names, rows = (each.name for each in run.arrays), loads.T.tolist()
    by_array = tuple(
        ArrayLoads(name, requests, dict(zip(levels, sectors, strict=True)))
        for name, (requests, *sectors) in zip(names, rows, strict=True)
    )
    requests, l1, l2, dram = loads.sum(axis=1).tolist()
    more_requests, _, more_l2, more_dram = others.sum(axis=1).tolist()
    counts = {"load_requests": requests, "requests": requests + more_requests, "l1_sectors": l1}
    return Traffic(counts | {"l2_sectors": l2 + more_l2, "dram_sectors": dram + more_dram}, by_array)


def _by_array(kernel: Kernel, each: Priced, rows: Ints, arrays: int) -> Ints:
    """Shape (4, arrays); requests, sectors of L1, L2 and DRAM of some accesses."""
    numbers, array = each.numbers, kernel.array[rows]
    touched = kernel.first_sector[rows + 1] - kernel.first_sector[rows]
    dram = firsts(numbers.missing)
    missed = dram[numbers.first_miss[rows + 1]] - dram[numbers.first_miss[rows]]
    missed[kernel.instructions.kind[rows] == _ATOM] = 0  # Its numbers are lanes.
    sectors = numbers.sectors[rows]
    columns = (np.ones(len(rows)), touched - sectors, sectors, missed)
    return np.stack([np.bincount(array, column, arrays) for column in columns]).astype(np.int64)
