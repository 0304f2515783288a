"""The memory beside a chip (DRAM or HBM). Weights that the cores cannot hold come from it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from lstmsim.base.bounds import MAX_BANKS, MAX_GB_PER_S, MAX_LATENCY_CYCLES, MIN_GB_PER_S
from lstmsim.base.checked import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import record

__all__ = ["TURN_CYCLES", "Memory"]

#: Cycles after which another thread's transfer gets its turn. Assumption, because memory controllers need a burst of
#: some KiB to be near their bandwidth. Turns share the bandwidth evenly, and change no sum.
TURN_CYCLES = 256


@checked("memory")
@record
class Memory:
    """A memory that all cores of a chip share.

    gb_per_s: bandwidth in 10^9 bytes a second, all of it for weights.
    latency_cycles: from the end of a transfer until its weights can be used.
    prefetch_blocks: row blocks of streamed weights that a core has room for, with the block in use; 1: no transfer
        while a block is in use.

    >>> Memory(gb_per_s=76.8).transfer_cycles(8 * 768_000, frequency_mhz=250)
    2500
    """

    gb_per_s: Annotated[float, Key("bandwidth in 10^9 bytes a second", "GB/s", MIN_GB_PER_S, MAX_GB_PER_S)]
    latency_cycles: Annotated[
        int,
        Key(
            "from the end of a transfer until its weights can be used",
            unit="cycles",
            low=0,
            high=MAX_LATENCY_CYCLES,
            source="assumption, because some 250 ns is what DRAM and HBM behind an FPGA's controllers take under load",
        ),
    ] = 64
    prefetch_blocks: Annotated[
        int,
        Key(
            "row blocks of streamed weights that a core has room for",
            low=1,
            high=MAX_BANKS,
            source="assumption, because one in use and one that comes are the least that hides a transfer",
        ),
    ] = 2

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs.

        >>> Memory(0, -1).mistakes()
        [('gb_per_s', 'must be at least 0.001, got 0'), ('latency_cycles', 'must be at least 0, got -1')]
        """
        return mistakes_of(self)

    def transfer_cycles(self, bits: int, frequency_mhz: float) -> int:
        """Whole cycles of a clock that `bits` bits take at full bandwidth, at least 1."""
        bits_per_cycle = Fraction(str(self.gb_per_s)) * 8000 / Fraction(str(frequency_mhz))
        return max(1, -(-bits // bits_per_cycle))
