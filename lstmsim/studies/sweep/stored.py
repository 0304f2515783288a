"""Small parts of a sweep's store: names of columns and files, values, and the checksums of rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from lstmsim.studies.sweep.spec import Value

__all__ = ["beside", "checksum", "locked", "marks", "quoted", "spelled"]


def beside(path: str) -> tuple[str, ...]:
    """Name the files that SQLite may write, and remove, beside a store.

    >>> beside("out/sweep.sqlite")
    ('out/sweep.sqlite-journal', 'out/sweep.sqlite-wal', 'out/sweep.sqlite-shm')
    """
    return tuple(f"{path}-{each}" for each in ("journal", "wal", "shm"))


def quoted(name: str) -> str:
    """Write a column's name in SQL.

    >>> quoted("ep")
    '"ep"'
    """
    return '"' + name.replace('"', '""') + '"'


def checksum(values: Iterable[Any]) -> str:
    """Give the checksum of a row of these values; a row that is read back has the same.

    >>> checksum(["a", 1, 2.5, None]) == checksum(("a", 1, 2.5, None)) != checksum(["a", 1, 2.25, None])
    True
    """
    # SQLite has no minus zero and no NaN.
    plain = [(float(each) + 0.0 if each == each else None) if isinstance(each, float) else each for each in values]
    text = repr(plain)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def locked(error: object) -> bool:
    """Say whether an error of SQLite means that another process has the file.

    >>> locked(sqlite3.OperationalError("database is locked"))
    True
    """
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def spelled(value: Value) -> Value:
    """Give a value as SQLite keeps it. SQLite knows no truth values: they would come back as 1 and 0.

    >>> spelled(True), spelled(1)
    ('true', 1)
    """
    return str(value).lower() if isinstance(value, bool) else value


def marks(rows: Sequence[Sequence[Any]]) -> str:
    """Write an SQL mark for each value of a row, and one for its checksum.

    >>> marks([("a", 1)])
    '?, ?, ?'
    """
    return ", ".join("?" * (len(rows[0]) + 1))
