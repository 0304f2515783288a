"""The results of a replay, for people and for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from lstmsim.analysis.replay.check import Checked
from lstmsim.model.numerics.jobs import beginning_lines, calibration_lines
from lstmsim.model.precision import Precision
from lstmsim.report.tables import table

__all__ = ["checks_json", "checks_text"]

_LIMIT = 40
#: At 10 dB the noise is a third of the signal.
_WEAK_DB = 10


def checks_text(checks: Sequence[Checked], precision: Precision, turned_away: int = 0) -> str:
    """A table of the jobs that were executed, without a final newline.

    precision: widths of the fixed-point run.
    turned_away: how many jobs were turned away and have no row.
    """
    rows = [["job", "weights", "inputs", "outputs", "fixed point", "float64", "SQNR", "saturated", "overflowed"]]
    for each in checks[:_LIMIT]:
        names = [each.job, each.data.weights, each.data.inputs, f"{each.values:,}"]
        sqnr = f"{each.accuracy.sqnr_db:.1f} dB" if isfinite(each.accuracy.sqnr_db) else "-"
        error = f"{each.float_error:.0e}" if each.float_error else "0"
        rows.append([*names, "equal", error, sqnr, f"{each.saturated:,}", f"{each.overflowed:,}"])
    widths = f"{precision.weight_bits}-bit weights, {precision.vector_bits}-bit vectors, {precision.tail_bits}-bit tail"
    lines = ["NUMBERS: every tile and row block of the trace, executed and compared with the golden model"]
    lines += table(rows, left=(0, 1, 2))
    weak = [each.job for each in checks if each.accuracy.sqnr_db < _WEAK_DB]
    if weak:
        lines.append(f"below {_WEAK_DB} dB the widths are too small for the answer: {', '.join(weak[:5])}")
    if len(checks) > _LIMIT:
        lines.append(f"... and {len(checks) - _LIMIT} more jobs, all equal")
    lines += beginning_lines([(each.job, each.data.begins) for each in checks])
    if turned_away:
        lines.append(f"{turned_away:,} job{'s' * (turned_away > 1)} turned away, with nothing to compute")
    lines += calibration_lines([each.data for each in checks])
    lines += [
        f"fixed point ({widths}) is equal bit for bit; float64",
        "differs by that part of the largest output, from the order of additions; SQNR compares fixed point",
        "with float64, `lstmsim accuracy` shows more",
    ]
    return "\n".join(lines)


def checks_json(checks: Sequence[Checked]) -> list[dict[str, Any]]:
    """The jobs that were executed, as plain data. A signal-to-noise ratio without noise is null."""
    return [
        {
            "job": each.job,
            "weights": each.data.weights,
            "inputs": each.data.inputs,
            "begins_with": each.data.begins or "0",
            "calibrated_on": each.data.calibrated_on or None,
            "outputs": each.values,
            "fixed_point_equal": True,
            "float_error": each.float_error,
            "saturated": each.saturated,
            "overflowed": each.overflowed,
            "sqnr_db": each.accuracy.sqnr_db if isfinite(each.accuracy.sqnr_db) else None,
        }
        for each in checks
    ]
