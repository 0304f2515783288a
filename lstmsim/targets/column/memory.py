"""The memory beside a chip (DRAM or HBM), from which weights come that its cores cannot hold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["TURN_CYCLES", "Memory"]

#: Cycles after which another thread's transfer gets its turn; an assumption, because a burst of some KiB is what
#: memory controllers need to be near their bandwidth. It shares the bandwidth evenly, and moves no sum.
TURN_CYCLES = 256


@dataclass(frozen=True)
class Memory:
    """A memory that all cores of a chip share: `gb_per_s` (10^9 bytes a second, all of it for weights).

    `latency_cycles`: from the end of a transfer until its weights can be used (default: an assumption, because some
    250 ns is what DRAM and HBM behind an FPGA's controllers take under load). `prefetch_blocks`: row blocks of streamed
    weights that a core has room for, the one in use among them (1: no transfer while a block is in use).

    >>> Memory(gb_per_s=76.8).transfer_cycles(8 * 768_000, frequency_mhz=250)
    2500
    """

    gb_per_s: float
    latency_cycles: int = 64
    prefetch_blocks: int = 2

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs.

        >>> Memory(0, 0).mistakes()
        [('gb_per_s', 'must be greater than 0, got 0')]
        """
        found = [] if self.gb_per_s > 0 else [("gb_per_s", f"must be greater than 0, got {self.gb_per_s}")]
        for key, least in (("latency_cycles", 0), ("prefetch_blocks", 1)):
            if getattr(self, key) < least:
                found.append((key, f"must be at least {least}, got {getattr(self, key)}"))
        return found

    def transfer_cycles(self, bits: int, frequency_mhz: float) -> int:
        """Whole cycles of a clock that so many bits take at full bandwidth, at least 1."""
        bits_per_cycle = Fraction(str(self.gb_per_s)) * 8000 / Fraction(str(frequency_mhz))
        return max(1, -(-bits // bits_per_cycle))
