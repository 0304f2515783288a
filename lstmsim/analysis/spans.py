"""Builds the timeline of a trace: rows of named spans, the jobs whose work they are, and the colours of jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import MAIN, STATES, Row, Timeline
from lstmsim.base.errors import ProgramError
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import Intervals, core_spans, issued_operations, issued_steps, named_cycles
from lstmsim.program.program import Program, Unit
from lstmsim.program.trace import Trace
from lstmsim.program.unit_names import MEMORY, is_unit, name_faults
from lstmsim.report.looks import JOB_STYLES


def owners(program: Program, jobs: int) -> NDArray[np.int64]:
    """For each task of a program the number of its job, shape (tasks,); -1 for none."""
    result = np.arange(len(program.tasks), dtype=np.int64)
    if len(result) <= jobs:
        return result
    names = {task.name: number for number, task in reversed([*enumerate(program.tasks[:jobs])])}
    gates = {task.starts: number for number, task in enumerate(program.tasks[:jobs]) if task.starts is not None}
    for number, task in enumerate(program.tasks[jobs:], jobs):
        owner = gates.get(task.behind) if task.behind is not None else None
        owner = names.get(task.name, -1) if owner is None else owner
        gates |= {gate: owner for gate in (task.starts, task.ends) if gate is not None}
        result[number] = owner
    return result


#: Columns of a table that has one row for each span.
_COLUMNS = ("row", "start", "end", "state", "job", "layer", "step")
Table = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Places:
    """For each row of the trace's issues its layer and time step. An extra last row holds -1."""

    layer: Table
    step: Table

    @staticmethod
    def of(program: Program, trace: Trace) -> _Places:
        operations, index = issued_operations(program, trace)
        layers = np.array([each.place[0] if each.place else -1 for each in operations], dtype=np.int64)
        return _Places(np.append(layers[index], -1), np.append(issued_steps(program, trace), -1))


def _table(
    row: int | Table, start: Table, end: Table, state: str | Table, job: Table, layer: Table, step: Table
) -> Table:
    table = np.empty((len(start), len(_COLUMNS)), dtype=np.int64)
    states: int | Table = STATES.index(state) if isinstance(state, str) else state
    for index, column in enumerate((row, start, end, states, job, layer, step)):
        table[:, index] = column
    return table


def _joined(table: Table) -> Table:
    """Sort spans by (row, start), and join spans that follow without a gap and differ in nothing else."""
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    if not len(table):
        return table
    same = np.zeros(len(table), dtype=bool)
    same[1:] = (table[1:, 1] == table[:-1, 2]) & np.all(np.delete(table[1:] == table[:-1], (1, 2), axis=1), axis=1)
    heads = np.flatnonzero(~same)
    joined = table[heads].copy()
    joined[:, 2] = table[np.append(heads[1:], len(table)) - 1, 2]
    return joined


def _work(row: int | Table, spans: Intervals, state: str, places: _Places) -> Table:
    """Spans of one state, with the job, layer and step of their issues."""
    return _table(row, spans.start, spans.end, state, spans.task, places.layer[spans.issue], places.step[spans.issue])


def _core_tables(program: Program, trace: Trace, core: int, unit: Unit, first: int, places: _Places) -> list[Table]:
    """The spans of a core's main unit, with a row for each way from row `first` on, and behind them of its threads."""
    spans = core_spans(program, trace, core)
    tables = []
    for way in range(unit.ways):
        named = named_cycles(program, trace, core, spans, way)
        states = np.array([STATES.index(name) for name in named.names])[named.name]
        stalled = states != STATES.index("busy")
        start, end = named.edges[:-1][stalled], named.edges[1:][stalled]
        none = np.full(len(start), -1)
        tables.append(_table(first + way, start, end, states[stalled], none, none, none))
        tables.append(_work(first + way, spans.busy.of_way(way, unit.ways), "busy", places))
    for name, each in {"busy": spans.busy, **spans.waits}.items():
        tables.append(_work(first + unit.ways + each.context, each, name, places))
    return tables


def _unit_table(trace: Trace, core: int, unit: int, ways: int, row: int, places: _Places) -> Table:
    """The spans of a unit beside the main one, with a row for each way from row `row` on."""
    rows = np.flatnonzero((trace.issue("core") == core) & (trace.issue("unit") == unit))
    start = trace.issue("start")[rows]
    end = start + trace.issue("count")[rows] * trace.issue("cycles")[rows]
    own = row + trace.issue("context")[rows] % ways
    return _table(own, start, end, "busy", trace.issue("task")[rows], places.layer[rows], places.step[rows])


def _rows_of(core: int, kind: str, ways: int, unit: str = MAIN, before: int | None = None) -> list[Row]:
    """The rows of a unit: one, or one for each of several ways."""
    numbered = ways > 1 or before is not None
    return [Row(core, kind, (before or 0) + way + 1 if numbered else 0, unit) for way in range(ways)]


def _memories(program: Program) -> dict[tuple[int, int], int]:
    """Of each memory that has a row (its core, its unit) how many rows those before it have; empty for a single one."""
    before: dict[tuple[int, int], int] = {}
    rows = 0
    for index, core in enumerate(program.cores):
        for number, unit in enumerate(core.units):
            if core.shared and unit.shown and unit.name == MEMORY:
                before[index, number] = rows
                rows += unit.ways
    return before if len(before) > 1 else {}


def _require_names(program: Program, unit: str) -> None:
    faults = list(name_faults(program.cores))
    beside = {each.name for core in program.cores for at, each in enumerate(core.units) if at != core.accounted}
    if unit in beside or (unit != MAIN and not is_unit(unit)):
        faults.append(f"no main unit can be called {unit!r}: no other unit has its name, which is that of a unit")
    if faults:
        raise ProgramError("\n".join(faults))


def _rows_and_tables(program: Program, trace: Trace, unit: str) -> tuple[list[Row], list[Table]]:
    """The rows of all cores, and tables of their spans."""
    places = _Places.of(program, trace)
    rows: list[Row] = []
    tables: list[Table] = []
    memories = _memories(program)
    for index, core in enumerate(program.cores):
        first = len(rows)
        main = None if core.shared else core.accounted
        if main is not None:
            rows += _rows_of(index, MAIN, core.units[main].ways, unit)
            rows += (Row(index, "thread", context) for context in range(core.contexts))
            tables += _core_tables(program, trace, index, core.units[main], first, places)
        for number, other in enumerate(core.units):
            if other.shown and number != main:
                tables.append(_unit_table(trace, index, number, other.ways, len(rows), places))
                rows += _rows_of(index, other.name, other.ways, before=memories.get((index, number)))
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
    """Make the timeline of a run.

    Each core has a row for its accounted unit (the main unit), one for each thread, and one for each other shown unit.
    A shared core (a memory), and one without a main unit, has a row for each shown unit. A unit with several ways has a
    row for each way.

    program, trace: the lowered scenario and its run.
    jobs: names of the jobs; further tasks of the program are shown as the jobs whose work they do.
    chip: name of the chip.
    frequency_mhz: clock of the chip.
    unit: what people call the main unit of a core; no other unit has this name.
    groups: for each job the name of what it has its colour from; empty: each job has its own.
    `ProgramError` if a unit has a name that traces cannot hold.

    >>> from lstmsim.engines import run
    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(0, count=3), Operation(1, needs=(Dependence(0, 5),))))
    >>> core = Core(0, (Unit("array", "coarse"), Unit("tail", "fifo")))
    >>> program = Program((core,), (Task("t", ((0, (Phase(body, 1),)),), (), (0,)),))
    >>> timeline = build_timeline(program, run(program), ["t"], "chip", 260)
    >>> [(timeline.rows[r].name, s, e, STATES[k]) for r, s, e, k in zip(
    ...     *(column.tolist() for column in (timeline.row, timeline.start, timeline.end, timeline.state)))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('core 0 array', 0, 3, 'busy'), ('core 0 array', 3, 8, 'drain'), ('core 0 thread 0', 0, 3, 'busy'),
     ('core 0 thread 0', 3, 8, 'drain'), ('core 0 tail', 7, 8, 'busy')]
    """
    _require_names(program, unit)
    rows, tables = _rows_and_tables(program, trace, unit)
    table = np.concatenate(tables)
    job_column = _COLUMNS.index("job")
    whose = np.append(owners(program, len(jobs)), -1)
    table[:, job_column] = whose[table[:, job_column]]
    table = _joined(table)
    row, start, end, state, job, layer, step = table.T
    return Timeline(
        chip=chip,
        frequency_mhz=frequency_mhz,
        makespan_cycles=trace.makespan_cycles,
        rows=tuple(rows),
        jobs=tuple(jobs),
        row=row.astype(np.int32),
        start=start.copy(),
        end=end.copy(),
        state=state.astype(np.int8),
        job=job.astype(np.int32),
        layer=layer.astype(np.int32),
        step=step.astype(np.int32),
        groups=tuple(groups),
    )


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
