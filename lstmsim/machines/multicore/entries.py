"""The multi-core CPU in files: equal cores, and what its jobs may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import keys_of
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu, faults_of_cores, joint_mistakes
from lstmsim.machines.target import Entries, Fault
from lstmsim.model.scenario import Job

__all__ = ["MulticoreEntries"]


class MulticoreEntries(Entries):
    """Entries of multi-core CPUs: one entry of `cores` with a `count`, for all cores are equal."""

    kind: ClassVar[str] = "multicore"
    title: ClassVar[str] = "multi-core CPU"
    chip: ClassVar[type] = MulticoreCpu
    core: ClassVar[type] = CpuCore
    batches: ClassVar[bool] = True
    threads: ClassVar[bool] = True

    def faults_of_all(self, cores: Sequence[CpuCore]) -> Sequence[str]:
        """Faults if the cores are not equal, or are too many."""
        return tuple(text for _, text in faults_of_cores(cores))

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[CpuCore]) -> Sequence[Fault]:
        """What is wrong with numbers that are right one by one: parts of caches, lines in pages, sizes of caches."""
        numbers = {name: entry.get(name, each.default) for name, each in keys_of(MulticoreCpu).items()}
        return tuple(Fault.at(key, text) for key, text in joint_mistakes(numbers, cores))

    def check(self, chip: MulticoreCpu, job: Job) -> None:
        """`InputError` if the CPU cannot run a job, or the job asks for what it does not have."""
        self.check_job(chip.cores, job)
        mistakes = [Mistake(f"job {job.name}: {key}", text) for key, text in _mistakes(job)]
        if mistakes:
            raise InputError(mistakes)


def _mistakes(job: Job) -> list[tuple[str, str]]:
    wrong = []
    if job.cores is not None:
        text = "a multi-core CPU chooses the cores of a job: leave it out, and say with `threads` how many they are"
        wrong.append(("cores", text))
    if job.preempts:
        wrong.append(("preempts", "a multi-core CPU runs each job to its end: leave `preemption` out"))
    return wrong
