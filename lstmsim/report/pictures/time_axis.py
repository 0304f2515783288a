"""The axis of time below and above pictures of cycles."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

_TICKS: Any = {"nbins": 10, "steps": [1, 2, 5, 10]}


def set_time(upper: Axes, lower: Axes, start: int, end: int, frequency_mhz: float) -> None:
    """Cycles below the lower panel, microseconds above the upper one.

    start, end: cycles that are shown.
    frequency_mhz: the clock.
    """
    lower.set_xlim(start, end)
    lower.set_xlabel("time (cycles)")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, **_TICKS))
    lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

    def microseconds(cycles: Any) -> Any:
        return cycles / frequency_mhz

    def cycles(microseconds: Any) -> Any:
        return microseconds * frequency_mhz

    micro = upper.secondary_xaxis("top", functions=(microseconds, cycles))
    micro.set_xlabel(f"time (µs at {frequency_mhz:g} MHz)")
    micro.xaxis.set_major_locator(MaxNLocator(**_TICKS))
    # Ten digits: no tick of a run that can be drawn is written as a power of ten.
    micro.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
