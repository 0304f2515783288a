"""The changes that are worth a try on a column-wise NPU: one thing at a time, on every core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lstmsim.base.errors import InputError
from lstmsim.machines.change import Change, detail_of, halved, one_more_core
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.scenario import Job

__all__ = ["changes", "order_changes"]


def changes(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """List the changes to try, the most telling first.

    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),))
    >>> [(each.name, each.detail) for each in changes(chip, ())][:2]
    [('one more thread', 'threads 1 -> 2'), ('ep doubled', 'ep 4 -> 8, vp 16 -> 8')]
    """
    own = [_on_cores(chip, jobs, name, change) for name, change in _OF_CORES.items() if _useful(chip, name)]
    return [*_around_cores(chip, jobs), *own, *one_more_core(chip, jobs)]


def order_changes(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """List the changes of who goes first among the threads of a core, if there are several jobs.

    >>> order_changes(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16, threads=2),)), ())
    []
    """
    if len(jobs) < 2:
        return []
    cores = tuple(replace(core, thread_policy="fine") if core.threads > 1 else core for core in chip.cores)
    if cores == chip.cores:
        return []
    detail = "thread_policy coarse -> fine"
    return [Change("fine-grained threads", detail, replace(chip, cores=cores), tuple(jobs))]


def _narrower(core: ColumnCore) -> dict[str, object]:
    return {"ep": core.ep // 2, "vp": core.npe // max(core.ep // 2, 1)}


#: Name of a change -> the fields of a core that it changes.
_OF_CORES: dict[str, Callable[[ColumnCore], dict[str, object]]] = {
    "one more thread": lambda core: {"threads": core.threads + 1},
    "ep doubled": lambda core: {"ep": 2 * core.ep, "vp": core.npe // (2 * core.ep)},
    "ep halved": _narrower,
    "tail twice as wide": lambda core: {"tail_width": 2 * core.tail_width},
    "one more bank": lambda core: {"accumulator_banks": core.accumulator_banks + 1},
    "latencies halved": lambda core: {"latency": replace(core.latency, **halved(core.latency))},
    "npe and vp doubled": lambda core: {"npe": 2 * core.npe, "vp": 2 * core.vp},
    "npe and ep doubled": lambda core: {"npe": 2 * core.npe, "ep": 2 * core.ep},
    "switches for free": lambda core: {"switch_cycles": 0},
}


def _around_cores(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """Changes of the memory beside the chip, of the room for weights on the cores, and of the links between cores."""
    tried, jobs = [], tuple(jobs)
    if any(core.weight_kib is not None for core in chip.cores):
        kib = [None if core.weight_kib is None else 2 * core.weight_kib for core in chip.cores]
        cores = tuple(replace(core, weight_kib=more) for core, more in zip(chip.cores, kib, strict=True))
        pairs = [(core, {"weight_kib": more}) for core, more in zip(chip.cores, kib, strict=True) if more]
        tried.append(Change("room for weights doubled", detail_of(pairs), replace(chip, cores=cores), jobs))
        if chip.memory is not None:
            rate = chip.memory.gb_per_s
            faster = replace(chip, memory=replace(chip.memory, gb_per_s=2 * rate))
            tried.append(Change("memory twice as fast", f"gb_per_s {rate:g} -> {2 * rate:g}", faster, jobs))
    if any(job.settled(len(chip.cores)).split for job in jobs):
        link = chip.exchange
        sooner = replace(link, latency_cycles=-(-link.latency_cycles // 2))
        detail = f"latency_cycles {link.latency_cycles} -> {sooner.latency_cycles}"
        tried.append(Change("exchange latency halved", detail, replace(chip, exchange=sooner), jobs))
        wider = replace(link, width=2 * link.width)
        tried.append(
            Change(
                "exchange twice as wide", f"width {link.width} -> {wider.width}", replace(chip, exchange=wider), jobs
            )
        )
        whole = tuple(replace(job, split="") for job in jobs)
        tried.append(Change("no job split", "each on one core", chip, whole))
    return tried


def _useful(chip: ColumnNpu, name: str) -> bool:
    return name != "switches for free" or any(core.switch_cycles for core in chip.cores)


def _on_cores(
    chip: ColumnNpu, jobs: Sequence[Job], name: str, change: Callable[[ColumnCore], dict[str, object]]
) -> Change:
    pairs = [(core, change(core)) for core in chip.cores]
    detail = detail_of(pairs, untold=("latency", "npe"))
    try:
        cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
        return Change(name, detail, replace(chip, cores=cores), tuple(jobs))
    except InputError as error:
        return Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence)
