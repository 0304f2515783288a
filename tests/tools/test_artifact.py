"""`tools/artifact.py`: each verdict, that nobody's files are lost, and that nothing is left out of the list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import artifact
from tools.artifact import Item, report, run_all

ROOT = Path(__file__).parents[2]
CHECKOUT = pytest.mark.skipif(
    not (ROOT / "README.md").is_file(), reason="README and experiments are in the checkout only"
)


def printing(name: str, text: str, *more: str, expected: Path | None = None, needs: tuple[str, ...] = ()) -> Item:
    command = (sys.executable, "-c", f"{';'.join(more) + ';' if more else ''}print({text!r})")
    return Item(name, (command,), expected, needs)


@pytest.mark.slow
def test_verdicts(tmp_path: Path) -> None:
    expected = ROOT / "experiments" / "preemption" / "expected.md"
    whole = expected.read_text(encoding="utf-8")
    chosen = [
        printing("equal", whole, expected=expected),
        printing("differs", whole.replace("1", "2"), expected=expected),
        printing("made", "", "open('picture.svg', 'w').write('x')"),
        Item("failed", ((sys.executable, "-c", "import sys; print('a'); sys.exit('it broke')"),)),
        Item("absent", (("no-such-program-of-lstmsim",),)),
        printing("skipped", "", needs=("no-such-program-of-lstmsim",)),
    ]
    outcomes = run_all(chosen, tmp_path)
    assert [each.verdict for each in outcomes] == ["equal", "differs", "made", "failed", "failed", "skipped"]
    assert "lines, the first: -" in outcomes[1].remark
    assert set(outcomes[2].files) == {"picture.svg", "printed.txt"}
    assert outcomes[3].remark.endswith("ended with 1: it broke")
    assert outcomes[5].remark == "needs no-such-program-of-lstmsim"
    text = report(outcomes, chosen, 90)
    assert "2 of 6 items came out as expected, 1 were skipped. It took 1.5 minutes." in text
    # a second run makes them anew, without what is left of the first
    (tmp_path / "made" / "old.svg").touch()
    assert set(run_all(chosen[2:3], tmp_path)[0].files) == {"picture.svg", "printed.txt"}


@pytest.mark.slow
@CHECKOUT
def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "preemption").mkdir()
    (tmp_path / "preemption" / "notes.txt").write_text("mine", encoding="utf-8")
    command = [sys.executable, str(ROOT / "tools" / "artifact.py"), str(tmp_path), "preemption"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "holds files of others" in done.stderr
    assert (tmp_path / "preemption" / "notes.txt").read_text(encoding="utf-8") == "mine"


@CHECKOUT
def test_every_experiment_and_command_is_an_item() -> None:
    known = {each.name: each for each in artifact.items()}
    scripts = {each.parent.name for each in (ROOT / "experiments").glob("*/expected.md")}
    assert scripts <= set(known)
    assert all(known[name].expected for name in scripts)
    shown = [each[:3] for each in known["readme-commands"].commands]
    assert ("lstmsim", "simulate", "experiments/scenarios/demo.yaml") in shown
    assert {each[0] for each in shown} == {"lstmsim"}, "to install and to test is not made anew"
