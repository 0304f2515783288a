"""Does the headline of an experiment hold whatever its assumed latencies are? A paragraph for the summaries."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from lstmsim.model.scenario import Chip
from lstmsim.studies.shared.stability import Ask, stability

__all__ = ["as_it_is", "held_paragraph"]

#: By so much every assumed latency and bandwidth is moved.
SHARE = 0.5


def as_it_is(chip: Chip) -> Chip:
    """No change."""
    return chip


def held_paragraph(chips: Sequence[Chip], ask: Ask, left_out: Sequence[str] = ()) -> str:
    """Say which conclusions hold, as text that stands below a summary.

    chips, ask, left_out: as of `lstmsim.studies.shared.stability.stability`.
    """
    text = f"{stability(chips, ask, SHARE, left_out).sentence}."
    return "\n".join(["", *textwrap.wrap(text, 120, break_on_hyphens=False), ""])
