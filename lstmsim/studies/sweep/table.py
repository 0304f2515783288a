"""The table of a sweep: its columns, the points that no other beats, how many fit the device; as CSV and Parquet."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.base.csv_table import CsvWriter, lines
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.studies.sweep.columns import NUMBERS, PREFIX
from lstmsim.studies.sweep.evaluate import Rows
from lstmsim.studies.sweep.spec import Axis, Objective, described
from lstmsim.studies.sweep.store import Store, quoted

Flags = NDArray[np.bool_]
#: A row of a sweep's table by the names of its columns.
Row = Mapping[str, Any]


#: Up to so many rows of a group are compared with each other, and many groups at once.
_FEW_ROWS = 24


def front(costs: ArrayLike) -> Flags:
    """Say which rows no other row beats: no row is at most as large in every column and smaller in one.

    Equal rows are all on the front or all off it. A row with a NaN is not on it and beats none.
    """
    table = np.asarray(costs, dtype=float)
    chosen = np.zeros(len(table), dtype=bool)
    if not len(table):
        return chosen
    if len(table) <= _FEW_ROWS:
        chosen[:] = _fronts(table[None])[0]
        return chosen
    known_rows = np.flatnonzero(~np.isnan(table).any(axis=1))
    # Sorted by columns, each once: a row can only be beaten by one above it, whose first column is no larger.
    distinct, inverse = np.unique(table[known_rows], axis=0, return_inverse=True)
    best = np.zeros(len(distinct), dtype=bool)
    left_rows, left = np.arange(len(distinct)), np.ascontiguousarray(distinct.T[1:])
    while len(left_rows):
        best[left_rows[0]] = True
        smaller: Flags = np.any(left < left[:, :1], axis=0)
        whole = smaller[1:].all()
        left_rows, left = (left_rows[1:], left[:, 1:]) if whole else (left_rows[smaller], left[:, smaller])
    chosen[known_rows] = best[inverse.reshape(-1)]
    return chosen


def _fronts(tables: NDArray[np.float64]) -> Flags:
    """The front of each of some tables of equal size, shape (tables, rows, columns); gives shape (tables, rows)."""
    if tables.shape[1] > _FEW_ROWS:
        return np.array([front(table) for table in tables])
    chosen: Flags = np.logical_not(np.isnan(tables).any(axis=2))
    for row in range(tables.shape[1]):
        other = tables[:, row : row + 1]
        chosen &= ~((other <= tables).all(axis=2) & (other < tables).any(axis=2))
    return chosen


def knee(x: ArrayLike, y: ArrayLike) -> int | None:
    """Find the knee of the front of (x, y): the index of the point farthest below the line between the front's ends.

    Both axes are scaled to 0..1 between the ends. None if the front has no point below that line, or fewer than
    three points.
    """
    points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    if not len(points):
        return None
    best, found = _knees(points[None])
    return int(best[0]) if found[0] else None


def _knees(points: NDArray[np.float64]) -> tuple[NDArray[np.intp], Flags]:
    """The knee of each of some tables of equal size, shape (tables, rows, 2), and whether it has one."""
    chosen = _fronts(points)
    low, high = (np.where(chosen[..., None], points, end) for end in (np.inf, -np.inf))
    # of two points of a front that differ, both columns do
    ends = np.sort(low[..., 0], axis=1)
    many = (ends[:, 1:] > ends[:, :-1]).sum(axis=1) - ~chosen.all(axis=1) >= 2
    # a column of infinite numbers has no scale, and tables without a front have no ends
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        begin = low.min(axis=1)
        span = high.max(axis=1) - begin
        # Scaled, the line joins (0, 1) and (1, 0): the distance below it grows with 1 - x - y.
        # Rounded, so that of equally deep points the first is taken and not one that a last bit favours.
        depth = np.round(1 - ((points - begin[:, None]) / span[:, None]).sum(axis=2), 12)
    depth = np.where(chosen, depth, -np.inf)
    best = np.argmax(depth, axis=1)
    deep = np.take_along_axis(depth, best[:, None], axis=1)[:, 0] > 0
    return best, many & span.all(axis=1) & np.isfinite(span).all(axis=1) & deep


def marks(costs: ArrayLike, groups: Sequence[Hashable]) -> tuple[Flags, Flags]:
    """Find the rows on the front of all columns, and the knees of the first two, each within its group."""
    table = np.asarray(costs, dtype=float).reshape(len(groups), -1 if groups else 0)
    on_front, knees = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
    known: dict[Hashable, int] = {}
    group = np.array([known.setdefault(each, len(known)) for each in groups], dtype=int)
    order, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes).tolist():
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        on_front[rows] = _fronts(table[rows])
        if table.shape[1] > 1:
            # the front of two columns is sought among rows on the front of all
            best, found = _knees(np.where(on_front[rows][..., None], table[rows][..., :2], np.nan))
            knees[rows[np.arange(len(rows)), best][found]] = True
    return on_front, knees


_ABOUT, _OBJECTIVES, _OWN = "about", "objectives", "own"
#: The column that says whether a chip fits; the second where an axis has that name.
_COLUMNS = ("fits", f"{PREFIX}fits")


@dataclass(frozen=True)
class About:
    """What a sweep is about.

    scenario: its name for people; empty in files of earlier versions.
    device: the name of the FPGA; empty for none.
    own: key of the scenario as it is, without the values of axes; empty if it is none, or not known.
    frequency_mhz: of that scenario's chip, which is no part of keys.
    """

    scenario: str = ""
    device: str = ""
    own: str = ""
    frequency_mhz: float = 0.0


def keep(store: Store, objectives: Sequence[Objective], about: About) -> None:
    """Write into the file what its points are judged by, and what its sweep is about."""
    judged = json.dumps([[each.column, each.maximise] for each in objectives])
    with store.transaction():
        said = json.dumps([about.scenario, about.device])
        own = json.dumps([about.own, about.frequency_mhz])
        store.put_meta([(_OBJECTIVES, judged), (_ABOUT, said), (_OWN, own)])


def about_of(store: Store) -> About:
    """Read what the sweep of a file is about."""
    text, known = store.meta(_ABOUT), store.meta(_OWN)
    try:
        scenario, device = ("", "") if text is None else json.loads(text)
        own, mhz = ("", 0.0) if known is None else json.loads(known)
        return About(str(scenario), str(device), str(own), float(mhz))
    except (TypeError, ValueError) as error:
        raise store.damage(error) from None


def is_own(about: About, axes: Sequence[Axis], row: Row) -> bool:
    """Whether a point is the scenario as it is: equal in all that decides its cycles, and in its clock."""
    clocks = [row[axis.name] for axis in axes if axis.key == "frequency_mhz"]
    return row["status"] == "done" and row["key"] == about.own and all(each == about.frequency_mhz for each in clocks)


def objectives_of(store: Store) -> tuple[Objective, ...]:
    """Read what the points of a file are judged by."""
    text = store.meta(_OBJECTIVES)
    if text is None:
        again = "run `lstmsim sweep` on it again (results that are there are taken over)"
        raise InputError(Mistake(store.path, f"does not name the objectives of its points: {again}"))
    try:
        return tuple(Objective(str(column), bool(maximise)) for column, maximise in json.loads(text))
    except (TypeError, ValueError) as error:
        raise store.damage(error) from None


def fits(row: Row) -> bool | None:
    """Whether the chip of a point fits the sweep's device; None where there is no device, or it is not known."""
    value = next((row[name] for name in _COLUMNS if row.get(name) in ("true", "false")), None)
    return None if value is None else value == "true"


@dataclass(frozen=True)
class Fitting:
    """How many of the simulated points fit a device, are too large, or unknown; an empty name: the file has none."""

    device: str
    fit: int
    too_large: int
    unknown: int

    @property
    def text(self) -> str:
        """The numbers in words."""
        return self.drawn("", "")

    def drawn(self, too_large: str, unknown: str) -> str:
        """The numbers in words, with the marks of points that do not fit and of those of which it is not known."""
        where, every = self.device or "the device", self.fit + self.too_large + self.unknown
        large, doubt = (f" ({look})" if look else "" for look in (too_large, unknown))
        if self.unknown == every:
            return f"it is not known whether any point fits {where}{doubt}"
        if self.fit == every:
            return f"all {every:,} points fit {where}" if every > 1 else f"the only point fits {where}"
        if self.too_large == every:
            return f"{f'none of {every:,} points fits' if every > 1 else 'the only point does not fit'} {where}{large}"
        text = f"{self.fit:,} of {every:,} points fit {where}"
        text += f", {self.too_large:,} do not{large}" if self.too_large else ""
        return text + (f"; of {self.unknown:,} it is not known{doubt}" if self.unknown else "")


def fitting(store: Store) -> Fitting | None:
    """Count the points of a file that fit its device; None if it has none."""
    column = next((name for name in chip_names(store) if name in _COLUMNS), None)
    if column is None:
        return None
    counts = Counter(fits({column: value}) for (value,) in store.rows([column], "WHERE status = 'done'"))
    return Fitting(about_of(store).device, counts[True], counts[False], counts[None])


_BATCH_ROWS = 10_000
#: Columns of the table that depend on all points.
_JUDGED = ("objectives", "pareto", "knee")


def varied(store: Store) -> list[Axis]:
    """List axes and derived values of a file, without values; columns about the chip set no path and are left out."""
    return [Axis(name, paths, ()) for name, paths in store.axes() if paths]


def work_of(store: Store) -> list[str]:
    """List the axes that vary the work: points are rivals only where their values are equal."""
    return [axis.name for axis in varied(store) if axis.of_workload]


def chip_names(store: Store) -> list[str]:
    """List the columns about the chip."""
    return [name for name, paths in store.axes() if not paths]


def columns(store: Store) -> list[str]:
    """List the columns of the table, in order: axes, simulated numbers, columns about the chip, the judgement."""
    given = [axis.name for axis in varied(store)]
    return ["point", *given, "status", *NUMBERS, *chip_names(store), *_JUDGED, "reason", "key"]


@dataclass(frozen=True)
class Judgement:
    """The points of a sweep that no other point beats.

    objectives: what they are judged by.
    front, knees: numbers of points.
    done: how many points were simulated.
    lacking: for each objective, how many of these have no number there; they are on no front.
    rejected: how many of these rejected jobs (their latencies are those of the jobs that were served).
    """

    objectives: tuple[Objective, ...]
    front: frozenset[int]
    knees: frozenset[int]
    done: int
    lacking: Mapping[str, int]
    rejected: int

    def lines(self) -> list[str]:
        """Write the front in a line, then a line for all that should be known about it."""
        text = f"PARETO FRONT ({described(self.objectives)}): {len(self.front):,} of {self.done:,} points"
        notes = [f"{_points(count)} without {name}: on no front" for name, count in self.lacking.items()]
        if self.rejected and "turned_away" not in {each.column for each in self.objectives}:
            notes.append(f"{_points(self.rejected)} rejected jobs, which have no latency; turned_away is no objective")
        return [text, *notes]


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count:,} points"


def judge(store: Store, objectives: Sequence[Objective] | None = None) -> Judgement:
    """Judge the points of a file by its own objectives, or by others; rivals are points that do the same work."""
    return _judged(store, tuple(objectives) if objectives is not None else objectives_of(store), [])[0]


def judged_rows(store: Store) -> tuple[Judgement, list[Row]]:
    """Judge the points of a file by its own objectives, and give the simulated ones without most of their numbers.

    A row has the point's number, what it sets, its objectives, and whether it fits.
    """
    more = [*(axis.name for axis in varied(store)), *(name for name in chip_names(store) if name in _COLUMNS)]
    judged, found = _judged(store, objectives_of(store), more)
    return judged, [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def _judged(store: Store, by: tuple[Objective, ...], more: Sequence[str]) -> tuple[Judgement, dict[str, Sequence[Any]]]:
    """Judge the points of a file; give also the columns by which they are judged, and more of them."""
    text = ", ".join(f"typeof({quoted(name)})" for name in NUMBERS)
    wrong = f"SELECT key FROM results WHERE status = 'done' AND 'text' IN ({text})"
    if list(store.read(f"{wrong} LIMIT 1")):
        for (point,) in store.rows(["point"], f"WHERE key IN ({wrong}) LIMIT 1"):
            raise store.damage(f"point {point} has text instead of a number")
    judged_by = _judged_by(store, by)
    names = list(dict.fromkeys([*judged_by, *more]))
    columns = list(zip(*store.rows(names, "WHERE status = 'done'"), strict=True)) or [()] * len(names)
    found: dict[str, Sequence[Any]] = dict(zip(names, columns, strict=True))
    try:
        return _judgement(by, [found[name] for name in judged_by]), found
    except (TypeError, ValueError) as error:
        raise store.damage(error) from None


def _judged_by(store: Store, objectives: Sequence[Objective]) -> list[str]:
    """The columns that decide which points no other beats."""
    return ["point", "turned_away", *(each.column for each in objectives), *work_of(store)]


def _judgement(by: tuple[Objective, ...], found: Sequence[Sequence[Any]]) -> Judgement:
    """Judge points of which the columns of `_judged_by` are given."""
    points, away, given, groups = found[0], found[1], found[2 : 2 + len(by)], found[2 + len(by) :]
    costs = [_costs(each, values) for each, values in zip(by, given, strict=True)]
    same = list(zip(*groups, strict=True)) or [()] * len(points)
    flags = marks(np.stack(costs, axis=1), same)
    on_front, knees = (frozenset(np.array(points, int)[each].tolist()) for each in flags)
    unknown = {each.column: int(np.isnan(own).sum()) for each, own in zip(by, costs, strict=True)}
    lacking = {name: count for name, count in unknown.items() if count}
    return Judgement(by, on_front, knees, len(points), lacking, sum(map(bool, away)))


def _costs(objective: Objective, values: Sequence[Any]) -> NDArray[np.float64]:
    """The costs of points with these values in the column of an objective."""
    if set(map(type, values)) <= {int, float}:
        numbers = np.array(values, dtype=float)
        return -numbers if objective.maximise else numbers
    return np.array(list(map(objective.cost, values)), dtype=float)


def table(store: Store) -> Iterator[list[Any]]:
    """Give the rows of the table, in the order of the points.

    `pareto` and `knee` are 1 or 0, None where nothing was simulated; `objectives` says what they were judged by.
    """
    return (list(row) for some in _batches(store) for row in zip(*some, strict=True))


def _batches(store: Store) -> Iterator[list[Sequence[Any]]]:
    """The columns of the table for some points after the other."""
    judged, names = judge(store), columns(store)
    stored, before = [name for name in names if name not in _JUDGED], names.index(_JUDGED[0])
    rows = store.rows(stored)
    while some := list(islice(rows, _BATCH_ROWS)):
        found: list[Sequence[Any]] = list(zip(*some, strict=True))
        own = _judged_columns(judged, found[0], found[stored.index("status")])
        yield [*found[:before], *own, *found[before:]]


def _judged_columns(judged: Judgement, points: Sequence[int], statuses: Sequence[str]) -> list[list[Any]]:
    """The columns `_JUDGED` of some points."""
    text, done = described(judged.objectives), [each == "done" for each in statuses]
    on = [
        [int(point in of) if each else None for point, each in zip(points, done, strict=True)]
        for of in (judged.front, judged.knees)
    ]
    return [[text if each else None for each in done], *on]


class Fresh:
    """The table of a file without points, as text: of points that come now, so that their rows need not be read again.

    store: the file, with what its points are judged by.
    """

    def __init__(self, store: Store) -> None:
        self._by, self._axes = objectives_of(store), len(varied(store))
        self._names = [name for name in columns(store) if name not in _JUDGED]
        self._judged_by = _judged_by(store, self._by)
        self._columns: dict[str, list[Any]] = {name: [] for name in ("status", *self._judged_by)}
        #: Of each point what stands before and behind the columns `_JUDGED`.
        self._texts: tuple[list[str], list[str]] = ([], [])

    def add(self, rows: Rows) -> None:
        """Take over further points."""
        if not rows.points:
            return
        (key, *numbers, reason), (point, _, *values) = (list(zip(*some, strict=True)) for some in rows[:2])
        found = [point, *values[: self._axes], *numbers, *values[self._axes :], reason, key]
        for own, some in zip(self._texts, (found[:-2], found[-2:]), strict=True):
            own += lines(some)
        for name, column in zip(self._names, found, strict=True):
            if name in self._columns:
                self._columns[name] += column

    def lines(self) -> Iterator[list[str]]:
        """The lines of the table, some after the other, in the order of the points."""
        points, statuses = self._columns["point"], self._columns["status"]
        order = np.argsort(np.array(points, np.int64), kind="stable").tolist()
        done = [each for each in order if statuses[each] == "done"]
        judged = _judgement(self._by, [[self._columns[name][each] for each in done] for name in self._judged_by])
        for first in range(0, len(order), _BATCH_ROWS):
            # one more than wanted: of one place alone it gives no tuple
            some = itemgetter(*order[first : first + _BATCH_ROWS], 0)
            found, said, before, behind = (some(each)[:-1] for each in (points, statuses, *self._texts))
            yield list(map(",".join, zip(before, lines(_judged_columns(judged, found, said)), behind, strict=True)))


def records(store: Store) -> Iterator[dict[str, Any]]:
    """Give the rows of the table by the names of its columns."""
    names = columns(store)
    return (dict(zip(names, row, strict=True)) for row in table(store))


def grouped(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by the values of some columns, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def table_names(stem: str) -> list[str]:
    """Name the files that `export` writes."""
    return [f"{stem}.csv", *([f"{stem}.parquet"] if find_spec("pyarrow") is not None else [])]


def export(store: Store, stem: str, fresh: Fresh | None = None) -> list[str]:
    """Write `stem`.csv, and `stem`.parquet where pyarrow is installed; give their names. Equal tables, equal bytes.

    fresh: all points of the file, if they have just come.
    """
    written = table_names(stem)
    with whole_file(written[0]) as file:
        rows = CsvWriter(file)
        rows.writerow(columns(store))
        for text in map(lines, _batches(store)) if fresh is None else fresh.lines():
            rows.writelines(text)
    for name in written[1:]:
        _write_parquet(store, name)
    return written


def _write_parquet(store: Store, path: str) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, _arrow_type(store, name)) for name in columns(store)])
    texts = [index for index, field in enumerate(schema) if field.type == pyarrow.string()]
    with whole_file(path, "wb") as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        batch: list[list[Any]] = []
        for row in table(store):
            for index in texts:
                row[index] = None if row[index] is None else str(row[index])
            batch.append(row)
            if len(batch) == _BATCH_ROWS:
                writer.write_table(_arrow(batch, schema))
                batch = []
        if batch or not os.path.getsize(store.path):
            writer.write_table(_arrow(batch, schema))


def _arrow(rows: list[list[Any]], schema: Any) -> Any:
    import pyarrow

    arrays = [pyarrow.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _arrow_type(store: Store, name: str) -> Any:
    """Whole numbers, numbers or text: the kind of the column's values; text if they are mixed or there are none."""
    import pyarrow

    if name in _JUDGED:
        return pyarrow.string() if name == _JUDGED[0] else pyarrow.int64()
    kinds = {kind for (kind,) in store.read(f"SELECT DISTINCT typeof({quoted(name)}) FROM sweep")} - {"null"}
    if kinds == {"integer"}:
        return pyarrow.int64()
    return pyarrow.float64() if kinds and kinds <= {"integer", "real"} else pyarrow.string()
