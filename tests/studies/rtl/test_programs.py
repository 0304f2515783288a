"""Programs of others end with the one that started them, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lstmsim.base.processes import ending_child, run_program

#: Starts a program that starts another; both would run for minutes.
_PARENT = """
from lstmsim.base.processes import run_program, scratch_folder
with scratch_folder("test") as folder:
    run_program(["sh", "-c", "echo $$ > pids; sleep 300 & echo $! >> pids; touch ready; wait"], folder)
"""


def runs(process: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def waited_for(done: Callable[[], bool]) -> None:
    """Wait until something has come about, for half a minute at most."""
    for _ in range(600):
        if done():
            break
        time.sleep(0.05)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc which processes run")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_programs_and_removes_their_folder(number: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        for _ in range(600):
            if ready := list(tmp_path.glob("lstmsim-test-*/ready")):
                break
            time.sleep(0.05)
        (folder,) = {each.parent for each in ready}
        started = [int(each) for each in (folder / "pids").read_text().split()]
        assert len(started) == 2
        assert all(map(runs, started))
        parent.send_signal(number)
        assert parent.wait(30) == 128 + number
    finally:
        parent.kill()
        parent.wait()
    waited_for(lambda: not any(map(runs, started)))
    assert not any(map(runs, started))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system to end programs with their parent")
def test_a_killed_process_takes_its_programs_with_it(tmp_path: Path) -> None:
    code = "from lstmsim.base.processes import run_program\nrun_program(['sh', '-c', 'echo $$ > pid; exec sleep 300'])"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        waited_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        started = int((tmp_path / "pid").read_text())
        assert runs(started)
    finally:
        parent.kill()
        parent.wait()
    waited_for(lambda: not runs(started))
    assert not runs(started)


def test_temporary_files_of_programs_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = run_program(["sh", "-c", "touch $TMPDIR/left; ls $TMPDIR; echo $TMPDIR"]).output.split()
    with ending_child(["sh", "-c", "touch $TMPDIR/left; echo $TMPDIR; cat"]) as (_, output):
        said += ["left", output.readline().decode().strip()]
    assert said[::2] == ["left", "left"]
    assert all(Path(each).parent == tmp_path for each in said[1::2])
    assert list(tmp_path.iterdir()) == []


#: A command that stops for minutes while it writes the first file of a folder.
_COMMAND = """
import sys, time
from pathlib import Path
from lstmsim.base import folder
from lstmsim.cli.group import lstmsim
def whole_file(path):
    Path(sys.argv[1], "ready").touch()
    time.sleep(300)
folder.whole_file = whole_file
lstmsim(["rtl", sys.argv[2], "--out", sys.argv[1] + "/design", "--timing-only"])
"""


@pytest.mark.slow
def test_a_command_that_is_ended_removes_what_it_has_begun(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("{chip: column-npu-16k, jobs: [{model: lstm-256, steps: 1}]}")
    arguments = [sys.executable, "-c", _COMMAND, str(tmp_path), str(tmp_path / "s.yaml")]
    command = subprocess.Popen(arguments)
    try:
        waited_for((tmp_path / "ready").exists)
        assert [each for each in os.listdir(tmp_path) if each.endswith(".part")]
        command.terminate()
        assert command.wait(30) == 128 + signal.SIGTERM
    finally:
        command.kill()
        command.wait()
    assert sorted(os.listdir(tmp_path)) == ["ready", "s.yaml"]
