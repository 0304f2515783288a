"""What other machines would have made of the same jobs: each change simulated, none guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, targets
from lstmsim.errors import LstmsimError
from lstmsim.explanations.slowest import TailLatency, tail_latency
from lstmsim.program.totals import Totals
from lstmsim.program.trace_tables import TASKS
from lstmsim.targets.change import Change
from lstmsim.targets.registry import target_of
from lstmsim.workload.scenario import Scenario

__all__ = ["MAX_ROWS", "Alternative", "WhatIf", "what_if"]

#: Rows of the trace times alternatives that are simulated: a run of more rows gets fewer alternatives, at least two.
MAX_ROWS = 20_000_000
_AT_LEAST = 2


@dataclass(frozen=True)
class Alternative:
    """One change and what came of it: `cycles` None where the chip or a job refused, `refused` says why.

    `saved_cycles` is negative where it did harm. `work`: times the multiply-accumulates of the run that is explained.
    `latency`: of its requests; None where they all come at once, or where it served other requests than that run.
    """

    name: str
    detail: str
    cycles: int | None
    saved_cycles: int
    utilization: float
    work: float = 1.0
    refused: str = ""
    latency: TailLatency | None = None


@dataclass(frozen=True)
class WhatIf:
    """Alternatives by cycles saved, most first, refused ones last; `left_out`: names of those that were not tried,
    because the run is long; `base_latency`: of the requests as it is (None: they all come at once)."""

    base_cycles: int
    alternatives: tuple[Alternative, ...]
    left_out: tuple[str, ...] = ()
    base_latency: TailLatency | None = None

    @property
    def best(self) -> Alternative | None:
        """The alternative that saves most, if any saves something."""
        first = self.alternatives[0] if self.alternatives else None
        return first if first is not None and first.saved_cycles > 0 else None

    @property
    def best_for_slowest(self) -> Alternative | None:
        """The alternative with the least latency of the slowest requests, if any is shorter than as it is."""
        known = [(each.latency.slowest, each) for each in self.alternatives if each.latency is not None]
        least = min(known, key=lambda pair: pair[0], default=None)
        if least is None or self.base_latency is None or least[0] >= self.base_latency.slowest:
            return None
        return least[1]


def _tried(change: Change, base_cycles: int, base_work: int, tasks: NDArray[np.int64] | None) -> Alternative:
    if change.chip is None:
        return Alternative(change.name, change.detail, None, 0, 0.0, refused=change.refused)
    try:
        found = engines.totals(targets.lower(change.chip, change.jobs), check=False)
    except LstmsimError as error:
        return Alternative(change.name, change.detail, None, 0, 0.0, refused=str(error).splitlines()[0])
    cycles, work = found.makespan_cycles, int(found.work.sum())
    peak = cycles * sum(core.peak for core in change.chip.core_figures)
    ratio = work / base_work if base_work else 1.0
    return Alternative(
        change.name,
        change.detail,
        cycles,
        base_cycles - cycles,
        work / peak if peak else 0.0,
        work=ratio,
        latency=None if tasks is None else _latency(found, tasks),
    )


def _latency(found: Totals, tasks: NDArray[np.int64]) -> TailLatency | None:
    """Of the requests; None if others were turned away than in the run with these tasks."""
    latencies = _latencies(found.tasks)
    if not np.array_equal(latencies >= 0, _latencies(tasks) >= 0):
        return None
    return tail_latency(latencies[latencies >= 0])


def _latencies(tasks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each task, -1 of one that was turned away."""
    core, finish, arrived = (TASKS.of(tasks, name) for name in ("core", "finish", "arrived"))
    latencies: NDArray[np.int64] = np.where(core >= 0, finish - arrived, -1)
    return latencies


def what_if(
    scenario: Scenario,
    base_cycles: int,
    rows: int,
    progress: Callable[[int, int], None] | None = None,
    work: int | None = None,
    tasks: NDArray[np.int64] | None = None,
) -> WhatIf:
    """Simulate a scenario that took `base_cycles` (and `rows` rows of a trace) with one change at a time.

    `progress` is called with alternatives done and in all; `work`: multiply-accumulates that were done (None: of all
    jobs; some may have been turned away). `tasks`: as in `Trace.tasks`, of the run as it is, if latencies are wanted.

    >>> from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
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
    all_changes = target_of(scenario.chip.kind).changes(scenario.chip, scenario.jobs)
    count = min(len(all_changes), max(_AT_LEAST, MAX_ROWS // max(rows, 1)))
    found = []
    for number, change in enumerate(all_changes[:count]):
        if progress is not None:
            progress(number, count)
        found.append(_tried(change, base_cycles, base_work, tasks))
    if progress is not None:
        progress(count, count)
    # sorting is stable: of equal ones the more telling change stays first
    order = sorted(found, key=lambda each: (each.cycles is None, -each.saved_cycles))
    latencies = None if tasks is None else _latencies(tasks)
    base = None if latencies is None else tail_latency(latencies[latencies >= 0])
    return WhatIf(base_cycles, tuple(order), tuple(each.name for each in all_changes[count:]), base)
