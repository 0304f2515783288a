"""What other machines would have made of the same jobs: each change simulated, none guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lstmsim import engines, targets
from lstmsim.errors import LstmsimError
from lstmsim.explain.changes import Change, changes
from lstmsim.workload.scenario import Scenario

__all__ = ["MAX_ROWS", "Alternative", "WhatIf", "what_if"]

#: Rows of the trace times alternatives that are simulated: a run of more rows gets fewer alternatives, at least two.
MAX_ROWS = 20_000_000
_AT_LEAST = 2


@dataclass(frozen=True)
class Alternative:
    """One change and what came of it: `cycles` None where the chip or a job refused, `refused` says why.

    `saved_cycles` is negative where it did harm. `work`: times the multiply-accumulates of the run that is explained.
    """

    name: str
    detail: str
    cycles: int | None
    saved_cycles: int
    utilization: float
    work: float = 1.0
    refused: str = ""


@dataclass(frozen=True)
class WhatIf:
    """Alternatives by cycles saved, most first, refused ones last; `left_out`: names of those that were not tried,
    because the run is long."""

    base_cycles: int
    alternatives: tuple[Alternative, ...]
    left_out: tuple[str, ...] = ()

    @property
    def best(self) -> Alternative | None:
        """The alternative that saves most, if any saves something."""
        first = self.alternatives[0] if self.alternatives else None
        return first if first is not None and first.saved_cycles > 0 else None


def _tried(change: Change, base_cycles: int, base_work: int) -> Alternative:
    if change.chip is None:
        return Alternative(change.name, change.detail, None, 0, 0.0, refused=change.refused)
    try:
        found = engines.totals(targets.lower(change.chip, change.jobs))
    except LstmsimError as error:
        return Alternative(change.name, change.detail, None, 0, 0.0, refused=str(error).splitlines()[0])
    cycles, work = found.makespan_cycles, int(found.work.sum())
    peak = cycles * sum(core.npe for core in change.chip.array_cores)
    ratio = work / base_work if base_work else 1.0
    return Alternative(
        change.name, change.detail, cycles, base_cycles - cycles, work / peak if peak else 0.0, work=ratio
    )


def what_if(
    scenario: Scenario,
    base_cycles: int,
    rows: int,
    progress: Callable[[int, int], None] | None = None,
    work: int | None = None,
) -> WhatIf:
    """Simulate a scenario that took `base_cycles` (and `rows` rows of a trace) with one change at a time.

    `progress` is called with alternatives done and in all; `work`: multiply-accumulates that were done (None: of all
    jobs; some may have been turned away).

    >>> from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer, Model
    >>> from lstmsim.workload.scenario import Job
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))
    >>> found = what_if(Scenario(chip, (Job("a", model, steps=20), Job("b", model, steps=20))), 2846, 400)
    >>> found.best.name, found.best.cycles
    ('one more thread', 1471)
    """
    base_work = sum(job.macs for job in scenario.jobs) if work is None else work
    all_changes = changes(scenario.chip, scenario.jobs)
    count = min(len(all_changes), max(_AT_LEAST, MAX_ROWS // max(rows, 1)))
    found = []
    for number, change in enumerate(all_changes[:count]):
        if progress is not None:
            progress(number, count)
        found.append(_tried(change, base_cycles, base_work))
    if progress is not None:
        progress(count, count)
    # sorting is stable: of equal ones the more telling change stays first
    order = sorted(found, key=lambda each: (each.cycles is None, -each.saved_cycles))
    return WhatIf(base_cycles, tuple(order), tuple(each.name for each in all_changes[count:]))
