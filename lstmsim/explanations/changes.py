"""The changes that are worth a try, for each kind of chip: one thing at a time, on every core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lstmsim.errors import InputError
from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
from lstmsim.targets.row.npu import Dispatch, RowCore, RowNpu
from lstmsim.workload.arriving import arriving
from lstmsim.workload.scenario import Chip, Job

__all__ = ["Change", "changes"]


@dataclass(frozen=True)
class Change:
    """A changed chip (None: it cannot be built, `refused` says why) or changed jobs; `detail`: from what to what."""

    name: str
    detail: str
    chip: Chip | None
    jobs: tuple[Job, ...]
    refused: str = ""


def changes(chip: Chip, jobs: Sequence[Job]) -> list[Change]:
    """What to try, the most telling first; none for a kind of chip that is not known here.

    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),))
    >>> [(each.name, each.detail) for each in changes(chip, ())][:2]
    [('one more thread', 'threads 1 -> 2'), ('ep doubled', 'ep 4 -> 8, vp 16 -> 8')]
    """
    if isinstance(chip, ColumnNpu):
        own = [_on_column(chip, jobs, name, change) for name, change in _COLUMN.items() if _useful(chip, name)]
        return [*_for_requests(chip, jobs), *_around_cores(chip, jobs), *own]
    if isinstance(chip, RowNpu):
        return _on_row(chip, jobs)
    return []


def _halved(latency: object) -> dict[str, int]:
    """All latencies halved and rounded up, so that none falls to 0 that was not."""
    values = vars(latency)
    return {key: -(-value // 2) for key, value in values.items()}


def _narrower(core: ColumnCore) -> dict[str, object]:
    return {"ep": core.ep // 2, "vp": core.npe // max(core.ep // 2, 1)}


#: What changes in a core of a column-wise NPU.
_COLUMN: dict[str, Callable[[ColumnCore], dict[str, object]]] = {
    "one more thread": lambda core: {"threads": core.threads + 1},
    "ep doubled": lambda core: {"ep": 2 * core.ep, "vp": core.npe // (2 * core.ep)},
    "ep halved": _narrower,
    "tail twice as wide": lambda core: {"tail_width": 2 * core.tail_width},
    "one more bank": lambda core: {"accumulator_banks": core.accumulator_banks + 1},
    "latencies halved": lambda core: {"latency": replace(core.latency, **_halved(core.latency))},
    "npe and vp doubled": lambda core: {"npe": 2 * core.npe, "vp": 2 * core.vp},
    "npe and ep doubled": lambda core: {"npe": 2 * core.npe, "ep": 2 * core.ep},
    "switches for free": lambda core: {"switch_cycles": 0},
}


def _for_requests(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """What changes in who goes first, of requests that come over time."""
    if arriving(jobs) == "at once":
        return []
    found, jobs = [], tuple(jobs)
    cores = tuple(replace(core, thread_policy="fine") if core.threads > 1 else core for core in chip.cores)
    if cores != chip.cores:
        change = replace(chip, cores=cores)
        found.append(Change("fine-grained threads", "thread_policy coarse -> fine", change, jobs))
    if {job.dispatch for job in jobs} == {"fcfs"} and len({job.macs for job in jobs}) > 1:
        shortest = tuple(replace(job, dispatch="sjf") for job in jobs)
        found.append(Change("shortest job first", "dispatch fcfs -> sjf", chip, shortest))
    return found


def _around_cores(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """What changes in the memory beside the chip, in what of it fits on the cores, and between the cores."""
    found, jobs = [], tuple(jobs)
    if any(core.weight_kib is not None for core in chip.cores):
        kib = [None if core.weight_kib is None else 2 * core.weight_kib for core in chip.cores]
        cores = tuple(replace(core, weight_kib=more) for core, more in zip(chip.cores, kib, strict=True))
        pairs = [(core, {"weight_kib": more}) for core, more in zip(chip.cores, kib, strict=True) if more]
        found.append(Change("room for weights doubled", _detail(pairs), replace(chip, cores=cores), jobs))
        if chip.memory is not None:
            rate = chip.memory.gb_per_s
            faster = replace(chip, memory=replace(chip.memory, gb_per_s=2 * rate))
            found.append(Change("memory twice as fast", f"gb_per_s {rate:g} -> {2 * rate:g}", faster, jobs))
    if any(job.settled(len(chip.cores)).split for job in jobs):
        link = chip.exchange
        sooner = replace(link, latency_cycles=-(-link.latency_cycles // 2))
        detail = f"latency_cycles {link.latency_cycles} -> {sooner.latency_cycles}"
        found.append(Change("exchange latency halved", detail, replace(chip, exchange=sooner), jobs))
        wider = replace(link, width=2 * link.width)
        found.append(
            Change(
                "exchange twice as wide", f"width {link.width} -> {wider.width}", replace(chip, exchange=wider), jobs
            )
        )
        whole = tuple(replace(job, split="") for job in jobs)
        found.append(Change("no job split", "each on one core", chip, whole))
    return found


def _useful(chip: ColumnNpu, name: str) -> bool:
    return name != "switches for free" or any(core.switch_cycles for core in chip.cores)


def _detail(pairs: Sequence[tuple[object, Mapping[str, object]]]) -> str:
    """`threads 2 -> 3`; of unlike cores only what all have in common."""
    texts: list[str] = []
    for key in pairs[0][1] if pairs else ():
        if key in ("latency", "by_cell", "npe"):
            continue
        told = {f"{key} {getattr(core, key)} -> {new[key]}" for core, new in pairs if getattr(core, key) != new[key]}
        texts += told if len(told) == 1 else [f"{key} of each core"] if told else []
    return ", ".join(texts)


def _on_column(
    chip: ColumnNpu, jobs: Sequence[Job], name: str, change: Callable[[ColumnCore], dict[str, object]]
) -> Change:
    pairs = [(core, change(core)) for core in chip.cores]
    detail = _detail(pairs)
    try:
        cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
        return Change(name, detail, replace(chip, cores=cores), tuple(jobs))
    except InputError as error:
        return Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence)


def _faster_dispatch(core: RowCore) -> dict[str, object]:
    every = tuple(Dispatch(each.cell, 1, each.start_cycles) for each in core.by_cell)
    return {"dispatch_cycles": 1, "by_cell": every}


def _no_start(core: RowCore) -> dict[str, object]:
    every = tuple(replace(each, start_cycles=0) for each in core.by_cell)
    return {"start_cycles": 0, "by_cell": every}


#: What changes in a core of a row-wise NPU.
_ROW: dict[str, Callable[[RowCore], dict[str, object]]] = {
    "faster dispatch": _faster_dispatch,
    "latencies halved": lambda core: {"latency": replace(core.latency, **_halved(core.latency))},
    "no start time": _no_start,
    "engines doubled": lambda core: {"engines": 2 * core.engines},
    "wider vector pipe": lambda core: {"vector_lanes": 2 * core.vector_lanes},
    "faster serializer": lambda core: {"serializer_cycles": -(-core.serializer_cycles // 2)},
    "replicas doubled": lambda core: {"replicas": 2 * core.replicas},
}


def _on_row(chip: RowNpu, jobs: Sequence[Job]) -> list[Change]:
    found = []
    for name, change in _ROW.items():
        pairs = [(core, change(core)) for core in chip.cores]
        cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
        if cores == chip.cores or (name == "replicas doubled" and not _in_rounds(chip, jobs)):
            continue
        detail = _dispatch_detail(chip, jobs) if name == "faster dispatch" else _detail(pairs)
        found.append(Change(name, detail, replace(chip, cores=cores), tuple(jobs)))
    filled = tuple(replace(job, batch=max(job.batch, _room(chip, job))) for job in jobs)
    if filled != tuple(jobs):
        sizes = sorted({f"batch {job.batch} -> {new.batch}" for job, new in zip(jobs, filled, strict=True)})
        detail = sizes[0] if len(sizes) == 1 else "batch of each job"
        found.insert(1, Change("full batches", detail, chip, filled))
    return found


def _room(chip: RowNpu, job: Job) -> int:
    """Inferences that run together on every core that the job may use."""
    return min(core.batch for core in [chip.cores[index] for index in job.allowed(len(chip.cores))])


def _in_rounds(chip: RowNpu, jobs: Sequence[Job]) -> bool:
    return any(job.batch > _room(chip, job) for job in jobs)


def _dispatch_detail(chip: RowNpu, jobs: Sequence[Job]) -> str:
    cells = {job.model.layers[0].cell.name for job in jobs}
    told = {f"dispatch_cycles {core.dispatch(cell).dispatch_cycles} -> 1" for core in chip.cores for cell in cells}
    return told.pop() if len(told) == 1 else "dispatch_cycles -> 1"
