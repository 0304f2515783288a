"""A folder of generated files: all or none, and what others wrote stays."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from lstmsim.base import folder as folders
from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.base.files import own_ledger, readable_file
from lstmsim.base.folder import LIST, check_folder, write_folder


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def contents(folder: str) -> dict[str, str]:
    files = (each for each in Path(folder).rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_text() for each in files if each.name != LIST}


def test_what_others_wrote_stays() -> None:
    Path("out").mkdir()
    Path("out/notes.txt").write_text("mine")
    write_folder("out", {"a.txt": "1", "b/c.txt": "2"})
    assert contents("out") == {"notes.txt": "mine", "a.txt": "1", "b/c.txt": "2"}
    digest = hashlib.sha256(b"2").hexdigest()
    assert f"{digest}  b/c.txt\n" in Path("out", LIST).read_text()
    done = write_folder("out", {"a.txt": "3"})
    assert (done.kept, done.removed) == ((), ("b/c.txt",))
    assert contents("out") == {"notes.txt": "mine", "a.txt": "3"}
    assert not Path("out/b").exists()


def test_a_file_of_others_is_not_replaced_unless_asked() -> None:
    Path("out").mkdir()
    Path("out/a.txt").write_text("mine")
    with pytest.raises(InputError, match=r"^out/a.txt: exists and was not written by lstmsim"):
        write_folder("out", {"a.txt": "1", "b.txt": "2"})
    assert contents("out") == {"a.txt": "mine"}
    write_folder("out", {"a.txt": "1"}, replace=True)
    assert contents("out") == {"a.txt": "1"}


def test_a_changed_file_stays_as_often_as_it_is_written() -> None:
    write_folder("out", {"a.txt": "1", "b.txt": "2"})
    Path("out/a.txt").write_text("mine")
    for _ in range(2):
        done = write_folder("out", {"a.txt": "3", "b.txt": "4"})
        assert (done.kept, contents("out")) == (("a.txt",), {"a.txt": "mine", "b.txt": "4"})
    # it stays too if it is no longer needed, and is a file of others then
    done = write_folder("out", {"b.txt": "5"})
    assert (done.removed, contents("out")) == ((), {"a.txt": "mine", "b.txt": "5"})
    Path("out/b.txt").unlink()
    assert write_folder("out", {"b.txt": "6"}).kept == ()


def test_nothing_is_left_of_a_folder_that_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder("old", {"a.txt": "1"})
    written = folders.whole_file

    def full(path: str) -> object:
        if path.endswith("z.txt"):
            raise KeyboardInterrupt
        return written(path)

    monkeypatch.setattr(folders, "whole_file", full)
    for name in ("new", "old"):
        with pytest.raises(KeyboardInterrupt):
            write_folder(name, {"a.txt": "2", "z.txt": "3"})
    assert os.listdir() == ["old"]
    assert contents("old") == {"a.txt": "1"}


def test_folders_that_cannot_be() -> None:
    Path("file").write_text("")
    with pytest.raises(InputError, match=r"^folder file: is a file, expected a folder"):
        check_folder("file", {"a.txt": ""})
    with pytest.raises(InputError, match=r"^folder no/such: there is no folder"):
        check_folder("no/such", {"a.txt": ""})
    Path("out/a.txt").mkdir(parents=True)
    with pytest.raises(InputError, match=r"^out/a.txt: is a folder, expected a file"):
        check_folder("out", {"a.txt": ""})


def test_a_list_leads_nowhere_else() -> None:
    """Whoever changes the list cannot have files outside removed."""
    Path("precious.txt").write_text("1")
    write_folder("out", {"a.txt": "1"})
    digest = hashlib.sha256(b"1").hexdigest()
    with Path("out", LIST).open("a") as file:
        file.write(f"{digest}  ../precious.txt\n{digest}  {Path('precious.txt').resolve()}\n")
    assert write_folder("out", {"a.txt": "2"}).removed == ()
    assert Path("precious.txt").read_text() == "1"


def in_place_of(kind: str, path: Path, target: Path) -> None:
    """Put a file, a symbolic link or a pipe at a path."""
    if kind == "file":
        path.write_text("mine")
    elif kind == "link":
        path.symlink_to(target)
    else:
        os.mkfifo(path)


WORDS = {"file": "is a file", "link": "is a symbolic link", "pipe": "is a device, a pipe or a socket"}


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_every_parent_is_a_real_folder(kind: str, replace: bool) -> None:
    """Found before anything is written; a later call with the obstacle gone writes all."""
    Path("other").mkdir()
    Path("other/c.txt").write_text("2")
    for folder in ("new", "old"):
        Path(folder).mkdir()
        if folder == "old":
            write_folder(folder, {"a.txt": "1", "b/c.txt": "2"})
            Path("old/b/c.txt").unlink()
            Path("old/b").rmdir()
        in_place_of(kind, Path(folder, "b"), Path("other").resolve())
        before = sorted(os.listdir(folder))
        with pytest.raises(InputError, match=rf"^{folder}/b: {WORDS[kind]}, expected a folder$"):
            write_folder(folder, {"a.txt": "3", "b/c.txt": "4", "b/d.txt": "5"}, replace=replace)
        assert (sorted(os.listdir(folder)), contents("other")) == (before, {"c.txt": "2"})
        Path(folder, "b").unlink()
        assert write_folder(folder, {"a.txt": "3", "b/c.txt": "4"}).kept == ()


@pytest.mark.parametrize("name", ["a.txt", LIST])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_stands_in_the_place_of_a_file_is_a_file(kind: str, name: str) -> None:
    Path("mine.txt").write_text("mine")
    write_folder("out", {"a.txt": "1"})
    Path("out", name).unlink()
    in_place_of(kind, Path("out", name), Path("mine.txt").resolve())
    for replace in (False, True):
        with pytest.raises(InputError, match=rf"^out/{name}: {WORDS[kind]}, expected a file$"):
            write_folder("out", {"a.txt": "2"}, replace=replace)
    with pytest.raises(InputError, match=rf"^out/{LIST}: " if name == LIST else "^out/a.txt: "):
        check_folder("out", {} if name == LIST else {"a.txt": ""})
    assert Path("mine.txt").read_text() == "mine"


def test_the_list_leads_through_no_link() -> None:
    """Neither with files of an earlier call in a folder that became a link, nor with lines that somebody wrote."""
    Path("other").mkdir()
    for name in ("c.txt", "precious.txt"):
        Path("other", name).write_text("2")
    write_folder("out", {"a.txt": "1", "b/c.txt": "2"})
    Path("out/b/c.txt").unlink()
    Path("out/b").rmdir()
    Path("out/b").symlink_to(Path("other").resolve())
    os.mkfifo("out/pipe")
    digest = hashlib.sha256(b"2").hexdigest()
    with Path("out", LIST).open("a") as file:
        file.write(f"{digest}  b/precious.txt\n{digest}  pipe\n{digest}  \n{digest}  b\0\n{digest}  {'n' * 300}\n")
    assert write_folder("out", {"a.txt": "3"}).removed == ()
    assert sorted(os.listdir("other")) == ["c.txt", "precious.txt"]
    assert Path("out/pipe").is_fifo()


def test_an_input_is_not_replaced() -> None:
    with own_ledger():
        write_folder("out", {"a.txt": "1"})
        Path("out/b.txt").write_text("input")
        with readable_file("out/b.txt"):
            pass
        with pytest.raises(InputError, match="is also the input"):
            write_folder("out", {"a.txt": "2", "b.txt": "3"}, replace=True)
        assert contents("out") == {"a.txt": "1", "b.txt": "input"}


def test_a_list_with_other_spellings_of_a_name_removes_nothing() -> None:
    write_folder("out", {"a.txt": "1", "b/c.txt": "2"})
    own = Path("out", LIST).read_text()
    other = own.replace("  a.txt", "  ./a.txt").replace("  b/c.txt", "  b//./c.txt")
    Path("out", LIST).write_text(own + other)
    assert write_folder("out", {"a.txt": "1", "b/c.txt": "2"}).removed == ()
    assert contents("out") == {"a.txt": "1", "b/c.txt": "2"}


def test_a_folder_of_another_disk_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder("out", {"a.txt": "1", "b/c.txt": "2"})
    true = os.lstat

    def elsewhere(path: str) -> os.stat_result:
        found = true(path)
        return os.stat_result([*found[:2], found.st_dev + 1, *found[3:]]) if path.endswith("/b") else found

    monkeypatch.setattr(folders.os, "lstat", elsewhere)
    with pytest.raises(InputError, match=r"^out/b: is on another disk than the folder"):
        write_folder("out", {"a.txt": "3", "b/c.txt": "4"})
    assert contents("out") == {"a.txt": "1", "b/c.txt": "2"}


@pytest.mark.parametrize("broken", ["fsync", "makedirs"])
def test_a_full_disk_names_the_folder_that_was_asked_for(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(LstmsimError) as error:
        write_folder(str(tmp_path / "design"), {"rtl/a.v": "module a; endmodule\n"})
    where = tmp_path / "design" / ("rtl/a.v" if broken == "fsync" else "")
    assert str(error.value) == f"{where}: no space left on the disk; nothing was written to it"
    assert not isinstance(error.value, InputError)
    assert list(tmp_path.iterdir()) == []
