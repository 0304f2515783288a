"""The events of two runs with common numbers: what of them can be compared, and the first cycle in which they differ.

An event of a task is a row (cycle, kind, task, core). An issue is a row (cycle, core, unit, task, phase, step,
operation). Tasks, units and the cores of memories have the same numbers on both sides, whatever places they have there,
and numbers that do not change when the sides are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.accounts import issued_steps
from lstmsim.program.program import Phase, Unit
from lstmsim.studies.diff.sides import Pairing, Side, paired

Numbers = NDArray[np.int64]

#: Kinds of events of tasks, in the order in which they happen within a cycle.
FINISH, REJECTION, ADMISSION = range(3)
#: Cycles that are looked at first, behind the first unlike rows.
_WINDOW = 256


@dataclass(frozen=True, eq=False)
class Coded:
    """The events of a side.

    task, unit, core: for each task, unit name and core of the side its common number.
    apart: of each task, whether its issues cannot be compared with those of the other side.
    """

    side: Side
    task: Numbers
    unit: dict[str, int]
    core: Numbers
    apart: NDArray[np.bool_]

    @property
    def tasks(self) -> Numbers:
        """The events of tasks, sorted."""
        trace = self.side.trace
        core, admitted, finish = (trace.task(name) for name in ("core", "admitted", "finish"))
        served = core >= 0
        where = np.where(served, self.core[core], -1)
        began = np.stack([admitted, np.where(served, ADMISSION, REJECTION), self.task, where], axis=1)
        ended = np.stack([finish, np.full(len(core), FINISH), self.task, where], axis=1)[served]
        return _sorted(np.concatenate([began, ended]))

    @cached_property
    def steps(self) -> Numbers:
        """The time step of each row of issues."""
        return issued_steps(self.side.program, self.side.trace)

    @cached_property
    def units(self) -> Numbers:
        """The common number of the unit of each row of issues."""
        trace, cores = self.side.trace, self.side.program.cores
        table = np.zeros((len(cores), max((len(core.units) for core in cores), default=1)), dtype=np.int64)
        for number, core in enumerate(cores):
            table[number, : len(core.units)] = [self.unit[unit.name] for unit in core.units]
        numbers: Numbers = table[trace.issue("core"), trace.issue("unit")]
        return numbers

    @cached_property
    def issues(self) -> Numbers:
        """The rows of issues that can be compared, sorted: an issue of the first one, then its count and cycles."""
        trace = self.side.trace
        task, core = trace.issue("task"), self.core[trace.issue("core")]
        names = ("phase", "operation", "count", "cycles")
        phase, operation, count, cycles = (trace.issue(name) for name in names)
        places = trace.issue("start"), core, self.units, self.task[task], phase, self.steps, operation
        return _sorted(np.stack([*places, count, cycles], axis=1)[~self.apart[task]])


def _sorted(rows: Numbers) -> Numbers:
    return rows[np.lexsort(rows.T[::-1])]


def coded(a: Side, b: Side) -> tuple[Coded, Coded]:
    """Give both sides common numbers."""
    names = a.tasks, b.tasks

    def order(pair: Pairing) -> tuple[list[str], int]:
        called = [each[at] for each, at in zip(names, pair, strict=True) if at is not None]
        return sorted(called), sum(at for at in pair if at is not None)

    pairs = sorted(paired(*names), key=order)
    units = {unit.name for side in (a, b) for core in side.program.cores for unit in core.units}
    unit = {name: number for number, name in enumerate(sorted(units))}
    unlike = _unlike(a, b, [(i, j) for i, j in pairs if i is not None and j is not None])
    made = []
    for number, side in enumerate((a, b)):
        task, apart = np.zeros(len(names[number]), dtype=np.int64), np.zeros(len(names[number]), dtype=bool)
        for code, pair in enumerate(pairs):
            if (own := pair[number]) is not None:
                task[own] = code
        apart[[pair[number] for pair in unlike]] = True
        made.append(Coded(side, task, unit, _cores(side), apart))
    return made[0], made[1]


def _cores(side: Side) -> Numbers:
    """The common numbers of cores: those of memories are below -1, for they come behind all cores of a chip."""
    shared = np.array([core.shared for core in side.program.cores], dtype=bool)
    return np.where(shared, -1 - np.cumsum(shared), np.arange(len(shared)))


def _unlike(a: Side, b: Side, tasks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The tasks, by their places on both sides, that consist of unlike operations."""
    known: dict[tuple[int, int, int, int], bool] = {}
    cores = a.trace.task("core").tolist(), b.trace.task("core").tolist()
    unlike = []
    for pair in tasks:
        if min(cores[0][pair[0]], cores[1][pair[1]]) < 0:
            continue
        one, other = _work(a, pair[0], cores[0][pair[0]]), _work(b, pair[1], cores[1][pair[1]])
        key = id(one[0]), id(other[0]), id(one[1]), id(other[1])
        if key not in known:
            known[key] = _alike(*one, *other)
        if not known[key]:
            unlike.append(pair)
    return unlike


def _work(side: Side, task: int, core: int) -> tuple[tuple[Phase, ...], tuple[Unit, ...]]:
    own = side.program.cores[core]
    return side.program.tasks[task].phases(own.kind, side.trace.spread(task)), own.units


def _alike(one: Sequence[Phase], own: Sequence[Unit], other: Sequence[Phase], units: Sequence[Unit]) -> bool:
    """Whether phases consist of operations of the same names in the same units. Cycles and waits may differ."""
    if len(one) != len(other) or [each.name for each in own] != [each.name for each in units]:
        return False
    for mine, theirs in zip(one, other, strict=True):
        if mine.body is theirs.body:
            continue
        if mine.body.size != theirs.body.size or list(mine.body.names) != list(theirs.body.names):
            return False
        if any(
            (left.unit, left.member) != (right.unit, right.member)
            for left, right in zip(mine.body.operations, theirs.body.operations, strict=True)
        ):
            return False
    return True


#: An event that one side has and the other has not: the place of the side that has it, and its row.
Found = tuple[int, list[int]]


def first_unlike(a: Numbers, b: Numbers) -> Found | None:
    """The first of the sorted rows of either side that the other side has not; None if all are equal."""
    shorter = min(len(a), len(b))
    unlike = np.flatnonzero((a[:shorter] != b[:shorter]).any(axis=1))
    if not len(unlike) and len(a) == len(b):
        return None
    at = int(unlike[0]) if len(unlike) else shorter
    heads = [each[at].tolist() if at < len(each) else None for each in (a, b)]
    side = 0 if heads[1] is None or (heads[0] is not None and heads[0] < heads[1]) else 1
    head = heads[side]
    assert head is not None
    return side, head


def first_issue(a: Numbers, b: Numbers) -> Found | None:
    """The first issue of either side that the other side has not; None if all are equal.

    A row holds some issues. Rows before the first unlike ones hold equal issues; behind them, windows are looked at.
    """
    found = first_unlike(a, b)
    if found is None:
        return None
    start, last = found[1][0], max(int((each[:, 0] + each[:, -1] * each[:, -2]).max(initial=0)) for each in (a, b))
    width = _WINDOW
    while start < last:
        windows = [_window(each, start, start + width) for each in (a, b)]
        head = first_unlike(*windows)
        if head is not None:
            return head
        start, width = start + width, 2 * width
    return None


def _window(rows: Numbers, start: int, end: int) -> Numbers:
    """The issues that begin in `start <= cycle < end`, sorted."""
    rows = rows[: int(np.searchsorted(rows[:, 0], end))]
    count, cycles = rows[:, -2], rows[:, -1]
    first = np.maximum(0, -((rows[:, 0] - start) // cycles))
    many = np.maximum(0, np.minimum(count, -((rows[:, 0] - end) // cycles)) - first)
    place = np.repeat(np.arange(len(rows)), many)
    number = np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many)
    issues = rows[place, :-2]
    issues[:, 0] += (first[place] + number) * cycles[place]
    return _sorted(issues)
