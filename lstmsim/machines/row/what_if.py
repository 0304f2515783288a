"""The changes that are worth a try on a row-wise NPU: one thing at a time, on every core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lstmsim.machines.change import Change, detail_of, halved, one_more_core
from lstmsim.machines.row.npu import Dispatch, RowCore, RowNpu
from lstmsim.model.scenario import Job

__all__ = ["changes"]


def _faster_dispatch(core: RowCore) -> dict[str, object]:
    every = tuple(Dispatch(each.cell, 1, each.start_cycles) for each in core.by_cell)
    return {"dispatch_cycles": 1, "by_cell": every}


def _no_start(core: RowCore) -> dict[str, object]:
    every = tuple(replace(each, start_cycles=0) for each in core.by_cell)
    return {"start_cycles": 0, "by_cell": every}


#: Name of a change -> gives the fields of a core that it changes.
_OF_CORES: dict[str, Callable[[RowCore], dict[str, object]]] = {
    "faster dispatch": _faster_dispatch,
    "latencies halved": lambda core: {"latency": replace(core.latency, **halved(core.latency))},
    "no start time": _no_start,
    "engines doubled": lambda core: {"engines": 2 * core.engines},
    "wider vector pipe": lambda core: {"vector_lanes": 2 * core.vector_lanes},
    "faster serializer": lambda core: {"serializer_cycles": -(-core.serializer_cycles // 2)},
    "replicas doubled": lambda core: {"replicas": 2 * core.replicas},
}


def changes(chip: RowNpu, jobs: Sequence[Job]) -> list[Change]:
    """List the changes to try, the most telling first. Changes without effect are left out.

    >>> chip = RowNpu("c", 250, (RowCore(tiles=7, engines=40, lanes=40),))
    >>> "wider vector pipe" in [each.name for each in changes(chip, ())]
    True
    """
    tried = []
    for name, change in _OF_CORES.items():
        pairs = [(core, change(core)) for core in chip.cores]
        cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
        if cores == chip.cores or (name == "replicas doubled" and not _in_rounds(chip, jobs)):
            continue
        detail = (
            _dispatch_detail(chip, jobs)
            if name == "faster dispatch"
            else detail_of(pairs, untold=("latency", "by_cell"))
        )
        tried.append(Change(name, detail, replace(chip, cores=cores), tuple(jobs)))
    filled = tuple(replace(job, batch=max(job.batch, _room(chip, job))) for job in jobs)
    if filled != tuple(jobs):
        sizes = sorted({f"batch {job.batch} -> {new.batch}" for job, new in zip(jobs, filled, strict=True)})
        detail = sizes[0] if len(sizes) == 1 else "batch of each job"
        tried.insert(1, Change("full batches", detail, chip, filled))
    return [*tried, *one_more_core(chip, jobs)]


def _room(chip: RowNpu, job: Job) -> int:
    """Inferences that run together on every core that the job may use."""
    return min(core.batch for core in [chip.cores[index] for index in job.allowed(len(chip.cores))])


def _in_rounds(chip: RowNpu, jobs: Sequence[Job]) -> bool:
    return any(job.batch > _room(chip, job) for job in jobs)


def _dispatch_detail(chip: RowNpu, jobs: Sequence[Job]) -> str:
    cells = {job.model.layers[0].cell.name for job in jobs}
    told = {f"dispatch_cycles {core.dispatch(cell).dispatch_cycles} -> 1" for core in chip.cores for cell in cells}
    return told.pop() if len(told) == 1 else "dispatch_cycles -> 1"
