"""The result of a merge, in words and as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.studies.sweep.report import stored_records, with_front
from lstmsim.studies.sweep.run import Merged


def merged_json(merged: Merged) -> dict[str, Any]:
    """Give the result as plain data of schema `lstmsim/merge/1`: its files and counts."""
    return {"schema": "lstmsim/merge/1", **asdict(merged)}


def merged_text(merged: Merged) -> str:
    """Say which point is the best, how many points are there, how many are missing, and which no other beats.

    >>> merged_text(Merged("gone.sqlite", ("sweep.csv",), 50, 200))
    '50 of 200 points; 150 are missing'
    """
    missing = merged.total - merged.points
    counts = f"{merged.points:,} of {merged.total:,} points" + (f"; {missing:,} are missing" if missing else "")
    return with_front(merged.path, counts)


FORMS = Forms(merged_json, merged_text, lambda merged: stored_records(merged.path))
