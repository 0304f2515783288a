"""The control of a core: issue logic with its threads, the order of the tail with its delay line, the dispatcher."""

from __future__ import annotations

from lstmsim.targets.column.parts.sizes import Sizes
from lstmsim.targets.hardware import Part

__all__ = ["control"]


def control(sizes: Sizes) -> tuple[Part, ...]:
    """Issue logic, tail control."""
    return Part("issue"), Part("tail control")
