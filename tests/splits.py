"""What tests of split jobs have in common: issues of a trace, phases and work of a program."""

from __future__ import annotations

from typing import Any

from lstmsim.program.program import Program
from lstmsim.program.trace import Trace


def issues(trace: Trace, core: int, unit: int) -> list[tuple[int, int]]:
    """Cycle and thread of every issue on a unit."""
    names = ("core", "unit", "start", "context", "count", "cycles")
    rows = zip(*(trace.issue(name).tolist() for name in names), strict=True)
    return sorted(
        (start + number * cycles, context)
        for on, which, start, context, count, cycles in rows
        if (on, which) == (core, unit)
        for number in range(count)
    )


def phases_of(program: Program) -> tuple[Any, ...]:
    return program.tasks[0].phases(program.cores[program.tasks[0].cores[0]].kind)


def work(program: Program) -> int:
    """Multiply-accumulates of a program's one task."""
    return sum(
        phase.repeat * operation.work * operation.count
        for phase in phases_of(program)
        for operation in phase.body.operations
    )
