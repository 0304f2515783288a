"""The loop of the fast engine, compiled: the same functions, with numba, on arrays instead of lists.

Compiled code is kept beside the package (or in the user's cache folder), so that only the first process on a machine
compiles. Needs the package numba (extra `fast`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

from lstmsim.engines.fast import layout

__all__ = ["available", "compiled", "kept", "loaded"]

#: Modules and their functions, each after those that it calls.
_ORDER = {
    "heap": ("before", "swap", "rise", "sink", "push", "pop", "remove"),
    "snapshot": ("describe_units", "describe_thread", "describe_results", "describe", "too_far_apart"),
    "periods": ("forget_mark", "remember", "periods_for", "skip", "look_for_period"),
    "contents": (
        *("holds", "has_room", "make_room", "enter", "arrived", "let_go", "to_load", "fill", "load", "loaded"),
    ),
    "streams": (
        *("phase_table", "stream_table", "start_of", "earlier_start", "end_of_need", "end_of_frame"),
        *("resolve", "close", "passed", "settle", "move_on", "note_start", "complete"),
    ),
    "naming": ("name_of", "next_change", "account", "take"),
    "issuing": ("choose", "record", "issue", "turn"),
    "pausing": ("movable", "rather", "victim", "note_boundary", "note_halt", "ask", "pause"),
    "spreading": ("others_wait", "spread", "variant_at", "note_taken"),
    "seating": (*("sit", "prepare", "begin", "note_seat", "place", "finish", "free", "leave"),),
    "admission": ("best_place", "first_in_turn", "take_out", "hold_back", "bring_back", "go_on", "start", "admit"),
    "arriving": ("turn_away", "give_up", "too_many_wait", "wait", "arrive", "next_look"),
    "loop": ("next_event", "first_finish", "advance", "horizon", "drive"),
}


def available() -> bool:
    """Whether numba is installed; asked without importing it.

    >>> available() in (True, False)
    True
    """
    return find_spec("numba") is not None


def loaded() -> bool:
    """Whether this process has the compiled loop already."""
    return compiled.cache_info().currsize > 0


def _digest() -> str:
    """What the compiled code is of.

    numba looks only at a function's own file to see whether its kept code is still right, not at what it calls nor at
    numbers, which it takes in as they are: some of those come from the tables of the Program.
    """
    from hashlib import sha256

    numbers = {name: value for name, value in vars(layout).items() if isinstance(value, int | tuple)}
    modules = [import_module(f"lstmsim.engines.fast.{name}") for name in _ORDER]
    sources = [Path(str(module.__file__)).read_bytes() for module in modules]
    return sha256(b"".join(sources) + repr(numbers).encode()).hexdigest()[:12]


def kept() -> bool:
    """Whether the compiled loop lies beside the package, so that it has only to be loaded; asked without importing
    numba. False also where it lies elsewhere: a run that takes long finds it there all the same."""
    folder = Path(__file__).parent / "__pycache__"
    return available() and any(folder.glob(f"loop.drive_{_digest()}-*.nbi"))


@cache
def compiled() -> tuple[Callable[..., int], Callable[..., None]]:
    """`drive` and `account` of the loop, compiled when they are first called."""
    from numba import njit

    jit = njit(cache=True, error_model="numpy")
    modules = {name: import_module(f"lstmsim.engines.fast.{name}") for name in _ORDER}
    digest = _digest()
    names: dict[str, Any] = {}
    for module, order in _ORDER.items():
        # copies that call each other's compiled forms; the module stays as it is
        world = {**vars(modules[module]), **names}
        for name in order:
            original = getattr(modules[module], name)
            copy = FunctionType(original.__code__, world, name)
            copy.__module__, copy.__qualname__ = original.__module__, f"{name}_{digest}"
            names[name] = world[name] = jit(copy)
    return names["drive"], names["account"]
