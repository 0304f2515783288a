"""From a Program to its flat form and back: what is kept, what is shared, what is refused."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import load_scenario, machines
from lstmsim.base.errors import ProgramError
from lstmsim.program import flatten as flat_rows
from lstmsim.program import unflatten
from lstmsim.program.flat import FLAT_TABLES, FlatProgram, flat_program
from lstmsim.program.flatten import CYCLE_TABLES, FlatNames, default_names, flat_of, names_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.unflatten import program_of
from tests.strategies import joint_programs, preempting_programs, programs

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "5"))


def plain_phases(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    implied = (replace(each, first_step=None) for each in phases)
    return tuple(short if each.step(0) == short.step(0) else each for each, short in zip(phases, implied, strict=True))


def shortest(program: Program) -> Program:
    """The same program, where what can be said in two ways is said in the shorter one."""
    tasks = (
        replace(
            task,
            variants=tuple((kind, plain_phases(phases)) for kind, phases in task.variants),
            buffers=tuple((kind, buffers) for kind, buffers in task.buffers if buffers),
            moldable=tuple(replace(each, phases=plain_phases(each.phases)) for each in task.moldable),
            gang=task.gang if any(task.gang) else (),
        )
        for task in program.tasks
    )
    return replace(program, tasks=tuple(tasks))


def there_and_back(program: Program) -> Program:
    return program_of(flat_of(program), names_of(program))


@pytest.mark.slow
@settings(max_examples=2 * EXAMPLES)
@given(st.one_of(programs(), joint_programs(), joint_programs(moldable=True), preempting_programs()))
def test_a_program_comes_back_as_it_was(program: Program) -> None:
    back = there_and_back(program)
    assert back == shortest(program)
    assert there_and_back(back) == back
    assert np.array_equal(flat_of(back).words, flat_of(program).words)


def test_a_lowered_scenario_comes_back_with_all_its_names() -> None:
    job = {"model": "gru-1024", "steps": 4, "count": 3}
    scenario = load_scenario({"chip": "column-npu-4x16k", "jobs": [{**job, "split": "rows"}, {**job, "name": "b"}]})
    program = machines.lower(scenario.chip, scenario.jobs)
    assert any(operation.label and operation.place for operation in program.tasks[0].variants[0][1][0].body.operations)
    back = there_and_back(program)
    assert back == shortest(program)
    assert back.tasks[1].variants is back.tasks[0].variants


def test_without_names_plain_ones_are_given() -> None:
    units = (Unit("array", "coarse"), Unit("tail", "fifo"))
    body = Body((Operation(1, label="x", place=(1,)),))
    task = Task("job", ((0, (Phase(body, 1),)),), (), (0,))
    program = program_of(flat_of(Program((Core(0, units), Core(0, units, held=(7,))), (task,))))
    assert [[unit.name for unit in core.units] for core in program.cores] == [["u0", "u1"]] * 2
    assert (program.tasks[0].name, program.tasks[0].variants[0][1][0].body) == ("t0", Body((Operation(1),)))
    assert program.cores[1].held == ()


def small() -> dict[str, list[list[int]]]:
    """Tables of one task that issues once, with a row wherever a number names one."""
    core, task = Core(0, (Unit("array", "coarse"),)), Task("t", ((0, (Phase(Body((Operation(0),)), 1),)),), (), (0,))
    flat = flat_of(Program((core,), (task,)))
    more = {
        "held": [[0]],
        "weight_sets": [[5, 1]],
        "buffers": [[1, 0]],
        "needs": [[0, 1, 0, 1, -1, 0, 0]],
        "barriers": [[1]],
        "pools": [[1, 0, 0, 0]],
    }
    return {name: flat.table(name).tolist() for name in FLAT_TABLES} | more


@pytest.mark.parametrize("link", flat_rows.LINKS, ids=lambda link: f"{link.table}.{link.column}")
def test_rows_that_are_not_there_are_refused(link: flat_rows.Link) -> None:
    program_of(flat_program(small()))
    columns = list(filter(None, (link.column, link.count)))
    for value, column in ((value, each) for value in (-2, -(2**63), 99, 2**63 - 1) for each in columns):
        tables = small()
        tables[link.table][0][FLAT_TABLES[link.table].place(column)] = value
        # too large a count is told with the row from which it counts
        reported = rf"{link.column} is (-1|0|1), " if column == link.count and value > 0 else rf"{column} is {value}, "
        with pytest.raises(ProgramError, match=rf"^table {link.table}, row 0: {reported}"):
            program_of(flat_program(tables))


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"repeat": 0}, "repeat is 0, not at least 1"),
        ({"repeat": -(2**63)}, "repeat is -9223372036854775808, not at least 1"),
        ({"repeat": 2}, "extras is 2, and table extras has 3 rows"),
        ({"extras": 2**62}, "extras is 4611686018427387904, and table extras has 3 rows"),
        ({"extras": -1}, "extras is -1, and table extras has 3 rows"),
        ({"first_extra": 2}, "first_extra is 2, and its rows do not lie among the 3 of table extras"),
        ({"first_extra": -1}, "first_extra is -1, and"),
    ],
)
def test_rows_of_iterations_that_are_not_there_are_refused(change: dict[str, int], reported: str) -> None:
    tables = small()
    tables["extras"] = [[4], [5], [6]]
    row = dict(zip(FLAT_TABLES["phases"].columns, tables["phases"][0], strict=True)) | {"first_extra": 1, "extras": 2}
    tables["phases"] = [list(row.values())]
    assert program_of(flat_program(tables)).tasks[0].phases(0)[0].extra_cycles == ((5,), (6,))
    tables["phases"] = [list((row | change).values())]
    with pytest.raises(ProgramError, match=f"^table phases, row 0: {reported}"):
        program_of(flat_program(tables))


@pytest.mark.parametrize(("table", "column"), [*flat_rows.FLAGS, ("units", "policy")])
@pytest.mark.parametrize("value", [-1, 3])
def test_flags_and_policies_are_known_ones(table: str, column: str, value: int) -> None:
    tables = small()
    tables[table][0][FLAT_TABLES[table].place(column)] = value
    with pytest.raises(ProgramError, match=f"^table {table}, row 0: {column} is {value}, "):
        program_of(flat_program(tables))


def test_other_names_of_cycles_are_refused() -> None:
    for table, rows in CYCLE_TABLES.items():
        with pytest.raises(ProgramError, match=f"table {table}: its names of cycles are not those"):
            program_of(flat_program({**small(), table: np.array(rows) + 1}))


def wrong_names(flat: FlatProgram) -> list[FlatNames]:
    plain = default_names(flat)
    return [
        replace(plain, tasks=()),
        replace(plain, units=plain.units * 2),
        replace(plain, buffers=()),
        replace(plain, operations=()),
        replace(plain, held=()),
        replace(plain, held=((5,),)),
    ]


def test_names_for_other_tables_are_refused() -> None:
    flat = flat_program(small())
    for names in wrong_names(flat):
        with pytest.raises(ProgramError, match=r"^there are (names|weight sets) for|^core 0: holds weight sets"):
            program_of(flat, names)
    # what no task needs stands in the names alone
    assert program_of(flat, replace(default_names(flat), held=((6,),))).cores[0].held == (6,)


def test_small_tables_of_many_shared_rows_take_no_time() -> None:
    count = 30_000
    cores = [[0, 1, 0, count, 0, -1, 0, 0, 0, 0]] * count
    names = default_names(flat_program({**small(), "cores": cores, "units": [[0, 0, 1]] * count}))
    assert [name for name, _, _ in names.units[::9999]] == ["u0", "u9999", "u19998", "u29997"]
    cores = [[0, 1, 0, 1, 0, -1, 0, 0, 0, count]] * count
    with pytest.raises(ProgramError, match="cores hold 900,000,000 weight sets together, at most 16,777,216"):
        default_names(flat_program({**small(), "cores": cores, "held": [[0]] * count}))


def test_a_small_program_of_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unflatten, "MOST_PARTS", 1000)
    bodies = [[0, 1, -1, 0]] * 1000
    with pytest.raises(ProgramError, match=r"stands for 1,00\d parts, at most 1,000"):
        program_of(flat_program({**small(), "bodies": bodies}))
