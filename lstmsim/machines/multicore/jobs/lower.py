"""Jobs on a multi-core CPU as a Program: which places they may take, and what they do there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import Footprint, Parts, PerStep, assemble
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu
from lstmsim.machines.multicore.entries import MulticoreEntries
from lstmsim.machines.multicore.execution.checks import MOST_ACCESSES, estimated_accesses
from lstmsim.machines.multicore.jobs.arrays import Shape, divisions_of
from lstmsim.machines.multicore.jobs.program import job_phases, places_for, twin
from lstmsim.machines.multicore.jobs.traced import TRACED
from lstmsim.machines.multicore.lowering.stages import cores_of, place_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.machines.multicore.sizes import operations_per_step
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Core, Program

__all__ = ["kinds_of_cores", "lower"]


def shape_of(machine: Machine, job: Job) -> Shape:
    """All of a job on which its traffic depends."""
    return Shape(job.model.layers, job.steps, job.batch, job.members(machine.cores))


def kinds_of_cores(machine: Machine, threads: Sequence[int]) -> tuple[int, ...]:
    """A number for each core; jobs that begin on cores of one number have the same traffic.

    machine: whose cores they are.
    threads: how many threads jobs have.

    >>> from dataclasses import replace
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> kinds_of_cores(replace(TOY, cores=6, cores_per_llc=2, cores_per_domain=4), [2])
    (0, 1, 0, 1, 2, 1)
    """
    numbers: dict[tuple[int, ...], int] = {}
    own = [{first: twin(machine, first, each) for first in places_for(machine, each)} for each in sorted(set(threads))]
    return tuple(
        numbers.setdefault(tuple(twins.get(core, -1) for twins in own), len(numbers)) for core in range(machine.cores)
    )


def lower(chip: MulticoreCpu, jobs: Sequence[Job], templates: bool = False) -> Program:
    """Lower jobs to a Program; arguments and errors are those of `lstmsim.machines.lower`.

    >>> from lstmsim.engines import run
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 64, 64),)), steps=2, threads=2)
    >>> program = lower(MulticoreCpu("c", 2250, (CpuCore(),) * 4), [job])
    >>> program.tasks[0].places
    ((0, 1, 4, 4), (2, 3, 4, 4))
    """
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
