"""The parallel device: description of the chip, and the flat view of it that kernels are written for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES
from lstmsim.base.checked import checked
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.parallel.cells import FUSION
from lstmsim.machines.parallel.core import L2_STATES, MAX_PARTITIONS, ParallelCore, ParallelLatency
from lstmsim.machines.parallel.words import HALVES, STALLS, UNIT, WORDS
from lstmsim.machines.target import Clock, check_description
from lstmsim.model.figures import CoreFigures
from lstmsim.model.fusion.device import SPLIT_RULES
from lstmsim.model.scenario import Job

__all__ = ["RECURRENT", "Device", "ParallelCore", "ParallelDevice", "ParallelLatency", "joint_mistakes"]

#: How a recurrent job is run.
RECURRENT = ("kernels", "persistent")
#: Settings of a core that a report shows beside its lanes.
_SHOWN = ("warp", "max_warps", "max_blocks", "warp_policy")

_G = "Accel-Sim, gpgpusim.config of SM7_QV100 (Volta)"
_P = "table 3 of PMC10448217 (V100)"
_S = "AStitch (ASPLOS'22): a grid barrier takes 2.53 us with 20 blocks and 2.72 us with 160 on a V100"


def _number(meaning: str, source: str, unit: str = "cycles", low: int = 1, high: int = MAX_LATENCY_CYCLES) -> Key:
    return Key(meaning, unit, low, high, source=source, vary=True)


@checked("chip")
@record
class ParallelDevice:
    """A chip: some equal SMs, an L2, memory partitions, a dispatcher of blocks, a host that launches kernels.

    Each field says its meaning, unit and source. The SMs are `cores`, all of them equal. The defaults are those of the
    preset `v100`.

    `InputError` if a core cannot be built.

    >>> chip = ParallelDevice("v100", 1530, (ParallelCore(),) * 80)
    >>> chip.view.sms, chip.view.dram, chip.core_figures[0].peak
    (80, 2, 64)
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[ParallelCore, ...]
    partitions: Annotated[
        int, _number("memory partitions; line l lies in partition l mod partitions", _G, "", high=MAX_PARTITIONS)
    ] = 32
    dram: Annotated[int, _number("of a partition, for a sector from DRAM", f"{_P}: 783 of 900 GB/s")] = 2
    atomic: Annotated[
        int, _number("of a partition, for a lane of an atomic", "assumption, because a slice takes one a cycle")
    ] = 1
    l2_bytes: Annotated[int, _number("L2 cache", _P, "bytes", 0, 1 << 40)] = 6291456
    element_bytes: Annotated[
        int,
        Key(
            "of an element of device memory: weights, inputs, states, sums; 4, or 2 for jobs and dense products",
            "bytes",
            low=2,
            high=4,
            source="assumption, because the sources' sparse and fused kernels compute in float32",
            rule=lambda value: "" if value in (2, 4) else "must be 2 or 4",
        ),
    ] = 4
    l2_state: Annotated[
        str,
        Key("what L2 holds at the start", choices=L2_STATES, source="assumption, because nothing has run before"),
    ] = "cold"
    dispatch: Annotated[
        int, _number("of the dispatcher, for a block", "assumption, because blocks go to SMs one a cycle")
    ] = 1
    start: Annotated[int, _number("from the dispatcher until a block may issue", _G, low=0)] = 0
    retire: Annotated[
        int, _number("from a block's last result to its end", "assumption, because no source names it", low=0)
    ] = 0
    launch: Annotated[
        int,
        _number("from the end of a kernel until the next one's blocks are there", f"{_G}; NVIDIA forum: 3 us", low=0),
    ] = 5000
    sync: Annotated[int, _number("of the sync unit, for a block at a grid barrier", _S)] = 2
    grid: Annotated[int, _number("from the last block at a grid barrier until all go on", _S)] = 3830
    recurrent: Annotated[
        str,
        Key(
            "a recurrent job as kernels for each step, or as one persistent kernel with grid barriers",
            choices=RECURRENT,
            source="assumption, because libraries launch kernels for each step where weights do not stay in registers",
        ),
    ] = "kernels"
    fusion: Annotated[
        str,
        Key(
            "what follows the products of a step: the cell's own kernel (cell), one kernel for each part that can be "
            "one (on), one for each operation (off); docs/fusion.md",
            choices=FUSION,
            source="assumption, because libraries have a kernel written for the common cells",
        ),
    ] = "cell"
    split_rule: Annotated[
        str,
        Key(
            "of fused kernels: when several blocks share a result, as published (paper) or where that is worth a grid "
            "barrier (costed)",
            choices=SPLIT_RULES,
            source="AStitch (ASPLOS'22); costed is this project's",
        ),
    ] = "paper"
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "parallel-device"

    def __post_init__(self) -> None:
        check_description(self)
        mistakes = joint_mistakes(self.recurrent, self.fusion)
        if mistakes:
            raise InputError([Mistake(f"chip {self.name}: {key}", text) for key, text in mistakes])

    @cached_property
    def view(self) -> Device:
        """The flat view of it that kernels are written for; the SMs are all like the first one."""
        core = self.cores[0]
        own = (
            "partitions",
            "dram",
            "atomic",
            "element_bytes",
            "l2_bytes",
            "l2_state",
            "dispatch",
            "start",
            "retire",
            "launch",
        )
        return Device(
            sms=len(self.cores),
            latencies=core.latency,
            **{name: getattr(core, name) for name in _OF_CORE},
            **{name: getattr(self, name) for name in (*own, "sync", "grid")},
        )

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The SMs as the accounts see them; equal SMs are one object."""
        core = self.cores[0]
        columns = {"schedulers": core.schedulers, "lanes": core.lanes}
        settings = {key: getattr(core, key) for key in _SHOWN}
        return (CoreFigures(core.peak, core.peak, columns, settings, STALLS, WORDS, UNIT, core.schedulers),) * len(
            self.cores
        )

    def remarks(self, job: Job) -> tuple[str, ...]:
        """What the simulation leaves out; it is the same for every job."""
        left_out = (
            "left out: instruction fetch, register banks, TLB, slices of L2, rows of DRAM, dual issue; a sector that a "
            "load of the same cohort is still bringing counts as there"
        )
        return (left_out,) if self.element_bytes == 4 else (left_out, HALVES)


def joint_mistakes(recurrent: str, fusion: str) -> list[tuple[str, str]]:
    """What is wrong with keys of a chip taken together, as (key, sentence) pairs.

    recurrent, fusion: as in `ParallelDevice`.

    >>> joint_mistakes("kernels", "on"), joint_mistakes("persistent", "on")[0][0]
    ([], 'fusion')
    """
    if recurrent == "persistent" and fusion != "cell":
        text = (
            f"must be cell where recurrent kernels are persistent, got {fusion!r}: a persistent kernel has every step"
        )
        return [("fusion", f"{text} in it, and fused kernels are launched one by one")]
    return []


_OF_CORE = (
    *("schedulers", "warp", "lanes", "sfu_lanes", "max_warps", "max_blocks", "registers", "shared_bytes", "banks"),
    *("l1_bytes", "port", "warp_policy"),
)


@hashed_once
@record
class Device:
    """Everything about a parallel device that a kernel, its traffic or its lowering asks, in one place.

    sms: how many SMs.
    schedulers, warp, lanes, sfu_lanes, max_warps, max_blocks, registers, shared_bytes, banks, l1_bytes, port,
    warp_policy: of each SM, as in `ParallelCore`.
    latencies: cycles until results are there.
    partitions, dram, atomic, element_bytes, l2_bytes, l2_state, dispatch, start, retire, launch, sync, grid: as in
    `ParallelDevice`.

    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80).view
    >>> device.warp, device.latencies.dram, device.port
    (32, 394, (4, 5))
    """

    sms: int
    schedulers: int
    warp: int
    lanes: int
    sfu_lanes: int
    max_warps: int
    max_blocks: int
    registers: int
    shared_bytes: int
    banks: int
    l1_bytes: int
    port: tuple[int, int]
    warp_policy: str
    latencies: ParallelLatency
    partitions: int
    dram: int
    atomic: int
    element_bytes: int
    l2_bytes: int
    l2_state: str
    dispatch: int
    start: int
    retire: int
    launch: int
    sync: int
    grid: int
