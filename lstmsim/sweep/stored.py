"""What a sweep's store is made of besides SQL: names of columns and files, and the checksums of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

__all__ = ["beside", "checksum", "quoted"]


def beside(path: str) -> tuple[str, ...]:
    """The files that SQLite may write, and remove, beside a store.

    >>> beside("out/sweep.sqlite")
    ('out/sweep.sqlite-journal', 'out/sweep.sqlite-wal', 'out/sweep.sqlite-shm')
    """
    return tuple(f"{path}-{each}" for each in ("journal", "wal", "shm"))


def quoted(name: str) -> str:
    """A column's name in SQL.

    >>> quoted("ep")
    '"ep"'
    """
    return '"' + name.replace('"', '""') + '"'


def checksum(values: Iterable[Any]) -> str:
    """What a row of these values carries; equal for a row that is read back.

    >>> checksum(["a", 1, 2.5, None]) == checksum(("a", 1, 2.5, None)) != checksum(["a", 1, 2.25, None])
    True
    """
    # SQLite knows no minus zero and no NaN.
    plain = [(each + 0.0 if each == each else None) if isinstance(each, float) else each for each in values]
    text = repr([float(each) if isinstance(each, float) else each for each in plain])
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
