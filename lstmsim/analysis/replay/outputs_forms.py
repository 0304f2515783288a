"""The outputs of a run as text and as plain data: their shapes and ranges. The numbers go into a file, not here."""

from __future__ import annotations

from typing import Any

from lstmsim.analysis.replay.outputs import Outputs
from lstmsim.report.results import Forms
from lstmsim.report.tables import table

__all__ = ["FORMS", "outputs_json", "outputs_text"]


def outputs_json(outputs: Outputs) -> dict[str, Any]:
    """Give shape, smallest and largest number of each tensor as plain data of schema `lstmsim/outputs/1`."""
    return {
        "schema": "lstmsim/outputs/1",
        "fixed": outputs.fixed,
        "tensors": {
            name: {"shape": list(values.shape), "smallest": float(values.min()), "largest": float(values.max())}
            for name, values in outputs.tensors.items()
        },
        "turned_away": list(outputs.turned_away),
    }


def outputs_text(outputs: Outputs) -> str:
    """Give a table with a row for each job, and the jobs that computed nothing."""
    rows = [["job", "steps", "outputs", "smallest", "largest"]]
    for name, values in outputs.tensors.items():
        rows.append([name, *map(str, values.shape), f"{values.min():.4g}", f"{values.max():.4g}"])
    lines = [*table(rows, left=[0]), "", "in fixed point" if outputs.fixed else "in float64"]
    if outputs.turned_away:
        lines.append(f"turned away, without outputs: {', '.join(outputs.turned_away)}")
    return "\n".join(lines)


FORMS = Forms(outputs_json, outputs_text)
