"""The row-wise NPU as everybody else sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lstmsim.program.program import Program
from lstmsim.targets.row import lowering
from lstmsim.targets.row.npu import RowCore, RowNpu
from lstmsim.targets.target import Target
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job

__all__ = ["TARGET"]


class _RowTarget(Target):
    """The row-wise NPU."""

    kind: ClassVar[str] = "row-npu"
    title: ClassVar[str] = "row-wise NPU"
    chip: ClassVar[type] = RowNpu
    core: ClassVar[type] = RowCore

    def lower(self, chip: RowNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        return lowering.lower(chip, jobs, templates)

    def check(self, chip: RowNpu, job: Job) -> None:
        """`InputError` if no core that the job may use can run it."""
        lowering.check(chip, job)

    def operations_per_step(self, core: RowCore, model: Model, batch: int) -> int:
        """A bound on the operations of one step."""
        return lowering.operations_per_step(model, core, batch)


TARGET = _RowTarget()
