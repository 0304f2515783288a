"""What of a timeline a picture shows: chosen rows, a window of time, spans clipped and joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import InputError, Mistake
from lstmsim.metrics.timeline import STATES, Row, Timeline, is_unit

__all__ = ["ROW_LIMIT", "View", "view_of"]

#: More rows than this cannot be told apart on a page.
ROW_LIMIT = 120

_BUSY = STATES.index("busy")
_IDLE = STATES.index("idle")


@dataclass(frozen=True, eq=False)
class View:
    """Spans to draw, from cycle `start` to `end`: `row` indexes `rows`; `job` is -1 for everything but work.

    Neighbours that look the same are one span. `left_out` says in words which rows are not shown.
    """

    start_cycle: int
    end_cycle: int
    rows: tuple[Row, ...]
    cores: tuple[int, ...]
    left_out: str
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int64]
    job: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)

    def kinds(self) -> Iterator[tuple[int, int, int, NDArray[np.int64]]]:
        """(row, state, job, indices of the spans) for every combination that occurs, spans in the order of time."""
        if not len(self):
            return
        order = np.lexsort((self.start, self.job, self.state, self.row))
        keys = np.stack([self.row, self.state, self.job])[:, order]
        cuts = np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1
        for indices in np.split(order, cuts):
            first = indices[0]
            yield int(self.row[first]), int(self.state[first]), int(self.job[first]), indices


def view_of(timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None) -> View:
    """The part of a timeline to draw; windows and cores that it does not have are one `InputError`."""
    low, high, chosen = _window(timeline, start, end, cores)
    shown, left_out = _shown_rows(timeline.rows, chosen)
    place = np.full(len(timeline.rows) + 1, -1)
    place[shown] = np.arange(len(shown))
    row = place[timeline.row]
    seen = (row >= 0) & (timeline.end > low) & (timeline.start < high) & (timeline.state != _IDLE)
    state = timeline.state[seen].astype(np.int64)
    columns = {
        "row": row[seen],
        "start": np.maximum(timeline.start[seen], low),
        "end": np.minimum(timeline.end[seen], high),
        "state": state,
        "job": np.where(state == _BUSY, timeline.job[seen], -1),
    }
    rows = tuple(timeline.rows[number] for number in shown)
    return View(low, high, rows, chosen, left_out, **_joined(columns))


def _window(
    timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None
) -> tuple[int, int, tuple[int, ...]]:
    makespan, mistakes = timeline.makespan_cycles, []
    low = 0 if start is None else start
    high = makespan if end is None else min(end, makespan)
    known = sorted({row.core for row in timeline.rows})
    chosen = sorted(set(known if cores is None else cores))
    if makespan < 1 or not known:
        mistakes.append(Mistake("timeline", "nothing to draw: it has no cycles"))
    elif not 0 <= low < makespan:
        mistakes.append(Mistake("start", f"must be a cycle of the timeline, 0 to {makespan - 1}, got {low}"))
    elif high <= low:
        mistakes.append(Mistake("end", f"must be after the start {low}, got {end}"))
    for core in chosen:
        if core not in known and known:
            mistakes.append(Mistake("cores", f"no core {core} in this timeline, it has {_listed(known)}"))
    if not chosen and known:
        mistakes.append(Mistake("cores", f"choose at least one of {_listed(known)}"))
    if mistakes:
        raise InputError(mistakes)
    return low, high, tuple(chosen)


def _listed(cores: list[int]) -> str:
    """Core numbers, as a range where they are one."""
    whole = len(cores) > 2 and cores == list(range(cores[0], cores[-1] + 1))
    return f"{cores[0]} to {cores[-1]}" if whole else ", ".join(map(str, cores))


def _shown_rows(rows: tuple[Row, ...], cores: tuple[int, ...]) -> tuple[list[int], str]:
    """Numbers of the rows to draw: all of the cores, or fewer kinds of them, or the first; and what is left out."""
    wanted = [number for number, row in enumerate(rows) if row.core in cores]
    left_out = []
    units = sorted({row.kind for row in rows if is_unit(row.kind)})
    for kind in (*units, "thread"):
        if len(wanted) > ROW_LIMIT:
            fewer = [number for number in wanted if rows[number].kind != kind]
            if 0 < len(fewer) < len(wanted):
                left_out.append(f"{len(wanted) - len(fewer)} {kind} rows")
                wanted = fewer
    if len(wanted) > ROW_LIMIT:
        left_out.append(f"{len(wanted) - ROW_LIMIT} more {rows[wanted[-1]].kind} rows")
        wanted = wanted[:ROW_LIMIT]
    return wanted, " and ".join(left_out)


def _joined(columns: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """Spans that touch and look the same become one."""
    row, start, end, state, job = (columns[name] for name in ("row", "start", "end", "state", "job"))
    if not len(row):
        return columns
    same = (row[1:] == row[:-1]) & (start[1:] == end[:-1]) & (state[1:] == state[:-1]) & (job[1:] == job[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    last = np.append(first[1:], len(row)) - 1
    return {"row": row[first], "start": start[first], "end": end[last], "state": state[first], "job": job[first]}
