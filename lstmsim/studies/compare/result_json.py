"""A comparison as plain data: JSON, and the rows of its CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.studies.compare.first_step_text import about_first_step
from lstmsim.studies.compare.latency_text import LATENCY_COLUMNS, latency_json, latency_row
from lstmsim.studies.compare.model_error import model_errors_json
from lstmsim.studies.compare.result import Comparison
from lstmsim.studies.compare.rooms import rooms_json

__all__ = ["COLUMNS", "SCHEMA", "comparison_json", "comparison_rows"]

SCHEMA = "lstmsim/comparison/1"

#: The columns of the CSV, one row for each workload and machine.
COLUMNS = (
    *("workload", "machine", "published", "pes", "frequency_mhz", "precision", "cycles", "ms"),
    *("mean_latency_ms", "p99_latency_ms"),
    *("tops", "utilization", "speedup", "speedup_at_equal_pes", "tops_per_1000_pes", "main_loss", "main_loss_share"),
    *("begins_cold", "first_step_cycles", "later_steps_cycles", "speedup_by_later_steps"),
    *("reason", "source"),
    *LATENCY_COLUMNS,
)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Give the comparison as plain data of schema `lstmsim/comparison/1`, ready for `json.dumps`; shares are 0 to 1."""
    machines = [
        {
            "name": each.name,
            "published": each.published,
            "pes": each.pes,
            "frequency_mhz": each.frequency_mhz,
            "peak_tops": each.peak_tops,
            "precision": each.precision,
            "stands_for": each.stands_for,
            "changed": list(each.changed),
            "source": each.source,
            "begins_cold": each.begins_cold,
            "mean_speedup": comparison.mean_speedup(column),
            "mean_speedup_by_later_steps": comparison.mean_later_speedup(column),
        }
        for column, each in enumerate(comparison.machines)
    ]
    workloads = [
        {
            "name": each.name,
            "jobs": each.jobs,
            "macs": each.macs,
            "entries": [_entry_json(comparison, row, column) for column in range(len(comparison.machines))],
        }
        for row, each in enumerate(comparison.workloads)
    ]
    return {
        "schema": SCHEMA,
        "scenario": comparison.scenario,
        "engine": comparison.engine,
        "each": comparison.each,
        "arriving": comparison.way,
        "base": comparison.machines[0].name,
        "machines": machines,
        "workloads": workloads,
        "rooms": rooms_json(comparison.rooms),
        "model_errors": model_errors_json(comparison),
    }


def _entry_json(comparison: Comparison, row: int, column: int) -> dict[str, Any]:
    entry = comparison.entries[row][column]
    return {
        "machine": comparison.machines[column].name,
        "cycles": entry.cycles,
        "ms": entry.ms,
        "mean_latency_ms": entry.mean_latency_ms,
        "p99_latency_ms": entry.p99_latency_ms,
        "tops": entry.tops,
        "utilization": entry.utilization,
        "speedup": comparison.speedup(row, column),
        "speedup_at_equal_pes": comparison.speedup_at_equal_pes(row, column),
        "tops_per_1000_pes": comparison.tops_per_1000_pes(row, column),
        "first_step_cycles": entry.first_cycles,
        "later_steps_cycles": entry.later_cycles,
        "speedup_by_later_steps": comparison.later_speedup(row, column),
        "first_step": about_first_step(comparison, row, column),
        "losses": dict(entry.losses),
        "main_loss": entry.main_loss,
        "reason": entry.reason,
        "latency": latency_json(comparison, row, column),
    }


def comparison_rows(comparison: Comparison) -> Iterator[list[Any]]:
    """Give the table of the CSV: its `COLUMNS`, then a row for each workload and machine; unknown figures are None."""
    yield list(COLUMNS)
    for row, workload in enumerate(comparison.workloads):
        for column, machine in enumerate(comparison.machines):
            numbers = _entry_json(comparison, row, column)
            loss = numbers["main_loss"]
            extra = {
                "workload": workload.name,
                "published": int(machine.published),
                "pes": machine.pes,
                "frequency_mhz": machine.frequency_mhz,
                "precision": machine.precision,
                "main_loss_share": None if loss is None else numbers["losses"][loss],
                "source": machine.source,
                "begins_cold": int(machine.begins_cold),
                **latency_row(comparison, row, column),
            }
            yield [(numbers | extra)[name] for name in COLUMNS]
