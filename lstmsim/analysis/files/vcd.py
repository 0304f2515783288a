"""Value change dumps for wave viewers (GTKWave, Surfer), with a GTKWave save file beside them.

Each row is a scope with three variables: `state` and `job` (strings) and `busy` (one bit). A time step is one cycle,
called 1 ns. The dump does not hold layers and steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
from vcd.writer import VCDWriter

from lstmsim.analysis.files.gtkw import save_file, scope
from lstmsim.analysis.timeline import STATES, Timeline
from lstmsim.base.files import whole_file

__all__ = ["NONE", "changes", "comment", "write_vcd"]

#: The state and the job of a row where it has no span.
NONE = "-"
_BUSY = STATES.index("busy")


def _plain(text: str) -> str:
    """A text that every VCD reader takes as one word: ASCII, no white space, no `$`.

    >>> _plain("lstm 512 é")
    'lstm_512_?'
    """
    word = "".join("_" if char.isspace() or char in "$\\" else char for char in text)
    return "".join(char if "!" <= char <= "~" else "?" for char in word) or NONE


def comment(timeline: Timeline) -> str:
    """One line about a timeline: the meaning of time, the chip, the size of the run, and which part of it this is.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> comment(Timeline("a chip", 260.0, 140, (), (), **table))
    '1 ns = 1 cycle; chip a_chip, 260 MHz, 140 cycles'
    """
    size = timeline.shown_text or f"{timeline.makespan_cycles:,} cycles"
    return f"1 ns = 1 cycle; chip {_plain(timeline.chip)}, {timeline.frequency_mhz:g} MHz, {size}"


def write_vcd(timeline: Timeline, path: str, view: str | None = None) -> None:
    """Write a value change dump.

    path: file to write.
    view: GTKWave save file to write beside it, with one group of rows for each core; None for none.
    """
    with nullcontext() if view is None else whole_file(view) as save, whole_file(path) as file:
        if save is not None:
            save.write(save_file(timeline, os.path.basename(path)))
        with VCDWriter(file, timescale="1 ns", date="", version="lstmsim", comment=comment(timeline)) as writer:
            _emit(timeline, writer)


def _emit(timeline: Timeline, writer: VCDWriter) -> None:
    variables = [
        (
            writer.register_var(scope(row), "state", "string", init=NONE),
            writer.register_var(scope(row), "job", "string", init=NONE),
            writer.register_var(scope(row), "busy", "wire", size=1, init=0),
        )
        for row in timeline.rows
    ]
    for cycle, number, state, job, busy in changes(timeline):
        writer.change(variables[number][0], cycle, state)
        writer.change(variables[number][1], cycle, job)
        writer.change(variables[number][2], cycle, busy)
    writer.close(timeline.shown[1])


def changes(timeline: Timeline) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield (cycle, row, state, job, busy) for each change, in the order of time. The values hold from that cycle on.

    In a gap of a row, state and job are `NONE`. A value may be the same as before.

    >>> from lstmsim.analysis.timeline import Row
    >>> none = np.zeros(1, dtype=np.int64)
    >>> table = dict(row=none, start=none + 2, end=none + 5, state=none, job=none, layer=none, step=none)
    >>> list(changes(Timeline("chip", 260.0, 9, (Row(0, "tail"),), ("a b",), **table)))
    [(2, 0, 'busy', 'a_b', 1), (5, 0, '-', '-', 0)]
    """
    jobs = [*(_plain(name) for name in timeline.jobs), NONE]
    row, start, end = timeline.row, timeline.start, timeline.end
    touches = np.zeros(len(timeline), dtype=bool)
    touches[:-1] = (row[1:] == row[:-1]) & (start[1:] == end[:-1])
    gaps = np.flatnonzero(~touches)
    when = np.concatenate([start, end[gaps]])
    what = np.concatenate([np.arange(len(timeline)), np.full(len(gaps), -1)])
    where = np.concatenate([row, row[gaps]])
    order = np.lexsort((where, when))
    states, owners = timeline.state.tolist(), timeline.job.tolist()
    for cycle, number, span in zip(when[order].tolist(), where[order].tolist(), what[order].tolist(), strict=True):
        if span >= 0:
            yield cycle, number, STATES[states[span]], jobs[owners[span]], int(states[span] == _BUSY)
        else:
            yield cycle, number, NONE, NONE, 0
