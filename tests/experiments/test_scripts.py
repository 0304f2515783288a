"""What starting the files of experiments does: nothing unasked, no traceback, and a word on where pictures are."""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package")

#: What has tables only.
NOT_DRAWN = {"board", "clock"}
DRAWN = sorted(each.parent.name for each in FOLDER.glob("*/pictures.py"))


def test_what_draws_has_a_file_of_its_own() -> None:
    assert set(DRAWN) | NOT_DRAWN == {each.parent.name for each in FOLDER.glob("*/run.py")}
    assert not NOT_DRAWN & set(DRAWN)
    for name in DRAWN:
        module = importlib.import_module(f"experiments.{name}.pictures")
        assert callable(module.figure)
        assert callable(module.figure)


@pytest.mark.skipif(not (FOLDER.parent / "docs").is_dir(), reason="the pages are in the checkout only")
def test_docs_show_small_figures() -> None:
    page = (FOLDER.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[\w+\]\(\.\./experiments/(\w+)/figure\.png\)", page)
    assert sorted(shown) == sorted(DRAWN)
    sizes = {name: (FOLDER / name / "figure.png").stat().st_size for name in shown}
    assert max(sizes.values()) < 80_000, sizes
    assert sum(sizes.values()) < 600_000, sizes


def squares(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean colour of each square of 16 pixels."""
    high, wide = (size // 16 for size in pixels.shape[:2])
    return pixels[: high * 16, : wide * 16].reshape(high, 16, wide, 16, -1).mean(axis=(1, 3))


@pytest.mark.slow
@pytest.mark.needs_core
def test_a_figure_is_drawn_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments import run

    (tmp_path / "concurrent_lstms").mkdir()
    monkeypatch.setattr(run, "HERE", tmp_path)
    path = run.write_figure("concurrent_lstms")
    drawn, kept = (imread(each) for each in (path, FOLDER / "concurrent_lstms" / "figure.png"))
    assert drawn.shape == kept.shape
    # in squares of 16 pixels: releases of matplotlib draw edges and letters differently (0.0046 from 3.9 to 3.11), and
    # a picture that is 4 pixels wider differs by 0.0078
    assert abs(squares(drawn) - squares(kept)).mean() < 0.006
    assert [each.name for each in path.parent.iterdir()] == ["figure.png"]


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_without_a_folder_are_refused_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pictures.py"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / name / "pictures.py"), run_name="__main__")
    assert ended.value.code == 2
    assert "FOLDER" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_pictures_go_into_the_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from experiments import run
    from experiments.design_space import pictures
    from experiments.design_space.run import spec

    monkeypatch.setattr(pictures, "spec", lambda: spec((4096,), (256, 512)))
    monkeypatch.setattr(sys, "argv", ["pictures.py", str(tmp_path / "new")])
    run.draw("design_space")
    said = [Path(line.removeprefix("wrote ")) for line in capsys.readouterr().out.splitlines()]
    assert {each.name for each in said} >= {"map.png", "map.csv", "sweep.sqlite", "sweep.csv"}
    assert set(said) == set((tmp_path / "new").iterdir())


def test_a_summary_ends_with_where_the_pictures_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from experiments import run

    def stand_in(name: str) -> Any:
        return SimpleNamespace(text=lambda small: "the summary")

    monkeypatch.chdir(FOLDER.parent)
    monkeypatch.setattr(run, "load", stand_in)
    monkeypatch.setattr(sys, "argv", ["run.py"])
    run.main("deepbench")
    said = capsys.readouterr()
    assert said.out == "the summary\n"
    assert said.err == "pictures: `python experiments/deepbench/pictures.py FOLDER` draws them\n"


def test_no_summary_writes_files() -> None:
    """Pictures and tables are for pictures.py: who asks for a summary gets that alone."""
    for script in FOLDER.glob("*/run.py"):
        text = script.read_text(encoding="utf-8")
        assert "lstmsim.report.pictures" not in text, script
        assert '"out"' not in text, script


@pytest.mark.slow
@pytest.mark.needs_core
def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "concurrent_lstms" / "run.py")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
