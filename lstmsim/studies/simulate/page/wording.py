"""The main cause of lost time, in the words of the report on the terminal."""

from __future__ import annotations

from lstmsim.analysis.report import Report
from lstmsim.analysis.report_text import reason

__all__ = ["answer"]


def answer(report: Report) -> str:
    """Describe the run in a line: how busy the machine was, and what mainly kept it from more."""
    text = reason(report)
    return f"Utilization {100 * report.utilization:.1f} %. {text[0].upper()}{text[1:]}."
