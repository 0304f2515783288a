"""Recurrent jobs (section 6 of docs/multicore.md): their products and arrays, their traffic, their program.

Of each pass the first three time steps are traced, with caches that keep their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.assembly import Footprint, Parts, PerStep, assemble
from lstmsim.machines.gemm import Division, GemmPlan, Product
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu, MulticoreEntries, cell_work, up
from lstmsim.machines.multicore.lines.caches import Caches, open_caches
from lstmsim.machines.multicore.lines.space import (
    COLUMNS,
    Array,
    Matrix,
    Places,
    Runs,
    Segment,
    Space,
    Stage,
    TimedStep,
    operands,
    runs_of,
)
from lstmsim.machines.multicore.planner import DOCUMENTED, plan
from lstmsim.machines.multicore.product import Rows, core_cycles, timed_steps
from lstmsim.machines.multicore.stages import Block, cores_of, phases_of, place_of
from lstmsim.machines.multicore.steps import (
    MOST_ACCESSES,
    MOST_STEPS,
    estimated_accesses,
    estimated_steps,
    in_rounds,
    steps_of,
)
from lstmsim.model.cells import LayerProduct, step_products
from lstmsim.model.figures import PlannedProduct, PlannedProducts, merged
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, claims_of
from lstmsim.program.program import Core, Phase, Program


@hashed_once
@record
class Shape:
    """All of a job on which its traffic depends: layers from the input on, time steps, sequences at once, cores.

    warm: whether the caches hold what such jobs before it left there.
    """

    layers: tuple[Layer, ...]
    steps: int
    batch: int
    threads: int
    warm: bool = False


class Vectors(NamedTuple):
    """A vector of each time step: where the block of time step 0 is, and the elements of one sequence's vector."""

    address: int
    width: int

    def at(self, step: int, batch: int, element_bytes: int) -> Matrix:
        """The block of a time step."""
        stride = self.width * element_bytes
        return Matrix(self.address + step * batch * stride, stride)


class Pass(NamedTuple):
    """One direction of a layer.

    backward: whether it goes from the last time step to step 0.
    x: what it reads: the frames, or h of each direction of the layer below.
    h_read, h_written: h of the step before, and its own.
    states: where its further states are, a vector for each sequence.
    plans, places: of each product of a time step; A is where no time step reads it (`segments` say where).
    """

    number: int
    direction: int
    layer: Layer
    backward: bool
    x: tuple[Vectors, ...]
    h_read: Vectors
    h_written: Vectors
    states: tuple[Matrix, ...]
    plans: tuple[GemmPlan, ...]
    places: tuple[Places, ...]

    def segments(self, product: LayerProduct, step: int, batch: int, element_bytes: int) -> tuple[Segment, ...]:
        """Where the rows of A of a product are in a time step."""
        vectors: dict[str, tuple[Vectors, ...]] = {"x": self.x, "h": (self.h_read,)}
        segments, first = [], 0
        for each in (one for name in product.vectors for one in vectors[name]):
            segments.append(Segment(first, first + each.width, *each.at(step, batch, element_bytes)))
            first += each.width
        return tuple(segments)


@lru_cache(maxsize=256)
def plans_of(chip: MulticoreCpu, layer: Layer, batch: int, threads: int) -> tuple[GemmPlan, ...]:
    """The plans of the products of a layer's time step, with the parameters of section 2 of docs/multicore.md.

    Its weights have been packed before.
    """
    products = (Product(batch, each.rows, each.columns) for each in step_products(layer))
    return tuple(plan(chip, each, threads, DOCUMENTED, packed=True) for each in products)


def laid_out(chip: MulticoreCpu, shape: Shape, first: int) -> tuple[tuple[Array, ...], tuple[Pass, ...]]:
    """The arrays of a job, one after the other, and its passes over them, in their order."""
    space, width = Space(chip), shape.layers[0].input
    frames = space.add("frames", shape.steps * shape.batch * width * chip.element_bytes)
    x: tuple[Vectors, ...] = (Vectors(frames.first, width),)
    passes: list[Pass] = []
    for number, layer in enumerate(shape.layers):
        own = [_pass(space, chip, shape, first, number, direction, x) for direction in range(layer.directions)]
        passes += own
        x = tuple(each.h_written for each in own)
    return space.arrays, tuple(passes)


def _pass(
    space: Space, chip: MulticoreCpu, shape: Shape, first: int, number: int, direction: int, x: tuple[Vectors, ...]
) -> Pass:
    """Lay the arrays of a pass after the others: h of all time steps, further states, then those of each product."""
    layer, size = shape.layers[number], chip.element_bytes
    block = shape.batch * layer.hidden * size
    h = space.add("h", (shape.steps + 1) * block, shared=True).first
    before, after = Vectors(h, layer.hidden), Vectors(h + block, layer.hidden)
    # backward, the first h is in the last block, and each step leaves its h in the block before
    h_read, h_written = (after, before) if layer.backward(direction) else (before, after)
    names = cell_work(layer.cell).states
    states = tuple(Matrix(space.add(name, block, shared=True).first, layer.hidden * size) for name in names)
    plans = plans_of(chip, layer, shape.batch, shape.threads)
    places = tuple(operands(space, chip, each.division, job=True, first=first) for each in plans)
    return Pass(number, direction, layer, layer.backward(direction), x, h_read, h_written, states, plans, places)


def units_of(hidden: int, threads: int) -> Iterator[tuple[int, int]]:
    """The units of each thread that has some, as (first, end); threads without units are the last ones."""
    each = up(hidden, threads)
    return ((first, min(first + each, hidden)) for first in range(0, hidden, each))


def tail_runs(chip: MulticoreCpu, one: Pass, units: tuple[int, int], step: int, batch: int) -> Runs:
    """What a tail touches: for each sequence its units of every gate, then of every further state, and of h."""
    size = chip.element_bytes
    gates = [
        Matrix(places.c.address + gate * one.layer.hidden * size, places.c.stride)
        for places, product in zip(one.places, step_products(one.layer), strict=True)
        for gate in range(len(product.sums))
    ]
    written = [*one.states, one.h_written.at(step, batch, size)]
    address, stride = np.array([*gates, *written], dtype=np.int64).T
    rows = np.arange(batch)[:, None]
    addresses = (address + units[0] * size + rows * stride).ravel()
    write = np.arange(len(address)) >= len(gates)
    return Runs(addresses, np.full(len(addresses), (units[1] - units[0]) * size), np.tile(write, batch))


#: Time steps of a pass that are traced; each later one has the counts of the last of them.
TRACED = 3


class TracedStep(NamedTuple):
    """A time step: what threads do up to the barrier after the products, and after that; counts of both."""

    products: Stage
    tail: Stage
    counts: Rows


class TracedPass(NamedTuple):
    """One direction of a layer, the plans of its products, and its first time steps, in its order."""

    backward: bool
    plans: tuple[GemmPlan, ...]
    steps: tuple[TracedStep, ...]


def alike(chip: MulticoreCpu, first: int, threads: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The properties of a place that decide its traffic: which threads share a last-level cache, and their memories."""
    cores = range(first, first + threads)
    groups = tuple(chip.group(core) - chip.group(first) for core in cores)
    return groups, tuple(chip.domain(core) for core in cores)


@lru_cache(maxsize=64)
def traced(chip: MulticoreCpu, shape: Shape, first: int) -> tuple[TracedPass, ...]:
    """Trace all passes of a job: one that finds the caches empty, or (`warm`) the last of several in a row.

    first: core of thread 0. Of places that are `alike`, callers name the first, so that each is traced once.
    """
    return runs_in_a_row(chip, shape, first)[-1]


#: Most runs of a job in a row, if none of them is as the one before it.
MOST_RUNS = 8


@lru_cache(maxsize=64)
def runs_in_a_row(chip: MulticoreCpu, shape: Shape, first: int) -> tuple[tuple[TracedPass, ...], ...]:
    """Trace a job that runs again and again, from empty caches to a run that is as the one before it in every step.

    A job that is not `warm` runs once.
    """
    arrays, passes = laid_out(chip, shape, first)
    tracer = _Tracer(chip, shape, first, open_caches(chip, arrays))
    runs = [_run(tracer, passes)]
    while shape.warm and len(runs) < MOST_RUNS and not settled(runs):
        runs.append(_run(tracer, passes))
    return tuple(runs)


def settled(runs: Sequence[tuple[TracedPass, ...]]) -> bool:
    """Whether the last of these runs is as the one before it."""
    return len(runs) > 1 and _timed(runs[-1]) == _timed(runs[-2])


def _timed(run: tuple[TracedPass, ...]) -> list[tuple[Stage, Stage]]:
    return [(each.products, each.tail) for one in run for each in one.steps]


def _run(tracer: _Tracer, passes: Sequence[Pass]) -> tuple[TracedPass, ...]:
    """Trace a run with the caches as they are."""
    steps = tracer.shape.steps
    traced_steps, last = range(min(steps, TRACED)), steps - 1
    return tuple(
        TracedPass(
            one.backward,
            one.plans,
            tuple(tracer.step(one, last - each if one.backward else each) for each in traced_steps),
        )
        for one in passes
    )


class _Tracer(NamedTuple):
    """A job on its cores, with the caches as it has left them so far."""

    chip: MulticoreCpu
    shape: Shape
    first: int
    caches: Caches

    def step(self, one: Pass, step: int) -> TracedStep:
        """Trace a time step: its products, then its tail."""
        threads, frames = self.shape.threads, one.number == 0
        own: list[list[TimedStep]] = [[] for _ in range(threads)]
        counts = sum(self._product(one, number, step, own) for number in range(len(one.plans)))
        tail, after = self._tail(one, step)
        return TracedStep(Stage(tuple(map(tuple, own)), frames), Stage(tail, frames), np.array([counts, after]))

    def _product(self, one: Pass, number: int, step: int, own: list[list[TimedStep]]) -> Rows:
        """Trace a product of a time step, and put its steps after those that each thread has."""
        chip, division, product = self.chip, one.plans[number].division, step_products(one.layer)[number]
        places = one.places[number]._replace(a=one.segments(product, step, self.shape.batch, chip.element_bytes))
        steps = in_rounds(steps_of(chip, division))
        counts = self._drive([each.thread for each in steps], [runs_of(chip, division, places, each) for each in steps])
        label, before = " ".join(product.sums), [len(each) for each in own]
        for each, timed in zip(steps, timed_steps(chip, steps, counts, (one.number, one.direction)), strict=True):
            after = None if timed.after is None else (timed.after[0], before[timed.after[0]] + timed.after[1])
            own[each.thread].append(timed._replace(after=after, label=label))
        total: Rows = counts.sum(axis=0)
        return total

    def _tail(self, one: Pass, step: int) -> tuple[tuple[tuple[TimedStep, ...], ...], Rows]:
        """Trace the tail of a time step: its steps, and the counts over all threads."""
        chip, batch, threads = self.chip, self.shape.batch, self.shape.threads
        units = list(units_of(one.layer.hidden, threads))
        counts = self._drive(range(len(units)), [tail_runs(chip, one, each, step, batch) for each in units])
        core, work = chip.core, cell_work(one.layer.cell)
        vector = work.activations * core.activation_cycles + work.others * core.elementwise_cycles
        compute = np.array([up((end - begin) * batch, core.lanes) * vector for begin, end in units])
        cycles, paid = (each.tolist() for each in core_cycles(chip, compute, counts))
        lines = map(tuple, counts[:, len(COLUMNS) :].tolist())
        place = one.number, one.direction
        steps = [
            (TimedStep(taken, own, label="tail", place=place, of_memory=of_memory),)
            for taken, own, of_memory in zip(cycles, lines, paid, strict=True)
        ]
        return (*steps, *((),) * (threads - len(units))), counts.sum(axis=0)

    def _drive(self, threads: Sequence[int], runs: Sequence[Runs]) -> Rows:
        """Let steps touch their lines, one after the other."""
        return self.caches.drive([self.first + each for each in threads], runs)


def places_for(chip: MulticoreCpu, threads: int) -> tuple[int, ...]:
    """The first core of each run of cores that jobs of so many threads take. Cores after the last run get none."""
    return tuple(range(0, len(chip.cores) - threads + 1, threads))


@lru_cache(maxsize=256)
def twin(chip: MulticoreCpu, first: int, threads: int) -> int:
    """The first core of the first place on which a job has the same traffic."""
    own = alike(chip, first, threads)
    return next(each for each in places_for(chip, threads) if alike(chip, each, threads) == own)


@lru_cache(maxsize=64)
def job_phases(chip: MulticoreCpu, shape: Shape, first: int) -> tuple[Phase, ...]:
    """The phases of a job whose thread 0 is on core `first`: of each pass its first, second, and all later time steps.

    first: a core that is its own `twin`.
    """
    blocks = []
    for one in traced(chip, shape, first):
        for number, each in enumerate(one.steps):
            repeat = shape.steps - number if number == TRACED - 1 else 1
            step = shape.steps - 1 - number if one.backward else number
            blocks.append(Block((each.products, each.tail), repeat, step, one.backward))
    return phases_of(chip, blocks, first)


def operations_per_step(chip: MulticoreCpu, model: Model, batch: int, threads: int) -> PerStep:
    """Bounds on the operations of one step of a job."""
    ways = len({twin(chip, first, threads) for first in places_for(chip, threads)})
    return bound_of(chip, model, batch, threads, chip.domains, ways)


def bound_of(chip: MulticoreCpu, model: Model, batch: int, threads: int, domains: int, ways: int) -> PerStep:
    """Bounds on the operations of one step of a job that runs near so many memories, on so many kinds of places."""
    each = 0
    for layer in model.layers:
        plans = plans_of(chip, layer, batch, threads)
        steps = threads + sum(_steps(chip, each_plan.division) for each_plan in plans)
        each += layer.directions * (steps * (1 + domains) + 2)
    return PerStep(each, each * ways * TRACED)


def _steps(chip: MulticoreCpu, division: Division) -> int:
    """How many steps a product has; about how many where they are far too many to list."""
    about = estimated_steps(chip, division)
    return about if about > 4 * MOST_STEPS else sum(map(len, steps_of(chip, division)))


def kinds_of_cores(chip: MulticoreCpu, threads: Sequence[int]) -> tuple[int, ...]:
    """A number for each core; jobs that begin on cores of one number have the same traffic."""
    numbers: dict[tuple[int, ...], int] = {}
    own = [{first: twin(chip, first, each) for first in places_for(chip, each)} for each in sorted(set(threads))]
    return tuple(
        numbers.setdefault(tuple(twins.get(core, -1) for twins in own), len(numbers)) for core in range(len(chip.cores))
    )


def lower(chip: MulticoreCpu, jobs: Sequence[Job], templates: bool = False) -> Program:
    """Lower jobs to a Program; arguments and errors are those of `lstmsim.machines.lower`."""
    chip = chip.bare
    claims = claims_of(jobs, len(chip.cores))
    kinds = kinds_of_cores(chip, [each.members for each in claims.different])
    for each in claims.different:
        MulticoreEntries().check(chip, each.job)
        _check_length(chip, each.job)

    def per_step(cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
        return operations_per_step(chip, model, batch, members)

    parts: Parts[CpuCore] = Parts(per_step, lambda job, _: (), lambda _: (), _core)
    footprint = partial(_footprint, chip, kinds)
    return assemble(chip.cores, claims, parts, footprint, lambda: cores_of(chip, kinds), templates=templates)


def _core(kind: int, core: CpuCore) -> Core:
    raise AssertionError("cores of a CPU are made together, with its memories")


def _footprint(chip: MulticoreCpu, kinds: Sequence[int], job: Job) -> Footprint:
    """The places of a job, and its phases on each kind of them."""
    shape = shape_of(chip, job)
    firsts = places_for(chip, shape.threads)
    twins = {kinds[first]: twin(chip, first, shape.threads) for first in firsts}
    variants = tuple((kind, job_phases(chip, shape, first)) for kind, first in twins.items())
    partners = tuple(place_of(chip, first, shape.threads)[1:] for first in firsts)
    return Footprint(variants, (), firsts, partners)


def shape_of(chip: MulticoreCpu, job: Job) -> Shape:
    """What the traffic of a job depends on."""
    return Shape(job.model.layers, job.steps, job.batch, job.members(len(chip.cores)), job.weights == "warm")


def warm_text(chip: MulticoreCpu, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say how jobs with warm weights found the caches, like jobs once; empty: there are none."""
    shapes = {shape_of(chip, job): job.model.name for job in jobs if job.weights == "warm"}
    said = []
    for shape, name in shapes.items():
        places = {twin(chip, first, shape.threads) for first in places_for(chip, shape.threads)}
        for runs in [runs_in_a_row(chip, shape, first) for first in sorted(places)]:
            if settled(runs):
                continue
            said.append(f"Caches of {name} do not settle in {len(runs)} runs in a row: taken is the last of these.")
    return tuple(dict.fromkeys(said))


def _check_length(chip: MulticoreCpu, job: Job) -> None:
    """`InputError` if the traced time steps of a job touch too many lines."""
    threads = job.members(len(chip.cores))
    about = sum(
        layer.directions * estimated_accesses(chip, each.division)
        for layer in job.model.layers
        for each in plans_of(chip, layer, job.batch, threads)
    ) * min(job.steps, TRACED)
    if about > MOST_ACCESSES:
        text = f"its products touch about {about:.2g} lines one by one, and at most {MOST_ACCESSES:.2g} are traced"
        raise InputError(Mistake(f"job {job.name}", f"{text}; fewer units or a smaller batch touch fewer"))


_NOTE = (
    "planned with the rule of sections 2 and 3 of docs/multicore.md, as `lstmsim gemm` plans with --set cycles=0 and "
    "--set mn=blis; no other cut was simulated, so one may be faster: `lstmsim gemm --model` simulates them and says "
    "which is"
)


def planned_products(chip: MulticoreCpu, jobs: Sequence[Job]) -> PlannedProducts:
    """The products of jobs, equal ones once."""
    different = {(id(job.model), job.batch, job.members(len(chip.cores))): job for job in jobs}
    rows = [
        _row(job, number, product, plan)
        for (_, batch, threads), job in different.items()
        for number, layer in enumerate(job.model.layers)
        for product, plan in zip(step_products(layer), plans_of(chip, layer, batch, threads), strict=True)
    ]
    return PlannedProducts(merged(rows), _NOTE)


def _row(job: Job, number: int, product: LayerProduct, plan: GemmPlan) -> PlannedProduct:
    division = plan.division
    cut, sizes = division.cut, division.product
    return PlannedProduct(
        model=job.model.name,
        layers=(number,),
        label=product.label,
        m=sizes.m,
        n=sizes.n,
        k=sizes.k,
        threads=cut.threads,
        cut=cut.short,
        block=f"{cut.mb} x {cut.nb} x {cut.kb}",
        relief=_relief(division),
        rank=plan.chosen,
        candidates=len(plan.ranked),
        rejected=tuple(each.why_not for each in plan.ranked[: plan.chosen]),
    )


def _relief(division: Division) -> str:
    if division.cut.p_k == 1:
        return ""
    of = division.sub_blocks
    parts = [] if of is None else [f"{of.s_m} x {of.s_n} sub-blocks of {of.sm} x {of.sn}"]
    return " and ".join([*parts, *(["buffers"] if division.buffer else [])])
