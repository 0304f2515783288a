"""How many blocks of a kernel a multiprocessor holds at once."""

from __future__ import annotations

from typing import Protocol

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.parallel.kernel import KernelShape

__all__ = ["Room", "in_pieces", "residency", "shared_room", "whole_pieces"]

#: Registers and bytes of shared memory are given in pieces of this size.
_PIECE = 256


class Room(Protocol):
    """What a multiprocessor has for blocks: lanes of a warp, slots, registers, bytes of shared memory."""

    @property
    def warp(self) -> int: ...
    @property
    def max_blocks(self) -> int: ...
    @property
    def max_warps(self) -> int: ...
    @property
    def registers(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...


def shared_room(shape: KernelShape) -> int:
    """Bytes of shared memory that a block takes: those that it asks for, in whole pieces of 256."""
    return in_pieces(shape.shared)


def residency(shape: KernelShape, device: Room) -> int:
    """How many blocks of a kernel are on a multiprocessor at once, at least 1.

    shape: what a block asks for.
    device: what a multiprocessor has.

    Raises `InputError` if not even one block fits: it names what is short.
    """
    limits = {"max_blocks": device.max_blocks, "max_warps": device.max_warps // shape.warps}
    needed = {"max_blocks": 1, "max_warps": shape.warps}
    if shape.registers > 0:
        needed["registers"] = shape.warps * in_pieces(shape.registers * device.warp)
        limits["registers"] = device.registers // needed["registers"]
    if shape.shared > 0:
        needed["shared_bytes"] = shared_room(shape)
        limits["shared_bytes"] = device.shared_bytes // needed["shared_bytes"]
    short = min(limits, key=lambda name: limits[name])
    if limits[short] < 1:
        has = getattr(device, short)
        raise InputError(
            Mistake(short, f"a block of kernel '{shape.name}' needs {needed[short]}, a multiprocessor has {has}")
        )
    return limits[short]


def in_pieces(size: int) -> int:
    """A number of registers or bytes as multiprocessors give room: in whole pieces of 256.

    >>> in_pieces(0), in_pieces(257)
    (0, 512)
    """
    return -(-size // _PIECE) * _PIECE


def whole_pieces(size: int) -> int:
    """How much of a number of registers or bytes blocks can have: its whole pieces of 256.

    >>> whole_pieces(1000)
    768
    """
    return size // _PIECE * _PIECE
