"""Value change dumps for wave viewers (GTKWave, Surfer), with a GTKWave save file beside them.

One scope a row with three variables: `state` and `job` (strings) and `busy` (one bit). A time step is one cycle,
called 1 ns. Layers and steps are not in it.
"""

from __future__ import annotations

import io
import os
from contextlib import nullcontext

import numpy as np
from vcd.gtkw import GTKWSave
from vcd.writer import VCDWriter

from lstmsim.formats.files import whole_file
from lstmsim.metrics.timeline import STATES, Row, Timeline

__all__ = ["write_vcd"]

_NONE = "-"
_BUSY = STATES.index("busy")


def _plain(text: str) -> str:
    """Text that every VCD reader takes as one word: ASCII, no white space, no `$`.

    >>> _plain("lstm 512 é")
    'lstm_512_?'
    """
    word = "".join("_" if char.isspace() or char in "$\\" else char for char in text)
    return "".join(char if "!" <= char <= "~" else "?" for char in word) or _NONE


def _scope(row: Row) -> str:
    unit = f"thread{row.index}" if row.kind == "thread" else row.kind
    return f"lstmsim.core{row.core}.{unit}"


def write_vcd(timeline: Timeline, path: str, view: str | None = None) -> None:
    """Write `path` and the save file `view` that shows its rows in groups, one a core; without `view` only `path`."""
    with nullcontext() if view is None else whole_file(view) as save, whole_file(path) as file:
        if save is not None:
            save.write(_save_file(timeline, os.path.basename(path)))
        size = f"{timeline.frequency_mhz:g} MHz, {timeline.makespan_cycles} cycles"
        comment = f"1 ns = 1 cycle; chip {_plain(timeline.chip)}, {size}"
        with VCDWriter(file, timescale="1 ns", date="", version="lstmsim", comment=comment) as writer:
            _changes(timeline, writer)


def _changes(timeline: Timeline, writer: VCDWriter) -> None:
    """All changes in the order of time; where a row has a gap, its state is none."""
    variables = [
        (
            writer.register_var(_scope(row), "state", "string", init=_NONE),
            writer.register_var(_scope(row), "job", "string", init=_NONE),
            writer.register_var(_scope(row), "busy", "wire", size=1, init=0),
        )
        for row in timeline.rows
    ]
    jobs = [*(_plain(name) for name in timeline.jobs), _NONE]
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
        state, job, busy = variables[number]
        writer.change(state, cycle, STATES[states[span]] if span >= 0 else _NONE)
        writer.change(job, cycle, jobs[owners[span]] if span >= 0 else _NONE)
        writer.change(busy, cycle, int(span >= 0 and states[span] == _BUSY))
    writer.close(timeline.makespan_cycles)


def _save_file(timeline: Timeline, dump: str) -> str:
    text = io.StringIO()
    save = GTKWSave(text)
    save.comment("lstmsim: 1 ns = 1 cycle")
    if dump.isprintable() and '"' not in dump:
        save.dumpfile(dump, abspath=False)
    save.treeopen("lstmsim.")
    for core in dict.fromkeys(row.core for row in timeline.rows):
        with save.group(f"core {core}"):
            for row in timeline.rows:
                if row.core == core:
                    label = row.name.removeprefix(f"core {core} ")
                    save.trace(f"{_scope(row)}.busy", alias=f"{label} busy", datafmt="bin")
                    save.trace(f"{_scope(row)}.state", alias=f"{label} state", datafmt="ascii")
                    save.trace(f"{_scope(row)}.job", alias=f"{label} job", datafmt="ascii")
    return text.getvalue()
