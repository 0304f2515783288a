"""The jobs of a comparison as a machine can do them: the same work, without keys that the machine does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Job, Scenario

__all__ = ["as_it_can"]


def as_it_can(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The same work as the machine can do it, and remarks on what is different.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 8, 8),)), steps=1, batch=2)
    >>> scenario, remarks = as_it_can(Scenario(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)), (job,)))
    >>> len(scenario.jobs), remarks
    (2, ['c: batched inferences run as jobs of their own'])
    """
    chip, remarks = scenario.chip, list[str]()
    target = target_of(chip.kind)
    if not target.batches and any(job.batch > 1 for job in scenario.jobs):
        # The work stays the same: this machine gives the inferences of a batch to its threads.
        scenario = replace(scenario, jobs=_unbatched(scenario.jobs), offers={})
        remarks.append(f"{chip.name}: batched inferences run as jobs of their own")
    if not target.threads and any(job.threads is not None for job in scenario.jobs):
        scenario = replace(scenario, jobs=tuple(replace(job, threads=None) for job in scenario.jobs))
        remarks.append(f"{chip.name}: jobs run without the number of threads that they ask for, which it does not have")
    return scenario, remarks


def _unbatched(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Make a job for each inference; a job after a batch comes after the inference of its own number in that batch."""
    first = [0, *accumulate(job.batch for job in jobs)]
    single = []
    for job in jobs:
        for number in range(job.batch):
            after = None if job.after is None else first[job.after] + min(number, jobs[job.after].batch - 1)
            single.append(replace(job, batch=1, after=after))
    return tuple(single)
