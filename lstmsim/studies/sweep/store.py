"""The one file of a sweep: SQLite, written by one process, complete up to the last commit whatever ends it.

`results` has what was computed by key, `points` the values of each point of the present sweep and its key, `sweep` both
in the order of the points, `timings` the wall times. Rows carry checksums: those that do not match are computed anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from marshal import dumps
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.studies.sweep.columns import NUMBERS
from lstmsim.studies.sweep.evaluate import Rows


def sidecars(path: str) -> tuple[str, ...]:
    """Name the files that SQLite may write, and remove, next to a store."""
    return tuple(f"{path}-{each}" for each in ("journal", "wal", "shm"))


def quoted(name: str) -> str:
    """Write a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def checksum(values: Sequence[Any]) -> str:
    """Give the checksum of a row of plain values; a row that is read back has the same."""
    # version 2 has no references: equal values have equal bytes, and floats all of their bits
    return blake2b(dumps(tuple(values), 2), digest_size=8).hexdigest()


def _locked(error: object) -> bool:
    """Whether an error of SQLite means that another process has the file."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


FORMAT = "lstmsim sweep 3"
#: Formats of before: rows without checksums, and with others.
_OLDER = ("lstmsim sweep 1", "lstmsim sweep 2")
#: Part of the identity that `begin` gets: to be raised when values and reasons are spelled in another way than before.
SPELLING = "2"
#: How often SQLite waits for the disk: so often that a loss of power damages no file. Tests do without.
SYNCHRONOUS = "NORMAL"
#: What can become of a point.
STATUSES = ("done", "infeasible", "failed")
#: Errors that say nothing about the file: a full or broken disk, no permission, another process.
_MACHINE = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
)
_WRITES = "another process writes to it"
#: A commit waits for the disk, so there are no more of them than a second of lost work asks for.
COMMIT_SECONDS = 0.5
#: Memory for pages of the file: keys come in no order, so that each commit reads and writes all of it.
_CACHE_KIB = 65_536
#: How long to wait for that process.
_PATIENCE_SECONDS = 1.0


class Store:
    """An open file; `with` closes it. `InputError` for a file that is no sweep's, or that another process holds.

    create: whether it is made where it is missing, and may be written to.
    dropped: rows that were dropped so far because they were damaged or had no checksum.
    rebuilt: whether `begin` had to write the file's description of its sweep anew, for the same reason.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        self.path = os.fspath(path)
        self.dropped = 0
        self.rebuilt = False
        self._added: list[Sequence[Any]] = []
        self._written = time.monotonic()
        if not create and not os.path.isfile(self.path):
            raise InputError(f"no file called {self.path!r}; `lstmsim sweep` writes one")
        try:
            self.sql = sqlite3.connect(self.path, timeout=_PATIENCE_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(Mistake(self.path, f"cannot be opened ({error})")) from None
        try:
            self._open(create)
        except BaseException:
            self.sql.close()
            if create and os.path.isfile(self.path) and not os.path.getsize(self.path):
                os.unlink(self.path)
            raise

    def _open(self, create: bool) -> None:
        """Take the lock and check the format."""
        try:
            self.sql.execute("PRAGMA locking_mode = EXCLUSIVE" if create else "PRAGMA query_only = ON")
            self.sql.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            self.sql.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            tables = {name for (name,) in self.sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if create:
                # Taking the lock now, not at the first result.
                self.sql.execute("BEGIN EXCLUSIVE")
                # before anything is written: a file that is refused keeps its bytes
                (found,) = next(self.sql.execute("PRAGMA quick_check(1)"))
                if found != "ok":
                    raise self.damage(" ".join(found.split()))
                with self._said():
                    for (view,) in list(self.sql.execute("SELECT name FROM sqlite_master WHERE type = 'view'")):
                        self.sql.execute(f"SELECT * FROM {quoted(view)} LIMIT 0")
                if "meta" in tables and self.meta("format") in _OLDER:
                    self._clear()
                    tables = set()
                if not tables:
                    self._create()
                self.sql.execute("COMMIT")
        except (sqlite3.Error, UnicodeError) as error:
            if _of_the_machine(error) and not _locked(error):
                raise LstmsimError(f"{self.path}: {error}") from None
            text = _WRITES if _locked(error) else f"is no table of a sweep ({error})"
            raise InputError(Mistake(self.path, text)) from None
        if "meta" in tables and self.meta("format") in _OLDER:
            text = "was written by an older lstmsim, without these checksums; its own `lstmsim sweep` computes it anew"
            raise InputError(Mistake(self.path, text))
        if tables and ("meta" not in tables or self.meta("format") != FORMAT):
            raise InputError(Mistake(self.path, "is no table of a sweep that this version of lstmsim can read"))
        if tables and not create:
            self.check_meta("the `lstmsim sweep` that wrote it mends it")

    def _create(self) -> None:
        numbers = ", ".join(quoted(each) for each in NUMBERS)
        self.sql.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID")
        self.sql.execute(
            f"CREATE TABLE results (key TEXT PRIMARY KEY, status TEXT NOT NULL, {numbers}, reason TEXT, "
            "checksum TEXT NOT NULL) WITHOUT ROWID"
        )
        self.sql.execute("CREATE TABLE timings (point INTEGER PRIMARY KEY, seconds REAL NOT NULL)")
        self.put_meta([("format", FORMAT)])

    def _clear(self) -> None:
        """Drop everything of a store of an older format."""
        self.dropped += next(self.sql.execute("SELECT count(*) FROM results"))[0]
        self.sql.execute("DROP VIEW IF EXISTS sweep")
        for name in ("points", "timings", "results", "meta"):
            self.sql.execute(f"DROP TABLE IF EXISTS {name}")

    def mend(self) -> None:
        """Drop results and points that do not match their checksums, so that they are computed anew."""
        if self.meta("identity") is None:
            return
        keys = [row[0] for row in self.read("SELECT * FROM results") if checksum(row[:-1]) != row[-1]]
        points = [row[0] for row in self.read("SELECT * FROM points") if checksum(row[:-1]) != row[-1]]
        self.dropped += len(keys) + len(points)
        with self.transaction():
            self.sql.executemany("DELETE FROM results WHERE key = ?", [(each,) for each in keys])
            self.sql.executemany("DELETE FROM points WHERE point = ?", [(each,) for each in points])

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.add(last=True)
        finally:
            self.sql.close()

    def meta(self, name: str) -> str | None:
        """Give a text about the whole file; None if there is no text of that name."""
        rows = list(self.read("SELECT content FROM meta WHERE name = ?", [name]))
        return str(rows[0][0]) if rows else None

    def put_meta(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Write texts (name, content) about the whole file, and the checksum of all of them."""
        self.sql.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", pairs)
        self.sql.execute("INSERT OR REPLACE INTO meta VALUES ('checksum', ?)", [self._meta_checksum()])

    def check_meta(self, remedy: str) -> None:
        """Raise `InputError` with a remedy if the file's description of its sweep is damaged."""
        if self.meta("checksum") != self._meta_checksum():
            text = f"is damaged: the description of its sweep has no checksum or does not match it; {remedy}"
            raise InputError(Mistake(self.path, text))

    def _meta_checksum(self) -> str:
        rows = self.read("SELECT name, content FROM meta WHERE name != 'checksum' ORDER BY name")
        return checksum([each for row in rows for each in row])

    def read(self, text: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Give the rows of a query; `InputError` if the file is damaged."""
        try:
            yield from self.sql.execute(text, values)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self.damage(error) from None

    def damage(self, why: object) -> InputError:
        """Make the error for a file that does not hold what was written, or that another process holds."""
        text = _WRITES if _locked(why) else f"is damaged ({why}); a sweep without that file begins anew"
        return InputError(Mistake(self.path, text))

    def begin(
        self, identity: str, axes: Sequence[tuple[str, Sequence[str]]], total: int, derived: Sequence[str] = ()
    ) -> bool:
        """Make the file one of this sweep; say whether it was another sweep's before. Results with equal keys stay.

        identity, total: what names the sweep, and its number of points.
        axes, derived: (name, paths) of all columns, and names of the computed ones.
        """
        self.rebuilt = self.meta("checksum") != self._meta_checksum()
        if not self.rebuilt and self.meta("identity") == identity:
            return False
        columns = "".join(f", {quoted(name)}" for name, _ in axes)
        shown = ["p.point", *(f"p.{quoted(name)}" for name, _ in axes), "r.status"]
        shown += [*(f"r.{quoted(each)}" for each in NUMBERS), "r.reason", "p.key"]
        described = json.dumps([[name, list(paths)] for name, paths in axes])
        before = self.meta("identity") is not None
        with self.transaction():
            self.sql.execute("DROP VIEW IF EXISTS sweep")
            self.sql.execute("DROP TABLE IF EXISTS points")
            self.sql.execute("DELETE FROM timings")
            self.sql.execute("DELETE FROM results WHERE status != 'done'")
            self.sql.execute(
                f"CREATE TABLE points (point INTEGER PRIMARY KEY, key TEXT NOT NULL{columns}, "
                '"row checksum" TEXT NOT NULL)'
            )
            self.sql.execute(
                f"CREATE VIEW sweep AS SELECT {', '.join(shown)} "
                "FROM points p JOIN results r ON r.key = p.key ORDER BY p.point"
            )
            self.sql.execute("DELETE FROM meta WHERE name != 'format'")
            pairs = [("identity", identity), ("axes", described), ("total", str(total))]
            self.put_meta([*pairs, ("derived", json.dumps(list(derived)))])
        return before

    def forget(self) -> None:
        """Drop every point and result."""
        with self.transaction():
            self.sql.execute("DELETE FROM meta WHERE name = 'identity'")
            self.put_meta()
            self.sql.execute("DELETE FROM results")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all of the block or nothing of it, also with blocks inside it; `LstmsimError` for a full disk."""
        within = self.sql.in_transaction
        if within:
            yield
            return
        try:
            with self._said():
                self.sql.execute("BEGIN IMMEDIATE")
                yield
                self.sql.execute("COMMIT")
        finally:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Take back what is not committed, and say why, where SQLite cannot go on."""
        try:
            yield
        except sqlite3.Error as error:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")
            # a damaged head of the file may call it read-only
            claimed = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY and os.access(self.path, os.W_OK)
            if claimed or not _of_the_machine(error):
                raise self.damage(error) from None
            raise LstmsimError(f"{self.path}: {error}; results up to the last commit are kept") from None

    def record(self, rows: Rows) -> None:
        """Write outcomes, all in one commit; done results are never replaced."""
        self.take(rows)
        self.commit()

    def take(self, rows: Rows) -> None:
        """Write outcomes that last from the next `commit` on."""
        if not rows.points:
            return
        with self._said():
            if not self.sql.in_transaction:
                self.sql.execute("BEGIN IMMEDIATE")
            self.put(rows.results, rows.points)
            self.sql.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?)", rows.timings)

    def commit(self) -> None:
        """Let all that was taken last."""
        with self._said():
            if self.sql.in_transaction:
                self.sql.execute("COMMIT")

    def put(self, results: Sequence[Sequence[Any]], points: Sequence[Sequence[Any]]) -> None:
        """Insert rows of `results` and `points`; a failed result makes room for another one."""
        if results:
            changed = ", ".join(
                f"{quoted(each)} = excluded.{quoted(each)}" for each in ("status", *NUMBERS, "reason", "checksum")
            )
            again = f"ON CONFLICT (key) DO UPDATE SET {changed} WHERE results.status = 'failed'"
            checked = [(*row, checksum(row)) for row in results]
            self.sql.executemany(f"INSERT INTO results VALUES ({_marks(results)}) {again}", checked)
        if points:
            checked = [(*row, checksum(row)) for row in points]
            self.sql.executemany(f"INSERT OR REPLACE INTO points VALUES ({_marks(points)})", checked)

    def tidy(self) -> None:
        """Forget failures that belong to no point any more."""
        with self.transaction():
            self.sql.execute("DELETE FROM results WHERE status = 'failed' AND key NOT IN (SELECT key FROM points)")

    def has(self, key: str) -> bool:
        """Say whether the scenario with that key has been simulated."""
        return bool(list(self.read("SELECT 1 FROM results WHERE key = ? AND status = 'done'", [key])))

    def numbers(self, key: str) -> tuple[Any, ...] | None:
        """Give the `NUMBERS` of a simulated scenario; None if there are none. A damaged row is dropped."""
        rows = list(self.read("SELECT * FROM results WHERE key = ? AND status = 'done'", [key]))
        if rows and checksum(rows[0][:-1]) == rows[0][-1]:
            return rows[0][2:-2]
        self.sql.executemany("DELETE FROM results WHERE key = ?", [row[:1] for row in rows])
        return None

    def add(self, *rows: Sequence[Any], last: bool = False) -> None:
        """Insert rows of `results` that belong to no point: after a while, or with the `last` ones."""
        self._added += rows
        if self._added and (last or time.monotonic() - self._written >= COMMIT_SECONDS):
            with self.transaction():
                self.put(self._added, [])
            self._added, self._written = [], time.monotonic()

    def has_any(self) -> bool:
        """Say whether there are simulated results that belong to no point."""
        text = "SELECT 1 FROM results WHERE status = 'done' AND key NOT IN (SELECT key FROM points) LIMIT 1"
        return bool(list(self.read(text)))

    def has_points(self) -> bool:
        """Say whether any point has been written."""
        return bool(list(self.read("SELECT 1 FROM points LIMIT 1")))

    def statuses(self) -> Iterator[tuple[int, str]]:
        """Give every point that has a result, with its status."""
        total = self.total()
        for point, status in self.read("SELECT p.point, r.status FROM points p JOIN results r ON r.key = p.key"):
            if status not in STATUSES or not 0 <= point < total:
                raise self.damage(f"point {point}, status {status!r}")
            yield point, status

    def reasons(self, status: str) -> list[tuple[str, int]]:
        """Give the reasons of points with that status, and how many points have each, the most frequent first."""
        text = "SELECT reason, count(*) FROM sweep WHERE status = ? GROUP BY reason ORDER BY count(*) DESC, min(point)"
        return [(str(reason), int(count)) for reason, count in self.read(text, [status])]

    def axes(self) -> list[tuple[str, tuple[str, ...]]]:
        """Give names and paths of the axes, then of derived values."""
        return [(str(name), tuple(paths)) for name, paths in json.loads(self.meta("axes") or "[]")]

    def derived(self) -> list[str]:
        """Give the names of axes that are computed from others."""
        return [str(name) for name in json.loads(self.meta("derived") or "[]")]

    def total(self) -> int:
        """Give the number of points of the whole sweep."""
        return int(self.meta("total") or 0)

    def rows(self, columns: Sequence[str], where: str = "") -> Iterator[tuple[Any, ...]]:
        """Give some columns of the table, in the order of the points; `where` is never from a user."""
        return self.read(f"SELECT {', '.join(quoted(each) for each in columns)} FROM sweep {where}")


def _marks(rows: Sequence[Sequence[Any]]) -> str:
    """An SQL mark for each value of a row, and one for its checksum."""
    return ", ".join("?" * (len(rows[0]) + 1))


def _of_the_machine(error: Exception) -> bool:
    """Tell whether an error says nothing about the file."""
    # The lowest byte is the kind of error, the other bytes say more.
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _MACHINE
