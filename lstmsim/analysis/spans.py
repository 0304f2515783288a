"""What pictures, pages and counters show of a timeline: its spans in rows, and windows of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import MAIN, STATES, Row, Timeline
from lstmsim.base.wording import counted
from lstmsim.program.unit_names import is_unit

#: Most rows of a picture: a reader cannot tell more rows apart.
ROW_LIMIT = 120
#: Most kinds of units that are named where their rows are left out.
_KINDS_NAMED = 3

_BUSY = STATES.index("busy")
_IDLE = STATES.index("idle")


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans to draw, as columns of equal length, and their rows. Idle cycles have no span; work without a job has -1.

    left_out: which rows are not shown, in words.
    colour: for each job of the timeline the index in `names` of what has its colour: the job, or what it belongs to.
    """

    rows: tuple[Row, ...]
    left_out: str
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int64]
    job: NDArray[np.int64]
    colour: NDArray[np.int64]
    names: tuple[str, ...]

    def colours(self) -> list[int]:
        """The places of those names whose work is shown."""
        return [int(each) for each in np.unique(self.colour[self.jobs_shown])]

    @property
    def jobs_shown(self) -> NDArray[np.int64]:
        """The jobs whose work is shown."""
        # few values: to count them takes a tenth of the time of sorting or hashing
        return np.flatnonzero(np.bincount(self.job + 1, minlength=1)[1:]).astype(np.int64)

    def legend(self, most: int = 16) -> tuple[list[tuple[int, str, int]], int]:
        """Of the first colours the place, the name and how many jobs are shown in it; and how many more there are."""
        colours = self.colours()
        shown = colours if len(colours) <= most else colours[: most // 2]
        counts = np.bincount(self.colour[self.jobs_shown], minlength=len(self.names))
        return [(each, self.names[each], int(counts[each])) for each in shown], len(colours) - len(shown)

    @property
    def waits(self) -> list[str]:
        """The names of states that occur, work left out."""
        counts = np.bincount(self.state, minlength=len(STATES))
        return [name for name, count in zip(STATES, counts, strict=True) if count and name != "busy"]

    def colour_of(self, job: int) -> int:
        """The place of a job's name; work without a job (as in traces of other makers) looks like the first."""
        return int(self.colour[job]) if job >= 0 else 0

    def __len__(self) -> int:
        return len(self.start)

    def kinds(self) -> Iterator[tuple[int, int, int, NDArray[np.int64]]]:
        """Yield (row, state, job, places of spans) of every combination that occurs. Spans are in order of time."""
        if not len(self):
            return
        order = np.lexsort((self.start, self.job, self.state, self.row))
        keys = np.stack([self.row, self.state, self.job])[:, order]
        cuts = np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1
        for indices in np.split(order, cuts):
            first = indices[0]
            yield int(self.row[first]), int(self.state[first]), int(self.job[first]), indices


def spans_of(timeline: Timeline, window: tuple[int, int] | None = None, cores: Sequence[int] | None = None) -> Spans:
    """The spans of a timeline to draw."""
    low, high = window or timeline.shown
    shown, left_out = shown_rows(timeline.rows, cores)
    place = np.full(len(timeline.rows) + 1, -1)
    place[shown] = np.arange(len(shown))
    row = place[timeline.row]
    seen = (row >= 0) & (timeline.end > low) & (timeline.start < high) & (timeline.state != _IDLE)
    row, state = row[seen].astype(np.int64), timeline.state[seen].astype(np.int64)
    start, end = np.maximum(timeline.start[seen], low), np.minimum(timeline.end[seen], high)
    job = np.where(state == _BUSY, timeline.job[seen], -1).astype(np.int64)
    if len(row):
        same = (row[1:] == row[:-1]) & (start[1:] == end[:-1]) & (state[1:] == state[:-1]) & (job[1:] == job[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~same]))
        last = np.append(first[1:], len(row)) - 1
        row, start, end, state, job = row[first], start[first], end[last], state[first], job[first]
    names, colour = timeline.coloured
    return Spans(tuple(timeline.rows[number] for number in shown), left_out, row, start, end, state, job, colour, names)


def shown_rows(rows: tuple[Row, ...], cores: Sequence[int] | None, most: int = ROW_LIMIT) -> tuple[list[int], str]:
    """Give the numbers of the rows to draw, at most `most`, and in words what is left out."""
    wanted = [number for number, row in enumerate(rows) if cores is None or row.core in cores]
    left_out: dict[str, int] = {}
    units = sorted({row.kind for row in rows if is_unit(row.kind)})
    threads = sum(1 for number in wanted if rows[number].kind == "thread")
    others = sum(1 for number in wanted if rows[number].kind in units)
    for kind in ("thread", *units) if len(wanted) - threads <= most < len(wanted) - others else (*units, "thread"):
        if len(wanted) > most:
            fewer = [number for number in wanted if rows[number].kind != kind]
            if 0 < len(fewer) < len(wanted):
                left_out[kind] = len(wanted) - len(fewer)
                wanted = fewer
    texts = [f"{count} {kind} rows" for kind, count in left_out.items()]
    kinds = [kind for kind in left_out if kind != "thread"]
    if len(kinds) > _KINDS_NAMED:
        threads = left_out.get("thread", 0)
        texts = [f"{threads} thread rows"] if threads else []
        texts.append(f"{sum(left_out[kind] for kind in kinds)} rows of {len(kinds)} other units")
    if len(wanted) > most:
        texts.append(f"{len(wanted) - most} more {rows[wanted[-1]].label} rows")
        wanted = wanted[:most]
    return wanted, " and ".join(texts)


def window_edges(start: int, end: int, windows: int) -> NDArray[np.int64]:
    """Cut the cycles from `start` to `end` into about `windows` windows of equal whole length; the last may be shorter.

    Returns the edges of the windows, in cycles.
    """
    length = max(1, -(-(end - start) // windows))
    return np.append(np.arange(start, end, length, dtype=np.int64), np.int64(end))


#: So many windows at least of a time step show what happens within it; fewer would show a wave that is not there.
_WINDOWS_OF_STEP = 4


def step_edges(timeline: Timeline, start: int, end: int, windows: int) -> tuple[NDArray[np.int64], bool]:
    """Cut cycles into windows of at least one length that hold whole time steps, where steps are short.

    A mean over parts of steps that come again would draw a wave that is not there. Of steps side by side the longest
    count. Where steps are long, or there are none, windows have that length.

    timeline: whose steps count.
    start, end, windows: as of `window_edges`, which gives the length.

    Returns the edges of the windows, and whether some of them are those of steps.
    """
    plain = window_edges(start, end, windows)
    length = int(plain[1] - plain[0]) if len(plain) > 1 else 1
    began, step, layer = _steps(timeline, start, end, _WINDOWS_OF_STEP * length)
    if not len(began):
        return plain, False
    edges = [start]
    while (after := edges[-1] + length) < end:
        near = slice(*np.searchsorted(began, [after, after + _WINDOWS_OF_STEP * length]))
        if near.start < near.stop:
            longest = layer[near][np.argmax(step[near])]
            after = min(int(began[near][np.argmax(layer[near] == longest)]), end)
        edges.append(after)
    return np.array([*edges, end][: len(edges) + (edges[-1] < end)], dtype=np.int64), True


def _steps(timeline: Timeline, low: int, high: int, below: int) -> tuple[NDArray[np.int64], ...]:
    """The steps of layers that begin between two cycles and are shorter than `below`: begin, length, and the layer.

    The end of a layer's last step stands there, too.
    """
    main = np.array([row.kind == MAIN for row in timeline.rows], dtype=bool)
    issues = main[timeline.row] & (timeline.state == _BUSY) & (timeline.job >= 0) & (timeline.step >= 0)
    issues &= (timeline.start >= low) & (timeline.start < high)
    # layers of a job need not go on together
    layer = timeline.layer[issues].astype(np.int64) + 1
    layer += timeline.job[issues].astype(np.int64) * (layer.max(initial=0) + 1)
    numbers = layer << 32 | timeline.step[issues]
    known, place = np.unique(numbers, return_inverse=True)
    if len(known) < 2:
        return known[:0], known[:0], known[:0]
    began = np.full(len(known), high, dtype=np.int64)
    np.minimum.at(began, place, timeline.start[issues])
    step = np.where(np.diff(known) == 1, np.diff(began), 0)
    # the last one of a layer is taken to be as long as the one before
    step = np.append(step, 0)
    step[1:] = np.where(step[1:] > 0, step[1:], step[:-1])
    short = (step > 0) & (step < below)
    began, step, owner = began[short], step[short], known[short] >> 32
    # where the last one ends
    last = np.diff(owner, append=-1) != 0
    began, step, owner = (np.append(a, b[last]) for a, b in ((began, began + step), (step, step), (owner, owner)))
    order = np.argsort(began, kind="stable")
    return began[order], step[order], owner[order]


def covered_cycles(start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the cycles of each window that lie inside a span. Their sum is the total length of the spans.

    start, end: cycles of the spans; the spans are sorted and do not overlap.
    edges: cycles at which windows begin and end.
    """
    if not len(start):
        return np.zeros(len(edges) - 1, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(end - start)])
    last = np.searchsorted(start, edges, side="right") - 1
    inside = np.minimum(edges, end[last]) - start[last]
    covered: NDArray[np.int64] = np.diff(np.where(last < 0, 0, before[last] + inside))
    return covered


def busy_windows(timeline: Timeline, edges: NDArray[np.int64]) -> dict[int, NDArray[np.float64]]:
    """For each core the fraction of each window, 0 to 1, in which the core's main unit issued."""
    lengths = np.diff(edges)
    ways: dict[int, list[NDArray[np.float64]]] = {}
    for number, row in enumerate(timeline.rows):
        if row.kind == MAIN:
            mine = (timeline.row == number) & (timeline.state == _BUSY)
            own = covered_cycles(timeline.start[mine], timeline.end[mine], edges) / lengths
            ways.setdefault(row.core, []).append(own)
    return {core: own[0] if len(own) == 1 else np.mean(own, axis=0) for core, own in ways.items()}


@dataclass(frozen=True, eq=False)
class Use:
    """How busy main units were over time, in windows.

    edges: cycles at which windows begin and end.
    share: mean of the cores' main units in each window, 0 to 1.
    cores: how many have a main unit.
    window_cycles: length of the windows, the last excepted; where they hold whole time steps, the least.
    on_steps: whether some windows hold whole time steps.
    """

    edges: NDArray[np.int64]
    share: NDArray[np.float64]
    cores: int
    window_cycles: int
    on_steps: bool

    @property
    def mean(self) -> float:
        """The share of all windows together."""
        return float(np.average(self.share, weights=np.diff(self.edges)))

    @property
    def window(self) -> str:
        """The length of the windows in words."""
        return counted(self.window_cycles, "cycle")


def use_over_time(
    timeline: Timeline, shown: tuple[int, int] | None = None, windows: int = 240, cores: Sequence[int] | None = None
) -> Use:
    """Give how busy main units were, in windows that show no wave where time steps are alike.

    timeline: whose units.
    shown: first cycle, and the cycle behind the last; None: all that the timeline shows.
    windows: about how many.
    cores: whose main units count; None: all.
    """
    first, last = shown or timeline.shown
    last = max(first + 1, last)
    edges, on_steps = step_edges(timeline, first, last, windows)
    by_core = [own for core, own in busy_windows(timeline, edges).items() if cores is None or core in cores]
    share = np.mean(by_core, axis=0) if by_core else np.zeros(len(edges) - 1)
    plain = window_edges(first, last, windows)
    return Use(edges, share, len(by_core), int(plain[1] - plain[0]), on_steps)
