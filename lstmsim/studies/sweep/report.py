"""A sweep and a merge of shards as documents and plain data: the best point, counts, and the points of the front."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.report.document import Column, Document, Section, grid
from lstmsim.report.figures_text import four_digits, short_name
from lstmsim.report.results import Baseline, Forms, plain
from lstmsim.studies.sweep.best import best_of, order, set_to, short_text
from lstmsim.studies.sweep.run import Merged, SweepResult
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import (
    Fitting,
    Judgement,
    Row,
    about_of,
    fits,
    fitting,
    grouped,
    is_own,
    judge,
    judged_rows,
    records,
    varied,
    work_of,
)

#: Most points of a front that are listed, and most kinds of work whose best point is named.
_MOST_LISTED, _MOST_WORKS = 20, 8
_PICTURE = "lstmsim.studies.sweep.picture:plot_sweep"


def front_of(store: Store) -> tuple[list[str], Section | None]:
    """Say which is the best point of each kind of work, and show those that no other beats.

    There is neither where nothing was simulated.
    """
    judged, rows = judged_rows(store)
    if not rows:
        return [], None
    counted, given = fitting(store), [axis.name for axis in varied(store)]
    works = list(grouped(rows, work_of(store)).values())
    scenario = about_of(store).scenario
    start = f"{short_name(scenario, 60)}: " if scenario else ""
    lines = _best_lines(works, given, work_of(store), judged.objectives, counted)
    if sum(1 for _ in store.statuses()) < store.total():
        lines = [line.replace("the best point", "the best point so far", 1) for line in lines]
    on_front = [
        row
        for members in works
        for row in sorted(members, key=lambda row: order(row, judged.objectives))
        if row["point"] in judged.front
    ]
    return [f"{start}{line}" for line in lines], _front(judged, on_front, counted, given)


def _best_lines(
    works: Sequence[Sequence[Row]],
    given: Sequence[str],
    work: Sequence[str],
    objectives: Sequence[Objective],
    counted: Fitting | None,
) -> list[str]:
    """The best point of each kind of work, and the best that fits where that is another one."""
    lines = [counted.text] if counted is not None and not counted.fit else []
    column = objectives[0].column
    free = [name for name in given if name not in work and name != column]

    def values(row: Row) -> str:
        settings = f": {set_to(row, free)}" if free else ""
        return f"{column} {_figure(row[column])}{settings} (point {row['point']})"

    for members in works[:_MOST_WORKS]:
        best, best_fitting = (best_of(each, objectives) for each in (members, [row for row in members if fits(row)]))
        if best is None:
            continue
        of = f" for {set_to(best, work)}" if work else ""
        lines.append(f"the best point{of} has {values(best)}{_fit(best, counted)}")
        if best_fitting is not None and fits(best) is not True:
            lines.append(f"the best point{of} that fits has {values(best_fitting)}")
    if len(works) > _MOST_WORKS:
        lines.append(f"the best of {len(works) - _MOST_WORKS:,} further kinds of work: see the table")
    return lines


def _fit(row: Row, counted: Fitting | None) -> str:
    """Whether a point fits, where some do."""
    if counted is None or not counted.fit:
        return ""
    where, fit = counted.device or "the device", fits(row)
    if fit is None:
        return f"; it is not known whether it fits {where}"
    return f", which {'fits' if fit else 'does not fit'} {where}"


def _front(judged: Judgement, on_front: Sequence[Row], counted: Fitting | None, given: Sequence[str]) -> Section:
    """The points of the front as a table."""
    title, known = judged.lines()[0], [fits(row) for row in on_front]
    if counted is not None and any(each is not None for each in known):
        some = known.count(True)
        few = f"{some:,} fit" if some else "none is known to fit" if None in known else "none fits"
        title += f", of which {few} {counted.device or 'the device'}"
    figures = [each.column for each in judged.objectives if each.column not in given]
    columns = [Column("point", form=str), *(Column(name, form=short_text) for name in given)]
    columns += [Column(name, form=_figure) for name in figures]
    names = ["point", *given, *figures]
    if any(each is not None for each in known) and "fits" not in names:
        columns.append(Column("fits", form=lambda fit: "yes" if fit else "no", missing="?"))
    rows = []
    for row in on_front:
        fit = [fits(row)] if len(columns) > len(names) else []
        rows.append([*(row[name] for name in names), *fit, "knee" if row["point"] in judged.knees else ""])
    more = "points, in the table's column `pareto`"
    return Section.of(grid([*columns, ""], rows, limit=_MOST_LISTED, more=more) if rows else None, title=title)


def _figure(value: Any) -> str:
    """A number of the table for people; anything else as it is there.

    >>> _figure(10119), _figure(0.0123456), _figure(123456.7), _figure("true")
    ('10,119', '0.01235', '123,457', 'true')
    """
    if isinstance(value, int):
        return f"{value:,}"
    return four_digits(value) if isinstance(value, float) else str(value)


def _counts(result: SweepResult | Merged) -> str:
    """How many points there are: of a sweep by status, of a merge also how many are missing.

    >>> from lstmsim.studies.sweep.request import Progress
    >>> _counts(SweepResult("gone.sqlite", ("sweep.csv",), Progress(50, 200, infeasible=9, failed=1)))
    '50 points: 40 simulated, 9 infeasible, 1 failed'
    >>> _counts(Merged("gone.sqlite", ("sweep.csv",), 50, 200))
    '50 of 200 points; 150 are missing'
    """
    if isinstance(result, Merged):
        missing = f"; {result.total - result.points:,} are missing" if result.total > result.points else ""
        return f"{result.points:,} of {result.total:,} points{missing}"
    counts = result.progress
    simulated = counts.done - counts.infeasible - counts.failed
    statuses = f"{simulated:,} simulated, {counts.infeasible:,} infeasible, {counts.failed:,} failed"
    return f"{counts.done:,} points: {statuses}"


def _document(result: SweepResult | Merged) -> Document:
    """The best point, counts, and the points that no other beats."""
    if not os.path.isfile(result.path):
        return Document(_counts(result))
    with Store(result.path, create=False) as store:
        best, front = front_of(store)
    return Document.of("\n".join([*best, _counts(result)]), front)


def _data(result: SweepResult | Merged) -> dict[str, Any]:
    """The files and counts, as plain data of schema `lstmsim/sweep/1` or `lstmsim/merge/1`."""
    kind = "sweep" if isinstance(result, SweepResult) else "merge"
    return {"schema": f"lstmsim/{kind}/1", **plain(result)}


def _records(result: SweepResult | Merged) -> Iterator[dict[str, Any]]:
    """The rows of the table, by the names of its columns."""
    with Store(result.path, create=False) as store:
        yield from records(store)


def _axes(result: SweepResult | Merged) -> list[str]:
    """The first objective over the next one, or else over an axis, that has several values; and the front."""
    with Store(result.path, create=False) as store:
        up, *across = [each.column for each in judge(store).objectives]
        across += [axis.name for axis in varied(store)]
        rows = list(records(store))
    several = (name for name in across if len({row[name] for row in rows} - {None}) > 1)
    return [next(several, up), up, "pareto"]


def _baseline(result: SweepResult | Merged) -> Baseline:
    """The point that is the scenario as it is, if it is a point of the sweep."""
    with Store(result.path, create=False) as store:
        about, axes = about_of(store), varied(store)
        own = [number for number, row in enumerate(records(store)) if is_own(about, axes, row)]
    if own:
        return Baseline("the scenario as it is", own)
    return Baseline("none: the scenario as it is is no point of this sweep that was simulated")


FORMS = Forms(_data, _document, _records, axes=_axes, baseline=_baseline, picture=_PICTURE)
