"""Where a memory goes on a device: into blocks, into small memories of logic, or into registers."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.machines.hardware import Demand
from lstmsim.studies.fit.device import Device

__all__ = ["Placed", "placed"]


@dataclass(frozen=True)
class Placed:
    """A memory on a device.

    in_blocks: whether it takes memory blocks.
    gates: functions of four inputs that choose among its pieces.
    elements: elements of logic that hold it.
    registers: bits of registers that hold it.
    """

    in_blocks: bool
    gates: int = 0
    elements: int = 0
    registers: int = 0


def placed(demand: Demand, device: Device) -> Placed:
    """Choose where a memory goes, all its equal pieces alike.

    Block memory cannot give a word in the cycle of its address. Where nothing is known of small memories, such a memory
    is of registers, and every other one of blocks.

    >>> from lstmsim.studies.fit.device import Logic, Memory, Packing, SmallMemory
    >>> logic = Logic("LUT4", 100, 1, 1, small=SmallMemory(16, 4, 6, 32))
    >>> device = Device("d", "DSP", 1, (Packing("p", 1, (18, 18)),), (Memory("EBR", 8, 18432, 36),), logic)
    >>> placed(Demand("m", 512 * 32, 32, writes=1), device).in_blocks, placed(Demand("m", 32 * 8, 8, writes=1), device)
    (True, Placed(in_blocks=False, gates=8, elements=24, registers=8))
    >>> placed(Demand("m", 2 * 32, 32, writes=1, reads=2, instant=True), device)
    Placed(in_blocks=False, gates=0, elements=0, registers=64)
    """
    words, width, count = demand.words, demand.width, demand.memories
    small = device.logic.small
    # A choice of two is part of what is done with the word.
    chosen = count * demand.reads * _chosen(width, words) if words > _FREE_CHOICE else 0
    in_registers = Placed(False, chosen, 0, count * words * width)
    if small is None:
        return in_registers if demand.instant else Placed(True)
    copies = demand.reads * -(-words // small.words) * -(-width // small.bits)
    banks = -(-words // small.words)
    if words * width * small.block <= copies * _BLOCK_COST:
        return in_registers
    dear = copies + demand.reads * width * (banks - 1) / _CHOICES_OF_A_SMALL_MEMORY
    blocks = min(kind.shaped(words, width) for kind in device.memories)
    if not demand.instant and dear >= small.block * blocks:
        return Placed(True)
    # The register in which a block holds what it has read is one beside a small memory.
    held = 0 if demand.instant else count * demand.reads * width
    return Placed(False, count * demand.reads * _chosen(width, banks), count * copies * small.elements, held)


#: What a block costs in bits of registers, to the program that chooses.
_BLOCK_COST = 128
#: So many words are chosen from by the function that takes the word.
_FREE_CHOICE = 2
#: So many choices of a bit are as dear as a small memory.
_CHOICES_OF_A_SMALL_MEMORY = 8


def _chosen(bits: int, inputs: int) -> int:
    """Functions of four inputs that choose one of several words."""
    return bits * (inputs - 1 if inputs < 4 else inputs)
