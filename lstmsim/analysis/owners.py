"""Whose a task is: on some machines a job is one task and many further ones, which do its work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.program import Program

__all__ = ["owners"]


def owners(program: Program, jobs: int) -> NDArray[np.int64]:
    """For each task of a program the number of its job, shape (tasks,); -1 for none.

    The first tasks are those of the jobs, in their order. A further task does the work of a job if it comes behind a
    gate at which the job's task or another task of the job arrives; else it is that of the job of its name.

    program: a lowered scenario.
    jobs: how many jobs the scenario has.

    >>> from lstmsim.program.program import *
    >>> jobs = Task("a", (), (), (), starts=0), Task("b", (), (), (), starts=1)
    >>> parts = Task("c", (), (), (), behind=1, ends=2), Task("d", (), (), (), behind=2)
    >>> owners(Program((), (*jobs, *parts)), 2).tolist()
    [0, 1, 1, 1]
    """
    result = np.arange(len(program.tasks), dtype=np.int64)
    if len(result) <= jobs:
        return result
    names = {task.name: number for number, task in reversed([*enumerate(program.tasks[:jobs])])}
    gates = {task.starts: number for number, task in enumerate(program.tasks[:jobs]) if task.starts is not None}
    for number, task in enumerate(program.tasks[jobs:], jobs):
        owner = gates.get(task.behind) if task.behind is not None else None
        owner = names.get(task.name, -1) if owner is None else owner
        gates |= {gate: owner for gate in (task.starts, task.ends) if gate is not None}
        result[number] = owner
    return result
