"""The table of a sweep as CSV and Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from lstmsim.formats.csv_table import CsvWriter
from lstmsim.formats.files import whole_file
from lstmsim.sweep.evaluate import NUMBERS
from lstmsim.sweep.pareto import OBJECTIVES, marks
from lstmsim.sweep.spec import Axis
from lstmsim.sweep.store import Store
from lstmsim.sweep.stored import quoted

__all__ = ["columns", "export", "table", "table_names"]

_BATCH_ROWS = 10_000


def columns(store: Store) -> list[str]:
    """The columns of the table, in order."""
    return ["point", *(name for name, _ in store.axes()), "status", *NUMBERS, "pareto", "knee", "reason", "key"]


def table(store: Store) -> Iterator[list[Any]]:
    """The rows of the table, in the order of the points; `pareto` and `knee` are 1 or 0, None where nothing was done.

    Points are rivals only if they do the same work: fronts are taken for each combination of the values of axes below
    `jobs` and `cells`. Truth values are `true` and `false`; nothing and empty text are both blank in CSV.
    """
    on_front, knees = _marked(store)
    names = columns(store)
    stored = [name for name in names if name not in ("pareto", "knee")]
    before = names.index("pareto")
    status = stored.index("status")
    for row in store.rows(stored):
        flags: list[int | None] = [None, None]
        if row[status] == "done":
            flags = [int(row[0] in on_front), int(row[0] in knees)]
        yield [*row[:before], *flags, *row[before:]]


def _marked(store: Store) -> tuple[set[int], set[int]]:
    """Points on fronts, and knees."""
    work = [name for name, paths in store.axes() if Axis(name, paths, ()).of_workload]
    points, costs, groups = [], [], []
    for row in store.rows(["point", *OBJECTIVES, *work], "WHERE status = 'done'"):
        points.append(int(row[0]))
        costs.append(row[1 : 1 + len(OBJECTIVES)])
        groups.append(row[1 + len(OBJECTIVES) :])
    try:
        on_front, knees = marks(costs, groups)
    except (TypeError, ValueError) as error:
        raise store.damage(error) from None
    return {p for p, yes in zip(points, on_front, strict=True) if yes}, {
        p for p, yes in zip(points, knees, strict=True) if yes
    }


def table_names(stem: str) -> list[str]:
    """The files that `export` writes.

    >>> table_names("out/sweep")[0]
    'out/sweep.csv'
    """
    return [f"{stem}.csv", *([f"{stem}.parquet"] if find_spec("pyarrow") is not None else [])]


def export(store: Store, stem: str) -> list[str]:
    """Write `stem`.csv, and `stem`.parquet where pyarrow is installed; their names. Equal tables give equal bytes."""
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
    """Whole numbers, numbers or text: what the column holds; text if it is mixed or empty."""
    import pyarrow

    if name in ("pareto", "knee"):
        return pyarrow.int64()
    found = {kind for (kind,) in store.read(f"SELECT DISTINCT typeof({quoted(name)}) FROM sweep")} - {"null"}
    if found == {"integer"}:
        return pyarrow.int64()
    return pyarrow.float64() if found and found <= {"integer", "real"} else pyarrow.string()
