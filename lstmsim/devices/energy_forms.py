"""The forms of an energy, put together."""

from __future__ import annotations

from lstmsim.devices.text import energy_json, energy_text
from lstmsim.results import Forms

__all__ = ["FORMS"]

FORMS = Forms(energy_json, energy_text)
