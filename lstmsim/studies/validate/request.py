"""Published figures against simulated ones: what users ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lstmsim import engines
from lstmsim.studies.shared.arguments import refuse, wrong_names

if TYPE_CHECKING:
    from lstmsim.studies.validate.rows import Validation


def validate(
    groups: str | Sequence[str] = (), *, engine: str = "fast", progress: Callable[[int, int], None] | None = None
) -> Validation:
    """Rerun the published rows that the models claim to reproduce.

    groups: names of groups; all groups unless given.
    engine: a key of `lstmsim.engines.ENGINES`.
    progress: is called with comparisons done and in all.

    >>> validate(["intel-npu-rtl"]).failures
    ()
    """
    from lstmsim.studies.validate import run

    refuse(wrong_names("groups", groups, "a group's name"))
    named = (groups,) if isinstance(groups, str) else tuple(groups)
    return run.validate(named or run.GROUPS, engine=engines.running(engine), progress=progress)
