"""The notebooks of the documentation are run from top to bottom, and stored without outputs.

nbclient would start a kernel for each, which takes seconds; the cells are plain Python, so they are run in order.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the notebooks are not part of the installed package"),
    pytest.mark.needs_core,
]
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert len(BOOKS) == 3


@pytest.mark.parametrize("path", BOOKS, ids=lambda each: each.stem)
def test_a_notebook_runs_and_shows_what_its_cells_end_with(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], len(path.read_bytes()) < 8000) == (4, True)
    names: dict[str, Any] = {}
    shown = []
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        *before, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(before, []), path.name, "exec"), names)
        assert isinstance(last, ast.Expr), "a cell ends with what it shows"
        value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
        picture = getattr(value, "_repr_png_", None)
        shown.append(picture() if picture else value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert all(shown)
    assert any(isinstance(each, bytes) and each.startswith(b"\x89PNG") for each in shown)
    assert any(isinstance(each, str) and "<table" in each for each in shown)
