"""What a writer of kernels returns: the kernels, what their lanes computed, and what they counted on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import Run

__all__ = ["Made"]


@dataclass(frozen=True, eq=False)
class Made:
    """Kernels that were written, and what they compute.

    run: the kernels, in order, and their arrays.
    result: what their lanes computed, each product and sum rounded on its own; None where there was no data.
    metrics: counts by their names in section 8 of docs/sparse_kernels.md; only those that need no clock.
    """

    run: Run
    result: NDArray[Any] | None
    metrics: Mapping[str, int]
