"""The numbers of a device that plans need; docs/fusion.md, section 4."""

from __future__ import annotations

from lstmsim.base.records import hashed_once, record

__all__ = ["PIECE", "SPLIT_RULES", "VALUE_BYTES", "FusionDevice", "up"]

#: When a result is split over blocks: as published, or only where that is worth its grid barrier.
SPLIT_RULES = ("paper", "costed")

#: Bytes of a value on the device: everything is float32.
VALUE_BYTES = 4

#: Registers and bytes of shared memory are given to blocks in pieces of this size.
PIECE = 256

#: The most registers that a thread can name.
_MOST_REGISTERS = 255


def up(a: int, b: int) -> int:
    """a / b, rounded up.

    >>> up(7, 2)
    4
    """
    return -(-a // b)


@hashed_once
@record
class FusionDevice:
    """What plans ask of a device, and the settings of the pass.

    sms: how many streaming multiprocessors.
    warp, max_warps, max_blocks, registers, shared_bytes: lanes of a warp; warp slots, block slots, registers and bytes
        of shared memory of an SM.
    shared_limit: bytes of shared memory of a block (CUDA C Programming Guide, compute capability 7.0: static limit).
    block_threads: threads of a block; split_length: longest row that one block takes (both AStitch, ASPLOS'22).
    assumed_registers: of a thread, until the launch is known (AStitch).
    element_threads: threads of a block without reduce; assumption, because it is the usual size.
    split_rule: one of `SPLIT_RULES`.
    turn_cycles: of a load from DRAM; grid_cycles: of a grid barrier (docs/parallel_device.md); both for `costed`.
    register_elements: elements that a thread keeps; assumption, because 32 registers hold about eight values of each
        of two operands and the addresses.

    >>> FusionDevice().wave(1024, 0), FusionDevice().wave(256, 49152)
    (160, 160)
    """

    sms: int = 80
    warp: int = 32
    max_warps: int = 64
    max_blocks: int = 32
    registers: int = 65536
    shared_bytes: int = 98304
    shared_limit: int = 49152
    block_threads: int = 1024
    element_threads: int = 256
    assumed_registers: int = 32
    split_length: int = 1024
    split_rule: str = "paper"
    turn_cycles: int = 400
    grid_cycles: int = 3830
    register_elements: int = 8

    def resident(self, threads: int, shared: int) -> int:
        """How many blocks are on an SM at once.

        threads: of a block.
        shared: bytes of shared memory of a block.
        """
        warps = up(threads, self.warp)
        room = [
            self.max_blocks,
            self.max_warps // warps,
            self.registers // (warps * up(self.assumed_registers * self.warp, PIECE) * PIECE),
        ]
        return min(room + ([self.shared_bytes // (up(shared, PIECE) * PIECE)] if shared else []))

    def wave(self, threads: int, shared: int) -> int:
        """How many blocks are on the device at once; arguments as of `resident`."""
        return self.resident(threads, shared) * self.sms

    def launch_registers(self, threads: int, shared: int) -> int:
        """Registers of a thread: what an SM has for all threads that are on it; docs/fusion.md, section 7.5.

        threads, shared: as of `resident`.

        >>> FusionDevice().launch_registers(640, 88)
        32
        """
        # where no block fits, a plan is tried anew, and the machine refuses other kernels
        warps = max(1, self.resident(threads, shared)) * up(threads, self.warp)
        return min(_MOST_REGISTERS, self.registers // (warps * self.warp) // 8 * 8)
