"""The cores that a job of a column-wise NPU takes together, and its phases on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.assembly import Phases
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.phases import model_phases
from lstmsim.machines.column.split import share_weights, split_phases, split_refusal, spreads_over
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Buffer, Unit, Wide

__all__ = ["Members", "own_units"]

Wides = tuple[Wide, ...]


def own_units(core: ColumnCore) -> tuple[Unit, ...]:
    """The units that every core has."""
    return Unit("array", core.thread_policy, core.switch_cycles, pipeline="MVM"), Unit("tail", "fifo")


@record
class Members:
    """Places and phases of jobs on a chip. The contents of memories do not matter here.

    chip: the chip.
    exchanging: whether some job is split.
    """

    chip: ColumnNpu
    exchanging: bool = False

    def places(self, job: Job) -> tuple[tuple[int, ...], ...]:
        """The places where a job may run, each with the cores that it takes; `InputError` if it cannot be split."""
        cores = job.allowed(len(self.chip.cores))
        if not job.split:
            return tuple((each,) for each in sorted(set(cores)) if self.chip.cores[each].refusal(job.model) is None)
        mistake = self._mistake(job, cores)
        if mistake is not None:
            raise InputError(Mistake(f"job {job.name}: split", mistake))
        return tuple((each,) for each in cores) if job.split == "auto" else (cores,)

    def _mistake(self, job: Job, place: tuple[int, ...]) -> str | None:
        """Why a job cannot be split over these cores."""
        first = self.chip.cores[place[0]]
        unlike = [each for each in place if self.chip.cores[each] != first]
        if unlike:
            return f"the cores of a job that is split must be equal, and core {unlike[0]} is not like core {place[0]}"
        for core in dict.fromkeys(place):
            times = place.count(core)
            if times > 1 and job.split != "layers":
                return f"names core {core} twice; only a job split into layers takes several threads of a core"
            if times > self.chip.cores[core].threads:
                return f"takes {times} threads of core {core}, which has {self.chip.cores[core].threads}"
        return split_refusal(job.model, first, job.split, len(place))

    def phases(self, job: Job, core: ColumnCore, place: tuple[int, ...]) -> Phases:
        """The phases of a job on the cores of a place, all like `core`."""
        split = job.split_over(len(place))
        if split:
            return split_phases(job.model, core, job.steps, split, place, self.chip.exchange)
        return model_phases(job.model, core, job.steps)

    def wide(self, job: Job, places: Sequence[tuple[int, ...]], banks: Callable[[int], tuple[Buffer, ...]]) -> Wides:
        """How a job with `split: auto` runs on several of its places at once; empty for other jobs.

        banks: gives the buffers for a number of members.
        """
        if job.split != "auto":
            return ()
        core = self.chip.cores[places[0][0]]
        return tuple(
            Wide(members, self.phases(job, core, tuple(range(members))), banks(members))
            for members in spreads_over(job.model, core, len(places))
        )

    def weights(self, model: Model, split: str, place: Sequence[int]) -> int:
        """The weights on that core of the place which has most weights."""
        return share_weights(model, split, place) if split else model.macs_per_step

    def units(self, core: ColumnCore) -> tuple[Unit, ...]:
        """The units of a core."""
        return (*own_units(core), Unit("exchange", "fifo")) if self.exchanging else own_units(core)
