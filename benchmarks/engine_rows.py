"""The engines' rows of BENCHMARKS.md: what a run costs, beside the limits of Python and of the machine."""

from __future__ import annotations

from functools import partial

from bare_loop import BareLoop
from measures import cpu_seconds
from programs import PROGRAMS, issues_of, multiprocessor

from lstmsim.engines.fast import run as fast
from lstmsim.engines.fast.run import Machine
from lstmsim.engines.reference import run as reference
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.program.validate import validate

__all__ = ["HEAD", "engine_rows", "legend"]

HEAD = ["program", "what", "CPU ms", "thousand timeouts", "million issues/s", "times SimPy alone", "times reference"]


def legend() -> str:
    """Say what the programs are."""
    return "\n".join(
        f"* **{name}**: {words}; {issues_of(make()):,} issues." for name, (words, make) in PROGRAMS.items()
    )


def engine_rows(timeouts: float, loop: BareLoop) -> list[list[str]]:
    """Measure every engine on every program.

    timeouts: how many SimPy does in a processor second.
    loop: the empty loop.
    """
    rows = []
    for name, (_, make) in PROGRAMS.items():
        program = make()
        flat, issues = flat_of(program), issues_of(program)
        if loop.reads(flat, each_issue=True) != issues:
            raise RuntimeError(f"program {name}: the empty loop does not read every issue")
        # the reference engine looks at every thread for every issue: a short run of many threads stands for the whole
        sample = multiprocessor(30) if program.cores[0].contexts > 8 else program
        slow = cpu_seconds(partial(reference.run, sample), times=1) * issues / issues_of(sample)
        costs = {
            "reference, trace": slow,
            "core, trace": cpu_seconds(partial(fast.run, program, check=False)),
            "core, totals": cpu_seconds(partial(fast.totals, program, check=False)),
            "core, trace, every iteration run": cpu_seconds(partial(_every, flat, keep=True)),
            "core, totals, every iteration run": cpu_seconds(partial(_every, flat, keep=False)),
            "validation": cpu_seconds(partial(validate, program), times=20),
            "flattening, bodies kept": cpu_seconds(partial(flat_of, program), times=20),
            "empty loop, a read for each issue": cpu_seconds(partial(loop.reads, flat, each_issue=True)),
            "empty loop, a read for each operation": cpu_seconds(partial(loop.reads, flat, each_issue=False)),
        }
        for what, seconds in costs.items():
            row = [name, what, f"{1e3 * seconds:,.2f}", f"{seconds * timeouts / 1e3:,.2f}"]
            runs = what not in ("validation", "flattening, bodies kept")
            speed = issues / seconds
            row += [f"{speed / 1e6:,.2f}", f"{speed / timeouts:,.1f}", f"{slow / seconds:,.0f}"] if runs else [""] * 3
            rows.append(row)
    return rows


def _every(flat: FlatProgram, *, keep: bool) -> None:
    """A run that leaves out nothing that comes again; its tables are not read."""
    Machine(flat, keep=keep, each=True).finish()
