"""One job by itself on an idle chip: what every slowdown and every bound on a load is held against."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lstmsim import engines, targets
from lstmsim.program.totals import CYCLE_NAMES
from lstmsim.program.trace import TASK_COLUMNS
from lstmsim.workload.scenario import Chip, Job

__all__ = ["Alone", "alone"]

#: Names of cycles in which a thread lets another one have the array.
_GIVEN_UP = tuple(CYCLE_NAMES.index(name) for name in ("hazard", "backpressure", "input", "dispatch", "weights"))


@dataclass(frozen=True)
class Alone:
    """A job that has the chip to itself.

    `latency_cycles`: from its arrival to its finish. `array_cycles`: cycles in which the PE arrays of its cores issue
    for it, summed over them. `cores`: on how many it runs at once. `stalls`: whether there is a cycle between its first
    tile and its last in which it cannot issue; a coarse-grained core turns to another thread only then.
    """

    latency_cycles: int
    array_cycles: int
    cores: int
    stalls: bool


def alone(chip: Chip, job: Job) -> Alone:
    """Simulate the job by itself, where it would run on an idle chip; whatever ranks it among others is left out.

    >>> from lstmsim.loading import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> alone(scenario.chip, scenario.jobs[0])
    Alone(latency_cycles=1423, array_cycles=640, cores=1, stalls=True)
    """
    by_itself = replace(
        job, arrival=0, after=None, dispatch="fcfs", preempts=False, queue_limit=None, patience=None, deadline=None
    )
    found = engines.totals(targets.lower(chip, (by_itself,)), check=False)
    arrays = found.cycles[: len(chip.array_cores)]
    return Alone(
        found.makespan_cycles,
        int(arrays[:, CYCLE_NAMES.index("busy")].sum()),
        max(1, len(job.together(len(chip.array_cores), int(found.tasks[0, TASK_COLUMNS.index("taken")])))),
        bool(arrays[:, _GIVEN_UP].sum()),
    )
