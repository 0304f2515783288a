"""Division and the reciprocal of a square root in a lane: a bit of the result after another, spread over registers."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.targets.column.rtl.lanes.netlist import Pipe, Signal

__all__ = ["divide", "rsqrt"]


def divide(pipe: Pipe, a: Signal, b: Signal, ups: Sequence[int], bits: int) -> tuple[Signal, Signal]:
    """Write a / b * 2**up, rounded half up, saturated; 0 / 0 is 0."""
    raise NotImplementedError


def rsqrt(pipe: Pipe, a: Signal, ups: Sequence[int], bits: int) -> tuple[Signal, Signal]:
    """Write sqrt(2**up / a), rounded half up, saturated."""
    raise NotImplementedError
