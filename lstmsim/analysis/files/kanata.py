"""Pipelines as a Kanata log, for the viewer Konata: one row for each operation (docs/traces.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import MAIN, STATES, Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.program.stall_reasons import names_of
from lstmsim.program.unit_names import is_unit

#: Most rows of a log: assumption, because people read a pipeline row by row, and Konata holds all rows in memory.
MAX_OPERATIONS = 200_000

_MAIN_LANE, _STALL_LANE = 0, 1
_BUSY = STATES.index("busy")
#: States in which no operation waits.
_NO_STALL = [STATES.index(state) for state in names_of("rest")]
#: The order of events in one cycle: ends come first, because they make room for beginnings.
_END, _RETIRE, _BEGIN, _START = range(4)
Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Pipeline:
    """Operations in the order of their first cycles, and their stages."""

    stage: Column
    operation: Column
    first_cycle: Column
    last_cycle: Column
    key: Column


def write_kanata(timeline: Timeline, path: str) -> None:
    """Write the operations of a timeline to the file `path`. Equal timelines give equal bytes."""
    rows = pipeline(timeline, path)
    with whole_file(path) as file:
        file.write("Kanata\t0004\nC=\t0\n")
        file.writelines(_lines(timeline, rows))


def pipeline(timeline: Timeline, path: str) -> _Pipeline:
    """The operations of a timeline: stages grouped by job, layer and step; `InputError` if they are too many."""
    threads = np.array([row.kind == "thread" for row in timeline.rows], dtype=bool)[timeline.row]
    busy = timeline.state == _BUSY
    stalls = threads & ~busy & ~np.isin(timeline.state, _NO_STALL)
    stage = np.flatnonzero((timeline.job >= 0) & ((~threads & busy) | stalls))
    keys = np.stack([column[stage].astype(np.int64) for column in (timeline.job, timeline.layer, timeline.step)], 1)
    key, group = np.unique(keys, axis=0, return_inverse=True)
    count, group = len(key), group.reshape(-1)
    if count > MAX_OPERATIONS:
        sentence = f"a Kanata log would have {count:,} rows, one a time step of a layer, and at most {MAX_OPERATIONS:,}"
        raise InputError(Mistake(path, f"{sentence} can be looked at; cut out a window, or write .pftrace"))
    first = np.full(len(key), np.iinfo(np.int64).max)
    last = np.zeros(len(key), dtype=np.int64)
    np.minimum.at(first, group, timeline.start[stage])
    np.maximum.at(last, group, timeline.end[stage])
    order = np.lexsort((key[:, 2], key[:, 1], key[:, 0], first))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _Pipeline(stage, place[group], first[order], last[order], key[order])


def _lanes(timeline: Timeline) -> list[int]:
    """The lane of every row of the timeline. Units with the same name have the same lane on all cores."""
    units = list(dict.fromkeys(row.kind for row in timeline.rows if is_unit(row.kind)))
    lane = {MAIN: _MAIN_LANE, "thread": _STALL_LANE, **{kind: 2 + number for number, kind in enumerate(units)}}
    return [lane[row.kind] for row in timeline.rows]


def _lines(timeline: Timeline, pipeline: _Pipeline) -> Iterator[str]:
    """Yield all events in the order of time, each as one line or more."""
    count, stages = len(pipeline.key), len(pipeline.stage)
    kinds = ((_END, stages), (_RETIRE, count), (_BEGIN, count), (_START, stages))
    kind = np.concatenate([np.full(length, value) for value, length in kinds])
    start, end = timeline.start[pipeline.stage], timeline.end[pipeline.stage]
    cycle = np.concatenate([end, pipeline.last_cycle, pipeline.first_cycle, start])
    operations = np.arange(count)
    operation = np.concatenate([pipeline.operation, operations, operations, pipeline.operation])
    index = np.concatenate([np.arange(stages), operations, operations, np.arange(stages)])
    order = np.lexsort((operation, kind, cycle))
    labels, names = _labels(timeline, pipeline), _stage_names(timeline, pipeline)
    now = retired = 0
    columns = (column[order].tolist() for column in (cycle, kind, operation, index))
    for then, what, number, where in zip(*columns, strict=True):
        if then > now:
            yield f"C\t{then - now}\n"
            now = then
        if what == _START:
            yield f"S\t{number}\t{names[where]}\n"
        elif what == _END:
            yield f"E\t{number}\t{names[where]}\n"
        elif what == _BEGIN:
            yield labels[number]
        else:
            yield f"R\t{number}\t{retired}\t0\n"
            retired += 1


def _stage_names(timeline: Timeline, pipeline: _Pipeline) -> list[str]:
    """Lane and name of each stage: the name of a unit, or of what the thread waits for."""
    lanes = _lanes(timeline)
    work = [f"{lane}\t{row.label}" for lane, row in zip(lanes, timeline.rows, strict=True)]
    waits = [f"{_STALL_LANE}\t{state}" for state in STATES]
    rows, states = timeline.row[pipeline.stage].tolist(), timeline.state[pipeline.stage].tolist()
    return [work[row] if state == _BUSY else waits[state] for row, state in zip(rows, states, strict=True)]


def _labels(timeline: Timeline, pipeline: _Pipeline) -> list[str]:
    """The lines that begin each operation: its number, its job as thread, its label and its details."""
    jobs = ["".join(char if char.isprintable() else " " for char in name) for name in timeline.jobs]
    lines = []
    cut = f"; this log: {timeline.shown_text}" if timeline.window else ""
    spans = zip(pipeline.key.tolist(), pipeline.first_cycle.tolist(), pipeline.last_cycle.tolist(), strict=True)
    for number, ((job, layer, step), first, last) in enumerate(spans):
        places = [f"{word} {value}" for word, value in (("layer", layer), ("step", step)) if value >= 0]
        label = ", ".join([jobs[job], *places])
        detail = f"cycles {first:,} to {last:,} ({last - first:,}){cut}"
        lines.append(f"I\t{number}\t{number}\t{job}\nL\t{number}\t0\t{label}\nL\t{number}\t1\t{detail}\n")
    return lines
