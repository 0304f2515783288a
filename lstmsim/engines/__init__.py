"""Engines: each runs any Program to the same Trace and knows no target.

`reference` is written to be read, `fast` to be fast; they share types, not mechanism.
"""

from __future__ import annotations

from importlib import import_module

from lstmsim.errors import InputError
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace

__all__ = ["ENGINES", "run", "totals"]

#: Engines by name, with a line for people.
ENGINES = {
    "fast": "a native core that goes from event to event; the default",
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
    """Only the totals of a run, on the fast engine, which then records nothing.

    `check`: look for broken rules first; a program that a target has just lowered has none.

    >>> from lstmsim.program.program import *
    >>> body = Body((Operation(unit=0, count=3),))
    >>> task = Task("t", variants=((0, (Phase(body, repeat=1_000_000),)),), buffers=(), cores=(0,))
    >>> totals(Program((Core(0, (Unit("array", "coarse"),)),), (task,))).makespan_cycles
    3000000
    """
    from lstmsim.engines.fast import run as fast

    return fast.totals(program, check=check)
