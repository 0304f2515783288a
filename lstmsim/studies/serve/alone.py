"""One job by itself on an idle chip: the measure of every slowdown and of every bound on a load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.model.scenario import Chip, Job, cores_at_once
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Program, Task
from lstmsim.program.stall_reasons import CYCLE_NAMES, CYCLES

#: Names of cycles in which a thread lets another one have the array.
_GIVEN_UP = tuple(CYCLE_NAMES.index(each.name) for each in CYCLES if each.kind == "wait" and not each.before_work)

#: What a job is among others, and what stands for it when there are none.
_AMONG_OTHERS: dict[str, Any] = {
    "arrival": 0,
    "after": None,
    "priority": 0,
    "deadline": None,
    "dispatch": "fcfs",
    "preempts": False,
    "queue_limit": None,
    "patience": None,
}


@dataclass(frozen=True)
class Alone:
    """The cycles of a job that has the chip to itself.

    latency_cycles: from its arrival to its finish.
    array_cycles: cycles in which the PE arrays of its cores issue for it, summed over the cores.
    cores: on how many cores it runs at once.
    stalls: whether there is a cycle between its first tile and its last in which it cannot issue; a coarse-grained core
    turns to another thread only then.
    """

    latency_cycles: int
    array_cycles: int
    cores: int
    stalls: bool


def alone(chip: Chip, job: Job) -> Alone:
    """Simulate the job by itself, where it would run on an idle chip. Keys that rank it among others are left out.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> alone(scenario.chip, scenario.jobs[0])
    Alone(latency_cycles=1423, array_cycles=640, cores=1, stalls=True)
    """
    totals = engines.totals(machines.lower(chip, (bare(job),)), check=False)
    arrays = totals.cycles[: len(chip.core_figures)]
    return Alone(
        totals.makespan_cycles,
        int(arrays[:, CYCLE_NAMES.index("busy")].sum()),
        max(1, len(cores_at_once(chip, job, taken=int(totals.task("taken")[0])))),
        bool(arrays[:, _GIVEN_UP].sum()),
    )


def bare(job: Job) -> Job:
    """Give the job without the keys that rank it among others, turn it away, or say when it comes."""
    return replace(job, **_AMONG_OTHERS)


def kind_of(job: Job) -> tuple[Any, ...]:
    """Give a key that jobs share if they run alike."""
    return (*job.identity, job.affinity)


class Alones:
    """Jobs by themselves on one chip, each kind simulated once: 100,000 jobs of one entry cost one run.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> jobs = [{"model": "lstm-512", "steps": 20, "count": 3}, {"model": "lstm-512", "steps": 10}]
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": jobs})
    >>> alones = Alones(scenario.chip)
    >>> [alones(job).latency_cycles for job in scenario.jobs], alones.simulated
    ([1423, 1423, 1423, 723], 2)
    """

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._known: dict[tuple[Any, ...], Alone] = {}

    def __call__(self, job: Job) -> Alone:
        """Give the cycles of the job by itself."""
        kind = kind_of(job)
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = alone(self.chip, job)
        return known

    @property
    def simulated(self) -> int:
        """How many kinds of jobs were simulated."""
        return len(self._known)


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
