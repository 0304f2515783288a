"""A product alone as a Program: one task on the first cores of a machine."""

from __future__ import annotations

from lstmsim.machines.multicore.lines.types import Stage
from lstmsim.machines.multicore.lowering.stages import Block, cores_of, phases_of, place_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.program.program import Program, Task

__all__ = ["program_of"]


def program_of(machine: Machine, stage: Stage, name: str) -> Program:
    """The Program of a product. It ends with the barrier of its threads.

    machine: the machine.
    stage: the steps of each thread; thread t runs on core t.
    name: of the task, for people.
    """
    first, *others = place_of(machine, 0, len(stage.steps))
    phases = phases_of(machine, [Block((stage,))])
    task = Task(name, ((0, phases),), (), (first,), partners=(tuple(others),))
    return Program(cores_of(machine), (task,))
