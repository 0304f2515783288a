"""The forms of an energy, put together."""

from __future__ import annotations

from lstmsim.report.results import Forms
from lstmsim.studies.fit.report import energy_json, energy_text

__all__ = ["FORMS"]

FORMS = Forms(energy_json, energy_text)
