"""Programs of others end with the one that started them, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
    for _ in range(600):
        if not any(map(runs, started)):
            break
        time.sleep(0.05)
    assert not any(map(runs, started))
    assert list(tmp_path.iterdir()) == []
