"""Streams whose states are moved: against a small model of its own, on both engines, and known truths."""

import os
import random
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lstmsim
from lstmsim import engines, machines
from lstmsim.base.errors import DeadlockError, InputError, ProgramError
from lstmsim.machines.column.subset import outside
from lstmsim.program.accounts import totals_of
from lstmsim.program.flat import FLAT_TABLES, flat_program
from lstmsim.program.flatten import flat_of, names_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Pool, Program, Task, Unit
from lstmsim.program.trace import TASKS
from lstmsim.program.unflatten import program_of, tabled
from lstmsim.studies.serve.request import Row
from lstmsim.studies.shared.loading import load_scenario
from tests.strategies import BOOLEANS, programs, whole

#: An LSTM 8/8 of 2 steps, which takes 115 cycles alone on this core (docs/timing.md, section 9).
MODEL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
CORE = {"npe": 64, "ep": 4, "vp": 16, "tail_width": 64, "threads": 1}
ALONE = 115


class Entry(NamedTuple):
    """A job entry: streams with a period in cycles; session and cycles of a move; cores that it may use."""

    streams: int
    period: int
    frames: int
    together: bool
    session: str
    move: int
    cores: tuple[int, ...]


Tasks = list[tuple[int, int, int, int]]


def _scenario(cores: int, entries: list[Entry], **more: Any) -> dict[str, Any]:
    jobs = []
    for number, each in enumerate(entries):
        arrival = {"kind": "stream", "frame_ms": each.period / 1e6, "streams": each.streams, "session": each.session}
        arrival |= {"phases": "together"} if each.together else {}
        arrival |= {"move_cycles": each.move} if each.session == "moved" else {}
        job = {"model": MODEL, "name": f"e{number}", "steps": 2, "count": each.streams * each.frames}
        jobs.append(job | {"arrival": arrival, "cores": list(each.cores)})
    chip = {"kind": "column-npu", "frequency_mhz": 1000, "cores": [{"count": cores, **CORE}]}
    return {"chip": chip, "jobs": jobs, **more}


def _simulated(scenario: dict[str, Any], engine: str = "fast") -> Tasks:
    read = load_scenario(scenario)
    tasks = engines.totals(machines.lower(read.chip, read.jobs), engine).tasks
    columns = (TASKS.of(tasks, name).tolist() for name in ("arrived", "admitted", "finish", "core"))
    return list(zip(*columns, strict=True))


def _by_rule(cores: int, entries: list[Entry]) -> Tasks:
    """Arrival, start, finish and core of every frame, by docs/streams.md on cores of one thread, cycle after cycle."""
    waiting: list[tuple[int, int, int, int]] = []
    for number, each in enumerate(entries):
        for request in range(each.streams * each.frames):
            frame, stream = divmod(request, each.streams)
            shift = 0 if each.together else stream * each.period // each.streams
            first = frame * each.period + shift
            if not each.together:
                first = (frame * each.streams + stream) * each.period // each.streams
            waiting.append((first, len(waiting), number, stream))
    free, homes, rows = [0] * cores, {}, [(0, 0, 0, 0)] * len(waiting)
    now = 0
    while waiting:
        kept: set[int] = set()
        for one in sorted(each for each in waiting if each[0] <= now):
            came, place, number, stream = one
            own = entries[number]
            idle = [core for core in own.cores if free[core] <= now and core not in kept]
            if not idle:
                kept |= set(own.cores)
                continue
            core = min(idle)
            moved = own.session == "moved" and homes.get((number, stream), core) != core
            homes[number, stream] = core
            free[core] = now + (own.move if moved else 0) + ALONE
            rows[place] = (came, now, free[core], core)
            waiting.remove(one)
        now += 1
    return rows


def _drawn(seed: int) -> tuple[int, list[Entry]]:
    rng = random.Random(seed)
    cores = rng.randint(1, 4)
    entries = []
    for _ in range(rng.randint(1, 2)):
        own = tuple(sorted(rng.sample(range(cores), rng.randint(1, cores))))
        how = rng.choice(["moved", "moved", "moved", "anywhere"])
        move = rng.choice([0, 1, 7, 40, 115, 300])
        streams, period = rng.randint(1, 6), rng.randint(120, 500)
        entries.append(Entry(streams, period, rng.randint(1, 5), rng.random() < 0.4, how, move, own))
    return cores, entries


@pytest.mark.parametrize("seed", range(int(os.environ.get("LSTMSIM_EXAMPLES", "12"))))
def test_moved_frames_run_as_the_rule_says_on_both_engines_and_when_served(seed: int) -> None:
    cores, entries = _drawn(seed)
    scenario, rows = _scenario(cores, entries), []
    wanted = _by_rule(cores, entries)
    assert _simulated(scenario) == wanted
    assert _simulated(scenario, "reference") == wanted
    lstmsim.serve(scenario, rows=rows.extend)
    served: list[Row] = rows
    assert sorted((each.arrival, each.start, each.finish, each.core) for each in served) == sorted(wanted)


def test_known_truths() -> None:
    """A move for nothing is none; one core has nowhere to move to; a move that lasts long makes all wait for it."""
    cores = (0, 1)
    free, moved = (Entry(5, 250, 4, True, how, 0, cores) for how in ("anywhere", "moved"))
    assert _simulated(_scenario(2, [free])) == _simulated(_scenario(2, [moved]))
    pinned, dear = (Entry(3, 250, 4, False, how, 10_000, (0,)) for how in ("pinned", "moved"))
    assert _simulated(_scenario(1, [pinned])) == _simulated(_scenario(1, [dear]))
    rows = _simulated(_scenario(2, [Entry(3, 250, 2, False, "moved", 10**6, cores)]))
    # at 250 core 0 is taken until 281, so stream 0 moves to core 1; at 333 stream 1 moves to core 0; stream 2 comes at
    # 416, waits for core 1, and moves there
    late = 10**6 + 115
    wanted = [(0, 0, 115, 0), (83, 83, 198, 1), (166, 166, 281, 0), (250, 250, 250 + late, 1)]
    assert rows == [*wanted, (333, 333, 333 + late, 0), (416, 250 + late, 250 + 2 * late, 1)]


@pytest.mark.parametrize("policy", ["fine", "coarse", "fifo"])
def test_threads_of_a_core_go_on_while_states_move(policy: str) -> None:
    """Two threads on each core: the one whose states move waits for input, the other one has the unit to itself."""
    phase = Phase(Body((Operation(0, 3, result_cycles=5, label="a"), Operation(0, 2, result_cycles=2, label="b"))), 4)
    sessions = [0, 1, None, 0, 2, 1, 0, None, 1, 2, 0, 0, 1, 2, None, 1, 2]
    tasks = tuple(
        Task(
            *(f"t{number}", ((0, (phase,)),), (), (0, 1)),
            release=4 * number,
            session=session,
            move_cycles=17 if session is not None else 0,
        )
        for number, session in enumerate(sessions)
    )
    program = Program((Core(0, (Unit("array", policy, 1),), 2), Core(0, (Unit("array", policy, 1),), 2)), tasks)
    own, other = engines.run(program, "fast"), engines.run(program, "reference")
    assert own == other
    assert engines.totals(program, "fast") == engines.totals(program, "reference")
    home: dict[int, int] = {}
    moves = 0
    for number in sorted(range(len(tasks)), key=lambda each: (int(own.task("admitted")[each]), each)):
        session, core = sessions[number], int(own.task("core")[number])
        start = min(own.issue("start")[own.issue("task") == number].tolist())
        moved = session is not None and home.get(session, core) != core
        moves += moved
        assert (start >= int(own.task("admitted")[number]) + 17) or not moved
        if session is not None:
            home[session] = core
    assert moves > 1


@pytest.mark.parametrize(
    ("job", "more", "place"),
    [
        ({"split": "rows"}, {}, r"jobs\.0\.split"),
        ({"batching": {"max_batch_size": 2}}, {}, r"jobs\.0\.batching: .*states of one stream"),
        ({"steps": {"kind": "uniform", "low": 1, "high": 2}}, {}, r"jobs\.0\.steps"),
        ({}, {"dispatch": "edf", "preemption": True}, r"preemption: .*not interrupted"),
        ({}, {"placement": "affinity"}, "placement: .*not preferred"),
    ],
)
def test_what_moved_streams_do_not_go_with(job: dict[str, Any], more: dict[str, Any], place: str) -> None:
    scenario = _scenario(2, [Entry(2, 250, 2, False, "moved", 5, (0, 1))], **more)
    scenario["jobs"][0] |= job
    with pytest.raises(InputError, match=place):
        lstmsim.serve(scenario)


@pytest.mark.parametrize(
    ("arrival", "place"),
    [
        ({"session": "moved"}, r"arrival\.move_cycles: required key is missing for session moved"),
        ({"move_cycles": 5}, r"arrival\.move_cycles: means something with session moved only"),
        ({"session": "moved", "move_cycles": 5, "streams": 4097}, r"arrival\.streams: at most 4,096 streams are moved"),
        ({"session": "moved", "move_cycles": -1}, r"arrival\.move_cycles"),
    ],
)
def test_keys_of_moved_streams_that_are_wrong(arrival: dict[str, Any], place: str) -> None:
    job = {"model": MODEL, "steps": 1, "arrival": {"kind": "stream", "frame_ms": 1, **arrival}}
    with pytest.raises(InputError, match=place):
        lstmsim.simulate({"chip": "column-npu-16k", "jobs": [job]})


@pytest.mark.slow
def test_other_chips() -> None:
    """Jobs of CPUs have no core of their own, a device has one place, and hardware is not generated for moves."""
    arrival = {"kind": "stream", "frame_ms": 10, "streams": 3, "session": "moved", "move_cycles": 50}
    job = {"model": MODEL, "steps": 1, "count": 9, "arrival": arrival}
    with pytest.raises(InputError, match=r"arrival\.session: jobs of this machine run on several cores"):
        lstmsim.serve({"chip": "epyc-7742", "jobs": [job]})
    assert lstmsim.serve({"chip": "edge", "jobs": [job]}).serving.misses == 0
    one = _scenario(1, [Entry(3, 250, 4, False, "moved", 60, (0,))])
    del one["jobs"][0]["cores"]
    rows = lstmsim.compare(one, ["epyc-7742", "v100"]).entries[0]
    assert [each.reason.partition(",")[0] for each in rows] == [
        "",
        "jobs of this machine run on several cores at once",
        "",
    ]
    read = load_scenario(one)
    assert [str(each).partition(": must")[0] for each in outside(read.chip, read.jobs)] == ["job e0 #1: session"]


def test_the_load_cannot_tell_where_moves_may_bring_it_to_one() -> None:
    def load(move: int) -> Any:
        scenario = _scenario(2, [Entry(4, 250, 60, False, "moved", move, (0, 1))])
        del scenario["jobs"][0]["cores"]
        return lstmsim.serve(scenario).serving.load

    assert load(5).offered == load(50).offered == pytest.approx(4 * ALONE / 250 / 2)
    assert not load(5).unsure
    assert "may bring the load to 1.32" in load(50).unsure
    assert load(50).not_counted == ("moves of states (at most 0.4)",)


@pytest.mark.slow
@given(st.data())
def test_engines_agree_on_random_programs_with_sessions_which_their_flat_form_keeps(data: st.DataObject) -> None:
    program = data.draw(programs())
    number = len(program.tasks)
    cycles = st.sampled_from([0, 1, 3, 30])
    tasks = [
        replace(task, session=data.draw(whole(0, min(1, number - 1))), move_cycles=data.draw(cycles))
        if data.draw(BOOLEANS)
        else task
        for task in program.tasks
    ]
    program = replace(program, tasks=tuple(tasks))
    assert flat_of(program_of(flat_of(program), names_of(program))) == flat_of(program)
    try:
        trace = engines.run(program, "reference")
    except DeadlockError:
        with pytest.raises(DeadlockError):
            engines.run(program, "fast")
        return
    assert engines.run(program, "fast") == trace
    assert engines.totals(program, "fast") == totals_of(program, trace)


@pytest.mark.parametrize(
    ("table", "text"),
    [([[1, 0]], "session"), ([[-2, 0]], "session"), ([[0, -1]], "move"), ([[0, 1], [0, 1]], "table sessions")],
)
@pytest.mark.needs_core
def test_wrong_tables_of_sessions_are_refused(table: list[list[int]], text: str) -> None:
    phase = Phase(Body((Operation(0, 1, result_cycles=1),)), 1)
    right = flat_of(Program((Core(0, (Unit("array", "fine"),)),), (Task("t", ((0, (phase,)),), (), (0,), session=0),)))
    wrong = flat_program({name: right.table(name) for name in FLAT_TABLES} | {"sessions": table})
    with pytest.raises(ProgramError, match=text):
        program_of(wrong)
    with pytest.raises(ProgramError, match=text):
        engines.totals(tabled(wrong, names_of(program_of(right))), "fast", check=False)


def test_programs_with_wrong_sessions_are_refused() -> None:
    phase = Phase(Body((Operation(0, 1, result_cycles=1),)), 1)
    task = Task("t", ((0, (phase,)),), (), (0,), session=0, move_cycles=3)
    core = Core(0, (Unit("array", "fine"),))
    for wrong, text in [
        ({"session": 7}, "is in session 7 of 1"),
        ({"session": None}, "belongs to no session"),
        ({"preempts": True}, "no task preempts"),
        ({"pool": 0}, "waits in no pool"),
    ]:
        with pytest.raises(ProgramError, match=text):
            engines.run(Program((core,), (replace(task, **wrong),), pools=(Pool(1),)), "reference")
