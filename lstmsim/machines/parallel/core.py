"""The parallel device: description of a streaming multiprocessor (SM), which is a core of the chip.

Sources, as in `docs/parallel_device.md`, section 9: [G] the configuration SM7_QV100 of Accel-Sim / GPGPU-Sim; [P] table
3 of PMC10448217 (V100).
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES, MAX_SIZE
from lstmsim.base.checked import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.parallel.cells import refusal
from lstmsim.model.model import Model

__all__ = ["L2_STATES", "MAX_PARTITIONS", "MAX_WARPS", "WARP_POLICIES", "ParallelCore", "ParallelLatency"]

WARP_POLICIES = ("fine", "coarse")
L2_STATES = ("cold", "warm")
#: Warp slots of an SM; block slots and partitions have bounds of their own.
MAX_WARPS = 256
#: An operation of a packed body has at most 255 needs: three for each partition, one for each warp of its block.
MAX_PARTITIONS = 64

_G = "Accel-Sim, gpgpusim.config of SM7_QV100 (Volta)"
_P = "table 3 of PMC10448217 (V100)"


def _cycles(meaning: str, source: str) -> Key:
    return Key(meaning, "cycles", 1, MAX_LATENCY_CYCLES, source=source, vary=True)


def _size(meaning: str, source: str, low: int = 1, high: int = MAX_SIZE, unit: str = "") -> Key:
    return Key(meaning, unit, low, high, source=source, vary=True)


@checked("latency")
@record
class ParallelLatency:
    """Cycles until the result of an instruction is there, after the unit that served it has finished.

    Those of arithmetic (`alu`, `fma`, `sfu`) count from the start of the last issue.

    alu, fma, sfu: integer arithmetic, multiply-add, functions.
    shuffle, shared: an exchange between lanes, an access of shared memory.
    l1, l2, dram: a sector that is found in L1, in L2, or in neither.
    barrier: from the last warp's arrival at a barrier of its block until all go on.

    >>> ParallelLatency(l1=0).mistakes()
    [('l1', 'must be at least 1, got 0')]
    """

    alu: Annotated[int, _cycles("integer arithmetic, from the start of the last issue", f"{_G}; {_P}")] = 4
    fma: Annotated[int, _cycles("a multiply-add, from the start of the last issue", f"{_G}; {_P}")] = 4
    sfu: Annotated[int, _cycles("a function, from the start of the last issue", _G)] = 100
    shuffle: Annotated[
        int, _cycles("an exchange between lanes", "assumption, because it then takes about 23 cycles in all")
    ] = 21
    shared: Annotated[int, _cycles("an access of shared memory", f"{_G}; {_P}: 20 cycles in all")] = 18
    l1: Annotated[int, _cycles("a sector found in L1", f"{_G}: 28 cycles in all, 20 and the path")] = 26
    l2: Annotated[int, _cycles("a sector found in L2", f"{_P}: 200 cycles in all")] = 196
    dram: Annotated[int, _cycles("a sector found in neither", f"{_P}: 400 cycles in all")] = 394
    barrier: Annotated[
        int, _cycles("a barrier of a block", "assumption, because it is an exchange with the SM's shared memory")
    ] = 20

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)


@checked("core")
@hashed_once
@record
class ParallelCore:
    """One SM. Each field says its meaning, unit and source.

    The defaults are those of the preset `v100`.

    >>> core = ParallelCore()
    >>> core.arithmetic_cycles, core.function_cycles, core.peak
    (2, 8, 64)
    """

    schedulers: Annotated[int, _size("schedulers, each for warps of its own", f"{_G}: sub-core model", high=64)] = 4
    warp: Annotated[
        int,
        Key(
            "lanes of a warp, 32 or 64",
            low=32,
            high=64,
            source=f"{_G}; the patent of the schedule has 32 or 64",
            rule=lambda value: "" if value in (32, 64) else "must be 32 or 64",
        ),
    ] = 32
    lanes: Annotated[
        int, _size("lanes of a scheduler that multiply or add", f"{_G}: initiation interval 2", high=64)
    ] = 16
    sfu_lanes: Annotated[int, _size("lanes of a scheduler for functions", f"{_G}: initiation interval 8", high=64)] = 4
    max_warps: Annotated[int, _size("warp slots", _G, high=MAX_WARPS)] = 64
    max_blocks: Annotated[int, _size("block slots", _G, high=MAX_WARPS)] = 32
    registers: Annotated[int, _size("registers of 4 bytes", _G, high=1 << 24)] = 65536
    shared_bytes: Annotated[int, _size("shared memory", _G, low=0, high=1 << 30, unit="bytes")] = 98304
    banks: Annotated[int, _size("banks of shared memory, of 4 bytes each", _G, high=1024)] = 32
    l1_bytes: Annotated[
        int, _size("L1 and shared memory together", f"{_G}: unified 128 KB", low=0, high=1 << 30, unit="bytes")
    ] = 131072
    port: Annotated[
        tuple[int, int],
        Key(
            "sectors of 32 bytes from L2, in cycles",
            low=1,
            high=10_000,
            source=f"{_P}: 80 x 25.6 = 2048 bytes a cycle = 3133 GB/s",
        ),
    ] = (4, 5)
    warp_policy: Annotated[
        str,
        Key("the warp that a scheduler takes: the next, or the same", choices=WARP_POLICIES, source=f"{_G}: lrr"),
    ] = "fine"
    latency: Annotated[ParallelLatency, Key("until results are there", "cycles", source=f"{_G}; {_P}")] = field(
        default_factory=ParallelLatency
    )

    @property
    def arithmetic_cycles(self) -> int:
        """Cycles that an `alu` or `fma` issue takes its scheduler."""
        return -(-self.warp // self.lanes)

    @property
    def function_cycles(self) -> int:
        """Cycles that an `sfu` issue takes its scheduler."""
        return -(-self.warp // self.sfu_lanes)

    @property
    def peak(self) -> int:
        """Multiply-accumulates a cycle of all schedulers."""
        return self.schedulers * self.lanes

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, alone and taken together, as (key, sentence) pairs.

        >>> ParallelCore(lanes=8).mistakes()
        []
        >>> ParallelCore(lanes=4).mistakes()[0]
        ('latency.alu', 'must be at least 8, the cycles of an issue (warp / lanes), got 4')
        """
        alone = mistakes_of(self)
        if alone:
            return alone
        bounds = {
            "alu": (self.arithmetic_cycles, "lanes"),
            "fma": (self.arithmetic_cycles, "lanes"),
            "sfu": (self.function_cycles, "sfu_lanes"),
        }
        return [
            (
                f"latency.{key}",
                f"must be at least {low}, the cycles of an issue (warp / {lanes}), got {getattr(self.latency, key)}",
            )
            for key, (low, lanes) in bounds.items()
            if getattr(self.latency, key) < low
        ]

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can."""
        return refusal(model)
