"""The row-wise NPU as all other rooms see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from lstmsim.machines.fidelity import Fidelity
from lstmsim.machines.row import lowering
from lstmsim.machines.row.entries import RowEntries
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.machines.sizes import PerStep
from lstmsim.machines.target import Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.machines.change import Change
    from lstmsim.machines.hardware import Hardware

__all__ = ["TARGET"]


class _RowTarget(RowEntries, Target):
    """The row-wise NPU."""

    counts: ClassVar[tuple[str, ...]] = ("threads", "tail_width")
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/row_npu.md), cycle by cycle: both engines and a model in the tests that "
            "steps through every cycle",
            "all 19 published workloads of the Intel NPU, for its RTL and for its own simulator, without a fitted "
            "number",
        ),
        assumed=(
            "of Brainwave two numbers for each cell, fitted on half of the DeepBench tasks, and a pipeline like the "
            "Intel NPU's: no evidence for other sizes",
            "endless queues",
        ),
    )

    def lower(self, chip: RowNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        return lowering.lower(chip, jobs, templates)

    def per_step(
        self, cores: Sequence[RowCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job."""
        return lowering.per_step(cores, model, batch, split, members)

    def hardware(self) -> Hardware:
        """What its cores are built of."""
        from lstmsim.machines.row.hardware import HARDWARE

        return HARDWARE

    def chip_counts(self, chip: RowNpu) -> Mapping[str, int]:
        """A core runs one job at a time; its accumulators are no banks."""
        return {"threads": len(chip.cores), "tail_width": sum(core.vector_lanes * core.replicas for core in chip.cores)}

    def adders(self, chip: RowNpu) -> int:
        """Each engine's tree, the sum over the tiles, an accumulator a row: as many as multipliers."""
        return sum(core.vp * (core.ep - 1) + core.vp for core in chip.cores)

    def changes(self, chip: RowNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Dispatch, batches, then the cores' parts."""
        from lstmsim.machines.row.what_if import changes

        return changes(chip, jobs)


TARGET = _RowTarget()
