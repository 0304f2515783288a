"""The timeline: a trace as rows of named spans, the one thing that exporters and pictures read."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.cycles import SPAN_NAMES
from lstmsim.records import record
from lstmsim.results import Table

__all__ = ["MEMORY", "STATES", "Row", "Timeline", "is_unit"]

#: What a span can be. `busy` is work; `ready` is a thread whose work waits for its turn on the unit.
STATES = SPAN_NAMES

#: The kind of the row of a memory that all cores share; its `core` is the number after theirs.
MEMORY = "memory"

#: The name of a unit beside the array: a row of that kind shows when it is busy.
_UNIT = re.compile(r"(?!array$|thread$)[a-z][a-z0-9_]{0,29}")


def is_unit(kind: str) -> bool:
    """Whether a row of that kind shows a unit beside the PE array, by the unit's name.

    >>> is_unit("tail"), is_unit("thread"), is_unit("a b")
    (True, False, False)
    """
    return _UNIT.fullmatch(kind) is not None


@record
class Row:
    """One row of core number `core`: its PE array (kind `array`, every cycle named), one of its thread contexts (kind
    `thread`, `index`), or another unit (kind: its name, like `tail`).

    >>> Row(0, "thread", 1).name
    'core 0 thread 1'
    """

    core: int
    kind: str
    index: int = 0

    @property
    def name(self) -> str:
        """What people read: `core 0 array`, `core 0 thread 1`, `core 0 tail`; a memory belongs to no core."""
        if self.kind == MEMORY:
            return self.kind
        return f"core {self.core} {self.kind}" + (f" {self.index}" if self.kind == "thread" else "")


@dataclass(frozen=True, eq=False)
class Timeline(Table, forms="lstmsim.metrics.timeline_text"):
    """Columns of equal length, one entry a span, sorted by (row, start); spans of one row never overlap.

    `row` indexes `rows`, `state` indexes `STATES`, `job` indexes `jobs` (-1: none), `layer`, `step`: -1
    where there is none. A span covers cycles `start <= cycle < end`. Array rows name every cycle from 0 to
    `makespan_cycles` (`idle` included); thread rows have `busy` while one of their tiles issues, `ready`, a
    waiting state or `drain`, nothing while no job is on them; rows of other units have `busy` only.
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
