"""Many programs in one call of the core that differ in their bodies: points of a sweep."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int64, c_void_p
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from lstmsim.base.errors import ProgramError
from lstmsim.engines.fast.run import OWN
from lstmsim.program.flat import BodyRows, FlatProgram, flat_program
from lstmsim.program.operations import Ints
from lstmsim.program.stall_reasons import CYCLE_NAMES

#: Columns of a point's row (`Came` of the core); behind them cycles of each name, work and issues, then its tasks.
OUTCOME, NANOSECONDS, MAKESPAN, COUNTED = range(4)
WORK = COUNTED + len(CYCLE_NAMES)
TASKS = WORK + 2
#: The outcome of a point that a call had no events left for.
GIVEN_UP = 1
#: Events of a call after which its other points are given up: about a second, for nothing interrupts a call.
MOST_EVENTS = 10_000_000
_ROOM = 400


def form_of(flat: FlatProgram) -> FlatProgram:
    """The program without operations and needs, as `run_points` takes it."""
    names = ("head", "causes", "cores", "units", "held", "weight_sets", "groups", "places", "thread_slots", "profiles")
    more = ("variants", "phases", "extras", "buffers", "bodies", "tasks", "barriers", "pools", "sessions")
    return flat_program({name: flat.table(name) for name in names + more})


@cache
def _function() -> Any:
    function = OWN.loaded().lstmsim_points
    number: Any = c_int64
    numbers: Any = c_void_p
    tables: list[Any] = [POINTER(c_void_p), POINTER(c_int64)]
    said: list[Any] = [c_char_p, c_int64]
    function.argtypes = [numbers, numbers, number, *tables, *[numbers, number] * 2, number, numbers, number, *said]
    function.restype = c_int64
    return function


def run_points(forms: Sequence[FlatProgram], rows: BodyRows, bodies: Ints, points: Ints, tasks: int) -> Ints:
    """Run points, and give a row of numbers for each, shape (points, `TASKS` + tasks).

    forms: programs without operations.
    rows: the bodies of all points.
    bodies: rows of them, in the order of a point's bodies.
    points: for each its form, and the first of its `bodies`; shape (points, 2).
    tasks: the most tasks of a form.
    A row begins with 0; or with another number, if the point was given up or refused. `ProgramError` if all are.
    """
    words = np.concatenate([each.words for each in forms])
    firsts = np.array([0, *accumulate(len(each.words) for each in forms)], dtype=np.int64)
    made = np.zeros((len(points), TASKS + tasks), dtype=np.int64)
    message = ctypes.create_string_buffer(_ROOM)
    failed = _function()(
        *(words.ctypes.data, firsts.ctypes.data, len(forms)),
        *((c_void_p * 3)(*rows.addresses), (c_int64 * 3)(*rows.sizes)),
        *(bodies.ctypes.data, len(bodies), points.ctypes.data, len(points)),
        *(MOST_EVENTS, made.ctypes.data, made.shape[1], message, _ROOM),
    )
    if failed:
        raise ProgramError(message.value.decode(errors="replace"))
    return made
