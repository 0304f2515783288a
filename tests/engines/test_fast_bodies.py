"""Records of bodies that are kept stand in later tables as if they had been made for them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from lstmsim.engines.fast import bodies
from lstmsim.engines.fast.tables import tables_of
from lstmsim.program.program import Program
from tests.strategies import programs


@given(programs())
def test_a_program_has_the_same_tables_again(program: Program) -> None:
    bodies._KEPT.clear()
    first = tables_of(program)
    assert bodies._KEPT.results
    assert tables_of(program) == first


@given(programs())
def test_what_stands_elsewhere_has_the_addresses_of_that_place(program: Program) -> None:
    """What stood first in one program stands last in the other."""
    tasks = tuple(replace(task, after=None) for task in program.tasks)
    backward = Program(program.cores, tasks[::-1])
    bodies._KEPT.clear()
    first = tables_of(backward)
    bodies._KEPT.clear()
    tables_of(Program(program.cores, tasks))
    assert tables_of(backward) == first
