"""The pages of the site run from top to bottom: their cells are run here, without a kernel, which would take seconds.

A cell is Python, or lines that begin with `!` (commands, which must succeed), or a file (`%%writefile`).
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lstmsim.report.pictures.figures import Picture
from tests.cli.runner import call

FOLDER = Path(__file__).parents[2] / "docs"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the pages are not part of the installed package"),
    pytest.mark.needs_core,
]
PAGES = [each for each in sorted(FOLDER.rglob("*.md")) if each.read_text(encoding="utf-8").startswith("---\nfile_f")]
CELL = re.compile(r"^```\{code-cell\} ipython3\n((?::[^\n]*\n)*)(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_there_are_tutorials_and_how_to_pages() -> None:
    assert len([each for each in PAGES if each.parent.name == "tutorials"]) == 3
    assert len([each for each in PAGES if each.parent.name == "howto"]) >= 8


@pytest.mark.parametrize("path", PAGES, ids=lambda each: each.stem)
def test_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(Picture, "_repr_png_", lambda _: b"\x89PNG")
    names: dict[str, Any] = {}
    cells = [each[1] for each in CELL.findall(path.read_text(encoding="utf-8"))]
    assert len(cells) == path.read_text(encoding="utf-8").count("{code-cell}")
    for cell in cells:
        first, _, rest = cell.partition("\n")
        if first.startswith("%%writefile "):
            Path(first.split()[1]).write_text(rest, encoding="utf-8")
        elif first.startswith("!"):
            for line in cell.splitlines():
                program, *arguments = shlex.split(line[1:])
                assert program == "lstmsim", line
                called = call(*arguments)
                assert called.exit_code == 0, f"{line}\n{called.stderr}"
        else:
            shown = run(cell, path.name, names)
            assert shown is None or picture_or_text(shown)
    assert os.getcwd() == str(tmp_path)


def run(cell: str, name: str, names: dict[str, Any]) -> Any:
    """Run a cell; give what it ends with, as a notebook shows it."""
    *before, last = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        exec(compile(cell, name, "exec"), names)
        return None
    exec(compile(ast.Module(before, []), name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names)


def picture_or_text(value: Any) -> bool:
    """Whether a notebook shows a picture or a table of it.

    The pixels of a picture that has been made are drawn by `make docs`, and by tests of pictures.
    """
    html = getattr(value, "_repr_html_", None)
    return isinstance(value, Picture) or (html is not None and "<table" in html())
