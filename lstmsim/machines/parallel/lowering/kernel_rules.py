"""The rules that kernels must keep before they are lowered."""

from __future__ import annotations

import numpy as np

from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import CLASS, Priced

__all__ = ["check_kernel", "grid_barriers"]


def check_kernel(kernel: Priced, device: Device, resident: int) -> None:
    """Raise an error if a kernel cannot run.

    resident: how many of its blocks an SM holds at once.
    `InputError` if a block is pinned to an SM that is not there. `DeadlockError` if the blocks of a persistent kernel
    are not all there at once.
    """
    _check_pins(kernel, device)
    _check_persistent(kernel, device, resident, grid_barriers(kernel))


def grid_barriers(kernel: Priced) -> int:
    """How many grid barriers each stream of a kernel has; `InputError` if they differ."""
    whole = kernel.instructions
    own = np.flatnonzero(whole.kind == CLASS["gridbar"])
    if not len(own):
        return 0
    counts = np.bincount(np.searchsorted(whole.first, own, side="right") - 1, minlength=len(whole.first) - 1)
    if counts.min() != counts.max():
        raise InputError(f"kernel {kernel.shape.name}: its streams must have the same number of grid barriers")
    if not kernel.shape.persistent:
        raise InputError(f"kernel {kernel.shape.name}: has grid barriers, so it must be persistent")
    return int(counts[0])


def _check_pins(kernel: Priced, device: Device) -> None:
    top = int(kernel.sm.max(initial=-1))
    if top >= device.sms:
        raise InputError(f"kernel {kernel.shape.name}: a block is pinned to SM {top}; there are {device.sms}")


def _check_persistent(kernel: Priced, device: Device, resident: int, gates: int) -> None:
    """`DeadlockError` if blocks that meet at grid barriers are not all there at once."""
    if not kernel.shape.persistent:
        return
    blocks = len(kernel.sm)
    pinned = np.bincount(kernel.sm[kernel.sm >= 0], minlength=device.sms)
    worst = int(pinned.max(initial=0))
    if blocks > resident * device.sms or (gates and worst > resident):
        room = f"{resident} on each of {device.sms} SMs"
        text = f"kernel {kernel.shape.name}: its {blocks} blocks meet at grid barriers and do not fit at once, {room}"
        raise DeadlockError(0, (text,))
