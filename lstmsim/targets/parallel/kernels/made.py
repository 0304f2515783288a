"""What a writer of kernels returns: the kernels, what their lanes computed, and what they counted on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from lstmsim.targets.parallel.kernel import Run

__all__ = ["Made"]


@dataclass(frozen=True, eq=False)
class Made:
    """Kernels that were written, and what they compute.

    run: the kernels, in order, and their arrays.
    result: what their lanes computed, each product and sum rounded on its own; None where there was no data.
    metrics: counts by their names in section 8 of docs/sparse_kernels.md; only those that need no clock.
    lists: what is a list, or None where there is none: `order`, the rows in the order in which they are bundled, and
        `placing`, the multiprocessor of each block.
    ratios: what is not a whole number: `lockstep_waste`.
    """

    run: Run
    result: NDArray[Any] | None
    metrics: Mapping[str, int]
    lists: Mapping[str, list[int] | None] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
