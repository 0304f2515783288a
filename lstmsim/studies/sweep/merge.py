"""Shards of one sweep joined into one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files_kept import identity_of
from lstmsim.report.results import Table
from lstmsim.studies.sweep.about import about_of, keep_about
from lstmsim.studies.sweep.export import export, keep_objectives, objectives_of, table_names
from lstmsim.studies.sweep.numbers import NUMBERS
from lstmsim.studies.sweep.store import STATUSES, Store
from lstmsim.studies.sweep.stored import beside, checksum, quoted

__all__ = ["SUFFIX", "Merged", "merge"]

#: How the name of the output ends; the tables stand beside it, with other ends.
SUFFIX = ".sqlite"
_RESULT = ("key", "status", *NUMBERS, "reason")
_KEY, _STATUS = 0, 1


@dataclass(frozen=True)
class Merged(Table, forms="lstmsim.studies.sweep.merged_text"):
    """The result of a merge.

    path: the SQLite file.
    tables: files with its table.
    points: how many of the sweep's points are there.
    total: how many the sweep has.
    """

    path: str
    tables: tuple[str, ...]
    points: int
    total: int


def merge(out: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]]) -> Merged:
    """Join the SQLite files of shards into one, and write its tables beside it.

    out: new, or a part of the same sweep.
    inputs: the shards' files.
    `InputError` if a file belongs to another sweep or is damaged, if two have different results for a point, or if
    `out` does not end in `.sqlite`; `out` is then unchanged.
    """
    if not inputs:
        raise InputError("nothing to merge: name at least one file of a shard")
    names = [os.fspath(each) for each in inputs]
    target = os.fspath(out)
    if not target.lower().endswith(SUFFIX):
        raise InputError(Mistake(f"OUT {target or repr(target)}", f"expected a file name that ends in {SUFFIX}"))
    written = [target, *beside(target), *table_names(target[: -len(SUFFIX)])]
    outputs = {identity_of(each) for each in written}
    for name in names:
        if identity_of(name) in outputs:
            raise InputError(Mistake(name, "is the output too; expected another file"))
    new = not os.path.exists(target)
    try:
        points, total = _join(target, names)
    except BaseException:
        if new:
            with suppress(OSError):
                os.remove(target)
        raise
    with Store(target, create=True) as store:
        return Merged(target, tuple(export(store, target[: -len(SUFFIX)])), points, total)


def _join(target: str, names: Sequence[str]) -> tuple[int, int]:
    """Put the shards into the target, all or none; give the number of points there, and that of the whole sweep."""
    with Store(names[0], create=False) as first:
        identity, axes, total, derived = _identity(first), first.axes(), first.total(), first.derived()
        objectives, about = objectives_of(first), about_of(first)
    for name in names[1:]:
        with Store(name, create=False) as other:
            if _identity(other) != identity:
                raise InputError(Mistake(name, f"is of another sweep, scenario or version than {names[0]}"))
    with Store(target, create=True) as store:
        store.check_meta("a merge without that file begins anew")
        if store.meta("identity") not in (None, identity):
            raise InputError(Mistake(target, f"is of another sweep, scenario or version than {names[0]}"))
        with store.transaction():
            store.begin(identity, axes, total, derived)
            store.mend()
            keep_objectives(store, objectives)
            keep_about(store, about)
            for name in names:
                with Store(name, create=False) as shard:
                    _take(store, shard, [name for name, _ in axes], total)
            store.tidy()
        return sum(1 for _ in store.statuses()), total


def _identity(store: Store) -> str:
    """What names the sweep of a file; `InputError` if it holds none."""
    identity = store.meta("identity")
    if identity is None:
        raise InputError(Mistake(store.path, "holds no sweep"))
    return identity


def _take(store: Store, shard: Store, axes: Sequence[str], total: int) -> None:
    """Add the points of a shard; a point that is done in one file replaces one that failed in another."""
    columns = ", ".join(["p.point", *(f"p.{quoted(each)}" for each in ("key", *axes, "row checksum"))])
    results = ", ".join(f"r.{quoted(each)}" for each in (*_RESULT, "checksum"))
    width = 3 + len(axes)
    for row in shard.read(f"SELECT {columns}, {results} FROM points p JOIN results r ON r.key = p.key"):
        for part in (row[:width], row[width:]):
            if checksum(part[:-1]) != part[-1]:
                text = (
                    f"is damaged: point {row[0]} does not match its checksum; its own `lstmsim sweep` computes it anew"
                )
                raise InputError(Mistake(shard.path, text))
        point, result = row[: width - 1], row[width:-1]
        if not _sound(result) or not isinstance(point[0], int) or not 0 <= point[0] < total:
            raise shard.damage(f"point {point[0]}, status {result[_STATUS]!r}")
        present = "SELECT p.key, r.status FROM points p JOIN results r ON r.key = p.key WHERE p.point = ?"
        there = next(iter(list(store.read(present, point[:1]))), None)
        if there is not None and there[_KEY] != result[_KEY] and "failed" not in (there[_STATUS], result[_STATUS]):
            raise _conflict(shard, point[0])
        text = f"SELECT {', '.join(quoted(each) for each in _RESULT)} FROM results WHERE key = ?"
        for known in list(store.read(text, result[:1])):
            if _differ(known, result):
                raise _conflict(shard, point[0])
        if there is None or there[_STATUS] == "failed":
            store.put([result], [point])
    times = list(shard.read("SELECT point, seconds FROM timings WHERE typeof(seconds) = 'real'"))
    store.sql.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?)", times)


def _sound(result: Sequence[Any]) -> bool:
    """Whether a result has the form of one that was written."""
    numbers = result[_STATUS] != "done" or all(isinstance(each, int | float) for each in result[2:-1])
    return numbers and result[_STATUS] in STATUSES and isinstance(result[_KEY], str)


def _differ(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two results differ; reasons may be worded in other ways."""
    return "failed" not in (one[_STATUS], other[_STATUS]) and one[:-1] != other[:-1]


def _conflict(shard: Store, point: int) -> InputError:
    return InputError(Mistake(shard.path, f"point {point} has another result there than in the files before it"))
