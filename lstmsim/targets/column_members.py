"""The cores that a job of a column-wise NPU takes together, and its phases on them."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.program.program import Unit
from lstmsim.targets.assembly import Phases
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job

__all__ = ["Members"]


@dataclass(frozen=True)
class Members:
    """Places and phases of jobs on a chip, whatever its memories hold."""

    chip: ColumnNpu

    def places(self, job: Job) -> tuple[tuple[int, ...], ...]:
        """Where a job may run: each place the cores that it takes together."""
        cores = job.allowed(len(self.chip.cores))
        return tuple((each,) for each in cores if self.chip.cores[each].refusal(job.model) is None)

    def phases(self, job: Job, core: ColumnCore, place: tuple[int, ...]) -> Phases:
        """The phases of a job on the cores of a place, all like `core`."""
        from lstmsim.targets.column_lowering import PARTS

        return PARTS.phases(job, core)

    def weights(self, model: Model, split: str, members: int) -> int:
        """Weights on the core that has the most."""
        return model.macs_per_step

    def units(self, core: ColumnCore) -> tuple[Unit, ...]:
        """The units of a core."""
        return Unit("array", core.thread_policy, core.switch_cycles), Unit("tail", "fifo")
