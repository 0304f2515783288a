"""Options of a simulation."""

from __future__ import annotations

from dataclasses import KW_ONLY

from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, Overrides, Source


@record
class SimulateRequest:
    """A scenario, and how it is simulated."""

    scenario: Source
    _: KW_ONLY
    engine: Engine = "fast"
    overrides: Overrides = ()
