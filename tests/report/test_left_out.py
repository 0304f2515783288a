"""Every form of a table for people says how many rows it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lstmsim.report.document import Document, Grid, grid
from lstmsim.report.renderings import html, markdown, text


@pytest.mark.parametrize("form", [text, markdown, html])
def test_rows_that_are_left_out_are_counted(form: Callable[[Document], str]) -> None:
    whole = grid(["<job", "cycles"], [[f"j{place}", place] for place in range(5)])
    assert isinstance(whole, Grid)
    short = form(Document.of("Five jobs.", replace(whole, limit=2, more="jobs")))
    assert "... and 3 more jobs" in short
    assert "j1" in short
    assert "j2" not in short
    assert "more jobs" not in form(Document.of("Five jobs.", replace(whole, limit=5, more="jobs")))
