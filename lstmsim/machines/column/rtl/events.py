"""What the log of a generated NPU must say, read off the trace of its simulation; and what a run never did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from lstmsim.machines.column.rtl.plan import CorePlan, Design, StageRow
from lstmsim.machines.column.shape import ARRAY, EXCHANGE, depths
from lstmsim.machines.rtl import EVENT_KINDS, Event, EventKind
from lstmsim.model.cell import Cell, segments
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers, Values
from lstmsim.program.operations import Operation
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

#: States of a kind of cell are ordered after those of the kinds before it; a cell has fewer.
_KIND_SHIFT = 10


class _Told(NamedTuple):
    """An event and what its place in the log follows from: cycle, kind, then what orders events of one kind."""

    order: tuple[int, ...]
    event: Event


class Issued(NamedTuple):
    """A row of the trace's issues."""

    start: int  # start, cycles, issues: when the first of its issues began, how long each takes, how many they are
    cycles: int
    issues: int
    core: int  # where
    unit: int  # of the core
    context: int  # the thread
    job: int  # number of the job
    model: int  # number of the part of its model that ran there
    step: int  # number of the step, in the order of computing
    operation: Operation
    before: int  # how many issues of the same operation came before


def events(
    design: Design,
    program: Program,
    trace: Trace,
    names: Sequence[Sequence[str]],
    runs: Mapping[int, NetworkRun] | None,
    values: Mapping[int, Values] | None = None,
) -> tuple[Event, ...]:
    """Give the events of a simulated run in the order of the log."""
    jobs = list(_of_jobs(design, trace))
    reasons = (
        (core, cycle, name) for core, own in enumerate(names[: len(design.cores)]) for cycle, name in enumerate(own)
    )
    reported = [*jobs, *(_reported(design, "C", cycle, core, 0, name) for core, cycle, name in reasons)]
    # the log ends with the last job; a state for which no step comes may be there later
    end = max((each.event.cycle for each in jobs), default=0)
    for issued in issued_rows(design, program, trace):
        if issued.unit == ARRAY:
            reported += _tiles(design, issued)
        else:
            reported += _turns(design, issued, runs)
            if values is not None:
                own = values[design.jobs[issued.job].index]
                reported += (each for each in _within(design, issued, own) if each.event.cycle < end)
    return tuple(each.event for each in sorted(reported, key=itemgetter(0)))


def _reported(design: Design, kind: EventKind, cycle: int, core: int, order: int, *fields: int | str) -> _Told:
    """An event, with its core as the last field where there are several."""
    where = (core,) if len(design.cores) > 1 else ()
    # jobs are admitted in posting order, whatever their cores
    first, second = (order, core) if kind == "A" else (core, order)
    return _Told((cycle, EVENT_KINDS.index(kind), first, second), Event(kind, cycle, (*fields, *where)))


def _of_jobs(design: Design, trace: Trace) -> Iterator[_Told]:
    """Admissions and finishes."""
    columns = [trace.task(name).tolist() for name in ("core", "context", "admitted", "finish")]
    slots = zip(*(trace.thread_slot(name).tolist() for name in ("task", "core", "context")), strict=True)
    others: dict[int, list[tuple[int, int]]] = {}
    for task, core, context in slots:
        # the memory has threads, too
        if core < len(design.cores):
            others.setdefault(task, []).append((core, context))
    for number, job in enumerate(design.jobs[: design.posted]):
        core, context, admitted, finish = (column[job.index] for column in columns)
        for member_core, member_context in ((core, context), *others.get(job.index, ())):
            yield _reported(design, "A", admitted, member_core, number, member_context, number)
        yield _reported(design, "F", finish, core, context, number)


def issued_rows(design: Design, program: Program, trace: Trace) -> Iterator[Issued]:
    """Yield the rows of the trace's issues with their operations."""
    numbers = {job.index: number for number, job in enumerate(design.jobs[: design.posted])}
    members = [trace.spread(job.index) if job.members == 1 else job.members for job in design.jobs[: design.posted]]
    bodies = _bodies(program, trace)
    before: dict[tuple[int, int, int, int], int] = {}
    columns = ("start", "cycles", "count", "core", "unit", "context", "task", "phase", "iteration", "operation")
    rows = zip(*(trace.issue(name).tolist() for name in columns), strict=True)
    for start, cycles, count, core, unit, context, task, phase, iteration, operation in rows:
        key = (task, phase, iteration, operation)
        first = before.get(key, 0)
        before[key] = first + count
        what = bodies[task][phase][operation]
        if unit != EXCHANGE and core < len(design.cores):
            job = numbers[task]
            who = design.member(job, members[job], what.member)
            yield Issued(start, cycles, count, core, unit, context, job, who.model, iteration, what, first)


def _bodies(program: Program, trace: Trace) -> list[list[Sequence[Operation]]]:
    """For each task the operations of its phases; equal bodies are listed once."""
    made: dict[int, Sequence[Operation]] = {}
    bodies = []
    for task, core in enumerate(trace.task("core").tolist()):
        phases = program.tasks[task].phases(program.cores[core].kind, trace.spread(task))
        for phase in phases:
            if id(phase.body) not in made:
                made[id(phase.body)] = tuple(phase.body.operations)
        bodies.append([made[id(phase.body)] for phase in phases])
    return bodies


def _row(design: Design, issued: Issued) -> StageRow:
    """The row of the program that an operation belongs to."""
    program = design.cores[issued.core].programs[issued.model]
    assert program is not None, "the job ran there"
    layer, direction, stage = issued.operation.place[0], issued.operation.place[1], issued.operation.place[4]
    return next(row for row in program.stages if (row.layer, row.direction, row.stage) == (layer, direction, stage))


@lru_cache(256)
def _groups(row: StageRow) -> tuple[tuple[int, int], ...]:
    """For each column group of the stage's matrix (x, h, then others) what the log calls its vector, and its number."""
    in_matrix = sorted(row.reads, key=lambda read: {1: 0, 0: 1}.get(read.code, read.code))
    return tuple((read.code, group) for read in in_matrix for group in range(read.groups))


def _tiles(design: Design, issued: Issued) -> Iterator[_Told]:
    """The tiles of a run: of neighbouring column groups, or of neighbouring row blocks."""
    row, plan = _row(design, issued), design.cores[issued.core]
    block, group = issued.operation.place[2:4]
    by_block = plan.core.block_order == "column"
    for number in range(issued.issues):
        ahead = issued.before + number
        of_x, place = _groups(row)[group + (0 if by_block else ahead)]
        fields = (issued.context, issued.job, row.number, issued.step, block + (ahead if by_block else 0), of_x, place)
        yield _reported(design, "I", issued.start + number, issued.core, 0, *fields)


def _turns(design: Design, issued: Issued, runs: Mapping[int, NetworkRun] | None) -> Iterator[_Told]:
    """The turns of a row block in the tail, and what becomes visible of h."""
    for turn in range(issued.cycles):
        yield _reported(design, "T", issued.start + turn, issued.core, 0)
    row = _row(design, issued)
    segment = row.segments[issued.operation.place[5]]
    if runs is not None and any(each.slot == 0 for each in segment.writes):
        yield from _vectors(design, issued, row, runs[design.jobs[issued.job].index])


def _vectors(design: Design, issued: Issued, row: StageRow, run: NetworkRun) -> Iterator[_Told]:
    """The elements of h that a row block makes visible, turn by turn, as long after it as the program's results are."""
    plan, job = design.cores[issued.core], design.jobs[issued.job]
    h = run.passes[row.layer][row.direction].h[job.steps - 1 - issued.step if row.backward else issued.step]
    for turn, units in _units(issued, row, plan):
        first = row.first_unit
        values = h[first + units.start : first + units.stop].tolist()
        word = _side_by_side(values, plan.core.tail_width, design.precision.vector_bits)
        cycle = issued.start + turn + issued.operation.result_cycles - (issued.cycles - 1)
        fields = (issued.job, row.number, issued.step, units.start, len(values), word)
        yield _reported(design, "H", cycle, issued.core, row.kind, *fields)


def _units(issued: Issued, row: StageRow, plan: CorePlan) -> Iterator[tuple[int, range]]:
    """For each turn of a row block its units."""
    block, width = issued.operation.place[2], plan.core.tail_width
    end = min((block + 1) * row.units, row.unit_count)
    for turn in range(issued.cycles):
        first = block * row.units + turn * width
        yield turn, range(first, min(first + width, end))


def _within(design: Design, issued: Issued, values: Values) -> Iterator[_Told]:
    """The adapted sums of each turn, and each state at the end of the cycle in which it is computed."""
    plan, precision, row = design.cores[issued.core], design.precision, _row(design, issued)
    own, cell = values[row.layer][row.direction], plan.kinds[row.kind].cell
    width, segment = plan.core.tail_width, row.segments[issued.operation.place[5]]
    sums = [own[each.name][issued.step] for each in cell.stages[row.stage].sums] if not segment.index else []
    apart = [0] * (plan.sums - len(sums))
    for turn, units in _units(issued, row, plan):
        fields = (issued.job, row.number, issued.step, units.start, len(units))
        if sums:
            bits = precision.tail_bits
            own_units = range(row.first_unit + units.start, row.first_unit + units.stop)
            numbers = [value for unit in own_units for value in [*(int(each[unit]) for each in sums), *apart]]
            word = _side_by_side(numbers, width * plan.sums, bits)
            yield _reported(design, "S", issued.start + turn, issued.core, 0, *fields, word)
        for state, (giver, bits) in _states(cell, segment.lane_segment, precision).items():
            depth = depths(cell, vars(plan.core.latency), width).get(giver, 0)
            first = row.first_unit
            word = _side_by_side([int(own[giver][issued.step][first + unit]) for unit in units], width, bits)
            cycle = issued.start + turn + max(0, depth - 1)
            yield _reported(design, "V", cycle, issued.core, row.kind << _KIND_SHIFT | state, *fields, state, word)


@lru_cache(256)
def _states(cell: Cell, segment: int, precision: Precision) -> Mapping[int, tuple[str, int]]:
    """The states that a segment gives and that nodes of the next step read: number, node, bits."""
    own = segments(cell)[segment]
    computed = {each.name for each in own.nodes}
    if not own.index:
        computed |= {each.name for each in cell.stages[own.stage].sums}
    # what only scalars read is one number for all units
    users = [node for each in segments(cell) for node in (*each.nodes, *each.reductions)]
    read = {cell.states[name] for node in users for name in node.sources if name in cell.states}
    vectors = {each.name for each in cell.nodes if each.operation == "quantize"}
    numbered = enumerate(dict.fromkeys(cell.states.values()))
    return {
        number: (giver, precision.vector_bits if giver in vectors else precision.state_bits)
        for number, giver in numbered
        if giver in computed & read
    }


def _side_by_side(values: Sequence[int], count: int, bits: int) -> str:
    """So many numbers of so many bits in hexadecimal, the first one in the lowest bits, those not given as 0."""
    mask = (1 << bits) - 1
    word = sum((int(value) & mask) << (place * bits) for place, value in enumerate(values))
    return f"{word:0{-(-count * bits // 4)}x}"


#: Fields of each kind of events; where there are several cores, the core stands after them.
_FIELDS: Mapping[EventKind, int] = {"A": 2, "I": 7, "T": 0, "H": 6, "F": 1, "S": 6, "V": 7, "C": 1}


def words(design: Design, event: Event) -> str:
    """Say the fields of an event in words; empty for an event without fields."""
    most = _FIELDS[event.kind]
    core = f"core {event.fields[most]} " if len(event.fields) > most else ""
    return (core + _words(design, event.kind, event.fields[:most])).strip()


def _words(design: Design, kind: EventKind, fields: Sequence[int | str]) -> str:
    if kind in "TC":
        return " ".join(map(str, fields))
    if kind == "F":
        return _job(design, fields[0])
    if kind == "A":
        return f"thread {fields[0]} {_job(design, fields[1])}"
    if kind == "I":
        thread, job, number, step, block, of_x, group = fields
        row = _known_row(design, job, number)
        names = {} if row is None else {read.code: read.vector for read in row.reads}
        vector = names.get(of_x, of_x) if isinstance(of_x, int) else of_x
        where = f"{_pass(design, job, number)} step {step} block {block} of {vector}, group {group}"
        return f"thread {thread} {_job(design, job)} {where}"
    job, number, step, first, count, *state, word = fields
    what = {"H": f"{count} elements of h", "S": f"adapted sums of {count} units"}
    named = what.get(kind) or f"state {state[0]} of {count} units"
    return f"{_job(design, job)} {_pass(design, job, number)} step {step}, {named} from {first} on: {word}"


def _job(design: Design, number: int | str) -> str:
    known = isinstance(number, int) and 0 <= number < len(design.jobs)
    return f"job {design.jobs[int(number)].name if known else number}"


def _pass(design: Design, job: int | str, number: int | str) -> str:
    """The pass of a row in words, with the stage where there are several."""
    row = _known_row(design, job, number)
    if row is None:
        return f"pass {number}"
    stage = f" stage {row.stage}" if row.stage or not row.last_of_pass else ""
    return f"layer {row.layer}{' backward' if row.backward else ''}{stage}"


def _known_row(design: Design, job: int | str, number: int | str) -> StageRow | None:
    if not isinstance(job, int) or not isinstance(number, int) or not 0 <= job < len(design.jobs):
        return None
    model = design.jobs[job].model
    programs = [plan.programs[model] for plan in design.cores]
    rows = next((each.stages for each in programs if each is not None), ())
    return rows[number] if 0 <= number < len(rows) else None


#: Names of cycles that not every run has, and what such a run does.
_NAMES = {
    "switch": "a switch of threads",
    "hazard": "a tile that waits for a vector (hazard)",
    "backpressure": "a tile that waits for an accumulator bank (backpressure)",
    "input": "a tile that waits for a frame (input)",
}


def never_done(design: Design, program: Program, trace: Trace, events: Sequence[Event]) -> Iterator[str]:
    """Yield the situations that the control of the run never met, in words."""
    seen = {str(each.fields[0]) for each in events if each.kind == "C"}
    switching = any(plan.core.switch_cycles and plan.core.threads > 1 for plan in design.cores)
    yield from (text for name, text in _NAMES.items() if name not in seen and (name != "switch" or switching))
    admitted = {int(each.fields[1]): each.cycle for each in events if each.kind == "A"}
    if all(admitted[number] == job.arrival for number, job in enumerate(design.jobs[: design.posted])):
        yield "a job that waits for a context"
    if not _blocks_wait(design, program, trace):
        yield "a row block that waits for the tail"


def _blocks_wait(design: Design, program: Program, trace: Trace) -> bool:
    """Whether the tail was busy with another block when the sums of some block were there."""
    last: dict[tuple[object, ...], int] = {}
    rows = list(issued_rows(design, program, trace))
    for each in rows:
        if each.unit == ARRAY:
            layer, direction, block, _, stage = each.operation.place[:5]
            # a run of tiles is of one block, or of neighbouring ones in columns: then each tile is one of the last ones
            by_block = design.cores[each.core].core.block_order == "column"
            for ahead in range(each.issues):
                key = (each.job, each.step, layer, direction, block + (each.before + ahead) * by_block, stage)
                last[key] = max(last.get(key, 0), each.start + ahead)
    for each in rows:
        # later segments of a stage wait for values, not for sums
        if each.unit != ARRAY and each.operation.place[5] == 0:
            layer, direction, block, _, stage = each.operation.place[:5]
            core = design.cores[each.core].core
            there = last[each.job, each.step, layer, direction, block, stage] + core.latency.mvm_cycles(core.ep)
            if each.start > there:
                return True
    return False


def never_seen_numbers(numbers: Mapping[int, JobNumbers], values: Mapping[int, Values] | None) -> Iterator[str]:
    """Yield the cases of arithmetic that no number of the run reached, in words."""
    passes = [(job, *place, own) for job, each in numbers.items() for place, own in _passes(each)]
    arithmetic = [own for *_, own in passes]
    if not any(own.overflowed.total() for own in arithmetic):
        yield "a sum that wraps in its accumulator"
    kinds: dict[str, set[str]] = {
        name: set() for name in ("an adapted sum", "a value of the tail", "an element of a vector")
    }
    for own in arithmetic:
        cell = own.layer.cell
        sums, vectors = {each.name for each in cell.sums}, {e.name for e in cell.nodes if e.operation == "quantize"}
        for name, count in own.saturated.items():
            if count and name != "x":
                kind = "an adapted sum" if name in sums else "an element of a vector" if name in vectors else None
                kinds[kind or "a value of the tail"].add(name)
    yield from (f"{kind} that saturates" for kind, names in kinds.items() if not names)
    if values is None:
        yield "(not looked at: arguments beyond the ends of their tables)"
        return
    sides = [
        _beyond(own, name, values[job][layer][direction])
        for job, layer, direction, own in passes
        for name in own.tables
    ]
    if sides and not any(below for below, _ in sides):
        yield "an argument below its table"
    if sides and not any(above for _, above in sides):
        yield "an argument above its table"


def _passes(job: JobNumbers) -> Iterator[tuple[tuple[int, int], FixedArithmetic]]:
    for layer, both in enumerate(job.arithmetic):
        for direction, own in enumerate(both):
            assert isinstance(own, FixedArithmetic)
            yield (layer, direction), own


def _beyond(own: FixedArithmetic, node: str, values: Mapping[str, np.ndarray]) -> tuple[bool, bool]:
    """Whether some argument of a table lies below its lower end, and above its upper end."""
    table = own.tables[node]
    (source,) = own.layer.cell.node(node).sources
    given = values.get(own.layer.cell.states.get(source, source))
    if given is None:
        return False, False
    lowest = -table.cells_below_zero * 2.0**-table.cells_per_one
    highest = lowest + own.precision.activation_entries * 2.0**-table.cells_per_one
    real = table.source.real(given)
    return bool((real < lowest).any()), bool((real > highest).any())
