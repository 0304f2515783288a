"""The file of a sweep: damage is told, and old formats are written anew."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.studies.sweep import evaluate, store
from lstmsim.studies.sweep.run import merge, prepare
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store
from tests.studies.sweep.specs import rewritten, spec, table

PAGE_BYTES = 4096


def changed(path: Path, *statements: str) -> None:
    sql = sqlite3.connect(path)
    for statement in statements:
        sql.execute(statement)
    sql.commit()
    sql.close()


def swept(path: Path) -> Path:
    run_sweep(spec(), path.parent, jobs=1)
    return path.with_suffix(".csv")


def merged(path: Path) -> Path:
    return Path(merge(path.with_name("all.sqlite"), [path]).tables[0])


@pytest.mark.parametrize("use", [swept, merged])
def test_a_damaged_file_is_named_whatever_page_it_is(whole: Path, tmp_path: Path, use: Callable[[Path], Path]) -> None:
    content, path = (whole / "sweep.sqlite").read_bytes(), tmp_path / "sweep.sqlite"
    said: list[str] = []
    for start in range(0, len(content), PAGE_BYTES):
        path.write_bytes(content[:start] + b"\xff" * PAGE_BYTES + content[start + PAGE_BYTES :])
        try:
            written = use(path)
        except InputError as error:
            said.append(str(error))
        else:
            # No content is read from this page.
            assert written.read_bytes() == table(whole)
    # The first page, the page of the points and the pages of the results are noticed, at least.
    assert len(said) >= 4
    assert {each.partition(": ")[0] for each in said} == {str(path)}
    assert all("is damaged" in each or "is no table of a sweep" in each for each in said)


def _overwritten(path: Path, offset: int, content: bytes) -> bytes:
    """The file with other bytes in one place."""
    data = path.read_bytes()
    path.write_bytes(data[:offset] + content + data[offset + len(content) :])
    return path.read_bytes()


def _damages(path: Path) -> list[tuple[int, bytes]]:
    """A page without content, a column that the view names and nobody has, a version that SQLite only reads."""
    data = path.read_bytes()
    return [(len(data) - PAGE_BYTES, bytes(PAGE_BYTES)), (data.index(b"r.reason"), b"r.re.oad"), (18, b"\x07")]


@pytest.mark.parametrize("which", range(3))
def test_a_damaged_file_that_is_refused_keeps_its_bytes(whole: Path, tmp_path: Path, which: int) -> None:
    path = Path(shutil.copy(whole / "sweep.sqlite", tmp_path))
    content = _overwritten(path, *_damages(path)[which])
    with pytest.raises(InputError, match=r"sweep\.sqlite: is (damaged|no table of a sweep) \("):
        swept(path)
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.glob("sweep.sqlite*")] == ["sweep.sqlite"]


@pytest.mark.slow
@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET content = '[[' WHERE name = 'axes'",
        "UPDATE meta SET content = '[]' WHERE name = 'axes'",
        "UPDATE meta SET content = 'many' WHERE name = 'total'",
        "UPDATE meta SET content = '59' WHERE name = 'total'",
        "UPDATE meta SET content = '[\"ep\"]' WHERE name = 'derived'",
        "UPDATE meta SET content = '[[\"ep\", true]]' WHERE name = 'objectives'",
        "UPDATE meta SET content = 'x' WHERE name = 'identity'",
        "UPDATE meta SET content = x'00ff' WHERE name = 'axes'",
        "UPDATE meta SET content = '' WHERE name = 'checksum'",
        "DELETE FROM meta WHERE name = 'checksum'",
        "DELETE FROM meta WHERE name = 'identity'",
        "INSERT INTO meta VALUES ('more', '')",
    ],
)
def test_what_a_file_says_of_its_sweep_is_written_anew_where_it_is_damaged(
    whole: Path, tmp_path: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sweep.sqlite"
    shutil.copy(whole / "sweep.sqlite", path)
    changed(path, statement)
    said = r"sweep\.sqlite: is damaged: the description of its sweep has no checksum or does not match it"
    with pytest.raises(InputError, match=said + "; the `lstmsim sweep` that wrote it mends it"):
        merge(tmp_path / "all.sqlite", [path])
    assert not (tmp_path / "all.sqlite").exists()
    with pytest.raises(InputError, match=said + "; a merge without that file begins anew"):
        merge(path, [whole / "sweep.sqlite"])
    with pytest.raises(InputError, match=said):
        Store(path, create=False)
    # Simulated results are taken over.
    monkeypatch.setattr(evaluate, "simulated", lambda *_: 1 // 0)
    result = run_sweep(spec(), tmp_path, jobs=1)
    assert (result.rebuilt, result.dropped, result.progress.failed) == (True, 0, 0)
    assert table(tmp_path) == table(whole)
    assert not run_sweep(spec(), tmp_path, jobs=1).rebuilt
    assert merged(path).read_bytes() == table(whole)


def test_content_that_was_never_written_is_damage(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "sweep.sqlite"
    shutil.copy(whole / "sweep.sqlite", path)
    changed(path, "DROP TABLE points")
    with pytest.raises(InputError, match=r"sweep\.sqlite: is damaged"):
        merge(tmp_path / "all.sqlite", [path])
    assert not (tmp_path / "all.sqlite").exists()
    with pytest.raises(InputError, match=r"sweep\.sqlite: is damaged"):
        run_sweep(spec(), tmp_path, jobs=1)


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("UPDATE results SET status = 'dome' WHERE key = (SELECT key FROM sweep WHERE status = 'done' LIMIT 1)", 1),
        ("UPDATE results SET makespan_cycles = makespan_cycles + 1 WHERE status = 'done'", None),
        ("UPDATE results SET makespan_cycles = 'many' WHERE status = 'done'", None),
        ("UPDATE results SET latency_ms_mean = 0 WHERE key = (SELECT key FROM points WHERE point = 3)", 1),
        ("UPDATE results SET reason = x'00ff' WHERE key = (SELECT key FROM points WHERE point = 3)", 1),
        ("UPDATE results SET checksum = '' WHERE key = (SELECT key FROM points WHERE point = 3)", 1),
        ("UPDATE points SET point = 1000000 WHERE point = 59", 1),
        ("UPDATE points SET point = -1 WHERE point = 0", 1),
        ("UPDATE points SET ep = ep + 1 WHERE point = 7", 1),
        ("UPDATE points SET key = (SELECT key FROM points WHERE point = 3) WHERE point = 2", 1),
    ],
)
def test_damaged_rows_are_computed_anew_and_never_exported(
    whole: Path, tmp_path: Path, statement: str, rows: int | None
) -> None:
    path = tmp_path / "sweep.sqlite"
    shutil.copy(whole / "sweep.sqlite", path)
    changed(path, statement)
    with pytest.raises(InputError, match=r"sweep\.sqlite: is damaged: point -?\d+ does not match its checksum"):
        merge(tmp_path / "all.sqlite", [path])
    assert not (tmp_path / "all.sqlite").exists()
    result = run_sweep(spec(), tmp_path, jobs=1)
    assert result.dropped == rows if rows else result.dropped > 1
    assert table(tmp_path) == table(whole)
    assert run_sweep(spec(), tmp_path, jobs=1).dropped == 0
    assert merged(path).read_bytes() == table(whole)


def test_a_damaged_output_of_a_merge_takes_the_rows_of_the_shards(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.sqlite"
    merge(out, [whole / "sweep.sqlite"])
    changed(out, "UPDATE results SET makespan_cycles = makespan_cycles + 1 WHERE status = 'done'")
    merge(out, [whole / "sweep.sqlite"])
    assert table(tmp_path, "all") == table(whole)


@pytest.mark.parametrize("number", [1, 2])
def test_a_store_with_other_checksums_or_none_is_begun_anew(whole: Path, tmp_path: Path, number: int) -> None:
    path = tmp_path / "sweep.sqlite"
    shutil.copy(whole / "sweep.sqlite", path)
    old = f"UPDATE meta SET content = 'lstmsim sweep {number}' WHERE name = 'format'"
    lost = ("DROP VIEW sweep", "ALTER TABLE results DROP COLUMN checksum")
    changed(path, old, *(lost if number == 1 else ("UPDATE results SET checksum = 'of before'",)))
    with pytest.raises(InputError, match="was written by an older lstmsim, without these checksums"):
        merge(tmp_path / "all.sqlite", [path])
    assert run_sweep(spec(), tmp_path, jobs=1).dropped > 1
    assert table(tmp_path) == table(whole)


def test_a_file_that_is_being_written_is_not_called_damaged(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_PATIENCE_SECONDS", 0.05)
    path = tmp_path / "sweep.sqlite"
    shutil.copy(whole / "sweep.sqlite", path)
    with Store(path, create=True), pytest.raises(InputError, match="another process writes to it"):
        merge(tmp_path / "all.sqlite", [path])


BANKS: dict[str, Any] = {
    "flag": {"path": "jobs.0.name", "values": [True, False, None, ""]},
    "wide": {"path": "chip.cores.0.ep", "values": [4, 8]},
    "big": {"path": "jobs.0.arrival", "expression": "wide > 4"},
}


def test_a_file_of_an_earlier_spelling_is_written_anew(tmp_path: Path) -> None:
    run_sweep(spec(axes=BANKS, constraints=[]), tmp_path / "new", jobs=1)
    run_sweep(spec(axes=BANKS, constraints=[]), tmp_path, jobs=1)
    assert b",true," in table(tmp_path)
    identity = prepare(spec(axes=BANKS, constraints=[])).identity
    rewritten(
        tmp_path / "sweep.sqlite",
        "UPDATE points SET big = 1 WHERE big = 'true'",
        "UPDATE results SET reason = 'at home/' || reason",
        f"UPDATE meta SET content = '{identity}' WHERE name = 'identity'",
    )
    run_sweep(spec(axes=BANKS, constraints=[]), tmp_path, jobs=1)
    assert table(tmp_path) == table(tmp_path / "new")


def test_a_full_disk_is_no_mistake_of_the_file_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(self: Store) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(Store, "_create", full)
    with pytest.raises(LstmsimError, match=r"sweep\.sqlite: database or disk is full$") as reported:
        run_sweep(spec(), tmp_path / "out", jobs=1)
    assert not isinstance(reported.value, InputError)
    assert not (tmp_path / "out").exists()
    (tmp_path / "own").mkdir()
    with pytest.raises(LstmsimError):
        run_sweep(spec(), tmp_path / "own", jobs=1)
    assert list((tmp_path / "own").iterdir()) == []
