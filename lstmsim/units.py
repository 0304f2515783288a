"""Conversions between cycles and time. Cycles are whole numbers; time is for people."""

from __future__ import annotations

__all__ = ["cycles_to_ms", "cycles_to_us"]


def cycles_to_us(cycles: int, frequency_mhz: float) -> float:
    """Microseconds that `cycles` take at `frequency_mhz`.

    >>> cycles_to_us(260, 260)
    1.0
    """
    return cycles / frequency_mhz


def cycles_to_ms(cycles: int, frequency_mhz: float) -> float:
    """Milliseconds that `cycles` take at `frequency_mhz`.

    >>> cycles_to_ms(520_000, 260)
    2.0
    """
    return cycles / frequency_mhz / 1000
