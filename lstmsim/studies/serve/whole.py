"""Whole jobs in place of their operations, where that changes no cycle: on cores on which jobs never meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lstmsim import engines
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Program, TabledProgram, Task, Unit

_OPERATIONS = FLAT_TABLES["operations"]
#: A kind of core, and the phases (by identity) and buffers of a task on it.
_Run = tuple[int, int, tuple[Buffer, ...]]
_Variants = tuple[tuple[int, tuple[Phase, ...]], ...]


def condensed(program: Program) -> Program:
    """Give the program with one operation for each task, where tasks never meet; else the program itself.

    They never meet if every core has one thread, no core is shared, no weights take turns, nothing is spread over cores
    or paused, no frame comes later than its task, and no unit is taken for longer than its results take. Then a task
    begins on idle units and takes as many cycles as alone, whatever ran before. Each distinct task is simulated once,
    and arrivals, starts, finishes and batches of the condensed program are those of the program.

    >>> from lstmsim.program.operations import Operation
    >>> task = Task("t", ((0, (Phase(Body((Operation(0, 2, result_cycles=9),)), 3),)),), (), (0,))
    >>> made = condensed(Program((Core(0, (Unit("array", "fine"),)),), (task, task)))
    >>> made.tasks[0].phases(0)[0].body.operations[0].result_cycles, made.tasks[0] == made.tasks[1]
    (13, True)
    """
    if isinstance(program, TabledProgram) or program.barriers or not all(map(_alone_on, program.cores)):
        return program
    # members of a ragged batch leave one by one
    if any(pool.ragged for pool in program.pools):
        return program
    runs = {(kind, id(phases), buffers): phases for task in program.tasks for kind, phases, buffers in _runs(task)}
    if not all(map(_stands_alone, program.tasks)) or not all(map(_ends_idle, runs.values())):
        return program
    cores = {core.kind: core for core in program.cores}
    made = {key: _whole(cores[key[0]], phases, key[2]) for key, phases in runs.items() if key[0] in cores}
    own = tuple(replace(core, units=(Unit("job", "fifo"),), accounted=0) for core in program.cores)
    return replace(program, cores=own, tasks=tuple(_condensed(task, made) for task in program.tasks))


def _alone_on(core: Core) -> bool:
    return core.contexts == 1 and not core.shared


def _stands_alone(task: Task) -> bool:
    together = task.gang or task.moldable or task.weight_set is not None
    return not (together or task.preempts or task.frame_interval)


def _ends_idle(phases: tuple[Phase, ...]) -> bool:
    """Whether all units are idle when the last results are there, and no operation waits for a later frame."""
    for phase in phases:
        rows = phase.body.rows.operations.reshape(-1, _OPERATIONS.width)
        cycles, results, frame = (rows[:, _OPERATIONS.place(name)] for name in ("cycles", "result_cycles", "frame"))
        if (cycles > results).any() or (frame > 1).any():
            return False
    return True


def _runs(task: Task) -> Iterator[tuple[int, tuple[Phase, ...], tuple[Buffer, ...]]]:
    """What the task runs on each kind of core, alone and in batches."""
    for variants in (task.variants, *task.sizes):
        for kind, phases in variants:
            yield kind, phases, task.slots(kind)


def _whole(core: Core, phases: tuple[Phase, ...], buffers: tuple[Buffer, ...]) -> tuple[Phase, ...]:
    """One operation that takes as long as these phases on a core of their own, and does their work."""
    task = Task("job", ((core.kind, phases),), ((core.kind, buffers),), (0,))
    totals = engines.totals(Program((core,), (task,)), check=False)
    cycles, work = totals.makespan_cycles, int(totals.work.sum())
    return (Phase(Body((Operation(0, cycles, result_cycles=cycles, work=work, label="job"),)), 1),)


def _condensed(task: Task, made: Mapping[_Run, tuple[Phase, ...]]) -> Task:
    """The task with one operation in place of its own, on each kind of core and in batches."""

    def variants(of: _Variants) -> _Variants:
        return tuple((kind, made.get((kind, id(phases), task.slots(kind)), phases)) for kind, phases in of)

    return replace(task, variants=variants(task.variants), buffers=(), sizes=tuple(map(variants, task.sizes)))
