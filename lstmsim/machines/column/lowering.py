"""The lowering of jobs on a column-wise NPU to a Program, by the timing contract of the chip.

`lstmsim.machines.column.passes` lowers one step of a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from lstmsim.machines.assembly import Parts, assemble
from lstmsim.machines.column.entries import ColumnEntries
from lstmsim.machines.column.members import Members, own_units
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.passes import ARRAY
from lstmsim.machines.column.phases import model_phases
from lstmsim.machines.column.plan import Plan
from lstmsim.machines.column.shape import pass_shapes
from lstmsim.machines.column.split import split_operations_per_step, spreads_over
from lstmsim.machines.sizes import PerStep
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.model.segments import segments
from lstmsim.program.program import Buffer, Core, Phase, Program

__all__ = ["ARRAY", "check", "lower", "operations_per_step", "per_step"]

#: Bounds that are kept: a point of a sweep asks for its own before it is lowered and while it is.
_MOST_KEPT = 1024


def operations_per_step(model: Model, core: ColumnCore, batch: int = 1) -> int:
    """A bound on the operations of one step of a model on a core. The operations are not made."""
    return _bound(model.layers, core)


@lru_cache(_MOST_KEPT)
def _bound(layers: tuple[Layer, ...], core: ColumnCore) -> int:
    # a fine-grained core with several threads may have to record every tile on its own
    single = core.thread_policy == "fine" and core.threads > 1
    total = 0
    for layer in layers:
        for shape in pass_shapes(layer, core):
            blocks = -(-layer.units(shape.stage.rows) // shape.units_per_block)
            groups = sum(shape.groups(vector) for vector in shape.stage.vectors)
            runs = groups + 4 * blocks if core.block_order == "row" else 3 * groups + 2 * blocks
            tails = blocks * sum(each.stage == shape.number for each in segments(layer.cell))
            total += layer.directions * (tails + (blocks * groups if single else runs))
    return total


def per_step(cores: Sequence[ColumnCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
    """Bounds on the operations of one step of a job; arguments as for `lstmsim.machines.target.Target.per_step`."""
    ways = [0]
    if split and members > 1:
        core = cores[0]
        if split != "auto":
            only = split_operations_per_step(model, core, split, members)
            return PerStep(only, only)
        ways += [split_operations_per_step(model, core, "rows", some) for some in spreads_over(model, core, members)]
    one = max(operations_per_step(model, core, batch) for core in cores)
    return PerStep(max(one, *ways), one + sum(ways))


def lower(chip: ColumnNpu, jobs: Sequence[Job], templates: bool = False) -> Program:
    """Lower jobs to a Program; arguments and errors are those of `lstmsim.machines.lower`.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))
    >>> program = lower(chip, [Job("a", model, steps=20)])
    >>> sum(each.count for each in program.tasks[0].phases(0)[0].body.operations if each.unit == ARRAY)
    32
    """
    jobs = [job.settled(len(chip.cores)) for job in jobs]
    if not any(job.split for job in jobs) and all(core.weight_kib is None for core in chip.cores):
        return assemble(chip.cores, jobs, partial(ColumnEntries().check_job, chip.cores), PARTS, templates=templates)
    plan = Plan(chip, jobs)

    def refuse(job: Job) -> None:
        check(chip, job)

    return assemble(chip.cores, jobs, refuse, PARTS, plan.footprint, lambda: plan.machine, templates=templates)


def check(chip: ColumnNpu, job: Job) -> None:
    """`InputError` if no core that the job may use can run it, or if the job cannot be split in its way."""
    settled = job.settled(len(chip.cores))
    ColumnEntries().check_job(chip.cores, settled)
    Members(chip).places(settled)


def _job_phases(job: Job, core: ColumnCore) -> tuple[Phase, ...]:
    return model_phases(job.model, core, job.steps)


def _banks(core: ColumnCore) -> tuple[Buffer, ...]:
    return (Buffer("accumulator bank", core.accumulator_banks),)


def _core(kind: int, core: ColumnCore) -> Core:
    return Core(kind, own_units(core), core.threads, ARRAY)


#: What `assemble` makes a Program of.
PARTS = Parts(per_step, _job_phases, _banks, _core)
