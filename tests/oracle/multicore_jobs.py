"""Recurrent jobs of section 6 of docs/multicore.md: arrays, traced steps, passes, and several jobs at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.multicore import section
from tests.oracle.multicore_caches import Caches, Space
from tests.oracle.multicore_lines import Counted, Places, Run, counted, drive, place_product, trace
from tests.oracle.multicore_plan import Plan, plan, up
from tests.oracle.multicore_steps import Product
from tests.oracle.multicore_time import Barrier, Clock, Group, Timed, barrier_cycles

#: products (gates, operands), further states, activations, other nodes; the gates of all products in their order
CELLS = {
    "lstm": ([(4, "xh")], 1, 5, 5),
    "gru": ([(2, "xh"), (1, "x"), (1, "h")], 1, 3, 6),
    "rnn": ([(1, "xh")], 0, 1, 1),
    "rnn-relu": ([(1, "xh")], 0, 0, 2),
    "dense-tanh": ([(1, "x")], 0, 1, 1),
    "mingru": ([(2, "x")], 1, 1, 4),
    "slstm": ([(4, "xh")], 3, 5, 12),
}


@dataclass
class Job:
    """layers: (hidden, input), or (hidden, input, directions); directions: True for a pass that runs backward."""

    cell: str
    layers: list[Any]
    steps: int
    batch: int
    threads: int
    arrival: int = 0
    frame_interval: int = 0


@dataclass
class Done:
    """What came of a job; traced: of each pass, of each traced time step, the work of products and of the tail."""

    admitted: int
    finish: int
    waits: dict[str, int]
    plans: list[list[Plan]]
    traced: list[list[tuple[list[Counted], list[Counted]]]]


@dataclass
class Pass:
    """A direction of a layer in memory; x: address at time step 0, and elements of a row, of each part of x."""

    cell: str
    hidden: int
    backward: bool
    framed: bool
    x: list[tuple[int, int]]
    h: int
    states: list[int]
    plans: list[Plan] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    places: list[Places] = field(default_factory=list)


def products_of(m: Any, job: Job, hidden: int, width: int) -> list[tuple[Plan, Product]]:
    result = []
    for gates, operands in CELLS[job.cell][0]:
        mnk = (job.batch, gates * hidden, width * ("x" in operands) + hidden * ("h" in operands))
        planned = plan(m, mnk, job.threads)
        result.append((planned, Product(mnk, planned.cut, planned.sub, planned.buffer, True)))
    return result


def layout(m: Any, job: Job, first_core: int) -> tuple[Space, list[Pass]]:
    """Arrays in order: frames; of each pass h, further states, then the arrays of each product."""
    space = Space(m)
    x = [(space.place(job.steps * job.batch * job.layers[0][1]), job.layers[0][1])]
    passes: list[Pass] = []
    for number, (hidden, width, *directions) in enumerate(job.layers):
        above = []
        for backward in directions[0] if directions else (False,):
            h = space.place((job.steps + 1) * job.batch * hidden, shared=True)
            states = [space.place(job.batch * hidden, shared=True) for _ in range(CELLS[job.cell][1])]
            one = Pass(job.cell, hidden, backward, number == 0, x, h, states)
            for planned, product in products_of(m, job, hidden, width):
                one.plans.append(planned)
                one.products.append(product)
                one.places.append(place_product(m, space, product, first_core, True))
            passes.append(one)
            # The layer above reads in time step t what was written in it.
            above.append((h + written(0, backward) * job.batch * hidden * m.element_bytes, hidden))
        x = above
    return space, passes


def written(t: int, backward: bool) -> int:
    """Which row block of h a time step writes: block t + 1, before which the initial one stands; backward block t."""
    return t if backward else t + 1


def parts_of_a(m: Any, job: Job, one: Pass, operands: str, t: int) -> list[tuple[int, int, int, int]]:
    """x of time step t, and the h before it."""
    before = t + 1 if one.backward else t
    sources = []
    for name in operands:
        sources += [(*part, t) for part in one.x] if name == "x" else [(one.h, one.hidden, before)]
    parts, k = [], 0
    for base, width, block in sources:
        row = width * m.element_bytes
        parts.append((k, k + width, base + block * job.batch * row, row))
        k += width
    return parts


def tail_runs(m: Any, job: Job, one: Pass, units: tuple[int, int], t: int) -> Iterator[Run]:
    s, size = m.element_bytes, (units[1] - units[0]) * m.element_bytes
    for row in range(job.batch):
        for (gates, _), places in zip(CELLS[one.cell][0], one.places, strict=True):
            for gate in range(gates):
                yield places.c + ((row * gates + gate) * one.hidden + units[0]) * s, size, False
        for state in one.states:
            yield state + (row * one.hidden + units[0]) * s, size, True
        yield one.h + ((written(t, one.backward) * job.batch + row) * one.hidden + units[0]) * s, size, True


def tail_cycles(m: Any, job: Job, units: int) -> int:
    _, _, activations, others = CELLS[job.cell]
    return up(units * job.batch, m.lanes) * (activations * m.activation_cycles + others * m.elementwise_cycles)


def traced_step(
    m: Any, job: Job, one: Pass, caches: Caches, first_core: int, t: int
) -> tuple[list[Counted], list[Counted]]:
    work, tail = [], []
    for (_, operands), product, places in zip(CELLS[job.cell][0], one.products, one.places, strict=True):
        places.a = parts_of_a(m, job, one, operands, t)
        work += trace(m, caches, product, places, first_core)
    n = up(one.hidden, job.threads)
    for thread in range(job.threads):
        units = (min(thread * n, one.hidden), min(thread * n + n, one.hidden))
        if units[0] < units[1]:
            drive(m, caches, first_core + thread, tail_runs(m, job, one, units, t))
            tail.append(counted(m, caches, thread, None, tail_cycles(m, job, units[1] - units[0])))
    return work, tail


def group_of(
    m: Any, job: Job, passes: list[Pass], traced: list[list[tuple[list[Counted], list[Counted]]]], first_core: int
) -> Group:
    """The whole job in time: sections with a barrier behind each."""
    last: dict[int, Timed] = {}
    group = Group([], [])
    gate: Barrier | None = None
    for one, steps in zip(passes, traced, strict=True):
        for number in range(job.steps):
            t = job.steps - 1 - number if one.backward else number
            frame = job.arrival + t * job.frame_interval if one.framed else 0
            for work in steps[min(number, 2)]:
                timed = section(m, work, first_core, last, gate, frame)
                gate = Barrier(timed, barrier_cycles(m, job.threads))
                group.steps += timed
                group.barriers.append(gate)
    return group


def simulate(m: Any, jobs: list[Job]) -> list[Done]:
    """All jobs on one machine: first come first served on disjoint runs of cores; they meet in the memories."""
    clock = Clock(m)
    done: dict[int, Done] = {}
    waiting: list[int] = []
    busy: dict[int, range] = {}

    def come(number: int) -> None:
        def arrive(time: int) -> None:
            waiting.append(number)
            clock.push(time, 1, 0, admit)

        clock.push(jobs[number].arrival, 0, number, arrive)

    def admit(time: int) -> None:
        taken = {core for cores in busy.values() for core in cores}
        for number in sorted(waiting, key=lambda each: (jobs[each].arrival, each)):
            size = jobs[number].threads
            places = [range(at, at + size) for at in range(0, m.cores - size + 1, size)]
            free = [cores for cores in places if not taken.intersection(cores)]
            if free:
                waiting.remove(number)
                busy[number] = free[0]
                taken.update(free[0])
                start(number, free[0].start, time)
            else:
                taken.update(core for cores in places for core in cores)

    def start(number: int, first_core: int, time: int) -> None:
        job = jobs[number]
        space, passes = layout(m, job, first_core)
        caches = Caches(m, space)
        firsts = range(min(job.steps, 3))
        traced = [
            [
                traced_step(m, job, one, caches, first_core, job.steps - 1 - number if one.backward else number)
                for number in firsts
            ]
            for one in passes
        ]
        group = group_of(m, job, passes, traced, first_core)
        group.since = time
        one = Done(time, -1, {}, [one.plans for one in passes], traced)
        done[number] = one

        def finish(end: int) -> None:
            one.finish = end
            one.waits = {name: group.waits[name] for name in ("contention", "barrier", "memory")}
            del busy[number]
            clock.push(end, 1, 0, admit)

        group.barriers[-1].then = finish
        clock.add(group)

    for number in range(len(jobs)):
        come(number)
    clock.run()
    return [done[number] for number in range(len(jobs))]
