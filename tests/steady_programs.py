"""Random programs of jobs whose kernels come again and again, and of tasks that come in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit, WeightSet
from tests.barrier_programs import Place, bodies, machines, thread_slots
from tests.strategies import BOOLEANS, SELDOM, SMALL, among, whole

#: Phases of a task that does nothing, and lasts as long as its job.
NOTHING = (Phase(Body(()), 1),)


@st.composite
def kernels(draw: st.DrawFn, cores: tuple[Core, ...], room: int) -> dict[str, Any]:
    """What tasks of a kernel have in common."""
    own = len(cores) - 3
    first = sorted(draw(st.sets(whole(0, own - 1), min_size=1)))
    gang = draw(thread_slots(cores[:-1], first))
    members = [len(cores[core].units) for core in (first[0], *(gang[0] if gang else ()))]
    places: list[Place] = [(member, unit) for member, count in enumerate(members) for unit in range(count)]
    places = draw(st.permutations(places))[: draw(whole(1, len(places)))]
    phases = []
    count = draw(among(1, 1, 2))
    for each in range(count):
        repeat = draw(among(1, 1, 3, 12))
        phases.append(Phase(draw(bodies(places, 0, 0, draw(BOOLEANS), repeat, each == count - 1)), repeat))
    # some see more than their own cycles: these have to be run
    seldom: dict[str, Any] = dict([draw(among(*[("key", 0)] * 12, ("queue_limit", 2), ("patience", 20)))])
    if draw(SELDOM):
        operations = phases[0].body.operations
        framed = Body((operations[0]._replace(frame=True), *operations[1:]))
        phases[0] = replace(phases[0], body=framed)
        seldom = seldom | {"frame_interval": draw(among(0, 0, 7))}
    return {
        "variants": ((0, tuple(phases)),),
        "buffers": (),
        "cores": tuple(first),
        "gang": gang,
        "weight_set": draw(among(None, None, WeightSet(None, 1, 0), WeightSet(None, room, 0))),
        "release": draw(among(0, 1, 1, 9, 30)),
        "key": draw(among(0, 0, 1)),
        "key_from_arrival": draw(SELDOM),
        **seldom,
    }


@st.composite
def steady_programs(draw: st.DrawFn) -> Program:
    """Jobs whose kernels come again and again, one behind the other; and tasks that come in between."""
    room = draw(whole(1, 3))
    # no weight set lies in a memory at the start: then nothing is left out
    cores = tuple(replace(core, held=()) for core in draw(machines(room)))
    cores += (Core(3, (Unit("host", "fifo"),), 1, None, shared=True),)
    kinds = [draw(kernels(cores, room)) for _ in range(draw(whole(1, 3)))]
    tasks: list[Task] = []
    barriers: list[int] = []
    for job in range(draw(whole(1, 2))):
        on = draw(among(*[len(cores) - 1] * 4, 0))
        order = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)) * draw(whole(2, 8))
        first, last = len(barriers), len(barriers) + len(order)
        variants = ((cores[on].kind, NOTHING),)
        tasks.append(Task(f"job{job}", variants, (), (on,), release=draw(SMALL), starts=first, until=last))
        count = draw(whole(1, 5))
        for number, kernel in enumerate(order):
            meet = {"behind": first + number, "ends": first + number + 1}
            tasks += [Task(f"{job}.{number}.{each}", **kernel, **meet) for each in range(count)]
        barriers += [1] + [count] * len(order)
    for number in range(draw(among(0, 0, 1, 2))):
        kind = draw(st.sampled_from(kinds)) | {"release": draw(whole(0, 400))}
        before = None if draw(BOOLEANS) else draw(whole(0, len(tasks) - 1))
        tasks.append(Task(f"between{number}", **kind, after=before))
    return Program(cores, tuple(tasks), tuple(barriers))
