"""The timeline: a trace as rows of named spans. Exporters and pictures read nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.program.cycles import SPAN_NAMES
from lstmsim.program.unit_names import MEMORY, is_unit
from lstmsim.report.results import Table

__all__ = ["MAIN", "MEMORY", "STATES", "Row", "Timeline", "is_unit"]

#: What a span can be. `busy` is work. `ready` is a thread whose work waits for its turn on the unit.
STATES = SPAN_NAMES

#: The kind of the row of a core's main unit. `Row.unit` is what outputs show in its place.
MAIN = "array"


@record
class Row:
    """One row of a timeline.

    core: number of the core.
    kind: `MAIN` (the main unit, every cycle has a name), `thread` (a context), or the name of another unit (`tail`), as
        `lstmsim.program.unit_names` says. `core` of a memory that all cores share is the number after the last core.
    index: number of the context, for the kind `thread`; of another unit 0, or if it has several ways, which each have
        a row, the number of the way and 1 more. Where there are several memories, they are numbered in the same way.
    unit: what people call the main unit, for the kind `MAIN`.

    >>> Row(0, "thread", 1).name, Row(0, "array", 1, "issue").name
    ('core 0 thread 1', 'core 0 issue 0')
    """

    core: int
    kind: str
    index: int = 0
    unit: str = MAIN

    @property
    def label(self) -> str:
        """The kind as outputs show it: the name of the unit, or `thread`."""
        return self.unit if self.kind == MAIN else self.kind

    @property
    def title(self) -> str:
        """The name within the core: `array`, `thread 1`, `tail`, or of a way of a unit `issue 0`."""
        if self.kind == "thread":
            return f"{self.kind} {self.index}"
        return f"{self.label} {self.index - 1}" if self.index else self.label

    @property
    def name(self) -> str:
        """The name for people: `core 0 array`, `core 0 thread 1`, `core 0 tail`. A memory belongs to no core.

        If people call the main unit a core, its name is `core 0`.
        """
        if self.kind == MEMORY:
            return self.title
        return f"core {self.core}" if self.title == "core" else f"core {self.core} {self.title}"


@dataclass(frozen=True, eq=False)
class Timeline(Table, forms="lstmsim.analysis.timeline_text"):
    """The spans of a run, as columns of equal length, sorted by (row, start). Spans of one row never overlap.

    Rows of main units name every cycle that is shown (`shown`), `idle` included. Rows of threads are `busy` while
    the thread's work issues; else they have `ready`, a waiting state or `drain`; they have no span while no job is
    on the thread. Rows of other units have `busy` only.

    chip: name of the chip.
    frequency_mhz: clock of the chip.
    makespan_cycles: cycle at which the last job has finished.
    rows: the rows.
    jobs: names of the jobs.
    row: place in `rows`.
    start, end: cycles, `start <= cycle < end`.
    state: place in `STATES`.
    job: place in `jobs`; -1 for none.
    layer, step: numbers; -1 for none.
    window: first cycle and cycle behind the last of the part of the run that was cut out; None: all of the run.
    groups: for each job the name of what it has its colour from, such as its entry; empty: each job has its own.
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
    window: tuple[int, int] | None = None
    groups: tuple[str, ...] = ()

    @property
    def coloured(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """The names of what has a colour of its own, and for each job the place of its name among them.

        >>> none = np.zeros(0, dtype=np.int64)
        >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
        >>> names, place = Timeline("npu", 1.0, 1, (), ("a #1", "b", "a #2"), groups=("a", "b", "a"), **table).coloured
        >>> names, place.tolist()
        (('a', 'b'), [0, 1, 0])
        """
        if not self.groups:
            return self.jobs, np.arange(len(self.jobs), dtype=np.int64)
        place = {name: number for number, name in enumerate(dict.fromkeys(self.groups))}
        return tuple(place), np.array([place[name] for name in self.groups], dtype=np.int64)

    @property
    def shown(self) -> tuple[int, int]:
        """The cycles that are shown, `first <= cycle < last`: all of the run, or the window that was cut out."""
        return (0, self.makespan_cycles) if self.window is None else self.window

    @property
    def shown_text(self) -> str:
        """What part of the run a window is, in words; empty for the whole run.

        >>> none = np.zeros(0, dtype=np.int64)
        >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
        >>> Timeline("npu", 260.0, 80000, (), (), window=(1000, 2000), **table).shown_text
        'cycles 1,000 to 2,000 of 80,000'
        """
        if self.window is None:
            return ""
        return f"cycles {self.window[0]:,} to {self.window[1]:,} of {self.makespan_cycles:,}"

    @property
    def unit(self) -> str:
        """What people call the main unit of a core."""
        return next((row.unit for row in self.rows if row.kind == MAIN), MAIN)

    def __len__(self) -> int:
        return len(self.start)
