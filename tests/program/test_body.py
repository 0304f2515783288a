"""A body gives its operations and its rows, whichever it was made of."""

from __future__ import annotations

import os
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings

from lstmsim import machines
from lstmsim.model.scenario import Scenario
from lstmsim.program.body_writer import BodyWriter, Home
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Program
from tests.strategies import programs, scenarios

#: 500 and more by LSTMSIM_EXAMPLES=500; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


def bodies(program: Program) -> list[Body]:
    ways = chain.from_iterable(
        chain((phases for _, phases in task.variants), (each.phases for each in task.moldable))
        for task in program.tasks
    )
    return [phase.body for phases in ways for phase in phases]


def assert_both_ways_are_equal(body: Body) -> None:
    rows, names = body.rows, [(each.label, each.place) for each in body.operations]
    again, back = Body(body.operations), Body.of_rows(rows, names)
    assert np.array_equal(again.rows.operations, rows.operations)
    assert np.array_equal(again.rows.needs, rows.needs)
    assert back.size == again.size == body.size == len(body.operations)
    assert back == again == body
    assert hash(back) == hash(again)


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_bodies_that_a_target_writes_as_rows(scenario: Scenario) -> None:
    for body in bodies(machines.lower(scenario.chip, scenario.jobs)):
        assert_both_ways_are_equal(body)


@settings(max_examples=EXAMPLES)
@given(programs())
def test_bodies_that_are_made_of_operations(program: Program) -> None:
    for body in bodies(program):
        assert_both_ways_are_equal(body)


def test_bodies_that_differ_are_not_equal() -> None:
    one = Body((Operation(0, label="a"),))
    assert Body.of_rows(one.rows, [("b", ())]) != one
    assert Body.of_rows(one.rows, [("a", (1,))]) != one
    assert Body((Operation(0, cycles=2, label="a"),)) != one
    assert one != one.operations


def test_a_body_does_not_change() -> None:
    body = Body((Operation(0),))
    with pytest.raises(AttributeError):
        body.operations = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        body.other = 1  # type: ignore[attr-defined]


def test_needs_count_from_the_places_where_operations_begin_at_last() -> None:
    rows, early, late = BodyWriter(), Home(), Home()
    rows.begin(early)
    rows.need(late, 1, 4, lag=1)
    rows.need(None, 0, 9, phase=0, mirrored=True)
    rows.operation(0, "first", (0,), takes=0)
    rows.begin(late)
    rows.operation(1, "a", (), count=3)
    rows.again(1, [("b", (7,))])
    rows.need(early, 0, 2)
    rows.operation(1, "last", (), frees=0, member=1)
    needs = (Dependence(2, 4, lag=1), Dependence(0, 9, phase=0, mirrored=True))
    assert rows.body().operations == (
        Operation(0, needs=needs, takes=0, label="first", place=(0,)),
        Operation(1, count=3, label="a"),
        Operation(1, count=3, label="b", place=(7,)),
        Operation(1, needs=(Dependence(0, 2),), frees=0, label="last", member=1),
    )
