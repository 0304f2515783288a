"""Engines: each runs any Program to the same Trace and knows no target.

`reference` is written to be read, `fast` to be fast; they share types, not mechanism.
"""

from __future__ import annotations

from importlib import import_module

from lstmsim.errors import InputError
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace

__all__ = ["ENGINES", "run", "totals", "warm_up"]

#: Engines by name, with a line for people.
ENGINES = {
    "fast": "event-jumping integer loop, compiled for long runs; skips repeating periods; the default",
    "reference": "SimPy processes, one issue at a time; slower, written to be read",
}


def run(program: Program, engine: str = "fast", *, check: bool = True) -> Trace:
    """Run the program on the engine of that name; `InputError` if there is no such engine.

    `check`: look for broken rules first; a program that a target has just lowered has none.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(unit=0, count=3),))
    >>> task = Task("t", variants=((0, (Phase(body, repeat=2),)),), buffers=(), cores=(0,))
    >>> run(Program((Core(0, (Unit("array", "coarse"),)),), (task,))).makespan_cycles
    6
    """
    if engine not in ENGINES:
        raise InputError(f"no engine called {engine!r}; there are: {', '.join(ENGINES)}")
    module = import_module(f"lstmsim.engines.{engine}.run")
    trace: Trace = module.run(program, check=check)
    return trace


def totals(program: Program, *, check: bool = True) -> Totals:
    """Only the totals of a run, on the fast engine: whole periods are skipped, so that steps cost next to nothing.

    `check`: look for broken rules first; a program that a target has just lowered has none.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(unit=0, count=3),))
    >>> task = Task("t", variants=((0, (Phase(body, repeat=1_000_000),)),), buffers=(), cores=(0,))
    >>> totals(Program((Core(0, (Unit("array", "coarse"),)),), (task,))).makespan_cycles
    3000000
    """
    from lstmsim.engines.fast import run as fast

    return fast.totals(program, check=check)


def warm_up() -> bool:
    """Load the compiled loop of the fast engine for many small runs to come; False where numba is not installed.

    Takes about a second, on the first use on a machine some more for the compiler.
    """
    from lstmsim.engines.fast import compiled

    if compiled.available():
        compiled.compiled()
    return compiled.loaded()
