"""Searches of the best (EP, VP): options, and what users call."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Overrides, Progress, Source, takes

if TYPE_CHECKING:
    from lstmsim.studies.search.result import SearchResult


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
    overrides: Overrides = ()
    progress: Progress = None


@takes(SearchRequest)
def search(request: SearchRequest) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs; see `lstmsim.studies.search.run`.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    from lstmsim.model.scenario import Scenario
    from lstmsim.studies.search import run as searching
    from lstmsim.studies.shared.loading import file_or_data

    given, core = request.scenario, None if request.core is None else int(request.core)
    ready = given if isinstance(given, Scenario) else None
    loaded = ready or searching.load_for_search(file_or_data(given), request.overrides)
    exhaustive, any_ep = request.exhaustive, request.any_ep
    return searching.search(
        loaded, int(request.npe), exhaustive=exhaustive, any_ep=any_ep, core=core, progress=request.progress
    )
