"""What the scripts of a run's page read: every span as compact columns, the critical path, changes that were tried.

Spans of one row do not overlap, so a row is a list of gaps and lengths. Numbers are split into planes of bytes, which
`zlib` makes very small, because the steps of a run are alike: a million spans take 17 kB. More spans than `MOST_SPANS`,
or spans that do not shrink, are put into bins of equal length: each bin holds the exact cycles of each kind, and only
their order within the bin is lost.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.critical_path import HELD_BY, critical_path
from lstmsim.analysis.explanations.explanation import PathTable
from lstmsim.analysis.explanations.text import held_words
from lstmsim.analysis.explanations.trace_index import TraceIndex
from lstmsim.analysis.spans import Use, shown_rows, window_edges
from lstmsim.analysis.stall_words import meaning_of
from lstmsim.analysis.timeline import MAIN, STATES, Timeline, owners
from lstmsim.model.figures import Words
from lstmsim.program.unit_names import is_unit
from lstmsim.studies.simulate.page.looks import HATCHES, LOOKS, hatched, job_class, state_class

if TYPE_CHECKING:
    from lstmsim.studies.simulate.run import Run

#: More spans than these are put into bins; so are spans that take more bytes. Rows times bins of a page.
MOST_SPANS, MOST_BYTES, _BINS = 2_000_000, 3_000_000, 50_000
#: Most rows of a page; more are left out, units other than main ones first.
MOST_ROWS = 1_000
#: Classes of rows, in the order in which sums stand side by side.
_MAIN, _THREAD, _UNIT, _PATH = range(4)
#: What a segment of the path looks like: work has the look of its job.
_PATH_LOOKS = {"latency": "hazard", "turn": "ready", "switch": "switch", "input": "input"}
_PATH_LOOKS |= dict.fromkeys(("arrival", "behind", "company"), "idle")

Numbers = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class _Spans:
    """Spans in order of (row, start), as columns of equal length; each kind a row of `kinds`.

    kinds: state, job, layer, why the next operation of the path waited, core; -1 for none. Shape (kinds, 5).
    """

    row: Numbers
    start: Numbers
    end: Numbers
    kind: Numbers
    step: Numbers
    kinds: Numbers


def explorer(
    timeline: Timeline, use: Use, words: Mapping[str, Words], path: PathTable | None = None, jobs: Numbers | None = None
) -> dict[str, Any]:
    """Give what the timeline's scripts read.

    use: of the timeline, for the strip over the whole run.
    words: of the machine.
    path: the critical path, a row of its own.
    jobs: with a path, for each task its job.
    """
    first, last = timeline.shown
    shown, left_out = shown_rows(timeline.rows, None, MOST_ROWS)
    names = [*STATES, *([] if path is None else [each.name for each in path.names])]
    rows = [[timeline.rows[at].name, _class_of(timeline.rows[at].kind), timeline.rows[at].core] for at in shown]
    spans = _of_timeline(timeline, shown)
    if path is not None and jobs is not None:
        spans = _with_path(spans, path, jobs, timeline.shown)
        rows.insert(0, ["critical path", _PATH, -1])
    packed, sizes, width = _packed(spans, len(rows), (first, last), names, timeline, path)
    return {
        "first": first,
        "last": last,
        "bin": width,
        "mhz": timeline.frequency_mhz,
        "unit": timeline.unit,
        "rows": rows,
        "jobs": timeline.jobs,
        "states": [[name, meaning_of(name, words)] for name in names],
        "held": [held_words(name, words) for name in HELD_BY],
        "looks": _looks(),
        "use": [use.edges.tolist(), (1000 * use.share).round().astype(int).tolist()],
        "columns": packed,
        "sizes": sizes,
        "spans": len(timeline),
        "left_out": left_out,
    }


def left_out_text(data: Mapping[str, Any]) -> str:
    """Say what a page with these data does not have; empty if it has all."""
    bins = (
        f"{data['spans']:,} spans are too many for a page: they are in bins of {data['bin']:,} cycles, which hold "
        "exact sums but no order. --trace-window A:B shows the single spans of a part."
    )
    return " ".join([bins] * (data["bin"] > 1) + [f"Not shown: {data['left_out']}."] * bool(data["left_out"]))


def path_of(run: Run, words: Mapping[str, Words]) -> tuple[PathTable, Numbers]:
    """Give the whole critical path of a run, and for each task its job."""
    index = TraceIndex(run.program, run.trace)
    table = PathTable(index, critical_path(run.program, run.trace, index), words)
    return table, owners(run.program, len(run.scenario.jobs))


def _class_of(kind: str) -> int:
    return _MAIN if kind == MAIN else _UNIT if is_unit(kind) else _THREAD


def _looks() -> list[list[Any] | None]:
    """Of each look its colours, and side and lines of its hatch; first those of jobs, then those of states."""
    known = hatched()
    pairs = (known[name] for name in (*map(job_class, range(LOOKS)), *map(state_class, STATES)))
    looks: list[list[Any] | None] = [[colours, *(HATCHES[hatch] if hatch else (0, ""))] for colours, hatch in pairs]
    looks[LOOKS + STATES.index("idle")] = None
    return looks


def _of_timeline(timeline: Timeline, shown: list[int]) -> _Spans:
    spans, place = timeline, np.full(len(timeline.rows), -1, dtype=np.int32)
    place[shown] = np.arange(len(shown))
    row = place[timeline.row]
    kept = row >= 0
    jobs, layers = len(timeline.jobs) + 1, int(spans.layer.max(initial=-1)) + 2
    kind = (spans.state[kept].astype(np.int64) * jobs + spans.job[kept] + 1) * layers + spans.layer[kept] + 1
    kind, known = _numbered(kind, len(STATES) * jobs * layers)
    none = np.full(len(known), -1)
    kinds = np.stack([known // layers // jobs, known // layers % jobs - 1, known % layers - 1, none, none], axis=1)
    return _Spans(row[kept], spans.start[kept], spans.end[kept], kind, spans.step[kept], kinds)


def _numbered(keys: Numbers, most: int) -> tuple[Numbers, Numbers]:
    """For each key, 0 to `most` - 1, its place among those that occur, and these in order."""
    if most > 4 * len(keys) + 1_000_000:
        known, place = np.unique(keys, return_inverse=True)
        return place.reshape(-1), known
    seen = np.zeros(most, dtype=bool)
    seen[keys] = True
    return (np.cumsum(seen) - 1)[keys], np.flatnonzero(seen)


def _with_path(spans: _Spans, path: PathTable, jobs: Numbers, shown: tuple[int, int]) -> _Spans:
    """Put the path, as row 0, in front of the other rows."""
    first, last = path.joined()
    start, end = np.maximum(path.path.start[first], shown[0]), np.minimum(path.path.end[last], shown[1])
    inside = end > start
    first, last, start, end = first[inside], last[inside], start[inside], end[inside]
    core = path.index.trace.issue("core")[path.path.row]
    name, job = len(STATES) + path.name[first], jobs[path.task[first]]
    table = np.stack([name, job, path.layer[first], path.path.held_by[last], core[first]], axis=1)
    known, kind = np.unique(table.reshape(-1, 5), axis=0, return_inverse=True)
    own = (np.zeros(len(first), dtype=np.int64), start, end, kind.reshape(-1), path.step[first], known)
    others = (spans.row + 1, spans.start, spans.end, spans.kind + len(known), spans.step, spans.kinds)
    return _Spans(*map(np.concatenate, zip(own, others, strict=True)))


def _packed(
    spans: _Spans, rows: int, shown: tuple[int, int], names: list[str], timeline: Timeline, path: PathTable | None
) -> tuple[str, list[list[int]], int]:
    """The columns as base64 with the length and the bytes of each, and the length of the bins; 1: single spans."""
    looks = _looks_of(spans.kinds, timeline, path)
    if len(spans.row) <= MOST_SPANS:
        packed, sizes = _compressed(spans, rows, shown[0], looks)
        if len(packed) <= MOST_BYTES:
            return packed, sizes, 1
    edges = window_edges(*shown, max(64, min(4096, _BINS // rows)))
    packed, sizes = _compressed(binned(spans, rows, edges), rows, shown[0], looks)
    return packed, sizes, int(edges[1] - edges[0])


def _looks_of(kinds: Numbers, timeline: Timeline, path: PathTable | None) -> Numbers:
    """The look of each kind."""
    _, colours = timeline.coloured
    names = [*STATES, *(_PATH_LOOKS.get(each.kind, "busy") for each in (() if path is None else path.names))]
    look = np.array([LOOKS + STATES.index(name) for name in names])[kinds[:, 0]]
    busy = np.append(colours % LOOKS, 0)[kinds[:, 1]]
    return np.where(look == LOOKS + STATES.index("busy"), busy, look)


def binned(spans: _Spans, rows: int, edges: Numbers) -> _Spans:
    """Put spans into bins: in each bin of a row the cycles of each kind lie one after the other, none is lost."""
    bins, kinds = len(edges) - 1, len(spans.kinds)
    low, high = (np.searchsorted(edges, each, side="right") - 1 for each in (spans.start, spans.end - 1))
    times = high - low + 1
    piece = np.repeat(np.arange(len(times)), times)
    inner = np.arange(len(piece)) - np.repeat(np.cumsum(times) - times, times)
    at = low[piece] + inner
    cycles = np.minimum(spans.end[piece], edges[at + 1]) - np.maximum(spans.start[piece], edges[at])
    keys, known = _numbered(
        (spans.row[piece].astype(np.int64) * bins + at) * kinds + spans.kind[piece], rows * bins * kinds
    )
    # sums below 2^53 are exact in floats
    length = np.bincount(keys, weights=cycles, minlength=len(known)).astype(np.int64)
    cell, kind = known // kinds, known % kinds
    before = np.cumsum(length) - length
    new = np.append(True, cell[1:] != cell[:-1])
    start = edges[cell % bins] + before - np.maximum.accumulate(np.where(new, before, 0))
    return replace(spans, row=cell // bins, start=start, end=start + length, kind=kind, step=np.full(len(cell), -1))


def _compressed(spans: _Spans, rows: int, first: int, looks: Numbers) -> tuple[str, list[list[int]]]:
    gap = spans.start.astype(np.int64)
    gap[1:] -= spans.end[:-1]
    heads = np.flatnonzero(np.append(True, spans.row[1:] != spans.row[:-1])) if len(gap) else np.zeros(0, dtype=int)
    gap[heads] = spans.start[heads] - first
    turn = np.diff(spans.step.astype(np.int64), prepend=0)
    columns = [
        np.bincount(spans.row, minlength=rows),
        gap,
        spans.end - spans.start,
        spans.kind,
        2 * np.abs(turn) - (turn < 0),
    ]
    state, *others = spans.kinds.T
    planes = [_planes(each) for each in [*columns, state, *(each + 1 for each in others), looks]]
    sizes = [[len(each[0]), len(each)] for each in planes]
    return base64.b64encode(zlib.compress(b"".join(part for each in planes for part in each), 4)).decode(), sizes


def _planes(column: Numbers) -> list[bytes]:
    """The bytes of a column of numbers from 0 on, the lowest of all numbers first, and as many as the largest needs."""
    count = max(1, -(-int(column.max(initial=0)).bit_length() // 8))
    parts = np.ascontiguousarray(column, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return [parts[:, at].tobytes() for at in range(count)]
