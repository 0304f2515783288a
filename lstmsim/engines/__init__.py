"""Engines: each runs any Program to the same Trace and knows no target.

`reference` is written to be read, `fast` to be fast; they share types, not mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from lstmsim.base.errors import InputError
from lstmsim.engines.fast import run as fast
from lstmsim.engines.feeds import WINDOW, Feed, Ints
from lstmsim.native.library import warn_once
from lstmsim.program.flat import FlatProgram, check_limits
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals, Trace
from lstmsim.program.validate import validate

#: Engines by name, with a line for people.
ENGINES = {
    "fast": "a native core that goes from event to event; the default",
    "reference": "SimPy processes, one issue at a time; slower, written to be read",
}


def run(program: Program | FlatProgram, engine: str = "fast", *, check: bool = True) -> Trace:
    """Run a program, or its flat form, on an engine; `InputError` if there is no engine of that name.

    check: whether to look for broken rules first; a program that a target has just lowered has none.
    """
    if engine not in ENGINES:
        raise InputError(f"no engine called {engine!r}; there are: {', '.join(ENGINES)}")
    engine = running(engine)
    if engine == "fast":
        return fast.run(program, check=check)
    if check:
        _check(program)
    trace: Trace = import_module(f"lstmsim.engines.{engine}.run").run(
        _unflattened(program), check=check and isinstance(program, FlatProgram)
    )
    return trace


def _check(program: Program | FlatProgram) -> None:
    """Refuse what the fast engine refuses before it runs, with its sentences, where there is its core."""
    if isinstance(program, Program):
        validate(program)
    if fast.OWN.absence is None:
        fast.Machine(program if isinstance(program, FlatProgram) else flat_of(program))
    elif isinstance(program, Program):
        check_limits(flat_of(program))


def totals(program: Program | FlatProgram, engine: str = "fast", *, check: bool = True) -> Totals:
    """Only the totals of a run; arguments as of `run`. The fast engine then records nothing."""
    if running(engine) == "fast":
        return fast.totals(program, check=check)
    from lstmsim.program.accounts import totals_of

    program = _unflattened(program)
    return totals_of(program, run(program, engine, check=check))


def _unflattened(program: Program | FlatProgram) -> Program:
    if isinstance(program, Program):
        return program
    from lstmsim.program.unflatten import program_of

    return program_of(program)


def feed(program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> Feed:
    """Run tasks that keep coming, on the fast engine. The tasks of the program are templates.

    chunks: what comes, in the order of time, as in `lstmsim.engines.feeds.Batches`.
    window: how many tasks there is room for in the machine at once; one for each template at least.
    `InputError` if a template comes after another task, or tasks go back in time.
    """
    home = fast if has_fast() else import_module("lstmsim.engines.reference.run")
    made: Feed = home.Feed(program, chunks, window=window)
    return made


def running(engine: str) -> str:
    """The engine that does the work of another one: the reference engine, where the fast one cannot run.

    >>> running("reference")
    'reference'
    """
    return "reference" if engine == "fast" and not has_fast() else engine


def has_fast() -> bool:
    """Whether the fast engine can run. If not, the reference engine does its work: `EngineWarning`, once in a process.

    >>> has_fast() in (True, False)
    True
    """
    reason = fast.OWN.absence
    if reason is not None:
        what = f"the fast engine has no native core, because {reason}"
        warn_once(what, "the reference engine runs instead", stacklevel=4)
    return reason is None
