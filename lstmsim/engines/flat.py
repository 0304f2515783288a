"""A task as flat lists of whole numbers: what the fast engine's loop reads.

One `FlatTask` holds everything of a task on one kind of core; the lists of a body are made once and shared by
all phases and tasks that use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.program.program import CAUSES, Body, Phase, Program

__all__ = ["FlatTask", "flatten"]

#: (phase, slot of the source's start, lag, mode, delay, cause); mode 0: own phase, 1: same step, 2: mirrored step.
Need = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class FlatTask:
    """Lists indexed by phase, then by operation (or by unit for `streams`).

    Starts that others depend on are kept per phase at `slot + iteration * stride`; `known` is how many.
    """

    phases: tuple[Phase, ...]
    units: int
    release: int
    frame_interval: int
    slots: list[int]
    slot_cause: list[int]
    repeat: list[int]
    mirrored: list[bool]
    stride: list[int]
    known: list[int]
    streams: list[list[list[int]]]
    slot: list[list[int]]
    needs: list[list[list[Need]]]
    cycles: list[list[int]]
    count: list[list[int]]
    frame: list[list[bool]]
    takes: list[list[int]]
    frees: list[list[int]]
    result_cycles: list[list[int]]


@dataclass(frozen=True)
class _FlatBody:
    streams: list[list[int]]
    cycles: list[int]
    count: list[int]
    frame: list[bool]
    takes: list[int]
    frees: list[int]
    result_cycles: list[int]


def _body(body: Body, units: int) -> _FlatBody:
    operations = body.operations
    return _FlatBody(
        streams=[[i for i, each in enumerate(operations) if each.unit == unit] for unit in range(units)],
        cycles=[each.cycles for each in operations],
        count=[each.count for each in operations],
        frame=[each.frame for each in operations],
        takes=[-1 if each.takes is None else each.takes for each in operations],
        frees=[-1 if each.frees is None else each.frees for each in operations],
        result_cycles=[each.result_cycles for each in operations],
    )


@dataclass(frozen=True)
class _FlatPhases:
    bodies: list[_FlatBody]
    slot: list[list[int]]
    stride: list[int]
    needs: list[list[list[Need]]]


def _phases(phases: tuple[Phase, ...], bodies: list[_FlatBody]) -> _FlatPhases:
    slot = [[-1] * len(phase.body.operations) for phase in phases]
    for number, phase in enumerate(phases):
        for operation in phase.body.operations:
            for need in operation.needs:
                slot[number if need.phase is None else need.phase][need.operation] = 0
    stride = []
    for row in slot:
        watched = [i for i, each in enumerate(row) if each == 0]
        for place, index in enumerate(watched):
            row[index] = place
        stride.append(len(watched))
    needs: list[list[list[Need]]] = []
    for number, phase in enumerate(phases):
        rows = []
        for operation in phase.body.operations:
            row_needs = []
            for need in operation.needs:
                source = number if need.phase is None else need.phase
                mode = 0 if need.phase is None else 2 if need.mirrored else 1
                cause = CAUSES.index(need.cause)
                row_needs.append((source, slot[source][need.operation], need.lag, mode, need.delay, cause))
            rows.append(row_needs)
        needs.append(rows)
    return _FlatPhases(bodies, slot, stride, needs)


def flatten(program: Program) -> dict[tuple[int, int], FlatTask]:
    """Flat forms of all tasks, by (task, kind of core)."""
    units = {core.kind: len(core.units) for core in program.cores}
    bodies: dict[tuple[int, int], _FlatBody] = {}
    shared: dict[tuple[int, int], _FlatPhases] = {}
    result = {}
    for index, task in enumerate(program.tasks):
        for kind, phases in task.variants:
            if kind not in units:
                continue
            if (id(phases), kind) not in shared:
                for phase in phases:
                    key = (id(phase.body), kind)
                    if key not in bodies:
                        bodies[key] = _body(phase.body, units[kind])
                flat_bodies = [bodies[id(phase.body), kind] for phase in phases]
                shared[id(phases), kind] = _phases(phases, flat_bodies)
            flat = shared[id(phases), kind]
            result[index, kind] = FlatTask(
                phases=phases,
                units=units[kind],
                release=task.release,
                frame_interval=task.frame_interval,
                slots=[buffer.slots for buffer in task.slots(kind)],
                slot_cause=[CAUSES.index(buffer.cause) for buffer in task.slots(kind)],
                repeat=[phase.repeat for phase in phases],
                mirrored=[phase.mirrored for phase in phases],
                stride=flat.stride,
                known=[stride * phase.repeat for stride, phase in zip(flat.stride, phases, strict=True)],
                streams=[body.streams for body in flat.bodies],
                slot=flat.slot,
                needs=flat.needs,
                cycles=[body.cycles for body in flat.bodies],
                count=[body.count for body in flat.bodies],
                frame=[body.frame for body in flat.bodies],
                takes=[body.takes for body in flat.bodies],
                frees=[body.frees for body in flat.bodies],
                result_cycles=[body.result_cycles for body in flat.bodies],
            )
    return result
