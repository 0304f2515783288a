"""The fast engine: a program in its flat form, run by the core; words for a deadlock; tasks without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import DeadlockError
from lstmsim.engines.fast.binding import Machine, Outcome, Table
from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Phase, Program
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import PAUSES, TABLES, TASKS, Totals, Trace
from lstmsim.program.validate import describe_wait, validate


def deadlock(program: Program | FlatProgram, last: int, waits: NDArray[np.int64]) -> DeadlockError:
    """The error that says which operation waits for what, in order of cores and threads."""
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
    """The operation or the barrier that a need of an operation points to."""
    need = phases[phase].body.operations[index].needs[number]
    if need.barrier:
        return f"barrier {phases[phase].first_barrier + iteration * phases[phase].barriers + need.operation}"
    if need.phase is None:
        source, step = phase, iteration - need.lag
    else:
        source = need.phase
        step = phases[source].repeat - 1 - iteration if need.mirrored else iteration
    label = phases[source].body.operations[need.operation].label or "operation"
    return f"{label} {need.operation} of phase {source}, iteration {step}"


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
    """Run a program to its end; `ProgramError` if it breaks a rule (check: look first), `DeadlockError` if stuck."""
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


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says; `DeadlockError` if stuck."""

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> None:
        check_templates(program)
        validate(program)
        self.program, self.batches, self.window = program, Batches(chunks), max(window, len(program.tasks))
        self.machine = Machine(flat_of(program), fed=True)
        self.done = self.makespan_cycles = 0
        self._refill()

    @property
    def full_at(self) -> int | None:
        """The cycle of which not all had room; None if there was none."""
        return self.batches.full_at

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done; see `lstmsim.engines.feeds.Feed`."""
        outcome = Outcome.HUNGRY
        while outcome is not Outcome.DONE:
            outcome = finish(self.machine)
            if outcome is Outcome.STUCK:
                raise deadlock(self.program, *self.machine.waits())
            over = self.machine.table(Table.OVER, 2 + len(TASKS.names))
            self.machine.clear(Table.OVER)
            self.done += len(over)
            finishes = TASKS.of(over[:, 2:], "finish")
            ends = np.where(finishes < 0, TASKS.of(over[:, 2:], "admitted"), finishes)
            over = over[np.lexsort((over[:, 0], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finishes.max(initial=0)))
            if len(over):
                yield over[:, 0], over[:, 1], over[:, 2:]
            if outcome is Outcome.HUNGRY:
                self._refill()

    def pauses(self) -> Ints:
        """Pauses of tasks that have ended since they were asked for last; see `lstmsim.engines.feeds.Feed`."""
        rows = self.machine.table(Table.PAUSES, len(PAUSES.names))
        self.machine.clear(Table.PAUSES)
        return rows

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self.batches.stop()

    def totals(self) -> Totals:
        """The totals of all that has run, up to `makespan_cycles`, but for the tasks."""
        counted = self.machine.totals(self.makespan_cycles, COUNTS)
        return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], TASKS.empty())

    def _refill(self) -> None:
        """Let the next batch come."""
        batch = self.batches.next(self.window - (self.batches.count - self.done))
        self.machine.feed(batch, more=self.batches.more)
