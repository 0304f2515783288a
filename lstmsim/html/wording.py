"""What the names of cycles mean, in the words of the report on the terminal."""

from __future__ import annotations

from lstmsim.metrics.report import Report
from lstmsim.metrics.report_text import MEANING, REMEDY, reason

__all__ = ["answer", "meaning", "remedy"]

#: Names that a report on the terminal does not explain.
_MORE = {"busy": "the array issues a tile or a row group", "ready": "the thread could go on, another has its turn"}


def meaning(name: str) -> str:
    """What a name of cycles, PE-cycles or spans means.

    >>> meaning("drain")
    'the last results are on their way'
    """
    return _MORE.get(name) or MEANING.get(name, "")


def remedy(name: str, report: Report) -> str:
    """How a user could get less of it; empty where nothing is to be had less of."""
    if name == "hazard" and not any("threads" in core.settings for core in report.cores):
        return "smaller latencies would help, or inferences in one batch: this machine runs one job at a time"
    return REMEDY.get(name, "")


def answer(report: Report) -> str:
    """The run in a line: how busy, and what mainly stood in the way."""
    text = reason(report)
    return f"Utilization {100 * report.utilization:.1f} %. {text[0].upper()}{text[1:]}."
