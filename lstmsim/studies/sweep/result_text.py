"""The result of a sweep, in words and as plain data; its table is read from its SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.studies.sweep.export import columns, table
from lstmsim.studies.sweep.front_text import with_front
from lstmsim.studies.sweep.run import SweepResult
from lstmsim.studies.sweep.store import Store

__all__ = ["FORMS", "stored_records", "sweep_json", "sweep_text"]


def stored_records(path: str) -> Iterator[dict[str, Any]]:
    """Read the rows of the sweep's table from a SQLite file, by the names of its columns."""
    with Store(path, create=False) as store:
        names = columns(store)
        yield from (dict(zip(names, row, strict=True)) for row in table(store))


def sweep_json(result: SweepResult) -> dict[str, Any]:
    """Give the result as plain data of schema `lstmsim/sweep/1`: its files and counts."""
    return {"schema": "lstmsim/sweep/1", **asdict(result)}


def sweep_text(result: SweepResult) -> str:
    """Say which point is the best, how many there are, how many have each status, and which no other beats.

    >>> from lstmsim.studies.sweep.run import Progress
    >>> sweep_text(SweepResult("gone.sqlite", ("sweep.csv",), Progress(50, 200, infeasible=9, failed=1)))
    '50 points: 40 simulated, 9 infeasible, 1 failed'
    """
    counts = result.progress
    simulated = counts.done - counts.infeasible - counts.failed
    parts = [f"{counts.done:,} points: {simulated:,} simulated", f"{counts.infeasible:,} infeasible"]
    return with_front(result.path, ", ".join([*parts, f"{counts.failed:,} failed"]))


FORMS = Forms(sweep_json, sweep_text, lambda result: stored_records(result.path))
