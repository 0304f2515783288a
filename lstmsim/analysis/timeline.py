"""The timeline: a trace as rows of named spans, or a window of it. Exporters and pictures read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.units import cycles_to_ms
from lstmsim.program.stall_reasons import SPAN_NAMES
from lstmsim.program.unit_names import MEMORY
from lstmsim.report.figures_text import four_digits
from lstmsim.report.results import Forms, Table
from lstmsim.report.tables import table

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
        """The name for people: `core 0 array`, `core 0 thread 1`, `core 0 tail`. A memory belongs to no core."""
        if self.kind == MEMORY:
            return self.title
        return f"core {self.core}" if self.title == "core" else f"core {self.core} {self.title}"


@dataclass(frozen=True, eq=False)
class Timeline(Table, forms="lstmsim.analysis.timeline"):
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
        """The names of what has a colour of its own, and for each job the place of its name among them."""
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
        """What part of the run a window is, in words; empty for the whole run."""
        if self.window is None:
            return ""
        return f"cycles {self.window[0]:,} to {self.window[1]:,} of {self.makespan_cycles:,}"

    @property
    def unit(self) -> str:
        """What people call the main unit of a core."""
        return next((row.unit for row in self.rows if row.kind == MAIN), MAIN)

    def __len__(self) -> int:
        return len(self.start)


def timeline_records(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield each span with the names of its row, state and job. A value is None where there is none."""
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    for row, start, end, state, job, layer, step in zip(*(each.tolist() for each in columns), strict=True):
        yield {
            "row": timeline.rows[row].name,
            "start": start,
            "end": end,
            "state": STATES[state],
            "job": None if job < 0 else timeline.jobs[job],
            "layer": None if layer < 0 else layer,
            "step": None if step < 0 else step,
        }


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """The timeline as plain data of schema `lstmsim/timeline/1`: the names once, and every span."""
    return {
        "schema": "lstmsim/timeline/1",
        "chip": timeline.chip,
        "frequency_mhz": timeline.frequency_mhz,
        "makespan_cycles": timeline.makespan_cycles,
        "window": None if timeline.window is None else list(timeline.window),
        "rows": [row.name for row in timeline.rows],
        "jobs": list(timeline.jobs),
        "spans": list(timeline_records(timeline)),
    }


def timeline_text(timeline: Timeline) -> str:
    """What a timeline shows, and for each row how many spans and how many busy cycles it has."""
    busy = STATES.index("busy")
    shown = [["row", "spans", "busy cycles"]]
    for number, row in enumerate(timeline.rows):
        own = timeline.row == number
        at_work = own & (timeline.state == busy)
        cycles = int((timeline.end - timeline.start)[at_work].sum())
        shown.append([row.name, f"{int(own.sum()):,}", f"{cycles:,}"])
    length = (
        f"{timeline.makespan_cycles:,} cycles = "
        f"{four_digits(cycles_to_ms(timeline.makespan_cycles, timeline.frequency_mhz))} ms"
    )
    length = f"{timeline.shown_text} cycles" if timeline.window else length
    title = f"{timeline.chip}: {length}, {len(timeline):,} spans of {len(timeline.jobs):,} jobs"
    return "\n".join([title, *table(shown, left=(0,))])


FORMS = Forms(timeline_json, timeline_text, timeline_records)


def parse_window(text: str) -> tuple[int, int | None]:
    """Read a window `A:B` as its first cycle and the cycle after its last. `A:` goes on to the end, `:B` begins at 0.

    `InputError` for any other text. `window` checks whether the cycles exist.

    >>> parse_window("1000:2000"), parse_window("1_000:"), parse_window(":50")
    ((1000, 2000), (1000, None), (0, 50))
    >>> parse_window("1000-2000")
    Traceback (most recent call last):
    lstmsim.InputError: window: expected START:END in cycles, like 1000:2000, got '1000-2000'
    """
    digits = r"\d(?:_?\d){0,17}"
    parts = re.fullmatch(rf"\s*({digits})?\s*:\s*({digits})?\s*", text, re.ASCII)
    if parts is None or parts[1] is parts[2] is None:
        raise InputError(Mistake("window", f"expected START:END in cycles, like 1000:2000, got {text!r:.40}"))
    return int(parts[1] or 0), None if parts[2] is None else int(parts[2])


def window(timeline: Timeline, start: int, end: int | None = None) -> Timeline:
    """Cut the cycles `start <= cycle < end` out of a timeline.

    Spans that reach outside are cut. Cycles keep their numbers, and the makespan stays that of the run.

    start: first cycle.
    end: cycle behind the last; None, or a larger number than the makespan, means up to the last cycle.
    `InputError` if the timeline shows nothing in the window.

    >>> from lstmsim.analysis.timeline import Row
    >>> none = np.zeros(2, dtype=np.int64)
    >>> table = dict(row=none, state=none, job=none, layer=none, step=none)
    >>> times = dict(start=np.array([0, 40]), end=np.array([40, 90]))
    >>> timeline = Timeline("chip", 260.0, 90, (Row(0, "array"),), ("a",), **times, **table)
    >>> part = window(timeline, 30, 50)
    >>> part.start.tolist(), part.end.tolist(), part.makespan_cycles
    ([30, 40], [40, 50], 90)
    """
    first, last = timeline.shown
    stop = last if end is None else min(end, last)
    if not first <= start < last:
        raise InputError(
            Mistake("window", f"must start at a cycle of the timeline, {first} to {last - 1}, got {start}")
        )
    if stop <= start:
        raise InputError(Mistake("window", f"must end after its start {start}, got {end}"))
    inside = (timeline.end > start) & (timeline.start < stop)
    return replace(
        timeline,
        row=timeline.row[inside],
        start=np.maximum(timeline.start[inside], start),
        end=np.minimum(timeline.end[inside], stop),
        state=timeline.state[inside],
        job=timeline.job[inside],
        layer=timeline.layer[inside],
        step=timeline.step[inside],
        window=None if (start, stop) == (0, timeline.makespan_cycles) else (start, stop),
    )
