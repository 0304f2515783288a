"""Searches of the best (EP, VP): what users ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Optional

from lstmsim.base.checks import of_kind
from lstmsim.model.scenario import Scenario
from lstmsim.studies.shared.loading import Source, file_or_data

if TYPE_CHECKING:
    from lstmsim.studies.search.result import SearchResult


def search(
    scenario: Source,
    npe: int,
    *,
    exhaustive: bool = False,
    any_ep: bool = False,
    core: int | None = None,
    overrides: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Search the best (EP, VP) of `npe` multipliers for a scenario's jobs; see `lstmsim.studies.search.run`.

    scenario: a path, a mapping, or a `Scenario`.
    npe: multipliers of each searched core.
    exhaustive: simulate every useful pair, too.
    any_ep: try EPs that are no powers of two.
    core: the number of the only core that is searched; None: all cores, which must be equal.
    overrides: texts like `"chip.cores.0.ep=16"`.
    progress: is called with pairs simulated and how many there may be.

    >>> jobs = [{"model": "lstm-512", "steps": 25}]
    >>> search({"chip": "column-npu-64k", "jobs": jobs}, 65536).common.walk.chosen.ep
    32
    """
    from lstmsim.studies.search import run as searching
    from lstmsim.studies.search.run import load_for_search

    npe, core = of_kind("npe", int, npe), of_kind("core", Optional[int], core)  # noqa: UP045 - a value, no hint
    loaded = scenario if isinstance(scenario, Scenario) else load_for_search(file_or_data(scenario), overrides)
    return searching.search(loaded, npe, exhaustive=exhaustive, any_ep=any_ep, core=core, progress=progress)
