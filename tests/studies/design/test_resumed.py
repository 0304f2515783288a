"""Designs that are killed go on; results depend on no number of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import lstmsim
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.sweep.store import Store

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 6, "count": 3}]}
C = "chip.cores.0."
AXES = {
    C + "ep": [4, 8, 16],
    C + "threads": [1, 2, 3, 4],
    C + "accumulator_banks": [2, 3, 4],
    C + "vp": [128, 256, 700],
}
CHILD = """
import os, signal, sys
from lstmsim.studies.sweep.evaluate import Rows
from lstmsim.studies.sweep.store import Store
from tests.studies.design.test_resumed import AXES, SCENARIO
import lstmsim

def killing(self, rows):
    record(self, Rows(*(each[:5] for each in rows)))
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    record, Store.record = Store.record, killing
    lstmsim.design(SCENARIO, "none", axes=AXES, folder=sys.argv[1], jobs=1)
"""


@pytest.mark.slow
def test_a_design_that_is_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, out = tmp_path / "child.py", tmp_path / "out"
    script.write_text(CHILD, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    assert subprocess.run([sys.executable, script, out], env=environment, check=False).returncode == -signal.SIGKILL
    with Store(out / "design.sqlite", create=False) as store:
        kept = [point for point, _ in store.statuses()]
    assert len(kept) == 5
    asked: list[int] = []
    plain = Measure.simulated

    def noted(self: Measure, points: list[int], best: NDArray[np.float64] | None = None) -> object:
        asked.extend(point for point in points if point not in self.known)
        return plain(self, points, best)

    monkeypatch.setattr(Measure, "simulated", noted)
    resumed = lstmsim.design(SCENARIO, "none", axes=AXES, folder=out, jobs=1)
    assert not set(asked) & set(kept)
    whole = lstmsim.design(SCENARIO, "none", axes=AXES, folder=tmp_path / "whole", jobs=1)
    assert replace(resumed, files=()) == replace(whole, files=())
    assert (out / "design.csv").read_bytes() == (tmp_path / "whole" / "design.csv").read_bytes()
    # nothing is left to simulate, whatever is minimised
    asked.clear()
    assert replace(lstmsim.design(SCENARIO, "none", axes=AXES, folder=out, jobs=1), files=()) == replace(
        whole, files=()
    )
    assert asked == []


def test_the_result_depends_on_no_number_of_processes() -> None:
    one, two = (lstmsim.design(SCENARIO, "alveo-u250", axes=AXES, jobs=jobs) for jobs in (1, 2))
    assert one == two
