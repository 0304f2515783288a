"""What the how-to pages show and claim holds: their code as it is copied, their figures as they are simulated."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lstmsim
from lstmsim.model import scenario
from tests.readme.test_readme import ROOT
from tests.readme.test_readme import TEXT as README

HOWTO = ROOT / "docs" / "howto"
pytestmark = pytest.mark.skipif(not README, reason="the pages are in the checkout only")


def policy_code() -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```", (HOWTO / "add_a_policy.md").read_text("utf-8"), re.DOTALL | re.M)
    return str(block)


def test_the_order_of_the_page_on_policies_is_taken_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    exec(compile(policy_code(), "add_a_policy.md", "exec"), names)
    monkeypatch.setitem(scenario.DISPATCH, "longest", names["longest"])  # type: ignore[arg-type]
    starts = {}
    for order in ("fcfs", "longest"):
        wanted = [("lstm-256", 0), ("lstm-256", 1), ("lstm-512", 1)]
        jobs = [lstmsim.Job(model=name, steps=2, arrival=at, dispatch=order) for name, at in wanted]
        report = lstmsim.simulate(lstmsim.Scenario(chip=one_thread(), jobs=jobs))
        starts[order] = [job.start for job in report.jobs]
    assert starts["fcfs"][1] < starts["fcfs"][2]
    assert starts["longest"][1] > starts["longest"][2]


def one_thread() -> lstmsim.ColumnNpu:
    """A chip on which jobs wait for each other."""
    return lstmsim.ColumnNpu(
        name="one", frequency_mhz=260, cores=[lstmsim.ColumnCore(npe=16384, ep=16, vp=1024, threads=1)]
    )


@pytest.mark.slow
def test_the_code_of_the_page_on_policies_passes_strict_mypy(tmp_path: Path) -> None:
    copied = tmp_path / "longest.py"
    copied.write_text(policy_code(), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(copied)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.needs_core
def test_the_page_on_threads_quotes_the_demo() -> None:
    page = " ".join((HOWTO / "threads_and_cores.md").read_text("utf-8").split())
    demo = ROOT / "experiments" / "scenarios" / "demo.yaml"
    cycles = {
        threads: lstmsim.simulate(demo, overrides=[f"chip.cores.0.threads={threads}"]).makespan_cycles
        for threads in (2, 3, 4, 5)
    }
    more, fewer = cycles[3] / cycles[2] - 1, 1 - cycles[4] / cycles[2]
    third = f"a third thread takes {100 * more:.1f} % more cycles ({cycles[3]:,} instead of {cycles[2]:,})"
    assert f"{third}, and a fourth takes {100 * fewer:.1f} % fewer ({cycles[4]:,})" in page
    assert cycles[5] == cycles[4], "a thread more than jobs"
