"""Kernels as the device sees them: streams of instructions, what these touch in memory, and what that costs.

A run comes from a writer of kernels (`writing/streams.py`) as `Run`: instructions with the sectors that they touch.
`traffic.py` settles what L1 and L2 hold and makes `Priced` kernels: numbers alone. `lowering/program.py` makes a
program of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice

#: Classes of instructions. The number of a class is its index here.
CLASSES = ("alu", "fma", "sfu", "shfl", "lds", "sts", "ldg", "stg", "atom", "bar", "gridbar")
#: Name of a class -> its number.
CLASS = {name: number for number, name in enumerate(CLASSES)}

#: Tables of whole numbers, of yes and no, of the numbers of a product, of whole numbers of 32 bits.
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Values = NDArray[Any]
Narrow = NDArray[np.int32]


@record
class Memory:
    """An array in device memory."""

    name: str  # its name
    elements: int  # how many elements it has
    bytes: int = 4  # of an element, 4 or 2


@record
class KernelShape:
    """What a kernel asks of a multiprocessor."""

    name: str  # its name
    warps: int  # warps of a block
    registers: int = 32  # for each thread
    shared: int = 0  # bytes of shared memory of a block
    persistent: bool = False  # whether its blocks meet at grid barriers
    ordered: tuple[str, ...] = ()  # names of the arrays that all its streams walk in ascending order


@dataclass(frozen=True, eq=False)
class Instructions:
    """The instructions of all warps of a kernel, stream after stream: block by block in grid order, warp by warp."""

    first: Ints  # shape (streams + 1,); stream s has the rows from `first[s]` to `first[s + 1]`
    kind: NDArray[np.int8]  # shape (n,); the number of each class in `CLASSES`
    count: Narrow  # shape (n,); issues in a row
    first_wait: Ints  # shape (n + 1,); row i has the waits from `first_wait[i]` to `first_wait[i + 1]`
    wait: (
        Narrow  # shape (waits,); the index in its stream of an instruction whose result is needed, in the text's order
    )


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel with the sectors that it touches, before anyone knows where these lie."""

    shape: KernelShape  # what it asks of a multiprocessor
    sm: Narrow  # shape (blocks,); the multiprocessor of each block, -1 for any
    instructions: Instructions  # their rows
    lsu: Narrow  # shape (n,); lines of a global access, wavefronts of a shared one; else 0
    array: NDArray[np.int16]  # shape (n,); number among the run's arrays of what a global access touches; else -1
    first_sector: Ints  # shape (n + 1,); row i touches the sectors from `first_sector[i]` to `first_sector[i + 1]`
    # shape (touches,); numbers of sectors of 32 bytes, counted from the beginning of the array. A load or store names
    # each sector once, in ascending order; an `atom` names the sector of each of its lanes.
    sector: Narrow


@dataclass(frozen=True, eq=False)
class Run:
    """Kernels that a device runs one after the other, and the arrays that they share."""

    arrays: tuple[Memory, ...]  # in the order of their declaration
    kernels: tuple[Kernel, ...]  # in order. A kernel that runs again is the same object.


@dataclass(frozen=True, eq=False)
class Numbers:
    """What the accesses of a kernel cost, one row for each instruction."""

    lsu: Narrow  # shape (n,); lines or wavefronts
    sectors: Narrow  # shape (n,); distinct sectors that go through the port
    first_miss: Ints  # shape (n + 1,); row i goes to the partitions from `first_miss[i]` to `first_miss[i + 1]`
    # partition, missing: shape (misses,); a partition, ascending in a row, and how many sectors it brings; of an `atom`
    # how many lanes it serves
    partition: Narrow
    missing: Narrow
    in_l1: Mask  # in_l1, in_l2: shape (n,); whether some sector is found there
    in_l2: Mask


@dataclass(frozen=True, eq=False)
class Priced:
    """A kernel with the cost of its accesses: all that its timing depends on."""

    shape: KernelShape  # shape, sm, instructions: as in `Kernel`
    sm: Narrow
    instructions: Instructions
    numbers: Numbers  # what its accesses cost


@dataclass(frozen=True, eq=False)
class Made:
    """Kernels that were written, and what they compute."""

    run: Run  # the kernels, in order, and their arrays
    # what their lanes computed, each product and sum rounded on its own; None where there was no data
    result: Values | None
    # counts by their names in section 8 of docs/sparse_kernels.md; only those that need no clock
    metrics: Mapping[str, int]
    plan: Any = None  # what the kernels follow, for checks; None: nothing but their sizes


#: Registers and bytes of shared memory are given in pieces of this size.
_PIECE = 256


def residency(shape: KernelShape, device: ParallelDevice) -> int:
    """How many blocks of a kernel are on a multiprocessor at once; `InputError` names what is short if not even one."""
    limits = {"max_blocks": device.core.max_blocks, "max_warps": device.core.max_warps // shape.warps}
    needed = {"max_blocks": 1, "max_warps": shape.warps}
    if shape.registers > 0:
        needed["registers"] = shape.warps * in_pieces(shape.registers * device.core.warp)
        limits["registers"] = device.core.registers // needed["registers"]
    if shape.shared > 0:
        needed["shared_bytes"] = in_pieces(shape.shared)
        limits["shared_bytes"] = device.core.shared_bytes // needed["shared_bytes"]
    short = min(limits, key=lambda name: limits[name])
    if limits[short] < 1:
        has = getattr(device.core, short)
        raise InputError(
            Mistake(short, f"a block of kernel '{shape.name}' needs {needed[short]}, a multiprocessor has {has}")
        )
    return limits[short]


def in_pieces(size: int) -> int:
    """A number of registers or bytes as multiprocessors allot them: in whole pieces of 256."""
    return -(-size // _PIECE) * _PIECE


def whole_pieces(size: int) -> int:
    """How much of a number of registers or bytes blocks can have: its whole pieces of 256."""
    return size // _PIECE * _PIECE
