"""What the how-to pages show and claim holds: their code as it is copied, their figures as they are simulated."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lstmsim
from tests.readme.test_readme import ROOT
from tests.readme.test_readme import TEXT as README

HOWTO = ROOT / "docs" / "howto"
pytestmark = pytest.mark.skipif(not README, reason="the pages are in the checkout only")


def policy_code() -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```", (HOWTO / "add_a_policy.md").read_text("utf-8"), re.DOTALL | re.M)
    return str(block)


#: Two orders of three jobs on a chip where jobs wait for each other; printed are the starts.
POLICY_RUN = """
import lstmsim
from lstmsim.model import scenario
scenario.DISPATCH["longest"] = longest
core = lstmsim.ColumnCore(npe=16384, ep=16, vp=1024, threads=1)
chip = lstmsim.ColumnNpu(name="one", frequency_mhz=260, cores=[core])
for order in ("fcfs", "longest"):
    wanted = [("lstm-256", 0), ("lstm-256", 1), ("lstm-512", 1)]
    jobs = [lstmsim.Job(model=name, steps=2, arrival=at, dispatch=order) for name, at in wanted]
    print(*(job.start for job in lstmsim.simulate(lstmsim.Scenario(chip=chip, jobs=jobs)).jobs))
"""


@pytest.mark.slow
def test_the_order_of_the_page_on_policies_is_taken_by_name() -> None:
    """In a process of its own: which orders there are is read once."""
    command = [sys.executable, "-c", policy_code() + POLICY_RUN]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    fcfs, longest = ([int(each) for each in line.split()] for line in ran.stdout.splitlines())
    assert fcfs[1] < fcfs[2]
    assert longest[1] > longest[2]


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
