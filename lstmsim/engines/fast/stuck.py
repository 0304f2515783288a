"""Words for a program that got stuck on the fast engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import DeadlockError
from lstmsim.program.flat import FlatProgram
from lstmsim.program.program import Phase, Program
from lstmsim.program.validate import describe_wait

__all__ = ["deadlock"]


def deadlock(program: Program | FlatProgram, last: int, waits: NDArray[np.int64]) -> DeadlockError:
    """The error that says which operation waits for what, in order of cores and threads.

    program: what got stuck.
    last, waits: what `Machine.waits` tells of it.
    """
    if isinstance(program, FlatProgram):
        # few programs get stuck: the others need not wait for this import
        from lstmsim.program.unflatten import program_of

        program = program_of(program)
    return DeadlockError(last, tuple(_told(program, waits.tolist())))


def _told(program: Program, waits: list[list[int]]) -> Iterator[str]:
    for number, kind, members, phase, iteration, index, need in waits:
        task = program.tasks[number]
        phases = task.phases(kind, members)
        operation = phases[phase].body.operations[index]
        slot = f"a free slot of buffer {operation.takes}"
        yield describe_wait(task, operation, slot if need < 0 else _source(phases, phase, iteration, index, need))


def _source(phases: tuple[Phase, ...], phase: int, iteration: int, index: int, number: int) -> str:
    """The operation or the gate that a need of an operation points to."""
    need = phases[phase].body.operations[index].needs[number]
    if need.gate:
        return f"gate {phases[phase].first_gate + iteration * phases[phase].gates + need.operation}"
    if need.phase is None:
        source, step = phase, iteration - need.lag
    else:
        source = need.phase
        step = phases[source].repeat - 1 - iteration if need.mirrored else iteration
    label = phases[source].body.operations[need.operation].label or "operation"
    return f"{label} {need.operation} of phase {source}, iteration {step}"
