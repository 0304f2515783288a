"""Serving figures that a chip cannot have: the reason stands in their place, and costs no other output."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from lstmsim.base.errors import InputError
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.run import Run, serving

_WIDTH = 100


@dataclass(frozen=True)
class Refused:
    """The reason why a chip has no serving figures."""

    sentence: str

    def to_text(self) -> str:
        """Give the reason as lines of at most 100 columns."""
        return textwrap.fill(f"SERVING: no figures; {self.sentence}", _WIDTH)

    def to_dict(self) -> dict[str, str]:
        """Give the reason as plain data."""
        return {"refused": self.sentence}


def serving_or_refusal(result: Run) -> Serving | Refused:
    """Give the serving figures of a run, or why its chip has none.

    >>> from lstmsim.studies.simulate.run import run
    >>> job = {"model": "lstm-256", "steps": 1, "count": 2, "arrival": {"kind": "poisson", "rate_per_second": 1e4}}
    >>> serving_or_refusal(run({"chip": "v100", "jobs": [job]})).sentence
    'v100: a parallel device serves no requests that keep coming: ...'
    """
    try:
        return serving(result)
    except InputError as error:
        return Refused(f"{result.scenario.chip.name}: {'; '.join(map(str, error.mistakes))}")
