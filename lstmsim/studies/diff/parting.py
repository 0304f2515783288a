"""Where two runs part and why, and the step at which one gains most on the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.slowest import SPENT
from lstmsim.analysis.explanations.text import held_words
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.studies.diff.events import ADMISSION, FINISH, Coded, coded, first_issue, first_unlike
from lstmsim.studies.diff.result import Lag, Parting
from lstmsim.studies.diff.sides import Side

Numbers = NDArray[np.int64]

#: Issues of one cycle that are named.
_NAMED = 2


def parting(a: Side, b: Side) -> tuple[Parting | None, tuple[str, ...], Lag | None]:
    """Say where the runs part, which jobs' issues cannot be compared, and where B gains or loses most."""
    sides = coded(a, b)
    of_tasks = first_unlike(sides[0].tasks, sides[1].tasks)
    of_issues = first_issue(sides[0].issues, sides[1].issues)
    apart = _apart(sides)
    lag = _lag(*sides)
    if of_tasks is not None and (of_issues is None or of_tasks[1][0] <= of_issues[1][0]):
        return _task_parts(sides, *of_tasks), apart, lag
    return (None if of_issues is None else _issue_parts(sides, *of_issues)), apart, lag


def _apart(sides: tuple[Coded, Coded]) -> tuple[str, ...]:
    tasks = sides[0].side.tasks
    return tuple(dict.fromkeys(tasks[task] for task in np.flatnonzero(sides[0].apart).tolist()))


def _task_parts(sides: tuple[Coded, Coded], has: int, event: list[int]) -> Parting:
    """The parting at an admission, a rejection or a finish."""
    cycle, kind, code, where = event
    name, core = _name_of(sides[has], code), _core_at(sides[has], where)
    did = {
        ADMISSION: f"{name} begins on core {core}" if where >= 0 else f"{name} begins",
        FINISH: f"{name} finishes",
    }.get(kind, f"{name} is rejected")
    other = sides[1 - has]
    tasks = np.flatnonzero(other.task == code)
    label = "AB"[1 - has]
    if not len(tasks):
        state, why = f"there is no job {name}", f"only {'AB'[has]} has {name}"
    else:
        state, why = _task_late(other.side, int(tasks[0]), kind, cycle)
        state, why = f"{name} {state}", f"in {label} {name} {why}"
    texts = (did, state) if has == 0 else (state, did)
    return Parting(cycle, core if where >= 0 else None, *texts, why)


def _task_late(side: Side, task: int, kind: int, cycle: int) -> tuple[str, str]:
    """What a task did at a cycle at which it neither began, nor was rejected, nor finished, and why."""
    core, admitted, finish, arrived = (int(side.trace.task(x)[task]) for x in ("core", "admitted", "finish", "arrived"))
    if core < 0:
        if kind == FINISH or admitted < cycle:
            return "was rejected", f"is rejected at cycle {admitted:,}"
        return "waits in the queue", f"waits in the queue, and is rejected at cycle {admitted:,}"
    if arrived > cycle:
        return "has not come", f"comes at cycle {arrived:,}"
    if admitted > cycle:
        pooled = side.program.tasks[task].pool is not None
        where = "in the queue, for a thread or for company" if pooled else SPENT["queue"]
        return "waits in the queue", f"is {where}, until cycle {admitted:,}"
    if kind != FINISH:
        begun = "begins, too" if admitted == cycle else f"began at cycle {admitted:,}"
        return f"{begun}, on core {core}", f"is placed on core {core}"
    left = side.trace.issue("start")[(side.trace.issue("task") == task)]
    if len(left) and int(left.max()) >= cycle:
        return "goes on", f"still issues, and finishes at cycle {finish:,}"
    return "goes on", f"is {SPENT['drain']}, until cycle {finish:,}"


def _issue_parts(sides: tuple[Coded, Coded], has: int, event: list[int]) -> Parting:
    """The parting at an issue."""
    cycle, where, unit = event[:3]
    texts = tuple(_doing(each, cycle, where, unit) for each in sides)
    why = f"in {'AB'[1 - has]} {_issue_late(sides, 1 - has, event)}"
    return Parting(cycle, _core_at(sides[has], where), texts[0], texts[1], why)


def _doing(side: Coded, cycle: int, where: int, unit: int) -> str:
    """What a unit of a side does at a cycle."""
    trace = side.side.trace
    at = (side.units == unit) & (side.core[trace.issue("core")] == where)
    start, cycles = trace.issue("start"), trace.issue("cycles")
    begun = at & (start <= cycle) & (cycle < start + trace.issue("count") * cycles)
    name = next(text for text, number in side.unit.items() if number == unit)
    rows = np.flatnonzero(begun & ((cycle - start) % cycles == 0))
    if len(rows):
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        return f"{name} issues {', '.join(_row_text(side, row) for row in rows[:_NAMED].tolist())}{more}"
    rows = np.flatnonzero(begun)
    return f"{name} is at work for {_row_text(side, int(rows[0]))}" if len(rows) else f"{name} issues nothing"


def _row_text(side: Coded, row: int) -> str:
    """What a row of issues is, in words."""
    task, operation = (int(side.side.trace.issue(name)[row]) for name in ("task", "operation"))
    each = side.side.index.operation(row)
    layer = f", layer {each.place[0]}" if each.place and each.place[0] >= 0 else ""
    back = ", backward" if len(each.place) > 1 and each.place[1] == 1 else ""
    what = f"operation {operation}" + (f" ({each.label})" if each.label else "")
    return f"{side.side.tasks[task]}{layer}{back}, step {int(side.steps[row])}, {what}"


def _issue_late(sides: tuple[Coded, Coded], lacks: int, event: list[int]) -> str:
    """Why a side did not issue what the other side issued."""
    cycle, where, _, code, phase, step, operation = event
    side, trace = sides[lacks], sides[lacks].side.trace
    name, tasks = _name_of(sides[1 - lacks], code), np.flatnonzero(sides[lacks].task == code)
    if not len(tasks):
        return f"there is no job {name}"
    task = int(tasks[0])
    if int(trace.task("core")[task]) < 0 or int(trace.task("admitted")[task]) > cycle:
        return f"{name} {_task_late(side.side, task, ADMISSION, cycle)[1]}"
    mine = (trace.issue("task") == task) & (trace.issue("phase") == phase) & (side.steps == step)
    mine &= trace.issue("operation") == operation
    begin, each = trace.issue("start"), trace.issue("cycles")
    mine &= begin + (trace.issue("count") - 1) * each >= cycle
    rows = np.flatnonzero(mine)
    if not len(rows):
        return f"{name} has no such operation, or did it before"
    row = int(rows[0])
    core = int(trace.issue("core")[row])
    if side.core[core] != where:
        return f"{name} runs on core {core}"
    return f"{name} {_held(side, row, cycle)}"


def _held(side: Coded, row: int, cycle: int) -> str:
    """What held a row of issues at a cycle before its start: a cause, a switch, or another thread by the policy."""
    trace = side.side.trace
    for cause in CAUSES:
        until = int(trace.issue(f"{cause}_until")[row])
        if until > cycle:
            return f"waits for {held_words(cause, side.side.words)} until cycle {until:,}"
    core, unit, task = (int(trace.issue(name)[row]) for name in ("core", "unit", "task"))
    own = side.side.program.cores[core].units[unit]
    begin, each = trace.switch("start"), trace.switch("cycles")
    switching = (trace.switch("core") == core) & (trace.switch("unit") == unit) & (begin <= cycle)
    if (switching & (cycle < begin + each)).any():
        return f"could issue, and the {own.name} changes threads"
    start, end = trace.issue("start"), trace.issue("start") + trace.issue("count") * trace.issue("cycles")
    rows = trace.issues_on(core, unit)
    way = trace.issue("context")[rows] % own.instances == int(trace.issue("context")[row]) % own.instances
    taken = rows[way & (start[rows] <= cycle) & (cycle < end[rows])]
    if len(taken) and int(trace.issue("task")[taken[0]]) != task:
        return f"could issue: by its policy ({own.policy}) the {own.name} serves {_row_text(side, int(taken[0]))}"
    if len(taken):
        return f"is still at {_row_text(side, int(taken[0]))}"
    return f"could issue: by its policy ({own.policy}) the {own.name} waits for another thread"


def _name_of(side: Coded, code: int) -> str:
    return side.side.tasks[int(np.flatnonzero(side.task == code)[0])]


def _core_at(side: Coded, where: int) -> int:
    """The number that a side gives to a core."""
    return int(np.flatnonzero(side.core == where)[0]) if where != -1 else -1


def _lag(a: Coded, b: Coded) -> Lag | None:
    """The step of a layer at which B's lag behind A changes most; None if it never does, or no layers are known."""
    ends = [_ends(each) for each in (a, b)]
    both = sorted(ends[0].keys() & ends[1].keys(), key=lambda key: (*key[:3], ends[0][key] + ends[1][key]))
    began = [dict(zip(each.task.tolist(), each.side.trace.task("admitted").tolist(), strict=True)) for each in (a, b)]
    best: tuple[int, tuple[int, ...], int] | None = None
    before: tuple[int, ...] = ()
    lag = 0
    for key in both:
        if key[:3] != before:
            before, lag = key[:3], began[1][key[0]] - began[0][key[0]]
        own = ends[1][key] - ends[0][key]
        if own != lag and (best is None or abs(own - lag) > abs(best[0])):
            best = own - lag, key, own
        lag = own
    if best is None:
        return None
    more, (code, layer, _, step), behind = best
    return Lag(_name_of(a, code), layer, step, more, behind)


def _ends(side: Coded) -> dict[tuple[int, ...], int]:
    """(task, layer, direction, step) -> the cycle at which the main units have issued all of it."""
    program, index = side.side.program, side.side.index
    main = np.array([-1 if each.shared or each.accounted is None else each.accounted for each in program.cores])
    places = np.array([(*each.place, -1, -1)[:2] for each in index.operations], dtype=np.int64).reshape(-1, 2)
    layer, direction = places[index.numbers].T
    trace = side.side.trace
    kept = (trace.issue("unit") == main[trace.issue("core")]) & (layer >= 0)
    keys = np.stack([side.task[trace.issue("task")], layer, direction, side.steps], axis=1)[kept]
    order = np.lexsort((index.end[kept], *keys.T[::-1]))
    keys, end = keys[order], index.end[kept][order]
    last = np.append((keys[1:] != keys[:-1]).any(axis=1), True)[: len(keys)]
    return dict(zip(map(tuple, keys[last].tolist()), end[last].tolist(), strict=True))
