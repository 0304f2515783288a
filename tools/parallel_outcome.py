"""What came of a run of kernels on the parallel device: each SM, unit, partition and block, for checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, CLASSES, Ints, Priced, Run
from lstmsim.machines.parallel.lowering.program import ACCOUNTS, KernelTasks, Lowered
from lstmsim.machines.parallel.traffic import _fits, _uses, laid
from lstmsim.model.sparse.csr import firsts
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import TASKS, Totals


@dataclass(frozen=True)
class KernelSpan:
    """When a kernel ran.

    name: of the kernel.
    arrive: cycle in which its blocks are there.
    end: cycle in which the last one has ended.
    resident: how many of its blocks an SM holds at once.
    """

    name: str
    arrive: int
    end: int
    resident: int

    @property
    def span(self) -> int:
        """Cycles from the arrival of its blocks to its end."""
        return self.end - self.arrive


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a run.

    makespan: cycle in which the last kernel has ended.
    accounts: name (`ACCOUNTS`) -> scheduler-cycles of each SM, shape (SMs,); all names add up to schedulers x makespan.
    issues: class -> how many issues there were; only those that occur.
    lsu, port: shape (SMs,); busy cycles of load/store units and ports.
    dram, atomic: shape (partitions,); busy cycles of the partitions' DRAM and atomic units.
    kernels: when each ran.
    blocks: shape (blocks, 6); kernel, number in its grid, SM, cycle of its placing, cycle from which it may issue, end.
    """

    makespan: int
    accounts: Mapping[str, Ints]
    issues: Mapping[str, int]
    lsu: Ints
    port: Ints
    dram: Ints
    atomic: Ints
    kernels: tuple[KernelSpan, ...]
    blocks: Ints

    @property
    def imbalance(self) -> float:
        """Busiest SM over the mean of all; 0 if none issued anything."""
        issue = self.accounts["issue"]
        return float(issue.max() / issue.mean()) if issue.any() else 0.0


def outcome_of(device: ParallelDevice, lowered: Lowered, totals: Totals) -> Outcome:
    """What came of a run."""
    cycles = totals.cycles[: device.sms]
    accounts = {name: cycles[:, CYCLE_NAMES.index(own)] for name, own in ACCOUNTS.items()}
    lsu, port = np.zeros((2, device.sms), dtype=np.int64)
    dram, atomic = np.zeros((2, device.partitions), dtype=np.int64)
    issues = np.zeros(len(CLASSES), dtype=np.int64)
    spans, blocks = [], []
    costs: dict[int, _Costs] = {}
    for number, each in enumerate(lowered.kernels):
        cost = costs.get(id(each.kernel)) or costs.setdefault(id(each.kernel), _Costs.of(device, each.kernel))
        rows = totals.tasks[each.first : each.first + max(each.blocks, 1)]
        spans.append(_span(each, rows))
        issues += cost.issues
        dram += cost.dram
        atomic += cost.atomic
        if each.blocks:
            sm = TASKS.of(rows, "core")
            np.add.at(lsu, sm, cost.lsu)
            np.add.at(port, sm, cost.port)
            blocks.append(_blocks(device, number, rows))
    return Outcome(
        makespan=totals.makespan_cycles,
        accounts=accounts,
        issues={name: int(count) for name, count in zip(CLASSES, issues, strict=True) if count},
        lsu=lsu,
        port=port,
        dram=dram,
        atomic=atomic,
        kernels=tuple(spans),
        blocks=np.concatenate(blocks) if blocks else np.zeros((0, 6), dtype=np.int64),
    )


def _span(each: KernelTasks, rows: Ints) -> KernelSpan:
    arrive, end = int(TASKS.of(rows, "arrived").min()), int(TASKS.of(rows, "finish").max())
    return KernelSpan(each.kernel.shape.name, arrive, end, each.resident)


def _blocks(device: ParallelDevice, kernel: int, rows: Ints) -> Ints:
    """The rows of a kernel's blocks. The dispatcher serves them in the order of their placing."""
    placed = TASKS.of(rows, "admitted")
    order = np.argsort(placed, kind="stable")
    turns = np.arange(len(order)) * device.dispatch
    served = np.empty(len(order), dtype=np.int64)
    served[order] = turns + np.maximum.accumulate(placed[order] - turns)
    may_issue = served + device.dispatch + device.start
    columns = (np.full(len(rows), kernel), np.arange(len(rows)), TASKS.of(rows, "core"), placed, may_issue)
    return np.stack([*columns, TASKS.of(rows, "finish")], axis=1)


@dataclass(frozen=True, eq=False)
class _Costs:
    """What a kernel asks of units.

    issues: shape (classes,); lsu, port: cycles, shape (blocks,); dram, atomic: cycles, shape (partitions,).
    """

    issues: Ints
    lsu: Ints
    port: Ints
    dram: Ints
    atomic: Ints

    @classmethod
    def of(cls, device: ParallelDevice, kernel: Priced) -> _Costs:
        whole, numbers = kernel.instructions, kernel.numbers
        kind = whole.kind
        counts = np.bincount(kind, weights=whole.count, minlength=len(CLASSES)).astype(np.int64)
        through = (kind >= CLASS["ldg"]) & (kind <= CLASS["atom"])
        lsu = np.where((kind >= CLASS["shfl"]) & (kind <= CLASS["atom"]), np.maximum(numbers.lsu, 1), 0)
        sectors, cycles = device.core.port
        port = np.where(through, -(-numbers.sectors.astype(np.int64) * cycles // sectors), 0)
        own = np.repeat(kind, np.diff(numbers.first_miss)) == CLASS["atom"]
        missing = numbers.missing.astype(np.int64)
        dram, atomic = (
            np.bincount(numbers.partition[mask], weights=rate * missing[mask], minlength=device.partitions)
            for mask, rate in ((~own, device.dram), (own, device.atomic))
        )
        first = whole.first[:: kernel.shape.warps]
        by_block = [(total := firsts(each))[first[1:]] - total[first[:-1]] for each in (lsu, port)]
        return cls(counts, by_block[0], by_block[1], dram.astype(np.int64), atomic.astype(np.int64))


def fits(run: Run, device: ParallelDevice) -> bool:
    """Whether all that the kernels of a run touch is at most what L2 holds."""
    layout = laid(run.arrays)
    return _fits(_uses(run, layout), layout, device)
