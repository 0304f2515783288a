"""Fused kernels on the device: settings of the pass, how kernels become a program, what its run came to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest
from lstmsim.machines.kernels import FusedFigures, KernelWork
from lstmsim.machines.parallel.device import NOT_MODELLED, ParallelDevice
from lstmsim.machines.parallel.fused.kernels import fused_run
from lstmsim.machines.parallel.kernel import whole_pieces
from lstmsim.machines.parallel.kernels.rows import option_mistakes
from lstmsim.machines.parallel.lowering.program import figures_of, program_of_kernels, traffic_of
from lstmsim.machines.parallel.traffic import priced
from lstmsim.machines.parallel.writing.addresses import SECTOR_BYTES
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import SPLIT_RULES, FusionDevice, PlannedKernel
from lstmsim.program.trace import Totals

_MOST = 1 << 30
#: Threads of a block, whatever else an SM could hold.
_MOST_THREADS, _SOURCE = 1024, "a block of CUDA has no more threads (CUDA C Programming Guide)"
_THREADS = ("block_threads", "element_threads")


@record
class _Settings:
    """The settings of the pass; what else bounds them is a matter of the device."""

    split_rule: Annotated[
        str,
        Key(
            "when a result is split over blocks: paper, as published; costed, where that is worth a grid barrier",
            choices=SPLIT_RULES,
        ),
    ]
    split_length: Annotated[int, Key("the longest row that one block takes, in elements", low=1, high=_MOST)]
    block_threads: Annotated[int, Key("threads of a block with a reduce")]
    element_threads: Annotated[int, Key("threads of a block without one")]
    shared_limit: Annotated[int, Key("bytes of shared memory that a block may have", low=0)]
    assumed_registers: Annotated[int, Key("registers of a thread, as long as the launch is not known", low=1, high=255)]
    register_elements: Annotated[
        int, Key("elements that a thread keeps in registers from stage to stage", low=0, high=_MOST)
    ]
    turn_cycles: Annotated[int, Key("cycles of a load from DRAM, for costed", low=0, high=_MOST)]
    grid_cycles: Annotated[int, Key("cycles of a grid barrier, for costed", low=0, high=_MOST)]


#: Settings of the pass that a user may give, with what each means.
SETTINGS: Mapping[str, str] = {name: each.key.meaning for name, each in keys_of(_Settings).items()}


def fusion_device(device: ParallelDevice, settings: Mapping[str, Any]) -> FusionDevice:
    """What plans ask of a device."""
    unknown = [name for name in settings if name not in SETTINGS]
    refuse(
        Mistake(name, f"is no setting of the pass{nearest(name, SETTINGS)}; it has {listed(SETTINGS, 'and')}")
        for name in unknown
    )
    core, values = (
        device.core,
        _defaults(device) | {name: value for name, value in settings.items() if value is not None},
    )
    refuse([*option_mistakes(_Settings(**values))] or _too_large(device, values))
    refuse(
        Mistake(name, f"must be a multiple of {device.core.warp}, the lanes of a warp, got {values[name]}")
        for name in _THREADS
        if values[name] % device.core.warp
    )
    own = {name: getattr(core, name) for name in ("warp", "max_warps", "max_blocks", "registers", "shared_bytes")}
    result = FusionDevice(sms=device.sms, **own, **values)
    given = {name for name, value in settings.items() if value is not None}
    # both kinds of blocks may not fit for the same reason, which is said once
    refuse({each.location: each for name in reversed(_THREADS) if (each := _too_many(result, name, given))}.values())
    return result


def _defaults(device: ParallelDevice) -> dict[str, Any]:
    usual = FusionDevice()
    sectors, cycles = device.core.port
    warps = min(device.core.max_warps, device.core.registers // (usual.assumed_registers * device.core.warp))
    threads = max(1, warps) * device.core.warp
    return {
        "split_rule": usual.split_rule,
        "split_length": usual.split_length,
        "block_threads": min(usual.block_threads, threads),
        "element_threads": min(usual.element_threads, threads),
        # whole pieces only, or else a value that just fits the limit would not fit the SM
        "shared_limit": min(usual.shared_limit, whole_pieces(device.core.shared_bytes)),
        "assumed_registers": usual.assumed_registers,
        "register_elements": usual.register_elements,
        # one sector: issue, load/store unit, port, partition, and the way back
        "turn_cycles": 2 + -(-cycles // sectors) + device.dram + device.core.latency.dram,
        "grid_cycles": device.grid,
    }


def _too_large(device: ParallelDevice, values: Mapping[str, Any]) -> Iterator[Mistake]:
    """Settings for which an SM is too small: threads, bytes of shared memory."""
    core = device.core
    slots = core.max_warps * core.warp
    most = min(slots, _MOST_THREADS)
    for name in _THREADS:
        if not core.warp <= values[name] <= most:
            why = f"; {_SOURCE}" if values[name] > _MOST_THREADS <= slots else ""
            yield Mistake(name, f"must be a whole number from {core.warp} to {most}, got {values[name]}{why}")
    if values["shared_limit"] > core.shared_bytes:
        yield Mistake(
            "shared_limit", f"must be a whole number from 0 to {core.shared_bytes}, got {values['shared_limit']}"
        )


def _too_many(device: FusionDevice, name: str, given: Collection[str]) -> Mistake | None:
    """A block that does not fit, in the name of what a user gave; a chip that is too small is blamed itself."""
    threads, registers = getattr(device, name), device.assumed_registers
    if device.resident(threads, 0):
        return None
    if name not in given and "assumed_registers" in given:
        room = [each for each in range(1, registers) if replace(device, assumed_registers=each).resident(threads, 0)]
        text = f"{registers} for each of the {threads} threads of a block do not fit an SM, which has"
        fewer = f"expected at most {room[-1]}, or fewer {name}" if room else "expected fewer"
        return Mistake("assumed_registers", f"{text} {device.registers}: {fewer}")
    text = f"a block of {threads} threads with {registers} registers each does not fit an SM, which has"
    if name in given:
        return Mistake(name, f"{text} {device.registers}")
    return Mistake("registers", f"{text} {device.registers}; expected at least {threads * registers}")


#: What is not modelled.
LEFT_OUT = (
    "integer work for addresses: a move costs nothing, an operation only its own instructions",
    "copies between a thread's registers, and registers that spill",
    *NOT_MODELLED,
    "loads of a split result's parts that overlap: each waits until the part before is added, as long as L2 takes",
    "kernels side by side: each begins when the one before it has ended",
)


def numbers(chip: ParallelDevice, settings: Mapping[str, Any]) -> FusionDevice:
    """The numbers of a chip that plans need; `InputError` for a setting that there is not or out of range.

    The chip has a `split_rule` of its own, which holds unless the settings name another.
    """
    if chip.element_bytes != 4:
        text = "plans count values of 4 bytes; 2 is for jobs, whose fused kernels `simulate` times with `fusion: on`"
        raise InputError(Mistake(f"chip {chip.name}: element_bytes", text))
    own = {"split_rule": chip.split_rule}
    return fusion_device(chip, own | {name: value for name, value in settings.items() if value is not None})


def lower(chip: ParallelDevice, graph: Graph, kernels: Sequence[PlannedKernel], name: str) -> KernelWork:
    """Make a program of planned kernels of a graph, which run in the given order.

    `InputError` if one does not fit; `DeadlockError` if blocks that meet are not all there at once.
    """
    run = fused_run(graph, kernels, chip)
    costs = priced(run, chip)
    lowered = program_of_kernels(chip, costs, name)
    return KernelWork(lowered.flat, lowered.names, (lowered, traffic_of(run, costs).counts))


def figures(chip: ParallelDevice, work: KernelWork, totals: Totals) -> FusedFigures:
    """The figures of the run of a program."""
    lowered, counts = work.own
    l2_bytes, dram_bytes = (SECTOR_BYTES * counts[name] for name in ("l2_sectors", "dram_sectors"))
    more = {"counts": counts, "launch": chip.launch, "l2_bytes": l2_bytes, "dram_bytes": dram_bytes}
    return figures_of(FusedFigures, chip, lowered, totals, **more)
