"""Shards of one sweep joined into one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.errors import InputError, Mistake
from lstmsim.sweep.evaluate import NUMBERS
from lstmsim.sweep.export import export
from lstmsim.sweep.store import Store, quoted

__all__ = ["Merged", "merge"]


@dataclass(frozen=True)
class Merged:
    """What a merge wrote, and how many of the sweep's points are there."""

    path: str
    tables: tuple[str, ...]
    points: int
    total: int


def merge(out: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]]) -> Merged:
    """Join the SQLite files of shards into `out` (new, or a part of the same sweep), and write its tables beside it.

    `InputError` if a file belongs to another sweep, or if two have different results for a point.
    """
    if not inputs:
        raise InputError("nothing to merge: name at least one file of a shard")
    names = [os.fspath(each) for each in inputs]
    target = os.fspath(out)
    for name in names:
        if os.path.realpath(name) == os.path.realpath(target):
            raise InputError(Mistake(name, "is the output too; expected another file"))
    with Store(names[0], create=False) as first:
        identity, axes, total = _identity(first), first.axes(), int(first.meta("total") or 0)
        derived = first.derived()
    for name in names[1:]:
        with Store(name, create=False) as other:
            if _identity(other) != identity:
                raise InputError(Mistake(name, f"is of another sweep, scenario or version than {names[0]}"))
    with Store(target, create=True) as store:
        if store.meta("identity") not in (None, identity):
            raise InputError(Mistake(target, f"is of another sweep, scenario or version than {names[0]}"))
        store.begin(identity, axes, total, derived)
        for name in names:
            with Store(name, create=False) as shard:
                _take(store, shard)
        store.tidy()
        (points,) = store.sql.execute("SELECT count(*) FROM points").fetchone()
        stem = os.path.splitext(target)[0]
        return Merged(target, tuple(export(store, stem)), int(points), total)


def _identity(store: Store) -> str:
    identity = store.meta("identity")
    if identity is None:
        raise InputError(Mistake(store.path, "holds no sweep"))
    return identity


def _take(store: Store, shard: Store) -> None:
    """Add the points of a shard; one that is done elsewhere takes the place of one that failed."""
    columns = ", ".join(["key", "status", *(quoted(each) for each in NUMBERS), "reason"])
    present = "SELECT p.key, r.status FROM points p JOIN results r ON r.key = p.key WHERE p.point = ?"
    with store.transaction():
        for row in shard.sql.execute("SELECT p.*, r.status FROM points p JOIN results r ON r.key = p.key"):
            point, status = row[:-1], row[-1]
            there = store.sql.execute(present, point[:1]).fetchone()
            if there is not None and "failed" not in (there[1], status) and there[0] != point[1]:
                raise _conflict(shard, point[0])
            result = shard.sql.execute(f"SELECT {columns} FROM results WHERE key = ?", point[1:2]).fetchone()
            known = store.sql.execute(f"SELECT {columns} FROM results WHERE key = ?", point[1:2]).fetchone()
            if known is not None and "failed" not in (known[1], status) and known != result:
                raise _conflict(shard, point[0])
            if there is None or there[1] == "failed":
                store.put([result], [point])
        times = shard.sql.execute("SELECT point, seconds FROM timings").fetchall()
        store.sql.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?)", times)


def _conflict(shard: Store, point: int) -> InputError:
    return InputError(Mistake(shard.path, f"point {point} has another result there than in the files before it"))
