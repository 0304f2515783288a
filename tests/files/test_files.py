"""Files appear whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lstmsim.base import files
from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.base.files import readable_file, whole_file


@pytest.fixture(params=["unnamed", "named"])
def both_ways(request, monkeypatch):
    """With the kernel's unnamed files, and as on a system that has none."""
    if request.param == "named":
        monkeypatch.delattr(files.os, "O_TMPFILE", raising=False)
    return request.param


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("mode", "data"), [("w", "é\n"), ("wb", b"\x00\r\n"), ("wz", "é\n")])
def test_new_and_old_files_become_whole(tmp_path, both_ways, mode, data):
    target = tmp_path / "a"
    for text in (data, data + data):
        with whole_file(target, mode) as file:
            file.write(text)
        raw = target.read_bytes()
        expected = text if isinstance(text, bytes) else text.encode()
        assert (gzip.decompress(raw) if mode == "wz" else raw) == expected
    assert list(contents(tmp_path)) == ["a"]


def test_equal_text_packs_to_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with whole_file(tmp_path / name, "wz") as file:
            file.write("same" * 1000)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert b"a.gz" not in (tmp_path / "a.gz").read_bytes()


def write_half(path, mode, error):
    with whole_file(path, mode) as file:
        file.write("half" * 100_000)
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError, FileNotFoundError])
@pytest.mark.parametrize("mode", ["w", "wz"])
def test_an_interrupt_leaves_the_old_file_and_no_litter(tmp_path, both_ways, error, mode):
    (tmp_path / "old").write_bytes(b"old")
    for name in ("old", "new"):
        with pytest.raises(error):
            write_half(tmp_path / name, mode, error)
    assert contents(tmp_path) == {"old": b"old"}


KILLED = """
import sys
from lstmsim.base.files import whole_file
with whole_file(sys.argv[1], sys.argv[2]) as file:
    file.write("x" * 1_000_000)
    file.flush()
    print("half", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="only unnamed files vanish with their process")
@pytest.mark.parametrize("mode", ["w", "wz"])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_kill_leaves_the_old_file_and_no_litter(tmp_path, mode, old):
    target = tmp_path / "trace.json"
    if old is not None:
        target.write_bytes(old)
    command = [sys.executable, "-c", KILLED, str(target), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert contents(tmp_path) == ({} if old is None else {"trace.json": old})


LIMITED = """
import resource, sys
from lstmsim.base.errors import LstmsimError
from lstmsim.base.files import whole_file
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with whole_file(sys.argv[1]) as file:
        file.write("x" * int(sys.argv[2]))
except LstmsimError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("size", [10_100, 1_000_000])
def test_a_disk_that_takes_no_more_is_a_sentence(tmp_path, size):
    target = tmp_path / "a.csv"
    command = [sys.executable, "-c", LIMITED, str(target), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (
        done.stdout
        == f"LstmsimError {target}: the file would be larger than the system allows; nothing was written to it\n"
    )
    assert contents(tmp_path) == {}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
@pytest.mark.parametrize("mode", ["w", "wb", "wz"])
def test_a_full_device_is_a_sentence_and_not_the_users_fault(mode):
    with pytest.raises(LstmsimError, match="/dev/full: no space left") as caught, whole_file("/dev/full", mode) as file:
        file.write(b"x" if mode == "wb" else "x")
    assert not isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("none/a", "no such file or folder"),
        ("folder", "is a folder"),
        ("file/a", "not a folder"),
        ("circle", "circle"),
        ("a" * 300, "too long"),
        ("nul\0", "not a path"),
    ],
)
@pytest.mark.parametrize("opener", [readable_file, whole_file])
def test_paths_that_cannot_be_are_the_users_mistake(tmp_path, opener, path, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to("circle")
    place = str(tmp_path / path)
    with pytest.raises(InputError, match=reason) as caught, opener(place):
        pass
    assert caught.value.mistakes[0].location == place
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["circle", "file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_write_protection_holds(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o400)
    with pytest.raises(InputError, match="permission denied"), whole_file(tmp_path / "old"):
        pass


def test_modes_follow_the_umask_or_the_old_file(tmp_path, both_ways):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o604)
    before = os.umask(0o027)
    try:
        for name in ("old", "new"):
            with whole_file(tmp_path / name) as file:
                file.write("x")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new")] == [0o604, 0o640]


def test_symbolic_links_stay(tmp_path, both_ways):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("later")
    for name in ("link", "dangling"):
        with whole_file(tmp_path / name) as file:
            file.write("new")
        assert (tmp_path / name).is_symlink()
    assert contents(tmp_path) == dict.fromkeys(("real", "link", "later", "dangling"), b"new")


def test_a_pipe_is_written_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with whole_file(tmp_path / "pipe") as file:
        file.write("through")
    reader.join(10)
    assert got == [b"through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


STANDARD_OUTPUT = """
import sys
from lstmsim.base.files import whole_file
print("before", flush=True)
with whole_file(sys.argv[1]) as file:
    file.write("inside\\n")
print("after")
"""


@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_standard_output_stays_open_and_keeps_what_it_has(tmp_path, path, kind):
    command = [sys.executable, "-c", STANDARD_OUTPUT, path]
    if kind == "pipe":
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        with open(tmp_path / "out", "a") as out:
            subprocess.run(command, stdout=out, check=True)
        text = (tmp_path / "out").read_text()
    assert text == "before\ninside\nafter\n"
