"""The parallel device in files: equal SMs, and what its jobs may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.parallel.cells import cells_refusal
from lstmsim.machines.parallel.core import ParallelCore
from lstmsim.machines.parallel.device import ParallelDevice, joint_mistakes
from lstmsim.machines.target import Entries, Fault
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job

__all__ = ["ParallelEntries"]


class ParallelEntries(Entries):
    """Entries of parallel devices: one entry of `cores` with a `count`, for all SMs are equal."""

    kind: ClassVar[str] = "parallel-device"
    title: ClassVar[str] = "parallel device"
    chip: ClassVar[type] = ParallelDevice
    core: ClassVar[type] = ParallelCore
    together: ClassVar[frozenset[str]] = frozenset({"warp", "lanes", "sfu_lanes", "latency"})
    batches: ClassVar[bool] = True

    def faults_of_all(self, cores: Sequence[ParallelCore]) -> Sequence[str]:
        """A fault if the SMs are not equal."""
        return ("must be equal: all SMs of a parallel device are alike",) if len(set(cores)) > 1 else ()

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[ParallelCore]) -> Sequence[Fault]:
        """A fault if each step's kernels are to be fused and yet all steps to be one kernel."""
        wrong = joint_mistakes(entry.get("recurrent", "kernels"), entry.get("fusion", "cell"))
        return tuple(Fault.at(key, text, "recurrent") for key, text in wrong)

    def model_refusal(self, entry: Mapping[str, Any], model: Model) -> str | None:
        """A cell that no kernels are written for runs by fused kernels only."""
        return cells_refusal(model, entry.get("fusion", "cell"))

    def check(self, chip: ParallelDevice, job: Job) -> None:
        """`InputError` if the device has no kernels for a job, or the job asks for what it does not have."""
        self.check_job(chip.cores, job)
        refused = cells_refusal(job.model, chip.fusion)
        if refused:
            raise InputError(Mistake(f"job {job.name}", f"no core can run it: {refused}"))
        mistakes = [Mistake(f"job {job.name}: {key}", text) for key, text in _mistakes(job)]
        if mistakes:
            raise InputError(mistakes)


def _mistakes(job: Job) -> Iterator[tuple[str, str]]:
    if job.cores is not None:
        yield "cores", "a parallel device runs a job on all of its SMs: leave it out"
    if job.frame_interval:
        yield "frame_interval", f"a parallel device has the whole input of a job at once, got {job.frame_interval}"
    if job.preempts:
        yield "preempts", "a parallel device runs one job after the other, each to its end: leave it out"
    for key in ("queue_limit", "patience"):
        if getattr(job, key) is not None:
            yield key, f"a parallel device turns no jobs away: leave it out, got {getattr(job, key)}"
