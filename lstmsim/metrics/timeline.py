"""The timeline: a trace as rows of named spans, the one thing that exporters and pictures read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROW_KINDS", "STATES", "Row", "Timeline"]

#: What a span can be. `busy` is work; `ready` is a thread whose work waits for its turn on the unit.
STATES = ("busy", "switch", "hazard", "input", "backpressure", "drain", "idle", "ready")

#: What a row can be: a core's PE array (every cycle named), one thread context of it, its tail unit.
ROW_KINDS = ("array", "thread", "tail")


@dataclass(frozen=True)
class Row:
    """One row: the array, a thread (`index`), or the tail of core number `core`.

    >>> Row(0, "thread", 1).name
    'core 0 thread 1'
    """

    core: int
    kind: str
    index: int = 0

    @property
    def name(self) -> str:
        """What people read: `core 0 array`, `core 0 thread 1`, `core 0 tail`."""
        return f"core {self.core} {self.kind}" + (f" {self.index}" if self.kind == "thread" else "")


@dataclass(frozen=True, eq=False)
class Timeline:
    """Columns of equal length, one entry a span, sorted by (row, start); spans of one row never overlap.

    `row` indexes `rows`, `state` indexes `STATES`, `job` indexes `jobs` (-1: none), `layer`, `step`: -1
    where there is none. A span covers cycles `start <= cycle < end`. Array rows name every cycle from 0 to
    `makespan_cycles` (`idle` included); thread rows have `busy` while one of their tiles issues, `ready`, a
    waiting state or `drain`, nothing while no job is on them; tail rows have `busy` only.
    """

    chip: str
    frequency_mhz: float
    makespan_cycles: int
    rows: tuple[Row, ...]
    jobs: tuple[str, ...]
    row: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]
    job: NDArray[np.int32]
    layer: NDArray[np.int32]
    step: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start)
