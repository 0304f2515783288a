"""Stints: what had threads of a core in a run, from when until when. A task, or in rounds each round, with its batch.

A batch is one stint, that of the task which led it; the others of the batch are its members. A task that was paused
for another one is one stint with its pauses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.accounts import phases_that_ran
from lstmsim.program.program import Phase, Program
from lstmsim.program.runs import in_rounds, inferences, runs_of
from lstmsim.program.trace import Trace

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stints:
    """Stints by their numbers: where nothing goes on in rounds, that of a stint is that of its task.

    task: which led; core, context: where; begin, end: from when until when; real: whether it had a thread at all, by
    itself. Columns of equal length.
    of_row: for each row of `trace.issues` its stint.
    phases: stint -> the phases that it ran.
    members: stint -> the tasks of its batch, where there are several or may be; in the order of inferences.
    last: task -> the stint in which it finished.
    """

    task: Numbers
    core: Numbers
    context: Numbers
    begin: Numbers
    end: Numbers
    real: NDArray[np.bool_]
    of_row: Numbers
    phases: dict[int, tuple[Phase, ...]]
    members: dict[int, list[int]]
    last: Numbers

    def company(self, stint: int) -> list[int]:
        """The tasks of a stint."""
        return self.members.get(stint, [int(self.task[stint])])


def stints_of(program: Program, trace: Trace) -> Stints:
    """The stints of a run."""
    ran, row, _ = phases_that_ran(program, trace)
    numbers = np.arange(len(program.tasks))
    lead = trace.task("batch")
    last = np.where(lead < 0, numbers, lead)
    core, context, begin, end = (trace.task(name) for name in ("core", "context", "admitted", "finish"))
    if not program.pools:
        return Stints(numbers, core, context, begin, end, core >= 0, row, dict(ran), {}, last)
    runs, found = runs_of(trace.tasks, trace.pauses), inferences(program, trace)
    led = runs.where(runs.leads)
    if not in_rounds(trace):
        end = end.copy()
        end[led.task] = led.end
        members = {task: tasks for (task, _), tasks in found.items()}
        real = (core >= 0) & (last == numbers)
        return Stints(numbers, core, context, begin, end, real, row, dict(ran), members, last)
    keys = list(zip(led.task.tolist(), led.start.tolist(), strict=True))
    members = {number: found[key] for number, key in enumerate(keys)}
    # the last run of a task is the last of its rows
    of = {key: number for number, key in enumerate(keys)}
    at = dict(zip(runs.task.tolist(), zip(runs.batch.tolist(), runs.start.tolist(), strict=True), strict=True))
    for task, (leader, start) in at.items():
        last[task] = of[task if leader < 0 else leader, start]
    real = np.ones(len(keys), dtype=bool)
    return Stints(led.task, led.core, led.context, led.start, led.end, real, row, dict(ran), members, last)
