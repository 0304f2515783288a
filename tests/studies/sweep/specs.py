"""Sweeps small enough to be run many times."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

from lstmsim.analysis.report import Report
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.studies.sweep.store import checksum

CORE = {"npe": 256, "ep": 8, "vp": 32, "threads": 2, "tail_width": 16}
LAYER = {"cell": "lstm", "hidden": 24, "input": 24}
SCENARIO = {
    "chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": [CORE]},
    "jobs": [{"model": {"name": "m", "layers": [LAYER]}, "steps": 3, "count": 2}],
}
HIDDEN = ["jobs.0.model.layers.0.hidden", "jobs.0.model.layers.0.input"]


def spec(**changes: Any) -> dict[str, Any]:
    """EP x VP x hidden: 60 points, some infeasible by a constraint, some because the chip cannot be built."""
    axes = {
        "ep": {"path": "chip.cores.0.ep", "from": 1, "to": 16, "factor": 2},
        "vp": {"path": "chip.cores.0.vp", "values": [2, 16, 32, 64]},
        "hidden": {"path": HIDDEN, "from": 16, "to": 32, "step": 8},
    }
    return {"scenario": SCENARIO, "axes": axes, "constraints": ["vp <= 2 * hidden"], **changes}


def table(folder: Path, name: str = "sweep") -> bytes:
    return (folder / f"{name}.csv").read_bytes()


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "sweep.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rewritten(path: Path, *statements: str) -> None:
    """The store after SQL statements, with checksums as if lstmsim had written the rows so."""
    sql = sqlite3.connect(path)
    for statement in statements:
        assert sql.execute(statement).rowcount != 0, statement
    for name, key, last in (("results", "key", "checksum"), ("points", "point", "row checksum")):
        rows = sql.execute(f"SELECT * FROM {name}").fetchall()
        sums = [(checksum(row[:-1]), row[0]) for row in rows]
        sql.executemany(f'UPDATE {name} SET "{last}" = ? WHERE {key} = ?', sums)
    texts = sql.execute("SELECT name, content FROM meta WHERE name != 'checksum' ORDER BY name").fetchall()
    every = checksum([each for row in texts for each in row])
    sql.execute("UPDATE meta SET content = ? WHERE name = 'checksum'", [every])
    sql.commit()
    sql.close()


def numbers_of_report(scenario: Scenario, report: Report) -> tuple[int | float, ...]:
    """The `NUMBERS` of a row, read off the report of the same run."""
    latency = report.latency_ms
    return (
        report.makespan_cycles,
        report.utilization,
        report.tops,
        *(sum(core.cycles.get(name, 0) for core in report.cores) for name in CYCLE_NAMES),
        len(report.rejected),
        sum(core.figures.issuing for core in report.cores),
        target_of(scenario.chip.kind).adders(scenario.chip),
        *(latency.mean, latency.p50, latency.p95, latency.p99, latency.max),
    )
