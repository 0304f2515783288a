"""What Perfetto shows of a timeline, whatever the file's encoding: processes, tracks, names of slices, counters."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.metrics.binning import busy_windows, window_edges
from lstmsim.metrics.timeline import MEMORY, STATES, Row, Timeline

__all__ = [
    "FIRST_TRACK",
    "Counters",
    "busy_counters",
    "chip_process",
    "process_names",
    "slice_names",
    "track_name",
    "wait_names",
]

#: Rows are threads to Perfetto; their numbers begin here, away from those of processes.
FIRST_TRACK = 1000

_WINDOWS = 300
_STALLS = ("hazard", "input", "backpressure", "dispatch", "reload", "weights")


def chip_process(timeline: Timeline) -> int:
    """The number of the process that stands for the chip: the one after those of the cores, which are core + 1.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> chip_process(Timeline("chip", 260.0, 1, (Row(0, "array"), Row(1, "array")), (), **table))
    3
    """
    return max((row.core for row in timeline.rows), default=0) + 2


def process_names(timeline: Timeline) -> dict[int, str]:
    """Name of each process by its number, the chip first.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> process_names(Timeline("npu", 260.0, 1, (Row(0, "array"),), (), **table))
    {2: 'npu (1 ns = 1 cycle)', 1: 'core 0 (1 ns = 1 cycle)'}
    """
    names = {chip_process(timeline): f"{timeline.chip} (1 ns = 1 cycle)"}
    cores = {row.core: MEMORY if row.kind == MEMORY else f"core {row.core}" for row in timeline.rows}
    return names | {core + 1: f"{name} (1 ns = 1 cycle)" for core, name in cores.items()}


def track_name(row: Row) -> str:
    """A row's name below its core.

    >>> track_name(Row(0, "thread", 1)), track_name(Row(0, "tail"))
    ('thread 1', 'tail')
    """
    return f"{row.kind} {row.index}" if row.kind == "thread" else row.kind


def wait_names() -> list[str]:
    """The name of a slice that is no work, by state.

    >>> wait_names()[1:4]
    ['switch', 'stall: hazard', 'stall: input']
    """
    return [f"stall: {state}" if state in _STALLS else state for state in STATES]


def slice_names(jobs: tuple[str, ...]) -> list[str]:
    """A name for each job that stays distinct, and so gets a colour of its own, when a viewer ignores digits.

    >>> slice_names(("lstm-512 #0", "lstm-512 #1", "gru"))
    ['lstm-512 #0 a', 'lstm-512 #1 b', 'gru']
    """
    words = [re.sub(r"\s*\d+", "", name).strip() for name in jobs]
    count: dict[str, int] = {}
    for word in words:
        count[word] = count.get(word, 0) + 1
    return [
        name if word and count[word] == 1 else f"{name} {_letters(number)}"
        for number, (name, word) in enumerate(zip(jobs, words, strict=True))
    ]


def _letters(number: int) -> str:
    """a, b ... z, aa, ab ...: a number without digits."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


@dataclass(frozen=True, eq=False)
class Counters:
    """Busy percentage of the arrays by process: `percent[process][i]` holds from `edges[i]` on, the last is 0."""

    name: str
    window_cycles: int
    edges: list[int]
    percent: dict[int, list[float]]


def busy_counters(timeline: Timeline, start: int, end: int) -> Counters:
    """Busy percentage of the arrays from `start` to `end`: by core, and of the chip if it has several cores.

    >>> none = np.zeros(1, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none + 1, state=none, job=none, layer=none, step=none)
    >>> busy_counters(Timeline("chip", 260.0, 2, (Row(0, "array"),), ("a",), **table), 0, 2).percent
    {1: [100.0, 0.0, 0.0]}
    """
    edges: NDArray[np.int64] = window_edges(start, end, _WINDOWS)
    if len(edges) < 2:
        return Counters("", 0, [], {})
    by_core = busy_windows(timeline, edges)
    values = {core + 1: each for core, each in by_core.items()}
    if len(by_core) > 1:
        values[chip_process(timeline)] = np.mean(list(by_core.values()), axis=0)
    window = int(edges[1] - edges[0])
    name = f"array busy % (windows of {window} cycle{'s' * (window > 1)})"
    percent = {process: [*(100 * each).tolist(), 0.0] for process, each in values.items()}
    return Counters(name, window, edges.tolist(), percent)
