"""What a job asks of the memories that cores share: an account of each memory, from the operations of the job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.flat_tables import FLAT_TABLES
from lstmsim.program.program import Program, Task

__all__ = ["memory_cycles"]

Ints = NDArray[np.int64]

_OPERATIONS = FLAT_TABLES["operations"]


def memory_cycles(program: Program, task: Task) -> Ints:
    """Count the cycles that a task takes each shared core at each of its places, shape (places, shared cores).

    What loads weights that may be there already is left out, and so are extra cycles of single iterations: a task takes
    at least so many.

    program: says which cores are shared.
    task: one of its tasks.

    >>> from lstmsim.program.program import *
    >>> core, memory = Core(0, (Unit("core", "fifo"),)), Core(1, (Unit("memory", "fifo"),), accounted=None, shared=True)
    >>> body = Body((Operation(0, cycles=9), Operation(0, cycles=5, member=1), Operation(0, cycles=2, member=2)))
    >>> task = Task("t", ((0, (Phase(body, 3),)),), (), (0,), partners=((1, 2),))
    >>> memory_cycles(Program((core, memory, memory), (task,)), task).tolist()
    [[15, 6]]
    """
    shared = [number for number, core in enumerate(program.cores) if core.shared]
    loading = 0 if task.content is None else task.content.loading
    taken: dict[int, Ints] = {}
    made = np.zeros((len(task.places), len(shared)), dtype=np.int64)
    for number, place in enumerate(task.places):
        kind = program.cores[place[0]].kind
        if kind not in taken:
            taken[kind] = _by_member(task, kind, loading, len(place))
        for member, core in enumerate(place):
            if program.cores[core].shared:
                made[number, shared.index(core)] += taken[kind][member]
    return made


def _by_member(task: Task, kind: int, loading: int, members: int) -> Ints:
    """The cycles that operations take the units of each member of a task."""
    cycles = np.zeros(members, dtype=np.int64)
    for phase in task.phases(kind)[loading:]:
        rows = phase.body.rows.operations.reshape(-1, _OPERATIONS.width)
        each, number, member = (rows[:, _OPERATIONS.place(name)] for name in ("cycles", "count", "member"))
        np.add.at(cycles, member, phase.repeat * each * number)
    return cycles
