"""Options of searches of the best (EP, VP)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Jobs, Overrides, Path, Progress, Source


@record
class SearchRequest:
    """A scenario, and which arrays are tried for it."""

    scenario: Source
    npe: Annotated[int, Key("Multipliers of each searched core.", flag="--npe", metavar="N")]
    _: KW_ONLY
    exhaustive: Annotated[
        bool, Key("Simulate every useful pair, too, for the optimum and the regret of the greedy walk.")
    ] = False
    any_ep: Annotated[bool, Key("Try every EP, not only powers of two.")] = False
    core: Annotated[
        int | None, Key("Search only this core.", follows="all cores of the chip, which must be equal", metavar="K")
    ] = None
    jobs: Jobs = None
    folder: Annotated[
        Path | None,
        Key(
            "Folder of a sweep: its results are not simulated again, and new ones go there.",
            flag="--out",
            metavar="DIR",
        ),
    ] = None
    overrides: Overrides = ()
    progress: Progress = None
