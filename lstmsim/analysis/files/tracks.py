"""The view of a timeline in Perfetto, the same in all encodings: one group of tracks, names of slices, counters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.binning import busy_windows, window_edges
from lstmsim.analysis.timeline import MAIN, MEMORY, STATES, Row, Timeline
from lstmsim.program.cycles import CAUSES

__all__ = [
    "FIRST_TRACK",
    "PROCESS",
    "Counters",
    "busy_counters",
    "group_name",
    "slice_names",
    "track_names",
    "wait_names",
]

#: In JSON the chip is a process and rows are its threads, whose numbers begin here.
PROCESS, FIRST_TRACK = 1, 1000

_WINDOWS = 300


def group_name(timeline: Timeline) -> str:
    """The name of the one group of all tracks; of a window it says which. Viewers open a group if it is the only one.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> group_name(Timeline("npu", 260.0, 1, (Row(0, "array"),), (), **table))
    'npu (1 ns = 1 cycle)'
    """
    return ", ".join(filter(None, (f"{timeline.chip} (1 ns = 1 cycle)", timeline.shown_text)))


def track_names(rows: Sequence[Row]) -> list[str]:
    """The name of the track of each row. It holds the name of the core if there are several cores.

    >>> track_names([Row(0, "thread", 1), Row(0, "tail")]), track_names([Row(0, "array"), Row(1, "array")])
    (['thread 1', 'tail'], ['core 0 array', 'core 1 array'])
    """
    if len({row.core for row in rows if row.kind != MEMORY}) > 1:
        return [row.name for row in rows]
    return [row.title for row in rows]


def wait_names() -> list[str]:
    """For each state the name of a slice that is no work.

    >>> wait_names()[1:4]
    ['switch', 'stall: hazard', 'stall: input']
    """
    return [f"stall: {state}" if state in CAUSES else state for state in STATES]


def slice_names(jobs: tuple[str, ...], groups: tuple[str, ...] = ()) -> list[str]:
    """A name for each job that stays distinct when a viewer ignores digits. So each job gets a colour of its own.

    groups: what jobs have their colours from; requests of an entry differ in digits alone, and so have one colour.

    >>> slice_names(("lstm-512 #0", "lstm-512 #1", "gru"))
    ['lstm-512 #0 a', 'lstm-512 #1 b', 'gru']
    >>> slice_names(("lstm-512 #0", "lstm-512 #1", "gru"), ("lstm-512", "lstm-512", "gru"))
    ['lstm-512 #0', 'lstm-512 #1', 'gru']
    """
    if groups:
        return list(jobs)
    words = [re.sub(r"\s*\d+", "", name).strip() for name in jobs]
    count: dict[str, int] = {}
    for word in words:
        count[word] = count.get(word, 0) + 1
    return [
        name if word and count[word] == 1 else f"{name} {_letters(number)}"
        for number, (name, word) in enumerate(zip(jobs, words, strict=True))
    ]


def _letters(number: int) -> str:
    """A number in letters: a, b ... z, aa, ab ..."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


@dataclass(frozen=True, eq=False)
class Counters:
    """How busy main units are in windows of time.

    window_cycles: length of a window.
    edges: cycles at which windows begin; the last window ends at the last edge.
    percent: name of a counter -> percent busy from each edge on; the last number is 0.
    """

    window_cycles: int
    edges: list[int]
    percent: dict[str, list[float]]


def busy_counters(timeline: Timeline, start: int, end: int) -> Counters:
    """Count how busy main units are from cycle `start` to cycle `end`: of the chip, and of each core if it has several.

    >>> none = np.zeros(1, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none + 1, state=none, job=none, layer=none, step=none)
    >>> busy_counters(Timeline("chip", 260.0, 2, (Row(0, "array"),), ("a",), **table), 0, 2).percent
    {'array busy % (windows of 1 cycle)': [100.0, 0.0, 0.0]}
    """
    edges: NDArray[np.int64] = window_edges(start, end, _WINDOWS)
    if len(edges) < 2:
        return Counters(0, [], {})
    by_core = busy_windows(timeline, edges)
    window = int(edges[1] - edges[0])
    text = f"busy % (windows of {window:,} cycle{'s' * (window > 1)})"
    if len(by_core) > 1:
        shares = {f"all {timeline.unit}s {text}": np.mean(list(by_core.values()), axis=0)}
        shares |= {f"{Row(core, MAIN, unit=timeline.unit).name} {text}": each for core, each in by_core.items()}
    else:
        shares = {f"{timeline.unit} {text}": each for each in by_core.values()}
    return Counters(window, edges.tolist(), {name: [*(100 * each).tolist(), 0.0] for name, each in shares.items()})
