"""Fused kernels on the device: how they become a program, and what its run came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.kernels import FusedFigures, FusedWork, KernelSpan
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.fused.numbers import SETTINGS, fusion_device
from lstmsim.machines.parallel.fused.writing import fused_run
from lstmsim.machines.parallel.lowering.outcome import outcome_of
from lstmsim.machines.parallel.lowering.program import Lowered, program_of_kernels
from lstmsim.machines.parallel.memory.addresses import SECTOR_BYTES
from lstmsim.machines.parallel.memory.traffic import priced
from lstmsim.machines.parallel.metrics import traffic_of
from lstmsim.machines.parallel.words import NOT_MODELLED
from lstmsim.model.fusion.device import FusionDevice
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import PlannedKernel
from lstmsim.program.totals import Totals

__all__ = ["FUSED", "Fused"]

_LEFT_OUT = (
    "integer work for addresses: a move costs nothing, an operation only its own instructions",
    "copies between a thread's registers, and registers that spill",
    *NOT_MODELLED,
    "loads of a split result's parts that overlap: each waits until the part before is added, as long as L2 takes",
    "kernels side by side: each begins when the one before it has ended",
)


@dataclass(frozen=True, eq=False)
class _Own:
    """What lowered kernels keep for their figures."""

    lowered: Lowered
    counts: Mapping[str, int]


class Fused:
    """The fused kernels of the device, as `lstmsim.machines.kernels.FusedKernels` says."""

    settings: Mapping[str, str] = SETTINGS
    left_out: Sequence[str] = _LEFT_OUT

    def numbers(self, chip: ParallelDevice, settings: Mapping[str, Any]) -> FusionDevice:
        """The numbers of a chip that plans need; `InputError` for a setting that there is not or out of range.

        The chip has a `split_rule` of its own, which holds unless the settings name another.
        """
        if chip.element_bytes != 4:
            text = (
                "plans count values of 4 bytes; 2 is for jobs, whose fused kernels `simulate` times with `fusion: on`"
            )
            raise InputError(Mistake(f"chip {chip.name}: element_bytes", text))
        own = {"split_rule": chip.split_rule}
        return fusion_device(chip.view, own | {name: value for name, value in settings.items() if value is not None})

    def lower(self, chip: ParallelDevice, graph: Graph, kernels: Sequence[PlannedKernel], name: str) -> FusedWork:
        """Make a program of planned kernels; `InputError` if one does not fit, `DeadlockError` if it never ends."""
        device = chip.view
        run = fused_run(graph, kernels, device)
        costs = priced(run, device)
        traffic = traffic_of(run, costs)
        lowered = program_of_kernels(device, costs, name)
        return FusedWork(lowered.flat, lowered.names, _Own(lowered, traffic.counts))

    def figures(self, chip: ParallelDevice, work: FusedWork, totals: Totals) -> FusedFigures:
        """What the run of a program came to."""
        device, own = chip.view, work.own
        outcome = outcome_of(device, own.lowered, totals)
        spans = zip(outcome.kernels, own.lowered.kernels, strict=True)
        return FusedFigures(
            makespan=outcome.makespan,
            launch=device.launch,
            kernels=tuple(KernelSpan(each.name, tasks.blocks, each.arrive, each.end) for each, tasks in spans),
            busy=tuple(outcome.accounts["issue"].tolist()),
            accounts={name: int(cycles.sum()) for name, cycles in outcome.accounts.items()},
            account_cycles=device.sms * device.schedulers * outcome.makespan,
            counts=own.counts,
            l2_bytes=SECTOR_BYTES * own.counts["l2_sectors"],
            dram_bytes=SECTOR_BYTES * own.counts["dram_sectors"],
            blocks=tuple(map(tuple, outcome.blocks[:, [2, 3, 5]].tolist())),
        )


#: The only object of the class.
FUSED = Fused()
