"""A flat program that is wrong is refused by a check, and never a crash; a machine that failed is closed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from lstmsim.base.errors import DeadlockError, InputError, ProgramError
from lstmsim.engines import run
from lstmsim.engines.fast.run import OWN, Machine, Outcome, Table
from lstmsim.program.flat import FLAT_TABLES, LIMITS, FlatProgram, flat_program
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Pool, Program, Task, Unit, WeightSet
from lstmsim.program.trace import ISSUES
from lstmsim.studies.program.run import run_program
from tests.mutations import numbers

ROOT = Path(__file__).parents[2]
#: Flat programs: 120 in the usual run, at least 10,000 in the long one (LSTMSIM_EXAMPLES).
COUNT = max(10_000, int(os.environ["LSTMSIM_EXAMPLES"])) if "LSTMSIM_EXAMPLES" in os.environ else 120

pytestmark = pytest.mark.skipif(OWN.absence is not None, reason="the native core was not built")


@pytest.mark.slow
def test_mutated_programs_are_refused_or_run(tmp_path: Path) -> None:
    """In a process of its own, so that a crash is a failure of this test alone."""
    command = [sys.executable, "-m", "tests.mutations", str(COUNT), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    seen = {name: int(times) for name, times in re.findall(r"'([\w ]+)': (\d+)", done.stdout)}
    assert sum(seen.values()) >= COUNT
    assert seen["refused"] > 0
    assert seen["DONE"] > 0


def program() -> Program:
    """Two phases, a buffer, a need within a phase and one across; cores with memories; a task that takes two cores."""
    first = Body((Operation(0, takes=0), Operation(1, needs=(Dependence(0, 2),), frees=0, work=3)))
    second = Body((Operation(0, needs=(Dependence(1, 4, phase=0, mirrored=True),)),))
    phases = (Phase(first, 3), Phase(second, 2))
    units = (Unit("array", "coarse"), Unit("tail", "fifo"))
    cores = (Core(0, units, 2, capacity=9, held=(7,)), Core(0, units, capacity=9))
    buffers = ((0, (Buffer("banks", 2),)),)
    tasks = (
        Task("weights", ((0, phases),), buffers, (0, 1), weight_set=WeightSet(7, 5), affine=True),
        Task("moldable", ((0, phases),), buffers, (0, 1), moldable=(Moldable(2, phases, (Buffer("banks", 2),)),)),
        Task("urgent", ((0, phases),), buffers, (0,), preempts=True),
    )
    return Program(cores, tasks)


def changed(table: str, row: int, column: str, value: int) -> FlatProgram:
    """The program with another number in one place."""
    tables = {name: flat_of(program()).table(name).copy() for name in FLAT_TABLES}
    tables[table][row, FLAT_TABLES[table].place(column)] = value
    return flat_program(tables)


@pytest.mark.parametrize(
    ("table", "row", "column", "value", "reported"),
    [
        ("cores", 0, "contexts", 2**23, "contexts is 8388608, not 1 to 1048576"),
        ("cores", 1, "contexts", 2**19, "more than 1048576 threads times units"),
        ("cores", 0, "capacity", 4, "what it holds has a size of 5"),
        ("weight_sets", 0, "size", 10, "table cores, row 0: capacity is 9"),
        ("thread_slots", 0, "core", 2, "core is 2, of 2 rows"),
        (
            "places",
            1,
            "thread_slots",
            2**40,
            "first_thread_slot is 1, and 1099511627776 rows from there on do not lie among 3",
        ),
        ("places", 1, "thread_slots", 2, "moldables is 1, but it has a gang"),
        ("cores", 1, "contexts", 0, "contexts is 0, not 1 to"),
        ("groups", 0, "places", 0, "places is 0, not 1 to"),
        ("profiles", 0, "loading", 2, "loading is 2, not 0 to 1"),
        ("profiles", 0, "sizes", -1, "sizes is -1, not 0 to"),
        ("profiles", 1, "weight_set", 0, "moldables is 1, but it has a weight set"),
        ("profiles", 2, "weight_set", 0, "preempts is 1, but it has a weight set"),
        ("variants", 0, "kind", 5, "but none of them is for a core of kind 0"),
        ("variants", 2, "members", 3, "members is 3, not 2 to 2"),
        ("bodies", 1, "operations", 0, "phases is 2, but phase 1 has no operation"),
        ("phases", 0, "repeat", 2**62, "repeat is 4611686018427387904, not 1 to"),
        ("phases", 0, "repeat", 2**30, "repeat is 1073741824, not 1 to 67108864"),
        ("operations", 0, "unit", 2, "need 3 units, but a core has 2"),
        ("operations", 0, "unit", 2**22, "need 4194305 units, but a core has 2"),
        ("operations", 0, "unit", 2**23, "more than 8388608 members times units of bodies"),
        ("operations", 0, "member", 1, "their operations are on 2 members"),
        ("operations", 2, "takes", 0, None),
        ("operations", 1, "takes", 0, "a buffer of which another unit takes slots too"),
        ("operations", 1, "count", 2**62, "count is 4611686018427387904"),
        ("needs", 0, "delay", 0, "delay is 0, not 1 to"),
        ("needs", 0, "operation", 1, "which comes no earlier than 1"),
        ("needs", 1, "phase", 1, "phase is 1, of 1 rows"),
        ("needs", 1, "operation", -1, "operation is -1, of 2 rows"),
        ("tasks", 0, "release", 2**60, "release is 1152921504606846976, not 0 to"),
        ("tasks", 1, "after", 1, "after is 1, of 1 rows"),
        ("tasks", 0, "profile", -1, "profile is -1, of 3 rows"),
    ],
)
def test_what_is_refused_is_told(table: str, row: int, column: str, value: int, reported: str | None) -> None:
    flat = changed(table, row, column, value)
    if reported is None:
        assert Machine(flat).run() in (Outcome.DONE, Outcome.STUCK)
        return
    with pytest.raises(ProgramError, match=r"table \w+, row \d+: \w+ is -?\d+, .") as refusal:
        Machine(flat)
    assert reported in str(refusal.value)


def judged(flat: FlatProgram, engine: str) -> tuple[object, ...]:
    """What becomes of a kept program: its numbers, or the sentence that refuses it."""
    try:
        ran = run_program(flat, engine=engine)
    except (InputError, DeadlockError) as error:
        return (str(error),)
    return (ran.makespan_cycles, ran.totals.cycles.tolist(), ran.totals.work.tolist())


#: Columns that other numbers of a row bound, too.
BOUNDED = {*LIMITS, ("operations", "count"), ("operations", "result_cycles"), ("operations", "work")}


@pytest.mark.halved
@pytest.mark.parametrize(("table", "column"), sorted(BOUNDED))
def test_both_engines_hold_kept_programs_to_the_same_limits(table: str, column: str) -> None:
    low, high = LIMITS.get((table, column), (0, 2**50))
    tables = {**{name: flat_of(program()).table(name) for name in FLAT_TABLES}, "barriers": [[1]], "extras": [[3]]}
    tables["sessions"] = [[-1, 0]] * len(tables["tasks"])
    for value in {low - 1, high + 1, -(2**63), 2**63 - 1}:
        rows = np.array(tables[table], dtype=np.int64)
        rows[0, FLAT_TABLES[table].place(column)] = value
        flat = flat_program({**tables, table: rows})
        reported = judged(flat, "fast")
        # The rows that a core has are looked for before they are counted.
        said = f"{column} is {value}, " if column != "units" else "table cores, row 0: "
        assert said in str(reported[0])
        assert judged(flat, "reference") == reported
        with pytest.raises(ProgramError, match=re.escape(said)):
            Machine(flat)


def test_both_engines_judge_changed_programs_alike() -> None:
    """Numbers that only make a run long are left alone."""
    random, plain = Random(3), {name: flat_of(program()).table(name) for name in FLAT_TABLES}
    filled = [name for name, table in plain.items() if len(table) and name not in ("extras", "phases")]
    verdicts = Counter[bool]()
    for _ in range(80):
        name = random.choice(filled)
        rows = plain[name].copy()
        row, column = random.randrange(len(rows)), random.randrange(rows.shape[1])
        if tuple(FLAT_TABLES[name].columns)[column] in ("count", "cycles", "repeat"):
            continue
        rows[row, column] = numbers(random, int(rows[row, column])) % 2**63
        flat = flat_program({**plain, name: rows})
        reported = judged(flat, "fast")
        assert judged(flat, "reference") == reported
        verdicts[len(reported) == 1] += 1
    assert min(verdicts.values()) > 8


def test_the_limit_of_barriers_needs_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = changed("phases", 0, "barriers", 2**60)
    reported = judged(flat, "fast")
    assert "table phases, row 0: barriers is 1152921504606846976, not 0 to" in str(reported)
    monkeypatch.setattr(OWN, "absence", "it was not built")
    assert judged(flat, "reference") == reported


@pytest.mark.parametrize("sizes", [-1, 1, 2**40, 2**63 - 1])
def test_batches_without_variants_are_refused_when_a_program_is_read(sizes: int) -> None:
    last = len(flat_of(program()).table("profiles")) - 1
    flat = changed("profiles", last, "sizes", sizes)
    said = f"table profiles, row {last}: sizes is {sizes}, and its rows do not lie among the 4 of table variants"
    assert judged(flat, "fast") == judged(flat, "reference")
    assert said in str(judged(flat, "fast")[0])


def pooled(most: int, *, frees: int | None) -> Program:
    """Two tasks that make a batch of two."""
    phase = Phase(Body((Operation(0, takes=0, frees=frees), Operation(0, takes=0, frees=frees))), 3)
    alone = Phase(Body((Operation(0),)), 1)
    task = Task("t", ((0, (alone,)),), ((0, (Buffer("banks", 3),)),), (0,), pool=0, sizes=(((0, (phase,)),),))
    cores = (Core(0, (Unit("array", "coarse"),)),)
    return Program(cores, (replace(task, name="a"), replace(task, name="b"), task), pools=(Pool(most, wait=1),))


def test_both_engines_say_alike_what_a_batch_lacks() -> None:
    """A slot that nobody frees, in the phases of the batch and not of its task alone; a batch without phases."""
    stuck, large = flat_of(pooled(2, frees=None)), flat_of(pooled(3, frees=0))
    assert judged(stuck, "fast") == judged(stuck, "reference")
    assert "task t0: operation on unit 0 waits for a free slot of buffer 0" in str(judged(stuck, "fast"))
    assert judged(large, "fast") == judged(large, "reference")
    assert "a batch is larger than its tasks have variants for" in str(judged(large, "fast"))


def test_both_engines_end_at_the_last_cycle() -> None:
    long = Phase(Body((Operation(0, cycles=2**50, result_cycles=2**50),)), 2**10)
    task = Task("long", ((0, (long,)),), (), (0,))
    whole = Program((Core(0, (Unit("array", "coarse"),)),), (task,))
    assert judged(flat_of(whole), "fast") == judged(flat_of(whole), "reference")
    with pytest.raises(ProgramError, match="the run comes to cycle 576460752303423488"):
        run(whole, "reference")


def test_an_empty_phase_is_not_walked_through() -> None:
    phases = (Phase(Body(()), 2**40), Phase(Body((Operation(0),)), 1))
    task = Task("t", ((0, phases),), (), (0,), weight_set=WeightSet(1, 1, loading=1))
    whole = Program((Core(0, (Unit("array", "coarse"),), capacity=2),), (task,))
    assert run(whole, "reference").makespan_cycles == run(whole).makespan_cycles


@pytest.mark.parametrize(
    ("requests", "reported"),
    [
        ([[3, 0, 0], [2, 0, 0]], "table requests, row 1: release is 2, not 3 to"),
        ([[3, 0, 0], [4, 3, 0]], "table requests, row 1: template is 3, of 3 rows"),
        ([[-1, 0, 0]], "table requests, row 0: release is -1"),
        ([[0, 0, 2**62]], "table requests, row 0: key is 4611686018427387904"),
    ],
)
def test_requests_that_are_wrong_are_refused(requests: list[list[int]], reported: str) -> None:
    machine = Machine(flat_of(program()), fed=True)
    with pytest.raises(ProgramError) as refusal:
        machine.feed(np.array(requests), more=False)
    assert reported in str(refusal.value)


def test_requests_go_on_from_those_before_them() -> None:
    machine = Machine(flat_of(program()), fed=True)
    machine.feed(np.array([[5, 0, 0], [9, 0, 0]]), more=True)
    assert machine.run() is Outcome.HUNGRY
    with pytest.raises(ProgramError, match="table requests, row 2: release is 8, not 9 to"):
        machine.feed(np.array([[8, 0, 0]]), more=False)


def test_requests_are_not_given_too_soon_or_to_a_machine_that_wants_none() -> None:
    machine = Machine(flat_of(program()), fed=True)
    machine.feed(np.array([[5, 0, 0]]), more=True)
    with pytest.raises(ProgramError, match="there are requests that have not come yet"):
        machine.feed(np.array([[6, 0, 0]]), more=False)
    with pytest.raises(ProgramError, match="was not opened for requests"):
        Machine(flat_of(program())).feed(np.array([[6, 0, 0]]), more=False)


def test_a_run_that_grows_too_large_ends_with_an_error_and_the_machine_is_closed() -> None:
    long = Phase(Body((Operation(0, cycles=2**40, result_cycles=2**40),)), 2**20)
    task = Task("long", ((0, (long,)),), (), (0,))
    machine = Machine(flat_of(Program((Core(0, (Unit("array", "coarse"),)),), (task,))))
    with pytest.raises(ProgramError, match="the run comes to cycle 5764"):
        machine.run()
    with pytest.raises(RuntimeError, match="the machine was closed when it failed"):
        machine.run()


def test_tasks_that_remember_too_much_end_with_an_error() -> None:
    """Phases that later ones look back at are remembered whole: two tasks at once have more than there is room for."""
    second = Phase(Body((Operation(0, needs=(Dependence(0, 1, phase=0),)),)), 1)
    # the first is short: what is remembered is set to 0, which takes long
    tasks = tuple(
        Task(f"{count}", ((0, (Phase(Body((Operation(0),)), count), second)),), (), (0,)) for count in (1, 2**27)
    )
    machine = Machine(flat_of(Program((Core(0, (Unit("array", "coarse"),), 2),), tasks)))
    with pytest.raises(ProgramError, match="the running tasks remember the starts of more than 134217728 operations"):
        machine.run(1)


def test_a_trace_may_be_taken_piece_by_piece() -> None:
    """A table that is cleared on the way goes on with rows of its own."""
    width = len(ISSUES.names)
    whole = Machine(flat_of(program()), keep=True)
    assert whole.run() is Outcome.DONE
    machine, issues = Machine(flat_of(program()), keep=True), 0
    outcome = Outcome.PAUSED
    while outcome is Outcome.PAUSED:
        outcome = machine.run(1)
        issues += int(ISSUES.of(machine.table(Table.ISSUES, width), "count").sum())
        machine.clear(Table.ISSUES)
    assert issues == int(ISSUES.of(whole.table(Table.ISSUES, width), "count").sum())


@pytest.mark.parametrize(
    ("table", "rows", "reported"),
    [
        ("variants", 2, "two of them are for kind 0"),
        ("weight_sets", 2, "table weight_sets, row 1: key is 7, and an earlier row has it too"),
        ("held", 2, "table held, row 1: weight_set is 0, but the core holds it already"),
    ],
)
def test_what_may_come_once_is_refused_twice(table: str, rows: int, reported: str) -> None:
    flat = flat_of(program())
    tables = {name: flat.table(name).copy() for name in FLAT_TABLES}
    tables[table] = np.concatenate([tables[table][:1]] * rows)
    counts = {"variants": ("profiles", "variants"), "held": ("cores", "held")}
    if table in counts:
        owner, column = counts[table]
        tables[owner] = tables[owner][:1]
        tables[owner][0, FLAT_TABLES[owner].place(column)] = rows
    if table == "held":
        tables["cores"] = np.concatenate([tables["cores"], flat.table("cores")[1:]])
    with pytest.raises(ProgramError) as refusal:
        Machine(flat_program(tables))
    assert reported in str(refusal.value)


def test_variants_may_share_phases() -> None:
    """What the later phases of one variant wait for does not hold up a pause of another one with the same rows."""
    first = Phase(Body((Operation(0, cycles=2, result_cycles=2),)), 20)
    late = Phase(Body((Operation(0, needs=(Dependence(0, 100, phase=0),)),)), 1)
    short = Phase(Body((Operation(0, cycles=3, result_cycles=3),)), 1)
    tasks = (
        Task("later", ((0, (first, late)),), (), (0,), release=500, key=5),
        Task("paused", ((0, (first,)),), (), (0,), key=3),
        Task("urgent", ((0, (short,)),), (), (0,), release=7, key=0, preempts=True),
    )
    flat = flat_of(Program((Core(0, (Unit("array", "coarse"),)),), tasks))
    tables = {name: flat.table(name).copy() for name in FLAT_TABLES}
    place = FLAT_TABLES["variants"].place("first_phase")
    tables["variants"][1, place] = tables["variants"][0, place]
    shared = run(flat_program(tables), "fast")
    assert shared == run(flat, "fast") == run(flat, "reference")
    assert shared.tasks[1, 3] == 43
