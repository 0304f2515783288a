"""Without the native core: the reference engine does the work of the fast one, and that is said once."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.base.errors import EngineWarning
from lstmsim.engines.fast.run import OWN
from lstmsim.engines.reference.run import Feed
from lstmsim.machines.multicore.lines.caches import OWN_LIBRARY, open_caches
from lstmsim.native import library as missing
from lstmsim.program.program import Program
from tests.cli.runner import call
from tests.machines.multicore.chips import TOY

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3}]}


@pytest.fixture(autouse=True)
def _nothing_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN, "absence", "it was not built")
    monkeypatch.setattr(OWN_LIBRARY, "absence", "it was not built")
    monkeypatch.setattr(missing, "_TOLD", [])


@pytest.fixture
def program() -> Program:
    scenario = lstmsim.load_scenario(SCENARIO)
    return machines.lower(scenario.chip, scenario.jobs)


def test_the_first_use_warns_and_no_other(program: Program) -> None:
    text = (
        "the fast engine has no native core, because it was not built: the reference engine runs instead, with the same"
        " numbers, and takes some hundred times as long. Install a C++17 compiler, then lstmsim again."
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        engines.totals(program)
        engines.run(program)
        lstmsim.simulate(SCENARIO)
    assert [(str(each.message), each.category) for each in shown] == [(text, EngineWarning)]


def test_where_caches_come_first_they_tell_it_for_all(program: Program) -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        open_caches(TOY, ())
        engines.totals(program)
    (text,) = [str(each.message) for each in shown if each.category is EngineWarning]
    assert text.startswith("the caches of a multi-core CPU have no library, because it was not built: plain Python")


def test_who_asks_for_the_reference_is_told_nothing(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engines.run(program, "reference")


def test_the_numbers_are_those_of_the_reference(program: Program) -> None:
    with pytest.warns(EngineWarning):
        assert engines.run(program) == engines.run(program, "reference")
    assert engines.totals(program).makespan_cycles == engines.run(program, "reference").makespan_cycles
    feed = engines.feed(program, [np.array([(0, 0, 0)])])
    assert isinstance(feed, Feed)
    assert [each.tolist() for group in feed.results() for each in group[:2]] == [[0], [0]]


def test_a_command_says_it_in_one_plain_line(tmp_path: Path) -> None:
    arguments = ["--set", "jobs=[{model: lstm-256, steps: 2}]"]
    path = tmp_path / "one.yaml"
    path.write_text("chip: column-npu-16k\njobs: [{model: lstm-256, steps: 3}]\n")
    plain = call("simulate", str(path), *arguments)
    assert plain.exit_code == 0
    (line,) = plain.stderr.splitlines()
    assert line.startswith("warning: the fast engine has no native core, because it was not built: the reference")
    again = call("simulate", str(path), *arguments)
    assert (again.stdout, again.stderr) == (plain.stdout, "")


def test_other_warnings_stay_as_they_are() -> None:
    """In a process of its own, where nothing records warnings."""
    code = """
import warnings, click
from lstmsim.cli.group import lstmsim
from lstmsim.base.errors import EngineWarning
def both():
    warnings.warn("of others", UserWarning)
    warnings.warn("of ours", EngineWarning)
type(lstmsim).get_command = lambda *_: click.Command("list", callback=both)
lstmsim(["list"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["<string>:6: UserWarning: of others", "warning: of ours"]


def test_worker_processes_leave_it_to_the_one_that_started_them(
    monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engines.run(program)
