"""What a job needs to be executed."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.numerics.arithmetic import Arithmetic
from lstmsim.numerics.weights import Stimulus

__all__ = ["JobNumbers"]


@dataclass(frozen=True, eq=False)
class JobNumbers:
    """The arithmetic of every pass, `arithmetic[layer][direction]`, which holds the weights; and the input."""

    arithmetic: tuple[tuple[Arithmetic, ...], ...]
    stimulus: Stimulus
