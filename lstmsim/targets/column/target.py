"""The column-wise NPU as everybody else sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lstmsim.program.program import Program
from lstmsim.targets.column import lowering
from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
from lstmsim.targets.target import StructuralModel, Target
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job

__all__ = ["TARGET"]


class _ColumnTarget(Target):
    """The column-wise NPU."""

    kind: ClassVar[str] = "column-npu"
    title: ClassVar[str] = "column-wise NPU"
    chip: ClassVar[type] = ColumnNpu
    core: ClassVar[type] = ColumnCore

    def lower(self, chip: ColumnNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        return lowering.lower(chip, jobs, templates)

    def check(self, chip: ColumnNpu, job: Job) -> None:
        """`InputError` if no core that the job may use can run it."""
        lowering.check(chip, job)

    def operations_per_step(self, core: ColumnCore, model: Model, batch: int) -> int:
        """A bound on the operations of one step."""
        return lowering.operations_per_step(model, core, batch)

    def structural_model(self) -> StructuralModel:
        """What executes a trace of this machine."""
        from lstmsim.targets.column.replay.walk import replay

        return replay


TARGET = _ColumnTarget()
