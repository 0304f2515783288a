"""Random programs and scenarios for hypothesis: small, legal, and as nasty as the rules allow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.model.cell import Cell
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Buffer, Core, Moldable, Phase, Pool, Program, Task, Unit, WeightSet
from lstmsim.program.stall_reasons import CAUSES

# A strategy that is made anew for each draw is looked into each time, which takes longer than what is drawn is run.
whole = lru_cache(maxsize=4096)(st.integers)
BOOLEANS = st.booleans()


@lru_cache(maxsize=4096, typed=True)
def among(*values: Any) -> st.SearchStrategy[Any]:
    """One of these values."""
    return st.sampled_from(values)


def examples(usual: int) -> int:
    """Examples of a test in the usual run, or as many as LSTMSIM_EXAMPLES asks for."""
    return int(os.environ.get("LSTMSIM_EXAMPLES", usual if usual < 8 else max(5, usual // 4)))


#: Any character that can stand in a file; the tables of hypothesis for `st.characters` take a second to make.
CHARACTERS = st.one_of(whole(0, 127), whole(128, 0xD7FF), whole(0xE000, 0x10FFFF)).map(chr)
SMALL = whole(0, 3)
SELDOM = among(False, False, True)


@st.composite
def dependences(
    draw: st.DrawFn, index: int, size: int, number: int, repeats: list[int], sizes: list[int]
) -> Dependence:
    cause, delay = draw(among(*CAUSES)), draw(whole(1, 9))
    if number and draw(BOOLEANS):
        phase = draw(whole(0, number - 1))
        operation = draw(whole(0, sizes[phase] - 1))
        return Dependence(operation, delay, cause, phase=phase, mirrored=draw(BOOLEANS))
    lag = draw(whole(0, 2)) if index else draw(whole(1, 2))
    return Dependence(draw(whole(0, (index - 1) if lag == 0 else size - 1)), delay, cause, lag=lag)


@st.composite
def phase_lists(draw: st.DrawFn, members: Sequence[int], buffers: int, batch: int = 1) -> tuple[Phase, ...]:
    """Phases of a task whose cores have so many units, or of a batch of so many tasks."""
    count = draw(whole(1, 3))
    repeats = [draw(among(1, 2, 3, 3, 5)) for _ in range(count)]
    sizes = [draw(whole(1, 5)) for _ in range(count)]
    places = [(member, unit) for member, units in enumerate(members) for unit in range(units)]
    taker, freer = draw(among(*places)), draw(among(*places))
    phases = []
    for number in range(count):
        operations = []
        length = st.lists(whole(0, 4), min_size=repeats[number], max_size=repeats[number])
        columns = tuple(map(tuple, draw(st.lists(length, max_size=2)))) if draw(SELDOM) else ()
        for index in range(sizes[number]):
            extra = draw(whole(0, len(columns) - 1)) if columns and draw(BOOLEANS) else None
            place, cycles = draw(among(*places)), draw(whole(1, 3))
            needs = draw(st.lists(dependences(index, sizes[number], number, repeats, sizes), max_size=2))
            operations.append(
                Operation(
                    unit=place[1],
                    cycles=cycles,
                    member=place[0],
                    count=1 if extra is not None else draw(whole(1, 4)),
                    extra=extra,
                    needs=tuple(needs),
                    frame=draw(BOOLEANS),
                    takes=0 if buffers and place == taker and draw(SELDOM) else None,
                    frees=0 if buffers and place == freer and draw(BOOLEANS) else None,
                    result_cycles=cycles + draw(SMALL),
                    ahead=draw(among(0, 0, 1, -1)),
                    inference=draw(whole(0, batch - 1)) if batch > 1 else 0,
                )
            )
        first = draw(among(None, None, 0, 2))
        phases.append(Phase(Body(tuple(operations)), repeats[number], draw(BOOLEANS), first, columns))
    return tuple(phases)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A legal program; some of them get stuck on their buffers, which both engines must say alike."""
    kinds = [
        tuple(
            Unit(f"u{unit}", draw(among("coarse", "fine", "fifo")), draw(among(0, 1, 3)))
            for unit in range(draw(whole(1, 3)))
        )
        for _ in range(draw(whole(1, 2)))
    ]
    cores = tuple(
        Core(kind, kinds[kind], draw(whole(1, 3)))
        for kind in draw(st.lists(whole(0, len(kinds) - 1), min_size=1, max_size=3))
    )
    tasks = []
    for number in range(draw(whole(1, 5))):
        buffers = draw(among((), (), (Buffer("banks", 2),), (Buffer("banks", 4),)))
        variants = tuple((kind, draw(phase_lists([len(units)], len(buffers)))) for kind, units in enumerate(kinds))
        allowed = draw(st.sets(whole(0, len(cores) - 1), min_size=1))
        tasks.append(
            Task(
                name=f"t{number}",
                variants=variants,
                buffers=tuple((kind, buffers) for kind in range(len(kinds))),
                cores=tuple(sorted(allowed)),
                release=draw(among(0, 0, 1, 2, 7, 40)),
                frame_interval=draw(among(0, 0, 1, 5, 20)),
                key=draw(among(0, 0, 0, 1, -2)),
                key_from_arrival=draw(BOOLEANS),
                after=draw(whole(0, number - 1)) if number and draw(SELDOM) else None,
            )
        )
    return Program(cores, tuple(tasks))


@st.composite
def joint_programs(draw: st.DrawFn, *, moldable: bool = False) -> Program:
    """Legal programs with all that tasks can ask of more than a thread: several cores at once, room in memories,
    preemption, short queues, little patience. Some get stuck. `moldable`: most tasks take all cores that are free."""
    kinds = [
        tuple(
            Unit(f"u{unit}", draw(among("coarse", "fine", "fifo")), draw(among(0, 0, 2)))
            for unit in range(draw(whole(1, 2)))
        )
        for _ in range(2)
    ]
    sizes = draw(st.lists(whole(1, 4), min_size=1, max_size=3))
    cores = []
    equal = moldable or draw(BOOLEANS)
    for kind in draw(st.lists(whole(0, 0 if equal else 1), min_size=1 + moldable, max_size=3 + moldable)):
        capacity = draw(among(None, max(sizes), max(sizes) + 2))
        held = draw(among((), (0,))) if capacity is not None else ()
        cores.append(Core(kind, kinds[kind], draw(whole(1, 3)), capacity=capacity, held=held))
    # a memory or a link that others share: never short of threads
    cores.append(Core(2, (Unit("memory", draw(among("fine", "fifo"))),), 12, shared=True))
    preempting = draw(BOOLEANS)
    tasks = [
        draw(joint_tasks(number, kinds, tuple(cores), sizes, preempting, moldable))
        for number in range(draw(whole(1, 6)))
    ]
    return Program(tuple(cores), tuple(tasks))


@st.composite
def joint_tasks(
    draw: st.DrawFn,
    number: int,
    kinds: Sequence[tuple[Unit, ...]],
    cores: tuple[Core, ...],
    sizes: Sequence[int],
    preempting: bool,
    moldable: bool,
) -> Task:
    memory, own = len(cores) - 1, range(len(cores) - 1)
    first = sorted(draw(st.sets(among(*own), min_size=1)))
    gang: tuple[tuple[int, ...], ...] = ()
    members: tuple[int, ...] = ()
    weight_set = None
    shapes = ["alone", "alone", "moldable"] if preempting else ["alone", "memory", "gang", "threads", "moldable"]
    shape = draw(among(*shapes, *["moldable"] * (5 * moldable)))
    if shape == "memory":
        gang, members = ((memory,),) * len(first), (1,)
    elif shape == "gang":
        first = first[:1]
        others = tuple(each for each in own if each != first[0])
        gang, members = (others,), tuple(len(cores[each].units) for each in others)
    elif shape == "threads" and all(cores[each].contexts > 1 for each in first):
        gang, members = tuple((each,) for each in first), (min(len(cores[each].units) for each in first),)
    elif shape == "moldable":
        first = draw(st.permutations([each for each in first if cores[each].kind == cores[first[0]].kind]))
    if shape in ("memory", "gang") and draw(BOOLEANS):
        key = draw(whole(0, len(sizes) - 1))
        weight_set = WeightSet(key, sizes[key])
    buffers = draw(among((), (Buffer("banks", 2),), (Buffer("banks", 4),)))
    variants = []
    for kind, units in enumerate(kinds):
        count = [min([len(units)] + [len(cores[each].units) for each in first if cores[each].kind == kind])]
        phases = draw(phase_lists([*count, *members], len(buffers)))
        if weight_set is not None and len(phases) == 1:
            loads = (Operation(0, cycles=draw(whole(1, 9)), result_cycles=9),)
            phases = (Phase(Body(draw(among(loads, loads, ()))), 1), *phases)
        variants.append((kind, phases))
    ways = draw(moldable_variants(len(cores[first[0]].units), len(first))) if shape == "moldable" else ()
    alone = not gang and weight_set is None and not ways
    return Task(
        name=f"t{number}",
        variants=tuple(variants),
        buffers=tuple((kind, buffers) for kind in range(len(kinds))),
        cores=tuple(first),
        release=draw(among(0, 0, 1, 2, 7, 15)),
        frame_interval=draw(among(0, 0, 1, 5, 20)),
        # later ones are often more urgent, so that they have somebody to stop
        key=draw(among(0, 0, 1, 2, -2)) - 3 * number * preempting,
        key_from_arrival=draw(SELDOM),
        after=draw(whole(0, number - 1)) if number and draw(SELDOM) else None,
        gang=gang,
        weight_set=weight_set,
        affine=draw(BOOLEANS),
        preempts=alone and preempting and draw(among(True, True, False)),
        queue_limit=draw(among(None, None, 0, 1, 2)),
        patience=draw(among(None, None, 0, 5, 30)),
        moldable=ways,
    )


@st.composite
def moldable_variants(draw: st.DrawFn, units: int, cores: int) -> tuple[Moldable, ...]:
    """How a task runs on some numbers of its cores, which have so many units each."""
    found = []
    for members in sorted(draw(st.sets(whole(2, cores), min_size=1))) if cores > 1 else ():
        buffers = draw(among((), (Buffer("banks", 2), Buffer("banks", 1))))
        found.append(Moldable(members, draw(phase_lists([units] * members, len(buffers))), buffers))
    return tuple(found)


_LATENCIES = st.sets(among(*(each.name for each in fields(Latency))))


@st.composite
def cores_of_a_chip(draw: st.DrawFn) -> ColumnCore:
    """A small core; half of its latencies are drawn, the others keep their default."""
    ep, vp = draw(whole(1, 8)), draw(among(1, 3, 4, 5, 8, 12, 16, 30))
    least = {"read": 0, "convert": 0, "quantize": 0, "writeback": 0}
    names = draw(_LATENCIES)
    latency = {name: draw(whole(least.get(name, 1), 9)) for name in sorted(names)}
    cat = draw(among(1, 1, 2, 4, 8))
    tree = ep * draw(among(*[each for each in (1, 2, 4, 8) if each <= cat])) if cat > 1 else None
    return ColumnCore(
        npe=max(ep * vp, tree or 1) + draw(SMALL),
        ep=ep,
        tree_inputs=tree,
        cat=cat,
        vp=vp,
        threads=draw(whole(1, 4)),
        tail_width=draw(among(1, 2, 3, 5, 8, 64)),
        accumulator_banks=draw(among(1, 2, 2, 3, 40)),
        thread_policy=draw(among("coarse", "fine")),
        switch_cycles=draw(among(0, 0, 1, 3)),
        block_order=draw(among("row", "column")),
        latency=Latency(**latency),
    )


#: Cells whose timing the contract states and the cycle-stepped model knows.
CONTRACT_CELLS = ("lstm", "gru", "rnn")


@st.composite
def models(draw: st.DrawFn, cells: Sequence[str | Cell] = CONTRACT_CELLS) -> Model:
    """One to three layers of up to 24 units, of built-in cells (by name) or others."""
    order = draw(among("layer", "step"))
    layers: list[Layer] = []
    for _ in range(draw(whole(1, 3))):
        size = layers[-1].output if layers else draw(whole(1, 24))
        drawn = draw(among(*cells))
        own = drawn if isinstance(drawn, Cell) else cell(drawn)
        ways = ("forward", "both", "reverse") if order == "layer" and own.recurrent else ("forward",)
        way = draw(among(*ways))
        projection = draw(whole(1, 12)) if own.projected else None
        layers.append(Layer(own, draw(whole(1, 24)), size, way == "both", projection, way == "reverse"))
    return Model("m", tuple(layers), order)


@st.composite
def scenarios(draw: st.DrawFn, cells: Sequence[str | Cell] = CONTRACT_CELLS) -> Scenario:
    """A small chip and jobs that it can run."""
    cores = tuple(draw(st.lists(cores_of_a_chip(), min_size=1, max_size=3)))
    jobs = []
    for number in range(draw(whole(1, 5))):
        model = draw(models(cells))
        able = [index for index, core in enumerate(cores) if core.refusal(model) is None]
        assume(able)
        jobs.append(
            Job(
                name=f"j{number}",
                model=model,
                steps=draw(whole(1, 4)),
                arrival=draw(among(0, 0, 1, 30, 400)),
                frame_interval=draw(among(0, 0, 7, 90)),
                cores=draw(among(*[None, *((each,) for each in able), tuple(able)])),
            )
        )
    return Scenario(ColumnNpu("chip", 260, cores), tuple(jobs))


@st.composite
def preempting_programs(draw: st.DrawFn) -> Program:
    """Legal programs in which most tasks stop others or are stopped, many at a boundary that is their end; few cores,
    several threads, and beside them tasks that take several cores at once and keep others off. None gets stuck."""
    units = tuple(Unit(f"u{n}", draw(among("coarse", "fine"))) for n in range(draw(whole(1, 2))))
    count = draw(among(1, 1, 2, 3))
    # where all cores are shared, nobody keeps others off
    shared = draw(among(False, False, False, True))
    cores = tuple(Core(0, units, draw(among(1, 2, 2, 3)), shared=shared) for _ in range(count))
    tasks = [draw(preempting_tasks(number, cores)) for number in range(draw(whole(3, 8)))]
    return Program(cores, tuple(tasks))


@st.composite
def preempting_tasks(draw: st.DrawFn, number: int, cores: tuple[Core, ...]) -> Task:
    units = len(cores[0].units)
    first = sorted(draw(st.sets(among(*range(len(cores))), min_size=1)))
    gang: tuple[tuple[int, ...], ...] = ()
    # the first ones are there when the urgent ones come
    early = number < 4
    if len(first) > 1 and draw(SELDOM):
        first, gang = first[:1], (tuple(first[1:]),)
    phases = []
    for _ in range(draw(whole(1, 2))):
        operations = []
        for index in range(draw(whole(1, 2))):
            lag = draw(whole(0 if index else 1, 1))
            need = Dependence(0, draw(whole(1, 20)), lag=lag)
            cycles = draw(whole(1, 6))
            operations.append(
                Operation(
                    unit=draw(whole(0, units - 1)),
                    cycles=cycles,
                    count=draw(among(1, 1, 2, 8)),
                    needs=draw(among((), (need,))),
                    result_cycles=cycles + draw(SMALL),
                )
            )
        phases.append(Phase(Body(tuple(operations)), draw(among(*[1, 8] if early else [1, 1, 2, 4]))))
    return Task(
        name=f"t{number}",
        variants=((0, tuple(phases)),),
        buffers=(),
        cores=tuple(first),
        release=draw(among(*[0, 0, 1] if early else [2, 5, 9, 20])),
        key=draw(among(0, 0, 1, 2)) - draw(among(0, 2, 3)) * number,
        key_from_arrival=draw(SELDOM),
        after=draw(whole(0, number - 1)) if number and draw(SELDOM) else None,
        gang=gang,
        preempts=not gang and draw(among(True, True, True, False)),
        queue_limit=draw(among(None, None, None, 0, 1)),
        patience=draw(among(None, None, 0, 3, 15, 40)),
    )


@st.composite
def pooled_programs(draw: st.DrawFn) -> Program:
    """Legal programs of tasks that wait for company in pools, also ragged ones whose phases repeat more often or less
    often than a task has steps; of tasks with sessions; and of both with a link of their device, whose threads stand
    for theirs. Some get stuck."""
    units = tuple(Unit(f"u{n}", draw(among("coarse", "fine", "fifo")), draw(among(0, 0, 2))) for n in range(2))
    devices = draw(whole(1, 2))
    cores = [Core(0, units, draw(whole(1, 3))) for _ in range(devices)]
    cores.append(
        Core(1, (Unit("link", "fifo"),), sum(core.contexts for core in cores), None, shared=True, mirrors=True)
    )
    policies = draw(st.lists(among("dynamic", "window", "continuous"), min_size=1, max_size=2))
    pools = tuple(Pool(draw(whole(1, 4)), draw(among(0, 0, 3, 40)), each, draw(BOOLEANS)) for each in policies)
    places = [draw(pool_places(devices, policy != "continuous")) for policy in (*policies, "dynamic")]
    tasks = []
    for number in range(draw(whole(2, 7))):
        pool = draw(whole(0, len(pools)))
        first, gang = places[pool]
        members = [len(units), 1] if gang else [len(units)]
        buffers = draw(among((), (), (Buffer("banks", 2),)))
        counts = range(2, pools[pool].most + 1) if pool < len(pools) else ()
        alone = draw(phase_lists(members, len(buffers)))
        waits: dict[str, Any] = {"session": draw(whole(0, 1)), "move_cycles": draw(among(0, 3, 30))}
        if pool < len(pools):
            sizes = tuple(((0, draw(phase_lists(members, len(buffers), size))),) for size in counts)
            waits = {"pool": pool, "sizes": sizes, "length": draw(whole(1, 6))}
        tasks.append(
            Task(
                name=f"t{number}",
                variants=((0, alone),),
                buffers=((0, buffers),),
                cores=first,
                gang=gang,
                release=draw(among(0, 0, 1, 2, 7, 40)),
                frame_interval=draw(among(0, 0, 0, 5)),
                key=draw(among(0, 0, 1, -2)),
                patience=draw(among(None, None, 30)),
                **waits,
            )
        )
    return Program(tuple(cores), tuple(tasks), pools=pools)


@st.composite
def pool_places(draw: st.DrawFn, devices: int, linked: bool) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The cores that all tasks of a pool may take, and the link that they take with each of them."""
    first = tuple(sorted(draw(st.sets(whole(0, devices - 1), min_size=1))))
    return first, ((devices,),) * len(first) if linked and draw(BOOLEANS) else ()
