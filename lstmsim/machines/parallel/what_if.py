"""The changes that are worth a try on a parallel device: one thing at a time, on all SMs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lstmsim.machines.change import Change, detail_of, halved
from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice, cells_refusal, joint_mistakes
from lstmsim.model.scenario import Job

#: Name of a change -> the fields of the chip that it changes.
_OF_CHIP: dict[str, Callable[[ParallelDevice], dict[str, Any]]] = {
    "SMs doubled": lambda chip: {"cores": chip.cores * 2},
    "persistent kernels": lambda chip: {"recurrent": "persistent"},
    "launches twice as fast": lambda chip: {"launch": chip.launch // 2},
    "fused kernels": lambda chip: {"fusion": "on"},
    "kernels of cells": lambda chip: {"fusion": "cell"},
    "costed splits": lambda chip: {"split_rule": "costed"},
    "memory twice as fast": lambda chip: {"dram": -(-chip.dram // 2)},
    "L2 warm": lambda chip: {"l2_state": "warm"},
    "L2 doubled": lambda chip: {"l2_bytes": 2 * chip.l2_bytes},
}
#: The same of each SM.
_OF_CORES: dict[str, Callable[[ParallelCore], dict[str, Any]]] = {
    "schedulers doubled": lambda core: {"schedulers": 2 * core.schedulers},
    "port twice as fast": lambda core: {"port": (2 * core.port[0], core.port[1])},
    "memory latencies halved": lambda core: {"latency": replace(core.latency, **_memory_halved(core))},
}


def _memory_halved(core: ParallelCore) -> dict[str, int]:
    own = halved(core.latency)
    return {name: own[name] for name in ("shuffle", "shared", "l1", "l2", "dram")}


def changes(chip: ParallelDevice, jobs: Sequence[Job]) -> list[Change]:
    """List the changes to try, the most telling first; those without effect are left out."""
    tried = []
    for name, of_chip in _OF_CHIP.items():
        new = of_chip(chip)
        reported = f"{len(chip.cores)} -> {len(chip.cores) * 2}" if "cores" in new else detail_of([(chip, new)])
        if any(getattr(chip, key) != value for key, value in new.items()) and _fits(chip, new, jobs):
            state = "what ran before is no part of the chip" if "l2_state" in new else ""
            tried.append(Change(name, reported, replace(chip, **new), tuple(jobs), no_price=state))
    for name, of_core in _OF_CORES.items():
        new = of_core(chip.cores[0])
        core = replace(chip.cores[0], **new)
        reported = detail_of([(chip.cores[0], new)], unreported=("latency",))
        tried.append(Change(name, reported, replace(chip, cores=(core,) * len(chip.cores)), tuple(jobs)))
    return tried


def _fits(chip: ParallelDevice, new: dict[str, Any], jobs: Sequence[Job]) -> bool:
    """Whether a chip with new fields can be, has another effect, and runs the jobs."""
    fusion = new.get("fusion", chip.fusion)
    if joint_mistakes(new.get("recurrent", chip.recurrent), fusion):
        return False
    if "split_rule" in new and fusion != "on":
        return False
    return all(cells_refusal(job.model, fusion) is None for job in jobs)


def order_changes(chip: ParallelDevice, jobs: Sequence[Job]) -> list[Change]:
    """List the changes of who goes first among the warps of a scheduler."""
    other = "coarse" if chip.cores[0].warp_policy == "fine" else "fine"
    cores = (replace(chip.cores[0], warp_policy=other),) * len(chip.cores)
    detail = f"warp_policy {chip.cores[0].warp_policy} -> {other}"
    return [Change(f"{other}-grained warps", detail, replace(chip, cores=cores), tuple(jobs))]
