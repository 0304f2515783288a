"""Packed bodies are read as what they stand for; words that name what is not there are refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lstmsim.base.errors import ProgramError
from lstmsim.program.flat import FLAT_TABLES, flat_program
from lstmsim.program.flatten import check_rows, flat_of, names_of
from lstmsim.program.operations import Dependence, Operation, need_word, operation_word
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.unflatten import program_of
from tests.packing import packed

OPERATIONS = (
    Operation(0, cycles=2, result_cycles=2, label="a", arrives=0),
    Operation(0, needs=(Dependence(0, 5), Dependence(-1, 3, "barrier", barrier=True)), label="b"),
    Operation(0, cycles=2, result_cycles=2, needs=(Dependence(1, 7),), label="a", arrives=0),
)


def program() -> Program:
    phases = (Phase(Body(OPERATIONS), 1, first_barrier=1, barriers=1),)
    return Program((Core(0, (Unit("array", "fine"),)),), (Task("t", ((0, phases),), (), (0,), starts=0),), (1, 2))


def test_a_packed_body_is_read_as_it_was_written() -> None:
    small = packed(flat_of(program()))
    assert small.table("bodies").tolist() == [[-1, 3, 0, 6]]
    # three operations of two kinds, with two kinds of needs, all behind the rows that were there
    assert small.column("words", "word").tolist() == [
        operation_word(3, 0),
        operation_word(4, 2),
        need_word(3, 0),
        need_word(4, -1),
        operation_word(3, 1),
        need_word(5, 1),
    ]
    body = program_of(small).tasks[0].variants[0][1][0].body
    assert body == Body(tuple(each._replace(label="") for each in OPERATIONS))


def test_operations_of_a_packed_body_have_the_names_of_their_prototypes() -> None:
    small, names = packed(flat_of(program())), names_of(program())
    rows = len(small.table("operations"))
    others = type(names)(
        names.tasks, names.units, names.buffers, tuple((f"p{row}", ()) for row in range(rows)), names.held
    )
    body = program_of(small, others).tasks[0].variants[0][1][0].body
    assert [each.label for each in body.operations] == ["p3", "p4", "p3"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ([operation_word(9, 0)] * 3, "row 0: word is 2304, of an operation that does not exist"),
        ([-1, *[operation_word(0, 0)] * 3], "row 0: word is -1, and its needs go beyond the body"),
        ([operation_word(3, 0)] * 2 + [operation_word(3, 1)], "row 2: word is 769, and its needs go beyond the body"),
        ([operation_word(3, 0)] * 2, "row 0: operations is 3, but its words have 2"),
        ([*[operation_word(3, 0)] * 2, operation_word(3, 1), need_word(9, 0)], "of a need that does not exist"),
        ([*[operation_word(3, 0)] * 2, operation_word(3, 1), need_word(3, 2)], "of an operation that comes no earlier"),
        (
            [*[operation_word(3, 0)] * 2, operation_word(3, 1), need_word(3, -1)],
            "of an operation that comes no earlier",
        ),
    ],
)
def test_words_that_name_what_is_not_there_are_refused(words: list[int], reported: str) -> None:
    small = packed(flat_of(program()))
    tables = {name: small.table(name).tolist() for name in FLAT_TABLES}
    tables["words"] = [[word] for word in words]
    tables["bodies"][0][3] = len(words)
    with pytest.raises(ProgramError, match=re.escape(reported)):
        check_rows(flat_program(tables))


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "reported"),
    [
        (
            "bodies",
            0,
            "first_operation",
            0,
            "table bodies, row 0: first_operation is 0, not -1, but the body is packed",
        ),
        ("operations", 3, "takes", 0, "of an operation with takes"),
        ("operations", 3, "frees", 0, "of an operation with frees"),
        ("operations", 3, "extra", 0, "of an operation with extra"),
        ("needs", 4, "lag", 1, "of a need with a lag"),
        ("needs", 4, "phase", 0, "of a need with a phase"),
    ],
)
def test_what_packed_bodies_cannot_have_is_refused(
    table: str, row: int, column: str, value: int, reported: str
) -> None:
    small = packed(flat_of(program()))
    tables = {name: small.table(name).tolist() for name in FLAT_TABLES}
    tables[table][row][FLAT_TABLES[table].place(column)] = value
    with pytest.raises(ProgramError, match=re.escape(reported)):
        check_rows(flat_program(tables))


@pytest.mark.needs_core
def test_the_core_tells_what_stands_there() -> None:
    from lstmsim.engines.fast.run import Machine

    tables = {name: packed(flat_of(program())).table(name).copy() for name in FLAT_TABLES}
    # in the second iteration barrier 0 of the body would be barrier 2 of two
    longer = tables["phases"].copy()
    longer[0, FLAT_TABLES["phases"].place("repeat")] = 2
    reported = "table phases, row 0: first_barrier is 1, and the last barrier of its body is 0"
    with pytest.raises(ProgramError, match=reported):
        Machine(flat_program({**tables, "phases": longer}))
    # an operation of no issue that waits for nothing
    quiet = tables["operations"][:1].copy()
    quiet[0, FLAT_TABLES["operations"].place("count")] = 0
    quiet[0, FLAT_TABLES["operations"].place("arrives")] = -1
    word = operation_word(len(tables["operations"]), 0)
    changed = {
        "operations": np.concatenate([tables["operations"], quiet]),
        "words": [[word]],
        "bodies": [[-1, 1, 0, 1]],
    }
    with pytest.raises(
        ProgramError, match=f"table words, row 0: word is {word}, of an operation of no issue that waits"
    ):
        Machine(flat_program({**tables, **changed}))
