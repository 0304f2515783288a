"""Conversions between cycles and time, the rate of work, and ranks of percentiles.

Cycles are whole numbers; time is for people.
"""

from __future__ import annotations


def cycles_to_us(cycles: int, frequency_mhz: float) -> float:
    """Convert `cycles` at `frequency_mhz` to microseconds.

    >>> cycles_to_us(260, 260)
    1.0
    """
    return cycles / frequency_mhz


def cycles_to_ms(cycles: int, frequency_mhz: float) -> float:
    """Convert `cycles` at `frequency_mhz` to milliseconds.

    >>> cycles_to_ms(520_000, 260)
    2.0
    """
    return cycles / frequency_mhz / 1000


def tops(macs: int, cycles: int, frequency_mhz: float) -> float:
    """Give the 10^12 operations a second of multiply-accumulates (two operations each) in cycles; no cycles give 0.

    >>> tops(1000, 1, 250), tops(0, 0, 250)
    (0.5, 0.0)
    """
    return 2 * macs * frequency_mhz / cycles / 1e6 if cycles else 0.0


def rank_below(count: int, percent: float) -> tuple[int, int, int]:
    """Say where a percentile lies among `count` sorted numbers (at least 1), linear between ranks.

    Gives the rank (0 first) at or below it, and how far beyond that rank it lies: so many parts, of how many to the
    next. Percents count to nine decimals, so that 99.9 is exact.

    >>> rank_below(3, 50), rank_below(3, 95)
    ((1, 0, 100), (1, 90, 100))
    """
    parts = 1 if percent == int(percent) else 10**9
    whole = 100 * parts
    return *divmod((count - 1) * round(percent * parts), whole), whole
