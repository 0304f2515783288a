"""Options of comparisons of chips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, Jobs, Overrides, Path, Progress, Source, StabilityShare


@record
class CompareRequest:
    """A scenario, and the chips that run its jobs."""

    scenario: Source
    chips: Annotated[
        Path | Sequence[Path],
        Key("Compare with this chip, a preset or a file.", flag="--chip", metavar="NAME_OR_PATH", repeatable=True),
    ] = ()
    _: KW_ONLY
    base: Annotated[
        Path | None, Key("Compare with this chip instead of the scenario's own.", metavar="NAME_OR_PATH")
    ] = None
    each: Annotated[bool, Key("Run every model alone, one row for each, instead of the scenario as a whole.")] = False
    published: Annotated[bool, Key("Show published figures of the same tasks, too (DeepBench).")] = False
    stability: StabilityShare = None
    engine: Engine = "fast"
    jobs: Jobs = None
    overrides: Overrides = ()
    progress: Progress = None
