"""The fast engine: its core (`core/interface.cpp`) as Python sees it, a program in its flat form run to its end, words
for a deadlock, tasks without end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import DeadlockError, ProgramError
from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.native.library import Library
from lstmsim.program.flat import FORMAT, FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Phase, Program
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import PAUSES, TABLES, TASKS, Totals, Trace
from lstmsim.program.validate import describe_wait, validate

#: The library; its version is that of the program format.
OWN = Library(Path(__file__).with_name("core"), FORMAT)
#: Events after which the core comes back, so that Python sees a key press: some tens of milliseconds.
EVENTS = 1_000_000
#: Room for a sentence of the core.
_ROOM = 400
#: Numbers of a row of `Machine.totals`: cycles of each name, work, issues.
_COUNTS = len(CYCLE_NAMES) + 2
_FINISH = TASKS.place("finish")


class Outcome(IntEnum):
    """Why the core came back (`Outcome` and `Failure` of the core)."""

    DONE = 0
    PAUSED = 1
    STUCK = 2
    HUNGRY = 3
    REFUSED = 4
    TOO_LARGE = 5
    NO_MEMORY = 6
    BROKEN = 7


class Table(IntEnum):
    """What a run has written down (`Table` of the core)."""

    ISSUES = 0
    SWITCHES = 1
    TASKS = 2
    PAUSES = 3
    THREAD_SLOTS = 4
    HALTS = 5
    TOTALS = 6
    WAITS = 7
    OVER = 8


@cache
def _functions() -> Any:
    """The functions of the core with the types of their arguments."""
    core = OWN.loaded()
    said: list[Any] = [c_char_p, c_int64]
    for name, result, arguments in (
        ("open", c_int64, [c_void_p, c_int64, c_int64, POINTER(c_void_p), *said]),
        ("run", c_int64, [c_void_p, c_int64, *said]),
        ("feed", c_int64, [c_void_p, c_void_p, c_int64, c_int64, *said]),
        ("size", c_int64, [c_void_p, c_int64]),
        ("copy", None, [c_void_p, c_int64, c_void_p]),
        ("take", c_void_p, [c_void_p, c_int64, POINTER(c_int64)]),
        ("free", None, [c_void_p]),
        ("clear", None, [c_void_p, c_int64]),
        ("total", c_int64, [c_void_p, c_int64, *said]),
        ("waits", c_int64, [c_void_p, *said]),
        ("last_cycle", c_int64, [c_void_p]),
        ("choose", c_int64, [c_int64, c_int64, c_int64, c_void_p, c_int64, c_int64]),
        ("close", None, [c_void_p]),
    ):
        function = getattr(core, f"lstmsim_{name}")
        function.restype, function.argtypes = result, arguments
    return core


class _Numbers:
    """Numbers that the core has handed over: an array that is made of them keeps them as long as it lives."""

    def __init__(self, address: int | None, size: int) -> None:
        self._address, self._free = address, _functions().lstmsim_free
        where = {"data": (address, False)} if size else {"data": np.empty(0, dtype=np.int64)}
        self.__array_interface__ = {"shape": (size,), "typestr": np.dtype(np.int64).str, "version": 3, **where}

    def __del__(self) -> None:
        self._free(self._address)


class Machine:
    """A machine before its first cycle, or on its way; keep: with a trace; fed: tasks are templates; each: all is run.

    `ProgramError` if the core refuses the program or a request, or if a run grows too large. After any error the
    machine is closed, and whatever else is asked of it is a `RuntimeError`.
    """

    def __init__(self, program: FlatProgram, *, keep: bool = False, fed: bool = False, each: bool = False) -> None:
        self._core = _functions()
        self._words = program.words
        self._message = ctypes.create_string_buffer(_ROOM)
        self._own = c_void_p()
        code = self._core.lstmsim_open(
            self._words.ctypes.data, len(self._words), keep + 2 * fed + 4 * each, byref(self._own), self._message, _ROOM
        )
        self._checked(code)

    def __del__(self) -> None:
        if hasattr(self, "_own"):
            self._close()

    def _close(self) -> None:
        handle, self._own = self._own, c_void_p()
        if handle.value is not None:
            self._core.lstmsim_close(handle)

    @property
    def _handle(self) -> c_void_p:
        if self._own.value is None:
            raise RuntimeError("the machine was closed when it failed")
        return self._own

    def run(self, events: int = EVENTS) -> Outcome:
        """Go on for about so many events, and say why the machine came back; `ProgramError` if it grows too large."""
        return self._checked(self._core.lstmsim_run(self._handle, events, self._message, _ROOM))

    def finish(self) -> Outcome:
        """Go on until the machine has to stop: it is done, it is stuck, or it wants more requests."""
        while (outcome := self.run()) is Outcome.PAUSED:
            pass
        return outcome

    def feed(self, requests: Ints, *, more: bool) -> None:
        """Let requests come, shape (requests, 3): release, template, rank; `more`: whether others will follow.

        `ProgramError` if they break a rule, if those before them have not all come, or if the machine is not fed.
        """
        rows = np.ascontiguousarray(requests, dtype=np.int64).reshape(-1, 3)
        self._checked(self._core.lstmsim_feed(self._handle, rows.ctypes.data, len(rows), more, self._message, _ROOM))

    def table(self, table: Table, width: int) -> Ints:
        """A copy of what the run has written to a table, shape (rows, `width`); `ValueError` for another width."""
        size = self._core.lstmsim_size(self._handle, table)
        if size % width:
            raise ValueError(f"{size} numbers are no rows of {width}")
        rows = np.empty((size // width, width), dtype=np.int64)
        self._core.lstmsim_copy(self._handle, table, rows.ctypes.data)
        return rows

    def taken(self, table: Table, width: int) -> tuple[Ints, bool]:
        """What the run has written to a table (not to `TASKS`), without a copy; the machine forgets it.

        Behind it: whether the rows are known to stand in their canonical order.
        """
        size = self._core.lstmsim_size(self._handle, table)
        in_order = c_int64()
        numbers = _Numbers(self._core.lstmsim_take(self._handle, table, byref(in_order)), size)
        return np.asarray(numbers).reshape(-1, width), bool(in_order.value)

    def clear(self, table: Table) -> None:
        """Forget what is in a table. The run writes on at its beginning."""
        self._core.lstmsim_clear(self._handle, table)

    def totals(self, upto: int, width: int) -> Ints:
        """For each core the cycles of each name up to a cycle, its work and its issues, shape (cores, `width`)."""
        self._checked(self._core.lstmsim_total(self._handle, upto, self._message, _ROOM))
        return self.table(Table.TOTALS, width)

    def waits(self) -> tuple[int, Ints]:
        """Of a machine that is stuck: the cycle of the last start, and what each cursor waits for: task,
        kind of its first core, how many cores, size of its batch, phase, iteration, operation, need (-1: a slot)."""
        self._checked(self._core.lstmsim_waits(self._handle, self._message, _ROOM))
        return int(self._core.lstmsim_last_cycle(self._handle)), self.table(Table.WAITS, 8)

    def _said(self) -> str:
        return self._message.value.decode(errors="replace")

    def _checked(self, code: int) -> Outcome:
        outcome = Outcome(code)
        if outcome >= Outcome.REFUSED:
            # what failed on its way may be half changed
            self._close()
        if outcome in (Outcome.REFUSED, Outcome.TOO_LARGE):
            raise ProgramError(self._said())
        if outcome is Outcome.NO_MEMORY:
            raise MemoryError(self._said())
        if outcome is Outcome.BROKEN:
            raise RuntimeError(f"internal error of the fast engine's core: {self._said()}")
        return outcome


def choose(policy: int, active: int, fresh: bool, ready: Ints, now: int) -> int | None:
    """The thread that a unit chooses in cycle `now` of those with a ready cycle; None if it chooses none."""
    cycles = np.ascontiguousarray(ready, dtype=np.int64)
    chosen: int = _functions().lstmsim_choose(policy, active, fresh, cycles.ctypes.data, len(cycles), now)
    return None if chosen < 0 else chosen


def deadlock(program: Program | FlatProgram, last: int, waits: NDArray[np.int64]) -> DeadlockError:
    """The error that says which operation waits for what, in order of cores and threads."""
    if isinstance(program, FlatProgram):
        # few programs get stuck: the others need not wait for this import
        from lstmsim.program.unflatten import program_of

        program = program_of(program)
    return DeadlockError(last, tuple(_reported(program, waits.tolist())))


def _reported(program: Program, waits: list[list[int]]) -> Iterator[str]:
    for number, kind, members, size, phase, iteration, index, need in waits:
        task = program.tasks[number]
        phases = task.phases(kind, members, size)
        operation = phases[phase].body.operations[index]
        slot = f"a free slot of buffer {operation.takes}"
        yield describe_wait(task, operation, slot if need < 0 else _source(phases, phase, iteration, index, need))


def _source(phases: tuple[Phase, ...], phase: int, iteration: int, index: int, number: int) -> str:
    """The operation or the barrier that a need of an operation points to."""
    need = phases[phase].body.operations[index].needs[number]
    if need.barrier:
        return f"barrier {phases[phase].barrier(iteration, need.operation)}"
    if need.phase is None:
        source, step = phase, iteration - need.lag
    else:
        source = need.phase
        step = phases[source].repeat - 1 - iteration if need.mirrored else iteration
    label = phases[source].body.operations[need.operation].label or "operation"
    return f"{label} {need.operation} of phase {source}, iteration {step}"


def _ran(program: Program | FlatProgram, *, keep: bool, check: bool) -> Machine:
    """The machine at the end of a program."""
    if check and isinstance(program, Program):
        validate(program)
    machine = Machine(program if isinstance(program, FlatProgram) else flat_of(program), keep=keep)
    if machine.finish() is Outcome.STUCK:
        raise deadlock(program, *machine.waits())
    return machine


def run(program: Program | FlatProgram, *, check: bool = True) -> Trace:
    """Run a program to its end; `ProgramError` if it breaks a rule (check: look first), `DeadlockError` if stuck."""
    machine = _ran(program, keep=True, check=check)
    tables = {TASKS.name: machine.table(Table.TASKS, len(TASKS.columns))}
    for each in TABLES:
        if each is not TASKS:
            rows, in_order = machine.taken(Table[each.name.upper()], len(each.columns))
            tables[each.name] = rows if in_order else each.ordered(rows)
    return Trace(**tables)


def totals(program: Program | FlatProgram, *, check: bool = True) -> Totals:
    """The totals of a run without recording it. Arguments and errors as of `run`."""
    tasks, counted, pauses = _counted(_ran(program, keep=False, check=check))
    return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], tasks, PAUSES.ordered(pauses))


def _counted(machine: Machine) -> tuple[Ints, Ints, Ints]:
    """Of a machine at its end the tasks, what each core has counted, and the pauses as they came."""
    tasks = machine.table(Table.TASKS, len(TASKS.columns))
    counted = machine.totals(int(tasks[:, _FINISH].max(initial=0)), _COUNTS)
    return tasks, counted, machine.table(Table.PAUSES, len(PAUSES.columns))


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
            outcome = self.machine.finish()
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
        counted = self.machine.totals(self.makespan_cycles, _COUNTS)
        return Totals(counted[:, :-2], counted[:, -2], counted[:, -1], TASKS.empty())

    def _refill(self) -> None:
        """Let the next batch come."""
        batch = self.batches.next(self.window - (self.batches.count - self.done))
        self.machine.feed(batch, more=self.batches.more)
