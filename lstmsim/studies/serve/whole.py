"""Whole jobs in place of their operations, where that changes no cycle: on cores on which jobs never meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Program, TabledProgram, Task, Unit

_OPERATIONS = FLAT_TABLES["operations"]
#: A kind of core, and the phases (by identity) and buffers of a task on it.
_Run = tuple[int, int, tuple[Buffer, ...]]
_Variants = tuple[tuple[int, tuple[Phase, ...]], ...]
#: The cores of a place, its members in order.
_Place = tuple[int, ...]
#: What tasks that run alike have in common.
_Footprint = tuple[object, ...]


def condensed(program: Program) -> Program:
    """Give the program with one operation for each task, where tasks never meet; else the program itself.

    They never meet if every core has one thread or is shared (a memory), no two that run at once use the same shared
    core, no weights take turns, nothing is spread over cores that are found as it runs or paused, no frame comes later
    than its task, and no unit is taken for longer than its results take. Then a task begins on idle units and takes as
    many cycles as alone, whatever ran before. Each distinct task is simulated once, and arrivals, starts, finishes and
    batches of the condensed program are those of the program.

    >>> from lstmsim.program.operations import Operation
    >>> task = Task("t", ((0, (Phase(Body((Operation(0, 2, result_cycles=9),)), 3),)),), (), (0,))
    >>> made = condensed(Program((Core(0, (Unit("array", "fine"),)),), (task, task)))
    >>> made.tasks[0].phases(0)[0].body.operations[0].result_cycles, made.tasks[0] == made.tasks[1]
    (13, True)
    """
    if isinstance(program, TabledProgram) or program.barriers or not all(map(_alone_on, program.cores)):
        return program
    # members of a ragged batch leave one by one
    if any(pool.ragged for pool in program.pools) or not all(map(_stands_alone, program.tasks)):
        return program
    places = _Places(program.cores)
    different = {_footprint(task): task for task in program.tasks}
    for task in different.values():
        for kind, phases, buffers in _runs(task):
            if not _ends_idle(phases):
                return program
            places.add(task, kind, phases, buffers)
    if places.meet():
        return program
    made = places.whole()
    if made is None:
        return program
    variants = {footprint: _condensed(task, made) for footprint, task in different.items()}
    gangs = _gangs(program.cores, different)
    tasks = []
    for task in program.tasks:
        own = _footprint(task)
        alone, sizes = variants[own]
        tasks.append(replace(task, variants=alone, sizes=sizes, buffers=(), gang=gangs[own]))
    # nothing runs on memories and links any more, but what they are called says which resource a job takes
    jobs = ((Unit("job", "fifo"),) if not core.shared else core.units for core in program.cores)
    cores = tuple(replace(core, units=units, accounted=0) for core, units in zip(program.cores, jobs, strict=True))
    return replace(program, cores=cores, tasks=tuple(tasks))


def _alone_on(core: Core) -> bool:
    if not core.shared:
        return core.contexts == 1
    return all((unit.policy, unit.switch_cycles, unit.instances) == ("fifo", 0, 1) for unit in core.units)


def _stands_alone(task: Task) -> bool:
    together = task.moldable or task.weight_set is not None
    return not (together or task.preempts or task.frame_interval)


def _footprint(task: Task) -> _Footprint:
    return id(task.variants), id(task.sizes), task.buffers, task.cores, task.gang


def _ends_idle(phases: tuple[Phase, ...]) -> bool:
    """Whether all units are idle when the last results are there, and no operation waits for a later frame."""
    for phase in phases:
        cycles, results, frame = (_column(phase, name) for name in ("cycles", "result_cycles", "frame"))
        if (cycles > results).any() or (frame > 1).any():
            return False
    return True


def _column(phase: Phase, name: str) -> NDArray[np.int64]:
    rows = phase.body.rows.operations.reshape(-1, _OPERATIONS.width)
    column: NDArray[np.int64] = rows[:, _OPERATIONS.place(name)]
    return column


class _Places:
    """What runs where: the runs of tasks, and the places of each."""

    def __init__(self, cores: Sequence[Core]) -> None:
        self._cores = cores
        self._runs: dict[_Run, tuple[tuple[Phase, ...], set[_Place]]] = {}

    def add(self, task: Task, kind: int, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> None:
        """Note the places of a task where a run of it takes place."""
        _, places = self._runs.setdefault((kind, id(phases), buffers), (phases, set()))
        places |= {place for place in task.places if self._cores[place[0]].kind == kind}

    def meet(self) -> bool:
        """Whether operations of two tasks that run at once may want the same shared core."""
        using: dict[int, set[frozenset[int]]] = {}
        for phases, places in self._runs.values():
            members = {member for phase in phases for member in set(_column(phase, "member").tolist())}
            for place in places:
                own = frozenset(core for core in place if not self._cores[core].shared)
                for core in {place[member] for member in members} - own:
                    using.setdefault(core, set()).add(own)
        # those that have a core of one thread in common run one after the other
        return any(one.isdisjoint(other) for each in using.values() for one, other in combinations(each, 2))

    def whole(self) -> dict[_Run, tuple[Phase, ...]] | None:
        """One operation for each run; None if a run takes longer at one place than at another."""
        made, known = dict[_Run, tuple[Phase, ...]](), dict[tuple[object, ...], tuple[int, int]]()
        for run, (phases, places) in self._runs.items():
            found = set[tuple[int, int]]()
            for place in places:
                # threads of a memory stand for those of cores in their order
                order = sorted(set(place))
                cores = [self._cores[core] for core in order]
                first, *gang = (order.index(core) for core in place)
                alike = (run, first, *gang, *map(id, cores))
                threads = sum(core.contexts for core in cores if not core.shared)
                cores = [replace(core, contexts=threads) if core.mirrors else core for core in cores]
                if alike not in known:
                    variants, buffers = ((run[0], phases),), ((run[0], run[2]),)
                    alone = Task("job", variants, buffers, (first,), gang=(tuple(gang),) if gang else ())
                    totals = engines.totals(Program(tuple(cores), (alone,)), check=False)
                    known[alike] = totals.makespan_cycles, int(totals.work.sum())
                found.add(known[alike])
            if len(found) > 1:
                return None
            for cycles, work in found:
                whole = Operation(0, cycles, result_cycles=cycles, work=work, label="job")
                made[run] = (Phase(Body((whole,)), 1),)
        return made


def _gangs(cores: Sequence[Core], tasks: Mapping[_Footprint, Task]) -> dict[_Footprint, tuple[_Place, ...]]:
    """The gangs of tasks that run nothing there: with as few cores as tell which places exclude each other.

    Cores that belong to the same places are as good as one. A thread of a shared core that mirrors is free with its
    core.
    """
    places = {place for task in tasks.values() for place in task.places}
    of = dict[int, list[_Place]]()
    for place in sorted(places):
        for core in dict.fromkeys(place):
            of.setdefault(core, []).append(place)
    first = dict[tuple[_Place, ...], int]()
    stands = {core: first.setdefault(tuple(own), core) for core, own in sorted(of.items())}

    def gang(task: Task) -> tuple[_Place, ...]:
        others = []
        for leader, *rest in task.places:
            whole = [leader, *(each for each in rest if not cores[each].mirrors)]
            if any(cores[each].shared for each in whole):
                return task.gang
            others.append(([stands[each] for each in whole if stands[each] != leader], whole[1:]))
        # all places of a task have as many members
        most = max(len(set(least)) for least, _ in others)
        made = tuple(tuple(dict.fromkeys([*least, *whole]))[:most] for least, whole in others)
        return made if most else ()

    return {footprint: gang(task) for footprint, task in tasks.items()}


def _runs(task: Task) -> Iterator[tuple[int, tuple[Phase, ...], tuple[Buffer, ...]]]:
    """What the task runs on each kind of core, alone and in batches."""
    for variants in (task.variants, *task.sizes):
        for kind, phases in variants:
            yield kind, phases, task.slots(kind)


def _condensed(task: Task, made: Mapping[_Run, tuple[Phase, ...]]) -> tuple[_Variants, tuple[_Variants, ...]]:
    """The variants of the task, alone and in batches, with one operation in place of its own."""

    def variants(of: _Variants) -> _Variants:
        return tuple((kind, made.get((kind, id(phases), task.slots(kind)), phases)) for kind, phases in of)

    return variants(task.variants), tuple(map(variants, task.sizes))
