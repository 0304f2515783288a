"""Which time steps of a run are explained where the trace of all of them is too long to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from lstmsim import targets
from lstmsim.api import run as running
from lstmsim.errors import InputError, Mistake
from lstmsim.workload.arriving import arriving

if TYPE_CHECKING:
    from lstmsim.explanations.explanation import Window

__all__ = ["explained_part"]

#: Operations that a window should have: its alternatives, each a simulation, take about a minute.
_WANTED = 2_500_000
#: Steps that it should have at least: the first one may find caches cold.
_FEWEST = 2


def explained_part(result: running.Run) -> tuple[running.Run, Window | None]:
    """Give the run itself if its trace can be kept; else its first time steps as a run of their own, and what they are.

    `InputError` if not even one step is short enough, or if requests come over time: fewer steps would meet less.
    """
    from lstmsim.explanations.explanation import Window

    most = running.MAX_TRACE_OPERATIONS
    if result.operations <= most:
        return result, None
    jobs = result.scenario.jobs
    if arriving(jobs) == "open":
        _refuse(result, "explain fewer requests, by `count` or `until`")
    longest = max(job.steps for job in jobs)
    steps = min(longest, max(_FEWEST, longest * _WANTED // result.operations) + 1)
    while steps > 1:
        steps -= 1
        part = _first_steps(result, steps)
        if part.operations <= most:
            return part, Window(steps, longest, result.totals.makespan_cycles, result.operations, most)
        steps = min(steps, steps * most // part.operations + 1)
    _refuse(result, "one time step alone is too long as well: explain fewer jobs, or a smaller model")


def _first_steps(result: running.Run, steps: int) -> running.Run:
    jobs = tuple(replace(job, steps=min(job.steps, steps)) for job in result.scenario.jobs)
    scenario = replace(result.scenario, jobs=jobs)
    return running.Run(scenario, result.engine, targets.lower(scenario.chip, jobs), lowered=True)


def _refuse(result: running.Run, instead: str) -> NoReturn:
    text = f"needs a trace, and one of {result.operations:,} operations is too long to keep, at most "
    raise InputError(Mistake("explain", f"{text}{running.MAX_TRACE_OPERATIONS:,} are recorded; {instead}"))
