"""The table of a sweep as CSV and Parquet."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from lstmsim.base.csv_table import CsvWriter
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.studies.sweep.numbers import NUMBERS
from lstmsim.studies.sweep.objectives import Objective, described, from_text, to_text
from lstmsim.studies.sweep.pareto import marks
from lstmsim.studies.sweep.spec import Axis
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.stored import quoted

__all__ = [
    "Judgement",
    "chip_names",
    "columns",
    "export",
    "judge",
    "keep_objectives",
    "objectives_of",
    "table",
    "table_names",
    "varied",
    "work_of",
]

_BATCH_ROWS = 10_000
#: Columns of the table that depend on all points.
_JUDGED = ("objectives", "pareto", "knee")
_META = "objectives"


def keep_objectives(store: Store, objectives: Sequence[Objective]) -> None:
    """Write into the file what its points are judged by."""
    with store.transaction():
        store.put_meta([(_META, to_text(objectives))])


def objectives_of(store: Store) -> tuple[Objective, ...]:
    """Read what the points of a file are judged by.

    `InputError` if the file does not say, as files of earlier versions do not.
    """
    text = store.meta(_META)
    if text is None:
        again = "run `lstmsim sweep` on it again (results that are there are taken over)"
        raise InputError(Mistake(store.path, f"does not say what its points are judged by: {again}"))
    try:
        return from_text(text)
    except ValueError as error:
        raise store.damage(error) from None


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
    turned_away: how many of these turned jobs away (their latencies are those of the jobs that were served).
    """

    objectives: tuple[Objective, ...]
    front: frozenset[int]
    knees: frozenset[int]
    done: int
    lacking: Mapping[str, int]
    turned_away: int

    def lines(self) -> list[str]:
        """Write the front in a line, then a line for all that should be known about it."""
        text = f"Pareto front ({described(self.objectives)}): {len(self.front):,} of {self.done:,} points"
        notes = [f"{_points(count)} without {name}: on no front" for name, count in self.lacking.items()]
        if self.turned_away and "turned_away" not in {each.column for each in self.objectives}:
            notes.append(
                f"{_points(self.turned_away)} turned jobs away, whose latencies nobody has; turned_away is no objective"
            )
        return [text, *notes]


def _points(count: int) -> str:
    return "1 point" if count == 1 else f"{count:,} points"


def judge(store: Store, objectives: Sequence[Objective] | None = None) -> Judgement:
    """Judge the points of a file.

    Points are rivals only if they do the same work: there is a front for each combination of the values of axes below
    `jobs` and `cells`.

    objectives: columns of the table to judge by; None: the file's own.
    """
    by = tuple(objectives) if objectives is not None else objectives_of(store)
    work = work_of(store)
    points, costs, groups, lacking, away = [], [], [], Counter[str](), 0
    try:
        names = [*NUMBERS, *(each.column for each in by), *work]
        for point, *given in store.rows(["point", *names], "WHERE status = 'done'"):
            numbers, values = given[: len(NUMBERS)], given[len(NUMBERS) :]
            if str in map(type, numbers):
                raise store.damage(f"point {point} has text in the place of a number")
            own = [each.cost(value) for each, value in zip(by, values, strict=False)]
            lacking.update(each.column for each, cost in zip(by, own, strict=True) if cost != cost)
            points.append(int(point))
            costs.append(own)
            groups.append(tuple(values[len(by) :]))
            away += bool(numbers[NUMBERS.index("turned_away")])
        on_front, knees = marks(costs, groups)
    except (TypeError, ValueError) as error:
        raise store.damage(error) from None
    front, bends = (
        frozenset(point for point, yes in zip(points, flags, strict=True) if yes) for flags in (on_front, knees)
    )
    return Judgement(by, front, bends, len(points), dict(lacking), away)


def table(store: Store) -> Iterator[list[Any]]:
    """Give the rows of the table, in the order of the points.

    `pareto` and `knee` are 1 or 0, None where nothing was simulated. `objectives` says what `pareto` was judged by (see
    `judge`); `knee` is that of the front of the first two. Truth values are `true` and `false`; nothing and empty text
    are both blank in CSV.
    """
    judged = judge(store)
    text = described(judged.objectives)
    names = columns(store)
    stored = [name for name in names if name not in _JUDGED]
    before = names.index(_JUDGED[0])
    status = stored.index("status")
    for row in store.rows(stored):
        flags: list[Any] = [None, None, None]
        if row[status] == "done":
            flags = [text, int(row[0] in judged.front), int(row[0] in judged.knees)]
        yield [*row[:before], *flags, *row[before:]]


def table_names(stem: str) -> list[str]:
    """Name the files that `export` writes.

    >>> table_names("out/sweep")[0]
    'out/sweep.csv'
    """
    return [f"{stem}.csv", *([f"{stem}.parquet"] if find_spec("pyarrow") is not None else [])]


def export(store: Store, stem: str) -> list[str]:
    """Write `stem`.csv, and `stem`.parquet where pyarrow is installed. Equal tables give equal bytes.

    Returns the names of the files.
    """
    written = table_names(stem)
    with whole_file(written[0]) as file:
        rows = CsvWriter(file)
        rows.writerow(columns(store))
        rows.writerows(table(store))
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
