"""Two engines, one truth: whole traces, or the same deadlock, on random programs."""

from __future__ import annotations

import os

from hypothesis import given, note, settings

from lstmsim.engines import run
from lstmsim.errors import DeadlockError
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from tests.strategies import programs

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "250"))


def outcome(program: Program, engine: str) -> Trace | str:
    try:
        return run(program, engine)
    except DeadlockError as deadlock:
        return str(deadlock)


@settings(max_examples=EXAMPLES)
@given(programs())
def test_random_programs_give_equal_traces(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    reference, fast = outcome(program, "reference"), outcome(program, "fast")
    assert type(reference) is type(fast)
    assert reference == fast
