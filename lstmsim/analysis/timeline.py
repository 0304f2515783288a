"""The timeline: a trace as rows of named spans, or a window of it, and what pictures and pages show of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake, ProgramError
from lstmsim.base.records import record
from lstmsim.base.units import cycles_to_ms
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import Intervals, core_spans, issued_operations, issued_steps, named_cycles
from lstmsim.program.program import Program, Unit
from lstmsim.program.stall_reasons import SPAN_NAMES
from lstmsim.program.trace import Trace
from lstmsim.program.unit_names import MEMORY, is_unit, name_faults
from lstmsim.report.document import Document, grid
from lstmsim.report.figures_text import four_digits
from lstmsim.report.results import Forms, Table
from lstmsim.report.styles import JOB_STYLES

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
    index: number of the context, for the kind `thread`; of another unit 0, or if it has several instances, which
        each have a row, the number of the instance and 1 more. Several memories are numbered in the same way.
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
        """The name within the core: `array`, `thread 1`, `tail`, or of an instance of a unit `issue 0`."""
        if self.kind == "thread":
            return f"{self.kind} {self.index}"
        return f"{self.label} {self.index - 1}" if self.index else self.label

    @property
    def name(self) -> str:
        """The name for people: `core 0 array`, `core 0 thread 1`, `core 0 tail`. A memory belongs to no core."""
        if self.kind == MEMORY:
            return self.title
        return f"core {self.core}" if self.title == "core" else f"core {self.core} {self.title}"


#: The columns of a timeline, with the type of their numbers.
COLUMNS = dict.fromkeys(("row", "start", "end", "state", "job", "layer", "step"), "int32")
COLUMNS |= {"start": "int64", "end": "int64", "state": "int8"}


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

    def spans(self) -> Iterator[tuple[int, ...]]:
        """Yield the spans: row, start, end, state, job, layer, step."""
        # some at a time: numbers of Python take several times the memory of columns
        for part in range(0, len(self), 2**15):
            yield from zip(*(getattr(self, name)[part : part + 2**15].tolist() for name in COLUMNS), strict=True)


def timeline_records(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield each span with the names of its row, state and job. A value is None where there is none."""
    for row, start, end, state, job, layer, step in timeline.spans():
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


def _document(timeline: Timeline) -> Document:
    """Say what a timeline shows, and for each row how many spans and how many busy cycles it has."""
    rows, busy = [], timeline.state == STATES.index("busy")
    for number, row in enumerate(timeline.rows):
        own = timeline.row == number
        rows.append((row.name, int(own.sum()), int((timeline.end - timeline.start)[own & busy].sum())))
    ms = cycles_to_ms(timeline.makespan_cycles, timeline.frequency_mhz)
    whole = f"{timeline.makespan_cycles:,} cycles = {four_digits(ms)} ms"
    length = f"{timeline.shown_text} cycles" if timeline.window else whole
    headline = f"{timeline.chip}: {length}, {len(timeline):,} spans of {len(timeline.jobs):,} jobs"
    return Document.of(headline, grid(["<row", "spans", "busy cycles"], rows))


FORMS = Forms(timeline_json, _document, timeline_records)


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
    """Cut the cycles `start <= cycle < end` out of a timeline."""
    first, last = timeline.shown
    stop = last if end is None else min(end, last)
    if not first <= start < last:
        raise InputError(
            Mistake("window", f"must start at a cycle of the timeline, {first} to {last - 1}, got {start}")
        )
    if stop <= start:
        raise InputError(Mistake("window", f"must end after its start {start}, got {end}"))
    inside = (timeline.end > start) & (timeline.start < stop)
    columns = {name: getattr(timeline, name)[inside] for name in COLUMNS}
    columns |= {"start": np.maximum(columns["start"], start), "end": np.minimum(columns["end"], stop)}
    whole = (start, stop) == (0, timeline.makespan_cycles)
    return replace(timeline, **columns, window=None if whole else (start, stop))


def owners(program: Program, jobs: int) -> NDArray[np.int64]:
    """For each task of a program the number of its job, shape (tasks,); -1 for none."""
    result = np.arange(len(program.tasks), dtype=np.int64)
    if len(result) <= jobs:
        return result
    names = {task.name: number for number, task in reversed([*enumerate(program.tasks[:jobs])])}
    barriers = {task.starts: number for number, task in enumerate(program.tasks[:jobs]) if task.starts is not None}
    for number, task in enumerate(program.tasks[jobs:], jobs):
        owner = barriers.get(task.behind) if task.behind is not None else None
        owner = names.get(task.name, -1) if owner is None else owner
        barriers |= {barrier: owner for barrier in (task.starts, task.ends) if barrier is not None}
        result[number] = owner
    return result


Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Places:
    """For each task its job; for each row of the trace's issues its layer and time step. Extra last ones hold -1."""

    job: Numbers
    layer: Numbers
    step: Numbers

    @staticmethod
    def of(program: Program, trace: Trace, jobs: int) -> _Places:
        operations, index = issued_operations(program, trace)
        layers = np.array([each.place[0] if each.place else -1 for each in operations], dtype=np.int64)
        columns = owners(program, jobs), layers[index], issued_steps(program, trace)
        return _Places(*(np.append(each, -1) for each in columns))


def _table(
    row: int | Numbers, start: Numbers, end: Numbers, state: str | Numbers, job: Numbers, layer: Numbers, step: Numbers
) -> Numbers:
    """Spans, shape (columns, spans)."""
    table = np.empty((len(COLUMNS), len(start)), dtype=np.int64)
    states: int | Numbers = STATES.index(state) if isinstance(state, str) else state
    for index, column in enumerate((row, start, end, states, job, layer, step)):
        table[index] = column
    return table


def _joined(table: Numbers) -> Numbers:
    """Sort spans by (row, start), and join spans that follow without a gap and differ in nothing else."""
    table = table[:, np.lexsort((table[1], table[0]))]
    if not table.size:
        return table
    same = np.zeros(table.shape[1], dtype=bool)
    same[1:] = table[1, 1:] == table[2, :-1]
    for column in table[[0, 3, 4, 5, 6]]:
        same[1:] &= column[1:] == column[:-1]
    heads = np.flatnonzero(~same)
    joined = table[:, heads]
    joined[2] = table[2, np.append(heads[1:], len(same)) - 1]
    return joined


def _work(row: int | Numbers, spans: Intervals, state: str, places: _Places) -> Numbers:
    """Spans of one state, with the job, layer and step of their issues."""
    job, layer, step = places.job[spans.task], places.layer[spans.issue], places.step[spans.issue]
    return _table(row, spans.start, spans.end, state, job, layer, step)


def _core_table(program: Program, trace: Trace, core: int, unit: Unit, first: int, places: _Places) -> Numbers:
    """The spans of a core's main unit, with a row for each instance from row `first` on, then of its threads."""
    spans = core_spans(program, trace, core)
    tables = []
    for instance in range(unit.instances):
        named = named_cycles(program, trace, core, spans, instance)
        states = np.array([STATES.index(name) for name in named.names])[named.name]
        stalled = states != STATES.index("busy")
        start, end = named.edges[:-1][stalled], named.edges[1:][stalled]
        none = np.full(len(start), -1)
        tables.append(_table(first + instance, start, end, states[stalled], none, none, none))
        tables.append(_work(first + instance, spans.busy.of_instance(instance, unit.instances), "busy", places))
    for name, each in {"busy": spans.busy, **spans.waits}.items():
        tables.append(_work(first + unit.instances + each.context, each, name, places))
    return _joined(np.concatenate(tables, axis=1))


def _unit_table(trace: Trace, core: int, unit: int, instances: int, row: int, places: _Places) -> Numbers:
    """The spans of a unit other than the main one, with a row for each instance from row `row` on."""
    rows = trace.issues_on(core, unit)
    start = trace.issue("start")[rows]
    end = start + trace.issue("count")[rows] * trace.issue("cycles")[rows]
    own = row + trace.issue("context")[rows] % instances
    job = places.job[trace.issue("task")[rows]]
    return _joined(_table(own, start, end, "busy", job, places.layer[rows], places.step[rows]))


def _rows_of(core: int, kind: str, instances: int, unit: str = MAIN, before: int | None = None) -> list[Row]:
    """The rows of a unit: one, or one for each of several instances."""
    numbered = instances > 1 or before is not None
    return [Row(core, kind, (before or 0) + instance + 1 if numbered else 0, unit) for instance in range(instances)]


def _memories(program: Program) -> dict[tuple[int, int], int]:
    """Of each memory that has a row (its core, its unit) how many rows those before it have; empty for a single one."""
    before: dict[tuple[int, int], int] = {}
    rows = 0
    for index, core in enumerate(program.cores):
        for number, unit in enumerate(core.units):
            if core.shared and unit.shown and unit.name == MEMORY:
                before[index, number] = rows
                rows += unit.instances
    return before if len(before) > 1 else {}


def _require_names(program: Program, unit: str) -> None:
    faults = list(name_faults(program.cores))
    beside = {each.name for core in program.cores for at, each in enumerate(core.units) if at != core.accounted}
    if unit in beside or (unit != MAIN and not is_unit(unit)):
        faults.append(f"no main unit can be called {unit!r}: no other unit has its name, which is that of a unit")
    if faults:
        raise ProgramError("\n".join(faults))


def _rows_and_tables(program: Program, trace: Trace, jobs: int, unit: str) -> tuple[list[Row], list[Numbers]]:
    """The rows of all cores, and tables of their spans in the order of the rows."""
    places = _Places.of(program, trace, jobs)
    rows: list[Row] = []
    tables: list[Numbers] = []
    memories = _memories(program)
    for index, core in enumerate(program.cores):
        first = len(rows)
        main = None if core.shared else core.accounted
        if main is not None:
            rows += _rows_of(index, MAIN, core.units[main].instances, unit)
            rows += (Row(index, "thread", context) for context in range(core.contexts))
            tables.append(_core_table(program, trace, index, core.units[main], first, places))
        for number, other in enumerate(core.units):
            if other.shown and number != main:
                tables.append(_unit_table(trace, index, number, other.instances, len(rows), places))
                rows += _rows_of(index, other.name, other.instances, before=memories.get((index, number)))
    return rows, tables


def build_timeline(
    program: Program,
    trace: Trace,
    jobs: Sequence[str],
    chip: str,
    frequency_mhz: float,
    unit: str = MAIN,
    groups: Sequence[str] = (),
) -> Timeline:
    """Make the timeline of a run."""
    _require_names(program, unit)
    rows, tables = _rows_and_tables(program, trace, len(jobs), unit)
    columns: dict[str, Any] = {
        name: np.concatenate([table[at].astype(kind) for table in tables])
        for at, (name, kind) in enumerate(COLUMNS.items())
    }
    made = tuple(rows), tuple(jobs)
    return Timeline(chip, frequency_mhz, trace.makespan_cycles, *made, **columns, groups=tuple(groups))


def job_groups(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Name for each job what it has its colour from; empty: each job has its own."""
    if len(jobs) <= len(JOB_STYLES):
        return ()
    tenants = [job.tenant or job.name for job in jobs]
    ways = (tenants, [name.partition("/")[0] for name in tenants], [job.model.name for job in jobs])
    counts = [len(set(names)) for names in ways]
    chosen = next((at for at, count in enumerate(counts) if count <= len(JOB_STYLES)), counts.index(min(counts)))
    return () if counts[chosen] == len(jobs) else tuple(ways[chosen])


def named_groups(names: Sequence[str]) -> tuple[str, ...]:
    """`job_groups` where only names are known, as of kept programs: requests of an entry have its name and a number.

    >>> named_groups([f"{name} #{number}" for name in "ab" for number in range(9)])[8:10]
    ('a', 'b')
    >>> named_groups(["a #1", "a #2"])
    ()
    """
    if len(names) <= len(JOB_STYLES):
        return ()
    entries = tuple(re.sub(r" #\d+$", "", name) for name in names)
    return () if len(set(entries)) == len(names) else entries


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
