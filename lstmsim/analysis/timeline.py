"""The timeline: a trace as rows of named spans, or a window of it."""

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
from lstmsim.program.unit_names import MEMORY, beside_cores, is_unit, name_faults
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
        """The name for people: `core 0 array`, `core 0 tail`. A memory, or a link of devices, belongs to no core."""
        if beside_cores(self.kind):
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
