"""Published figures against simulated ones: options, and what users call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, Progress, names_of, takes

if TYPE_CHECKING:
    from lstmsim.studies.validate.rows import Validation


@record
class ValidateRequest:
    """Which published figures are compared."""

    groups: Annotated[str | Sequence[str], Key("Names of groups.", follows="all groups")] = ()
    _: KW_ONLY
    engine: Engine = "fast"
    progress: Progress = None


@takes(ValidateRequest)
def validate(request: ValidateRequest) -> Validation:
    """Rerun the published rows that the models claim to reproduce.

    >>> validate(["intel-npu-rtl"]).failures
    ()
    """
    from lstmsim import engines
    from lstmsim.studies.validate import run

    named = names_of(request.groups) or run.GROUPS
    return run.validate(named, engine=engines.running(request.engine), progress=request.progress)
