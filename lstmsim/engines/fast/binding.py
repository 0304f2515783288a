"""The core of the fast engine (`core/interface.cpp`) as Python sees it: a flat program, run piece by piece."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.native.library import Library
from lstmsim.program.flat import FORMAT, FlatProgram

#: The library; its version is that of the program format.
OWN = Library(Path(__file__).with_name("core"), FORMAT)


def available() -> bool:
    """Whether the library can be used."""
    return absence() is None


def absence() -> str | None:
    """Say why the library cannot be used, in words that go on after "because"; None if it can."""
    return OWN.absence()


def library() -> ctypes.CDLL:
    """Give the library, loaded; `RuntimeError` if it cannot be used."""
    return OWN.loaded()


#: Events after which the core comes back, so that Python sees a key press: some tens of milliseconds.
EVENTS = 1_000_000
#: Room for a sentence of the core.
_ROOM = 400

_Words = NDArray[np.int64]


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
    core = library()
    said: list[Any] = [c_char_p, c_int64]
    for name, result, arguments in (
        ("open", c_int64, [c_void_p, c_int64, c_int64, POINTER(c_void_p), *said]),
        ("run", c_int64, [c_void_p, c_int64, *said]),
        ("feed", c_int64, [c_void_p, c_void_p, c_int64, c_int64, *said]),
        ("size", c_int64, [c_void_p, c_int64]),
        ("copy", None, [c_void_p, c_int64, c_void_p]),
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


class Machine:
    """A machine before its first cycle, or on its way; keep: it records a trace; fed: tasks are templates.

    `ProgramError` if the core refuses the program or a request, or if a run grows too large. After any error the
    machine is closed, and whatever else is asked of it is a `RuntimeError`.
    """

    def __init__(self, program: FlatProgram, *, keep: bool = False, fed: bool = False) -> None:
        self._core = _functions()
        self._words = program.words
        self._message = ctypes.create_string_buffer(_ROOM)
        self._own = c_void_p()
        code = self._core.lstmsim_open(
            self._words.ctypes.data, len(self._words), keep + 2 * fed, byref(self._own), self._message, _ROOM
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

    def feed(self, requests: _Words, *, more: bool) -> None:
        """Let requests come, shape (requests, 3): release, template, rank; `more`: whether others will follow.

        `ProgramError` if they break a rule, if those before them have not all come, or if the machine is not fed.
        """
        rows = np.ascontiguousarray(requests, dtype=np.int64).reshape(-1, 3)
        self._checked(self._core.lstmsim_feed(self._handle, rows.ctypes.data, len(rows), more, self._message, _ROOM))

    def table(self, table: Table, width: int) -> _Words:
        """A copy of what the run has written to a table, shape (rows, `width`); `ValueError` for another width."""
        size = self._core.lstmsim_size(self._handle, table)
        if size % width:
            raise ValueError(f"{size} numbers are no rows of {width}")
        rows = np.empty((size // width, width), dtype=np.int64)
        self._core.lstmsim_copy(self._handle, table, rows.ctypes.data)
        return rows

    def clear(self, table: Table) -> None:
        """Forget what is in a table. The run writes on at its beginning."""
        self._core.lstmsim_clear(self._handle, table)

    def totals(self, upto: int, width: int) -> _Words:
        """For each core the cycles of each name up to a cycle, its work and its issues, shape (cores, `width`)."""
        self._checked(self._core.lstmsim_total(self._handle, upto, self._message, _ROOM))
        return self.table(Table.TOTALS, width)

    def waits(self) -> tuple[int, _Words]:
        """Of a machine that is stuck: the cycle of the last start, and what each cursor waits for: task,
        kind of its first core, how many cores, phase, iteration, operation, need (-1: a slot of a buffer)."""
        self._checked(self._core.lstmsim_waits(self._handle, self._message, _ROOM))
        return int(self._core.lstmsim_last_cycle(self._handle)), self.table(Table.WAITS, 7)

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


def choose(policy: int, active: int, fresh: bool, ready: _Words, now: int) -> int | None:
    """The thread that a unit chooses in cycle `now` of those with a ready cycle; None if it chooses none."""
    cycles = np.ascontiguousarray(ready, dtype=np.int64)
    chosen: int = _functions().lstmsim_choose(policy, active, fresh, cycles.ctypes.data, len(cycles), now)
    return None if chosen < 0 else chosen
