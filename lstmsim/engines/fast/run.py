"""The fast engine: a program in its flat form, run by the core.

The core is in `core/`; the rules of the clock stand at the top of its `machine.hpp`.
"""

from __future__ import annotations

from lstmsim.engines.fast.binding import Machine, Outcome, Table
from lstmsim.engines.fast.stuck import deadlock
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.program.trace_tables import PAUSES, TABLES, TASKS
from lstmsim.program.validate import validate

__all__ = ["COUNTS", "finish", "run", "totals"]

#: Numbers of a row of `Machine.totals`: cycles of each name, work, issues.
COUNTS = len(CYCLE_NAMES) + 2


def finish(machine: Machine) -> Outcome:
    """Let a machine go on until it has to stop: it is done, it is stuck, or it wants more requests."""
    while (outcome := machine.run()) is Outcome.PAUSED:
        pass
    return outcome


def _ran(program: Program | FlatProgram, *, keep: bool, check: bool) -> Machine:
    """The machine at the end of a program."""
    if check and isinstance(program, Program):
        validate(program)
    machine = Machine(program if isinstance(program, FlatProgram) else flat_of(program), keep=keep)
    if finish(machine) is Outcome.STUCK:
        raise deadlock(program, *machine.waits())
    return machine


def run(program: Program | FlatProgram, *, check: bool = True) -> Trace:
    """Run a program to its end.

    program: a Program, or its flat form.
    check: whether to look for broken rules of a Program first. The core looks at every flat form.
    `ProgramError` if the program breaks a rule. `DeadlockError` if it gets stuck.
    """
    machine = _ran(program, keep=True, check=check)
    tables = {}
    for table in TABLES:
        rows = machine.table(Table[table.name.upper()], len(table.names))
        tables[table.name] = table.ordered(rows) if table.order else rows
    return Trace(**tables)


def totals(program: Program | FlatProgram, *, check: bool = True) -> Totals:
    """The totals of a run without recording it. Arguments and errors as of `run`."""
    machine = _ran(program, keep=False, check=check)
    tasks = machine.table(Table.TASKS, len(TASKS.names))
    counted = machine.totals(int(TASKS.of(tasks, "finish").max(initial=0)), COUNTS)
    pauses = PAUSES.ordered(machine.table(Table.PAUSES, len(PAUSES.names)))
    return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], tasks, pauses)
