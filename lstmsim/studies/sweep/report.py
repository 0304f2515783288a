"""A sweep and a merge of shards in words and as plain data: the best point, counts, and the points that none beats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lstmsim.report.figures_text import four_digits, short_name
from lstmsim.report.results import Forms
from lstmsim.report.tables import table as aligned
from lstmsim.studies.sweep.run import SweepResult
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import (
    Fitting,
    Judgement,
    about_of,
    columns,
    fits,
    fitting,
    judge,
    table,
    varied,
    work_of,
)

#: A row of a sweep's table by the names of its columns.
Row = Mapping[str, Any]

#: Most points of a front that are listed, and most kinds of work whose best point is named.
_MOST_LISTED, _MOST_WORKS = 20, 8
_LONGEST = 24
_FITS = {True: "yes", False: "no", None: "?"}


def front_lines(store: Store) -> tuple[list[str], list[str]]:
    """Tell of the points of a file which is the best, and which no other beats.

    Returns the lines about the best point of each kind of work, then those about the front; none where nothing was
    simulated.
    """
    names, judged, counted = columns(store), judge(store), fitting(store)
    rows = [row for values in table(store) if (row := dict(zip(names, values, strict=True)))["status"] == "done"]
    if not rows:
        return [], []
    given, work = [axis.name for axis in varied(store)], work_of(store)
    works: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        works.setdefault(tuple(row[name] for name in work), []).append(row)
    scenario = about_of(store).scenario
    start = f"{short_name(scenario, 60)}: " if scenario else ""
    lines = _best_lines(list(works.values()), given, work, judged.objectives, counted)
    if sum(1 for _ in store.statuses()) < store.total():
        lines = [line.replace("the best point", "the best point so far", 1) for line in lines]
    best = [f"{start}{line}" for line in lines]
    on_front = [
        row
        for members in works.values()
        for row in sorted(members, key=lambda row: _place(row, judged.objectives))
        if row["point"] in judged.front
    ]
    return best, [_title(judged, on_front, counted), *_listed(on_front, given, judged)]


def with_front(path: str, counts: str) -> str:
    """Put the best point before the counts of a sweep, and its front behind them."""
    if not os.path.isfile(path):
        return counts
    with Store(path, create=False) as store:
        best, front = front_lines(store)
    return "\n".join([*best, counts, *front])


def best_of(rows: Sequence[Row], objectives: Sequence[Objective]) -> Row | None:
    """Give the best point by the first objective, of equal ones by the others; None if none has a number there.

    >>> rows = [{"a": 2, "b": 1}, {"a": 1, "b": 9}, {"a": 1, "b": 3}, {"a": None, "b": 0}]
    >>> best_of(rows, [Objective("a"), Objective("b")])
    {'a': 1, 'b': 3}
    """
    first = objectives[0]
    known = [row for row in rows if first.cost(row[first.column]) == first.cost(row[first.column])]
    return min(known, key=lambda row: _place(row, objectives), default=None)


def _place(row: Row, objectives: Sequence[Objective]) -> list[tuple[bool, float]]:
    """What to order points by: costs, nothing behind all numbers."""
    costs = [each.cost(row[each.column]) for each in objectives]
    return [(cost != cost, 0.0 if cost != cost else cost) for cost in costs]


def set_to(row: Row, names: Sequence[str]) -> str:
    """Write what a point sets."""
    return ", ".join(f"{name} {short_name(str(row[name]), _LONGEST)}" for name in names)


def _best_lines(
    works: Sequence[Sequence[Row]],
    given: Sequence[str],
    work: Sequence[str],
    objectives: Sequence[Objective],
    counted: Fitting | None,
) -> list[str]:
    """The best point of each kind of work, and the best that fits where that is another one."""
    free = [name for name in given if name not in work]
    lines = [counted.text] if counted is not None and not counted.fit else []
    for members in works[:_MOST_WORKS]:
        best, best_fitting = (best_of(each, objectives) for each in (members, [row for row in members if fits(row)]))
        if best is None:
            continue
        of = f" for {set_to(best, work)}" if work else ""
        lines.append(f"the best point{of} has {_told(best, free, objectives[0])}{_room(best, counted)}")
        if best_fitting is not None and fits(best) is not True:
            lines.append(f"the best point{of} that fits has {_told(best_fitting, free, objectives[0])}")
    if len(works) > _MOST_WORKS:
        lines.append(f"the best of {len(works) - _MOST_WORKS:,} further kinds of work: see the table")
    return lines


def _told(row: Row, free: Sequence[str], objective: Objective) -> str:
    """`makespan_cycles 10,119: ep 16, vp 1024 (point 5)`."""
    others = [name for name in free if name != objective.column]
    given = f": {set_to(row, others)}" if others else ""
    return f"{objective.column} {_figure(row[objective.column])}{given} (point {row['point']})"


def _room(row: Row, counted: Fitting | None) -> str:
    """Whether a point fits, where some do."""
    if counted is None or not counted.fit:
        return ""
    where = counted.device or "the device"
    fit = fits(row)
    if fit is None:
        return f"; whether it fits {where} nobody can tell"
    return f", which {'fits' if fit else 'does not fit'} {where}"


def _title(judged: Judgement, on_front: Sequence[Row], counted: Fitting | None) -> str:
    title = judged.lines()[0]
    told = [fits(row) for row in on_front]
    if counted is None or not any(each is not None for each in told):
        return title
    some, doubtful = told.count(True), told.count(None)
    title += f", of which {f'{some:,} fit' if some else 'none is known to fit' if doubtful else 'none fits'}"
    return f"{title} {counted.device or 'the device'}"


def _listed(on_front: Sequence[Row], given: Sequence[str], judged: Judgement) -> list[str]:
    """The points of the front as a table."""
    if not on_front:
        return []
    figures = [each.column for each in judged.objectives if each.column not in given]
    heads = ["point", *given, *figures]
    told = any(fits(row) is not None for row in on_front) and "fits" not in heads
    cells = [[*heads, *(["fits"] if told else []), ""]]
    for row in on_front[:_MOST_LISTED]:
        line = [str(row["point"]), *(short_name(str(row[name]), _LONGEST) for name in given)]
        line += [_figure(row[name]) for name in figures]
        line += [_FITS[fits(row)]] if told else []
        cells.append([*line, "knee" if row["point"] in judged.knees else ""])
    lines = [f"  {line}" for line in aligned(cells)]
    if len(on_front) > _MOST_LISTED:
        lines.append(f"  and {len(on_front) - _MOST_LISTED:,} more, in the table's column `pareto`")
    return lines


def _figure(value: Any) -> str:
    """A number of the table for people; anything else as it is there.

    >>> _figure(10119), _figure(0.0123456), _figure(123456.7), _figure("true")
    ('10,119', '0.01235', '123,457', 'true')
    """
    if isinstance(value, int):
        return f"{value:,}"
    return four_digits(value) if isinstance(value, float) else str(value)


def stored_records(path: str) -> Iterator[dict[str, Any]]:
    """Read the rows of the sweep's table from a SQLite file, by the names of its columns."""
    with Store(path, create=False) as store:
        names = columns(store)
        yield from (dict(zip(names, row, strict=True)) for row in table(store))


def sweep_json(result: SweepResult) -> dict[str, Any]:
    """Give the result as plain data of schema `lstmsim/sweep/1`: its files and counts."""
    return {"schema": "lstmsim/sweep/1", **asdict(result)}


def sweep_text(result: SweepResult) -> str:
    """Say which point is the best, how many there are, how many have each status, and which no other beats.

    >>> from lstmsim.studies.sweep.run import Progress
    >>> sweep_text(SweepResult("gone.sqlite", ("sweep.csv",), Progress(50, 200, infeasible=9, failed=1)))
    '50 points: 40 simulated, 9 infeasible, 1 failed'
    """
    counts = result.progress
    simulated = counts.done - counts.infeasible - counts.failed
    parts = [f"{counts.done:,} points: {simulated:,} simulated", f"{counts.infeasible:,} infeasible"]
    return with_front(result.path, ", ".join([*parts, f"{counts.failed:,} failed"]))


FORMS = Forms(sweep_json, sweep_text, lambda result: stored_records(result.path))
