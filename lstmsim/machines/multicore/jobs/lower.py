"""Jobs on a multi-core CPU as a Program: their cores and phases, bounds on their size, their plans for reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import Footprint, Parts, PerStep, assemble
from lstmsim.machines.gemm import Division, GemmPlan
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu, MulticoreEntries, machine_of
from lstmsim.machines.multicore.execution.stages import Block, cores_of, phases_of, place_of
from lstmsim.machines.multicore.execution.steps import MOST_ACCESSES, estimated_accesses, steps_of
from lstmsim.machines.multicore.jobs.arrays import Shape, divisions_of, plans_of
from lstmsim.machines.multicore.jobs.traced import TRACED, alike, traced
from lstmsim.machines.multicore.machine import Machine
from lstmsim.model.cells import LayerProduct, step_products
from lstmsim.model.figures import PlannedProduct, PlannedProducts, merged
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Core, Phase, Program


def places_for(machine: Machine, threads: int) -> tuple[int, ...]:
    """The first cores of the places of jobs with so many threads. Cores behind the last whole place have none."""
    return tuple(range(0, machine.cores - threads + 1, threads))


@lru_cache(maxsize=256)
def twin(machine: Machine, first: int, threads: int) -> int:
    """The first core of the first place on which a job has the same traffic."""
    own = alike(machine, first, threads)
    return next(each for each in places_for(machine, threads) if alike(machine, each, threads) == own)


@lru_cache(maxsize=64)
def job_phases(machine: Machine, shape: Shape, first: int) -> tuple[Phase, ...]:
    """The phases of a job whose thread 0 is on core `first`: of each pass its first, second, and all later time steps.

    machine: the machine.
    shape: the job.
    first: a core that is its own `twin`.
    """
    blocks = []
    for one in traced(machine, shape, first).passes:
        for number, each in enumerate(one.steps):
            repeat = shape.steps - number if number == TRACED - 1 else 1
            step = shape.steps - 1 - number if one.backward else number
            blocks.append(Block((each.products, each.tail), repeat, step, one.backward))
    return phases_of(machine, blocks, first)


def operations_per_step(machine: Machine, model: Model, batch: int, threads: int) -> PerStep:
    """Bounds on the operations of one step of a job."""
    each = 0
    for layer in model.layers:
        steps = threads
        for division in divisions_of(machine, layer, batch, threads):
            steps += sum(map(len, steps_of(machine, division)))
        each += layer.directions * (steps * (1 + machine.domains) + 2)
    ways = len({twin(machine, first, threads) for first in places_for(machine, threads)})
    return PerStep(each, each * ways * TRACED)


def per_step(cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
    """Bounds on the operations of one step of a job; arguments as for `lstmsim.machines.target.Target.per_step`.

    What cores share does not stand in them. It is taken as in a chip that says nothing about it; when jobs are lowered,
    it is known, and they are counted again.
    """
    return operations_per_step(machine_of({}, cores[0], members), model, batch, members)


def shape_of(machine: Machine, job: Job) -> Shape:
    """All of a job on which its traffic depends."""
    return Shape(job.model.layers, job.steps, job.batch, job.members(machine.cores))


def kinds_of_cores(machine: Machine, threads: Sequence[int]) -> tuple[int, ...]:
    """A number for each core; jobs that begin on cores of one number have the same traffic."""
    numbers: dict[tuple[int, ...], int] = {}
    own = [{first: twin(machine, first, each) for first in places_for(machine, each)} for each in sorted(set(threads))]
    return tuple(
        numbers.setdefault(tuple(twins.get(core, -1) for twins in own), len(numbers)) for core in range(machine.cores)
    )


def lower(chip: MulticoreCpu, jobs: Sequence[Job], templates: bool = False) -> Program:
    """Lower jobs to a Program; arguments and errors are those of `lstmsim.machines.lower`."""
    machine = chip.view
    kinds = kinds_of_cores(machine, [job.members(machine.cores) for job in jobs])

    def check(job: Job) -> None:
        MulticoreEntries().check(chip, job)
        _check_length(machine, job)

    def per_step(cores: Sequence[CpuCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
        return operations_per_step(machine, model, batch, members)

    parts: Parts[CpuCore] = Parts(per_step, lambda job, _: (), lambda _: (), _core)
    footprint = partial(_footprint, machine, kinds)
    return assemble(chip.cores, jobs, check, parts, footprint, lambda: cores_of(machine, kinds), templates=templates)


def _core(kind: int, core: CpuCore) -> Core:
    raise AssertionError("cores of a CPU are made together, with its memories")


def _footprint(machine: Machine, kinds: Sequence[int], job: Job) -> Footprint:
    """The places of a job, and its phases on each kind of them."""
    shape = shape_of(machine, job)
    firsts = places_for(machine, shape.threads)
    twins = {kinds[first]: twin(machine, first, shape.threads) for first in firsts}
    variants = tuple((kind, job_phases(machine, shape, first)) for kind, first in twins.items())
    partners = tuple(place_of(machine, first, shape.threads)[1:] for first in firsts)
    return Footprint(variants, (), firsts, partners)


def _check_length(machine: Machine, job: Job) -> None:
    """`InputError` if the traced time steps of a job touch too many lines."""
    threads = job.members(machine.cores)
    about = sum(
        layer.directions * estimated_accesses(machine, division)
        for layer in job.model.layers
        for division in divisions_of(machine, layer, job.batch, threads)
    ) * min(job.steps, TRACED)
    if about > MOST_ACCESSES:
        text = f"its products touch about {about:.2g} lines one by one, and at most {MOST_ACCESSES:.2g} are traced"
        raise InputError(Mistake(f"job {job.name}", f"{text}; fewer units or a smaller batch touch fewer"))


_NOTE = (
    "planned with the rule of sections 2 and 3 of docs/multicore.md, as `lstmsim gemm` plans with --set cycles=0 and "
    "--set mn=blis; no other cut was simulated, so one may be faster: `lstmsim gemm --model` simulates them and says "
    "which is"
)


def planned_products(machine: Machine, jobs: Sequence[Job]) -> PlannedProducts:
    """The products of jobs, equal ones once."""
    different = {(id(job.model), job.batch, job.members(machine.cores)): job for job in jobs}
    rows = [
        _row(job, number, product, plan)
        for (_, batch, threads), job in different.items()
        for number, layer in enumerate(job.model.layers)
        for product, plan in zip(step_products(layer), plans_of(machine, layer, batch, threads), strict=True)
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
