"""Random programs with barriers, units of several ways, mirrored threads, own room of tasks, tasks without work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Program, Task, Unit, WeightSet
from lstmsim.program.stall_reasons import CAUSES
from tests.strategies import BOOLEANS, SELDOM, SMALL, among, dependences, whole

#: A unit of a member: (member, unit).
Place = tuple[int, int]


def arrivals(tasks: Sequence[Task], barriers: int) -> list[int]:
    """How many arrive at each barrier if every task runs."""
    counts: Counter[int] = Counter()
    for task in tasks:
        counts.update(barrier for barrier in (task.starts, task.ends) if barrier is not None)
        for phase in task.variants[0][1]:
            for iteration in range(phase.repeat):
                base = phase.first_barrier + iteration * phase.barriers
                counts.update(base + each.arrives for each in phase.body.operations if each.arrives is not None)
    return [counts[barrier] for barrier in range(barriers)]


@st.composite
def units(draw: st.DrawFn, policies: Sequence[str] = ("coarse", "fine", "fifo")) -> tuple[Unit, ...]:
    return tuple(
        Unit(f"u{number}", draw(among(*policies)), draw(among(0, 0, 0, 2)), instances=draw(among(1, 2, 2, 3)))
        for number in range(draw(whole(1, 2)))
    )


@st.composite
def machines(draw: st.DrawFn, room: int) -> tuple[Core, ...]:
    """Equal cores, then one that mirrors their threads, then one that they share."""
    own, accounted = draw(units()), draw(among(0, 0, None))
    capacity = draw(among(None, room, 2 * room + 1))
    cores = [
        Core(0, own, draw(whole(1, 4)), accounted, capacity, draw(among((), (0,))) if capacity else ())
        for _ in range(draw(whole(1, 3)))
    ]
    threads = sum(core.contexts for core in cores)
    mirror = Core(1, draw(units(("fifo", "fine"))), threads, draw(among(None, 0)), shared=True, mirrors=True)
    return (*cores, mirror, Core(2, draw(units(("fifo",))), threads + 3, None, shared=True))


@st.composite
def bodies(
    draw: st.DrawFn, places: Sequence[Place], barriers: int, buffers: int, plain: bool, repeat: int, last: bool
) -> Body:
    """A body whose operations arrive at its barriers, and wait for those at which one before them arrives."""
    size = draw(whole(max(1, barriers), 6))
    meets = sorted(draw(st.sets(whole(0, size - 1), min_size=min(barriers, size), max_size=min(barriers, size))))
    operations = []
    for index in range(size):
        place, cycles = draw(among(*places)), draw(whole(1, 3))
        needs = []
        for _ in range(draw(whole(0, 2))):
            if plain and index:
                need = Dependence(draw(whole(0, index - 1)), draw(whole(1, 9)), draw(among(*CAUSES)))
                needs.append(need)
            elif not plain:
                needs.append(draw(dependences(index, size, 0, [repeat], [size])))
        passed = [barrier for barrier, meet in enumerate(meets) if meet < index]
        if barriers and draw(BOOLEANS):
            # before the first iteration there are barriers of others, or none
            barrier = draw(among(*passed, *passed, *range(-barriers, 0)))
            needs.append(Dependence(barrier, draw(whole(1, 9)), draw(among(*CAUSES)), barrier=True))
        operations.append(
            Operation(
                unit=place[1],
                cycles=cycles,
                member=place[0],
                count=draw(among(1, 1, 2, 4)),
                needs=tuple(needs),
                takes=0 if buffers and place == places[0] and draw(SELDOM) else None,
                frees=0 if buffers and place == places[-1] and draw(BOOLEANS) else None,
                result_cycles=cycles + draw(SMALL),
                work=draw(SMALL),
                arrives=meets.index(index) if index in meets else None,
            )
        )
    if repeat == 1 and last and draw(SELDOM):
        # operations that only wait, each at the end of its stream
        for place in draw(st.permutations(places))[: draw(whole(1, 2))]:
            others = draw(st.lists(whole(0, size - 1), min_size=1, max_size=2))
            waits = [Dependence(other, draw(whole(1, 30)), draw(among(*CAUSES))) for other in others]
            operations.append(Operation(place[1], count=0, needs=tuple(waits), member=place[0]))
    return Body(tuple(operations))


@st.composite
def thread_slots(draw: st.DrawFn, cores: tuple[Core, ...], first: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Partners of these cores: more threads of the same core, or of others, threads that mirror them, shared ones."""
    mirror, shared = len(cores) - 2, len(cores) - 1
    more = draw(whole(0, min(cores[core].contexts for core in first) - 1))
    mirrored, beside = draw(whole(0, more + 1)), draw(whole(0, 1))
    early = mirrored > 0 and draw(BOOLEANS)
    rows = []
    for core in first:
        row = [mirror] * early + [core] * more + [mirror] * (mirrored - early) + [shared] * beside
        rows.append(tuple(row))
    if len(first) == 1 and not rows[0] and draw(BOOLEANS):
        others = tuple(each for each in range(mirror) if each != first[0])
        rows = [(*others, *[mirror] * draw(whole(0, 1 + len(others))))]
    return tuple(rows) if any(rows) else ()


@st.composite
def groups(
    draw: st.DrawFn, number: int, cores: tuple[Core, ...], barriers: list[str], room: int, plain: bool
) -> list[Task]:
    """Tasks that run one body, and perhaps meet at its barriers. `barriers` has their names; new ones are added."""
    before = len(barriers)
    first = sorted(draw(st.sets(whole(0, len(cores) - 3), min_size=1)))
    gang = draw(thread_slots(cores, first))
    members = [len(cores[core].units) for core in (first[0], *(gang[0] if gang else ()))]
    places = [(member, unit) for member, count in enumerate(members) for unit in range(count)]
    places = draw(st.permutations(places))[: draw(whole(1, len(places)))]
    buffers = draw(among((), (), (Buffer("banks", 2),)))
    phases = []
    count = draw(whole(1, 2))
    for each in range(count):
        repeat, own = draw(among(1, 2, 3)), draw(among(0, 1, 1, 2))
        body = draw(bodies(places, own, len(buffers), plain, repeat, each == count - 1))
        phases.append(Phase(body, repeat, first_barrier=len(barriers), barriers=own))
        barriers += ["met"] * (repeat * own)
    weight_set = draw(among(None, WeightSet(None, 1, 0), WeightSet(None, room, 0), WeightSet(0, room, 0)))
    common: dict[str, Any] = {
        "variants": ((0, tuple(phases)),),
        "buffers": ((0, buffers),),
        "cores": tuple(first),
        "gang": gang,
        "weight_set": weight_set,
        "affine": weight_set is not None and weight_set.key is not None and draw(BOOLEANS),
        "queue_limit": draw(among(*[None] * 9 + [1])),
        "patience": draw(among(*[None] * 9 + [30])),
    }
    if before and draw(BOOLEANS):
        common |= {"behind": draw(whole(0, before - 1)), "release": draw(SMALL)}
    else:
        common |= {"release": draw(among(0, 0, 1, 9))}
    for column in ("starts", "ends"):
        if draw(BOOLEANS):
            barriers.append(column)
            common |= {column: len(barriers) - 1}
    key = draw(among(0, 0, 1))
    return [Task(f"t{number}.{each}", key=key, **common) for each in range(draw(whole(1, 4)))]


@st.composite
def empty_tasks(draw: st.DrawFn, number: int, cores: tuple[Core, ...], barriers: list[str]) -> list[Task]:
    """A task without work. It may stand for a job: what comes behind its start is a part of it."""
    before = len(barriers)
    barriers += ["start", "end"]
    on = draw(among(len(cores) - 1, 0))
    task = Task(
        f"e{number}",
        ((cores[on].kind, (Phase(Body(()), 1),)),),
        (),
        (on,),
        release=draw(SMALL),
        behind=draw(whole(0, before - 1)) if before and draw(BOOLEANS) else None,
        starts=before,
        ends=before + 1,
        weight_set=draw(among(None, None, WeightSet(None, 1, 0))),
    )
    return [task]


@st.composite
def barrier_programs(draw: st.DrawFn, *, plain: bool = False) -> Program:
    """Legal programs; some get stuck, because a barrier wants more than come, or those who meet there have no threads.

    plain: whether operations wait for none of earlier iterations, so that all bodies could be packed.
    """
    room = draw(whole(1, 3))
    cores = draw(machines(room))
    tasks: list[Task] = []
    barriers: list[str] = []
    for number in range(draw(whole(1, 4))):
        kind = empty_tasks(number, cores, barriers) if draw(SELDOM) else groups(number, cores, barriers, room, plain)
        tasks += draw(kind)
    # tasks last until barriers of their own, of those before them and of those behind them
    for number, task in enumerate(tasks):
        keyed = task.weight_set is not None and task.weight_set.key is not None
        others = [barrier for barrier in range(len(barriers)) if barrier != task.ends]
        if others and not keyed and draw(among(False, False, True)):
            tasks[number] = replace(task, until=draw(among(*others)))
    counts = arrivals(tasks, len(barriers))
    more = draw(among(*[0] * 9 + [1]))
    return Program(
        cores, tuple(tasks), tuple(max(1, count + more * (barrier == 0)) for barrier, count in enumerate(counts))
    )
