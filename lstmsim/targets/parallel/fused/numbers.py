"""What plans ask of the device, and the settings of the pass that a user may give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lstmsim.errors import Mistake
from lstmsim.fusion.device import SPLIT_RULES, FusionDevice
from lstmsim.targets.parallel.device import Device
from lstmsim.targets.parallel.kernels.options import bad_choice, bad_number, refuse
from lstmsim.targets.parallel.residency import whole_pieces
from lstmsim.wording import listed, nearest

__all__ = ["SETTINGS", "fusion_device"]

#: Settings of the pass, with what each means.
SETTINGS: Mapping[str, str] = {
    "split_rule": "when a result is split over blocks: paper, as published; costed, where that is worth a grid barrier",
    "split_length": "the longest row that one block takes, in elements",
    "block_threads": "threads of a block with a reduce",
    "element_threads": "threads of a block without one",
    "shared_limit": "bytes of shared memory that a block may have",
    "assumed_registers": "registers of a thread, as long as the launch is not known",
    "register_elements": "elements that a thread keeps in registers from stage to stage",
    "turn_cycles": "cycles of a load from DRAM, for costed",
    "grid_cycles": "cycles of a grid barrier, for costed",
}
_MOST_REGISTERS, _MOST = 255, 1 << 30


def fusion_device(device: Device, settings: Mapping[str, Any]) -> FusionDevice:
    """What plans ask of a device.

    device: the device. A load from DRAM and a grid barrier take what they take there when nothing else is on the way;
        a block has at most the threads and the shared memory of an SM.
    settings: by the names of `SETTINGS`, in place of their defaults; None stands for the default.

    `InputError` for a name that is no setting, or a value out of range.

    >>> from lstmsim.targets.parallel.device import ParallelCore, ParallelDevice
    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80).view
    >>> fusion_device(device, {}) == FusionDevice()
    True
    >>> fusion_device(device, {"split_rule": "costs"})
    Traceback (most recent call last):
    lstmsim.errors.InputError: split_rule: must be paper or costed, got 'costs'; did you mean 'costed'?
    """
    unknown = [name for name in settings if name not in SETTINGS]
    refuse(
        Mistake(name, f"is no setting of the pass{nearest(name, SETTINGS)}; it has {listed(SETTINGS, 'and')}")
        for name in unknown
    )
    values = _defaults(device) | {name: value for name, value in settings.items() if value is not None}
    refuse(check(name, values[name]) for name, check in _checks(device).items())
    refuse(
        Mistake(name, f"must be a multiple of {device.warp}, the lanes of a warp, got {values[name]}")
        for name in ("block_threads", "element_threads")
        if values[name] % device.warp
    )
    own = ("sms", "warp", "max_warps", "max_blocks", "registers", "shared_bytes")
    result = FusionDevice(**{name: getattr(device, name) for name in own}, **values)
    refuse(_too_many(result, name) for name in ("block_threads", "element_threads"))
    return result


def _defaults(device: Device) -> dict[str, Any]:
    usual = FusionDevice()
    sectors, cycles = device.port
    threads = min(device.max_warps, device.registers // (usual.assumed_registers * device.warp)) * device.warp
    return {
        "split_rule": usual.split_rule,
        "split_length": usual.split_length,
        "block_threads": min(usual.block_threads, threads),
        "element_threads": min(usual.element_threads, threads),
        # whole pieces only, or else a value that just fits the limit would not fit the SM
        "shared_limit": min(usual.shared_limit, whole_pieces(device.shared_bytes)),
        "assumed_registers": usual.assumed_registers,
        "register_elements": usual.register_elements,
        # one sector: issue, load/store unit, port, partition, and the way back
        "turn_cycles": 2 + -(-cycles // sectors) + device.dram + device.latencies.dram,
        "grid_cycles": device.grid,
    }


def _checks(device: Device) -> Mapping[str, Callable[[str, Any], Mistake | None]]:
    def at_most(least: int, most: int) -> Callable[[str, Any], Mistake | None]:
        return partial(bad_number, least=least, most=most)

    return {
        "split_rule": partial(bad_choice, known=SPLIT_RULES),
        "split_length": at_most(1, _MOST),
        "block_threads": at_most(device.warp, device.max_warps * device.warp),
        "element_threads": at_most(device.warp, device.max_warps * device.warp),
        "shared_limit": at_most(0, device.shared_bytes),
        "assumed_registers": at_most(1, _MOST_REGISTERS),
        "register_elements": at_most(0, _MOST),
        "turn_cycles": at_most(0, _MOST),
        "grid_cycles": at_most(0, _MOST),
    }


def _too_many(device: FusionDevice, name: str) -> Mistake | None:
    threads = getattr(device, name)
    if device.resident(threads, 0):
        return None
    text = f"a block of {threads} threads with {device.assumed_registers} registers each does not fit an SM"
    return Mistake(name, f"{text}, which has {device.registers}")
