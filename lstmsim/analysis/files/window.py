"""A window of a timeline: the cycles that a user wants to look at, cut out before a trace is written.

Cycle numbers and the makespan stay those of the run, so that a window can be compared with the report and with other
windows. A file says which window it holds. When it is read, the window must be complete.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake

__all__ = ["parse_window", "window"]


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
