"""The fast engine: a program in its flat form, run by the core (`lstmsim/engines/fast/core`)."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.engines.fast.binding import Machine, Outcome, Table
from lstmsim.errors import DeadlockError
from lstmsim.program.cycles import CYCLE_NAMES
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.program.trace_tables import HALTS, ISSUES, PAUSES, SEATS, SWITCHES, TASKS
from lstmsim.program.validate import describe_wait, validate

__all__ = ["run", "totals"]


def _ran(program: Program, *, keep: bool, check: bool) -> Machine:
    """The machine at the end of a program."""
    if check:
        validate(program)
    machine = Machine(flat_of(program), keep=keep)
    while (outcome := machine.run()) is Outcome.PAUSED:
        pass
    if outcome is Outcome.STUCK:
        last, waits = machine.waits()
        raise DeadlockError(last, tuple(_told(program, waits.tolist())))
    return machine


def run(program: Program, *, check: bool = True) -> Trace:
    """Run a program to its end.

    check: whether to look for broken rules first.
    `ProgramError` if the program breaks a rule. `DeadlockError` if it gets stuck.
    """
    machine = _ran(program, keep=True, check=check)
    tables = {
        table: layout.ordered(machine.table(table, len(layout.names)))
        for table, layout in (
            (Table.ISSUES, ISSUES),
            (Table.SWITCHES, SWITCHES),
            (Table.PAUSES, PAUSES),
            (Table.SEATS, SEATS),
            (Table.HALTS, HALTS),
        )
    }
    return Trace(
        issues=tables[Table.ISSUES],
        switches=tables[Table.SWITCHES],
        tasks=machine.table(Table.TASKS, len(TASKS.names)),
        pauses=tables[Table.PAUSES],
        seats=tables[Table.SEATS],
        halts=tables[Table.HALTS],
    )


def totals(program: Program, *, check: bool = True) -> Totals:
    """The totals of a run without recording it. Arguments and errors as of `run`."""
    machine = _ran(program, keep=False, check=check)
    tasks = machine.table(Table.TASKS, len(TASKS.names))
    counted = machine.totals(int(TASKS.of(tasks, "finish").max(initial=0)), len(CYCLE_NAMES) + 2)
    return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], tasks)


def _told(program: Program, waits: list[list[int]]) -> Iterator[str]:
    """Say in words what cursors wait for (`Machine.waits`)."""
    for number, kind, members, phase, iteration, index, lacking in waits:
        task = program.tasks[number]
        phases = task.phases(kind, members)
        operation = phases[phase].body.operations[index]
        if lacking < 0:
            yield describe_wait(task, operation, f"a free slot of buffer {operation.takes}")
            continue
        need = operation.needs[lacking]
        source = phase if need.phase is None else need.phase
        step = iteration - need.lag if need.phase is None else iteration
        if need.mirrored and need.phase is not None:
            step = phases[source].repeat - 1 - iteration
        label = phases[source].body.operations[need.operation].label or "operation"
        lack = f"{label} {need.operation} of phase {source}, iteration {step}"
        yield describe_wait(task, operation, lack)
