"""The forms of a comparison, put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.studies.compare.result import Comparison
from lstmsim.studies.compare.result_json import comparison_json, comparison_rows
from lstmsim.studies.compare.result_text import comparison_text

__all__ = ["FORMS"]


def _records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of the CSV by the names of its columns."""
    head, *rows = comparison_rows(comparison)
    return (dict(zip(head, row, strict=True)) for row in rows)


FORMS = Forms(comparison_json, comparison_text, _records)
