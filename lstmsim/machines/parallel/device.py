"""Words of the parallel device: for cycles and losses, with what can help, and for its units.

The parallel device: descriptions of the chip and of its streaming multiprocessors (SMs); what its files may say.

Sources, as in `docs/parallel_device.md`, section 9: [G] the configuration SM7_QV100 of Accel-Sim / GPGPU-Sim; [P] table
3 of PMC10448217 (V100).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property, partial
from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES, MAX_SIZE
from lstmsim.base.checks import checked
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.target import Clock, check_description
from lstmsim.model.figures import CoreFigures, MainUnit, Words
from lstmsim.model.fusion.plan import SPLIT_RULES
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, unused

#: What the device leaves out, whatever runs on it.
NOT_MODELLED = (
    "instruction fetch, register banks, TLB, slices of L2, rows of DRAM, dual issue",
    "a sector that another load is still bringing counts as there",
)

#: What is to be known about elements of 2 bytes.
HALVES = (
    "elements of 2 bytes: arrays in device memory and their traffic have half the bytes; instructions are those of 4 "
    "bytes (a multiply-add a lane, at most 4 elements a load): no pairs in a lane, no tensor cores, no conversion"
)

#: Names of cycles that not every machine has.
STALLS = ("memory", "barrier", "dependence", "start")

#: What people call the schedulers of an SM and their lanes.
UNIT = MainUnit("issue", "schedulers", "lane")

#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    "busy": Words("a scheduler issues an instruction", glossary="a scheduler issues an instruction"),
    "memory": Words(
        "warps wait for a load, a store, an atomic or a shuffle",
        "no warp of the scheduler may issue, because one of them waits for a load, a store, an atomic or a shuffle",
        held_by="memory",
        next_wait="memory",
        share="the instruction before it waits for memory",
        spent="waiting for memory",
    ),
    "barrier": Words(
        "warps wait for others at a barrier",
        "no warp of the scheduler may issue, because one of them waits for others at a barrier",
        held_by="a barrier",
        next_wait="barrier",
        share="a barrier holds its warps back",
        spent="waiting at barriers",
    ),
    "dependence": Words(
        "warps wait for the result of arithmetic",
        "no warp of the scheduler may issue, because one of them waits for the result of arithmetic",
        held_by="arithmetic (dependence)",
        next_wait="arithmetic",
        share="an earlier result of arithmetic is not there",
        spent="waiting for arithmetic",
    ),
    "start": Words(
        "blocks are placed and may not issue yet",
        "a block is placed, and the dispatcher has not started it yet",
        held_by="the dispatcher (start)",
        next_wait="dispatcher",
        share="its blocks wait for the dispatcher",
        spent="waiting for the dispatcher",
    ),
    "behind": Words(
        held_by="the launch of a kernel",
        next_wait="launch",
        share="a kernel is being launched",
        spent="waiting for kernels to be launched",
        called="launch",
    ),
    "group to group": Words(
        called="kernel to kernel",
        leg="a kernel starts when the one before it has ended",
        way="from the last issue of a kernel to the first of the next one",
    ),
    "drain": Words("blocks wait for their last results, most often for stores"),
    "idle": Words(
        "no block is on the SM: a kernel is being launched, or there are too few blocks", "no block is on the SM"
    ),
    "padding": Words(
        "schedulers issue other instructions than useful multiply-adds, or lanes of these have nothing to do",
        "lanes that a scheduler's issue does not use for useful multiply-accumulates",
        useful="Where a scheduler issues, {useful} of its lanes do useful multiply-accumulates; the others go to other "
        "instructions or have nothing to do",
    ),
    "SM": Words(glossary="streaming multiprocessor: a core with schedulers, lanes, shared memory and an L1"),
    "warp": Words(glossary="lanes (32 or 64) that take each instruction together", behind="SM"),
    "block": Words(glossary="warps that share an SM; a kernel is a grid of blocks", behind="warp"),
    "issue": Words(glossary="the schedulers of an SM: each issues for warps of its own", behind="warp"),
    "lsu": Words(glossary="load/store unit of an SM: a line of L1 or a wavefront of shared memory a cycle"),
    "port": Words(glossary="the way of sectors between an SM and L2", behind="lsu"),
}


#: Name of a cell -> how many matrices of `hidden` rows its product has; of a `gru` the sums of the new value over x and
#: over h stay apart, and those of a `gru-lbr0` are in a product of their own.
GATES = {"lstm": 4, "gru": 4, "gru-lbr0": 3, "rnn": 1, "rnn-relu": 1}


#: How what follows the products of a step is run: by the kernels written for a cell, by one kernel for each part of
#: the step's graph that can be one, or by one kernel for each operation.
FUSION = ("cell", "on", "off")


def cells_refusal(model: Model, fusion: str) -> str | None:
    """Why a model's cells cannot be run with a `fusion` of the chip, in a sentence; None if they can."""
    for layer in model.layers if fusion == "cell" else ():
        if layer.cell.name not in GATES:
            known = f"it has kernels for {', '.join(GATES)} layers only, and layer {layer.cell.name!r} is none of them"
            return f"{known}: it runs with the chip's `fusion: on` or `off`"
    return None


WARP_POLICIES = ("fine", "coarse")
L2_STATES = ("cold", "warm")
#: Warp slots of an SM; block slots and partitions have bounds of their own.
MAX_WARPS = 256
#: An operation of a packed body has at most 255 needs: three for each partition, one for each warp of its block.
MAX_PARTITIONS = 64

_G = "Accel-Sim, gpgpusim.config of SM7_QV100 (Volta)"
_P = "table 3 of PMC10448217 (V100)"


def _size(meaning: str, source: str, unit: str = "", low: int = 1, high: int = MAX_SIZE) -> Key:
    return Key(meaning, unit, low, high, source=source, vary=True)


_cycles = partial(_size, unit="cycles", high=MAX_LATENCY_CYCLES)


@checked("latency")
@record
class ParallelLatency:
    """Cycles until the result of an instruction is there, after the unit that served it has finished.

    Those of arithmetic (`alu`, `fma`, `sfu`) count from the start of the last issue.

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
        str, Key("the warp that a scheduler takes: the next, or the same", choices=WARP_POLICIES, source=f"{_G}: lrr")
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
        """What is wrong with the numbers, alone and taken together, as (key, sentence) pairs."""
        alone = mistakes_of(self)
        if alone:
            return alone
        bounds = dict.fromkeys(("alu", "fma"), (self.arithmetic_cycles, "lanes"))
        bounds["sfu"] = (self.function_cycles, "sfu_lanes")
        given = {key: getattr(self.latency, key) for key in bounds}
        return [
            (f"latency.{key}", f"must be at least {low}, the cycles of an issue (warp / {lanes}), got {given[key]}")
            for key, (low, lanes) in bounds.items()
            if given[key] < low
        ]

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can."""
        return "it runs layer after layer only" if model.layer_order == "step" else None


#: How a recurrent job is run.
RECURRENT = ("kernels", "persistent")
#: Settings of a core that a report shows with its lanes.
_SHOWN = ("warp", "max_warps", "max_blocks", "warp_policy")


_S = "AStitch (ASPLOS'22): a grid barrier takes 2.53 us with 20 blocks and 2.72 us with 160 on a V100"


@checked("chip")
@hashed_once
@record
class ParallelDevice:
    """A chip: some equal SMs, an L2, memory partitions, a dispatcher of blocks, a host that launches kernels.

    Each field says its meaning, unit and source. The SMs are `cores`, all of them equal. The defaults are those of the
    preset `v100`.

    `InputError` if a core cannot be built.

    >>> chip = ParallelDevice("v100", 1530, (ParallelCore(),) * 80)
    >>> chip.sms, chip.core.warp, chip.core_figures[0].peak
    (80, 32, 64)
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[ParallelCore, ...]
    partitions: Annotated[
        int, _size("memory partitions; line l lies in partition l mod partitions", _G, high=MAX_PARTITIONS)
    ] = 32
    dram: Annotated[int, _cycles("of a partition, for a sector from DRAM", f"{_P}: 783 of 900 GB/s")] = 2
    atomic: Annotated[
        int, _cycles("of a partition, for a lane of an atomic", "assumption, because a slice takes one a cycle")
    ] = 1
    l2_bytes: Annotated[int, _size("L2 cache", _P, "bytes", 0, 1 << 40)] = 6291456
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
        str, Key("what L2 holds at the start", choices=L2_STATES, source="assumption, because nothing has run before")
    ] = "cold"
    dispatch: Annotated[
        int, _cycles("of the dispatcher, for a block", "assumption, because blocks go to SMs one a cycle")
    ] = 1
    start: Annotated[int, _cycles("from the dispatcher until a block may issue", _G, low=0)] = 0
    retire: Annotated[
        int, _cycles("from a block's last result to its end", "assumption, because no source names it", low=0)
    ] = 0
    launch: Annotated[
        int,
        _cycles("from the end of a kernel until the next one's blocks are there", f"{_G}; NVIDIA forum: 3 us", low=0),
    ] = 5000
    sync: Annotated[int, _cycles("of the sync unit, for a block at a grid barrier", _S)] = 2
    grid: Annotated[int, _cycles("from the last block at a grid barrier until all go on", _S)] = 3830
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

    @property
    def core(self) -> ParallelCore:
        """One of the SMs, which are all equal."""
        return self.cores[0]

    @property
    def sms(self) -> int:
        """How many SMs there are."""
        return len(self.cores)

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The SMs as the accounts see them; equal SMs are one object."""
        core = self.core
        columns = {"schedulers": core.schedulers, "lanes": core.lanes}
        settings = {key: getattr(core, key) for key in _SHOWN}
        return (CoreFigures(core.peak, core.peak, columns, settings, STALLS, WORDS, UNIT, core.schedulers),) * self.sms

    def remarks(self, job: Job) -> tuple[str, ...]:
        """What the simulation leaves out, and what a job finds in L2 if it says so."""
        left_out = (
            "left out: instruction fetch, register banks, TLB, slices of L2, rows of DRAM, dual issue; a sector that a "
            "load of the same cohort is still bringing counts as there"
        )
        halves = () if self.element_bytes == 4 else (HALVES,)
        return (left_out, *halves, *unused(job, "threads", "density"), *([] if job.weights != "warm" else [WARM]))


#: Of jobs with `weights: warm`.
WARM = (
    "`weights: warm`: L2 begins as the same job left it, if all that its kernels touch fits there together, else "
    "empty; what other jobs leave there in between is not counted"
)


def joint_mistakes(recurrent: str, fusion: str) -> list[tuple[str, str]]:
    """What is wrong with keys of a chip taken together, as (key, sentence) pairs."""
    if recurrent == "persistent" and fusion != "cell":
        text = (
            f"must be cell where recurrent kernels are persistent, got {fusion!r}: a persistent kernel has every step"
        )
        return [("fusion", f"{text} in it, and fused kernels are launched one by one")]
    return []
