"""Lowers jobs on a column-wise NPU to a Program: the timing contract of the chip, layer by layer and job by job.

One step of a pass is lowered in `lstmsim.targets.column_passes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from lstmsim.errors import InputError, Mistake
from lstmsim.program.program import Body, Buffer, Core, Operation, Phase, Program, Task, Unit
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
from lstmsim.targets.column_passes import ARRAY, Source, pass_operations
from lstmsim.targets.column_shape import pass_shapes
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job
from lstmsim.workload.segments import segments

__all__ = ["ARRAY", "MAX_JOB_OPERATIONS", "MAX_OPERATIONS", "lower", "operations_per_step"]

#: Phases of a task by kind of core.
Variants = tuple[tuple[int, tuple[Phase, ...]], ...]

#: Most operations of one job: a thread remembers up to 16 bytes of each, whichever of them are skipped.
MAX_JOB_OPERATIONS = 20_000_000
#: Most operations of a scenario: minutes for the compiled loop, where nothing repeats and nothing is skipped.
MAX_OPERATIONS = 2_000_000_000


def _layer_phases(model: Model, core: ColumnCore, steps: int) -> tuple[Phase, ...]:
    """`layer_order: layer`: one phase a pass, forward before backward."""
    phases: list[Phase] = []
    below: list[Source] = []
    for number, layer in enumerate(model.layers):
        done = []
        for direction in range(layer.directions):
            sources = [replace(source, mirrored=direction != other) for other, source in enumerate(below)]
            operations, h = pass_operations(layer, core, (number, direction), sources, 0, x_last=False)
            done.append(replace(h, phase=len(phases)))
            phases.append(Phase(Body(tuple(operations)), steps, mirrored=direction == 1))
        below = done
    return tuple(phases)


def _step_phases(model: Model, core: ColumnCore, steps: int) -> tuple[Phase, ...]:
    """`layer_order: step`: one body with all layers; above the first, what is ready later (x) comes last."""
    operations: list[Operation] = []
    sources: list[Source] = []
    for number, layer in enumerate(model.layers):
        own, h = pass_operations(layer, core, (number, 0), sources, len(operations), x_last=number > 0)
        operations += own
        sources = [h]
    return (Phase(Body(tuple(operations)), steps),)


def operations_per_step(model: Model, core: ColumnCore) -> int:
    """A bound on the operations that one step of the model lowers to on that core, without making them."""
    # a fine-grained core with several threads may have to record every tile on its own
    single = core.thread_policy == "fine" and core.threads > 1
    total = 0
    for layer in model.layers:
        for shape in pass_shapes(layer, core):
            blocks = -(-layer.units(shape.stage.rows) // shape.units_per_block)
            groups = sum(shape.groups(vector) for vector in shape.stage.vectors)
            runs = groups + 4 * blocks if core.block_order == "row" else 3 * groups + 2 * blocks
            tails = blocks * sum(each.stage == shape.number for each in segments(layer.cell))
            total += layer.directions * (tails + (blocks * groups if single else runs))
    return total


def _check_size(chip: ColumnNpu, jobs: Sequence[Job]) -> None:
    total = 0
    known: dict[tuple[int, int | None], int] = {}
    for index, job in enumerate(jobs):
        # by identity: jobs are many, their models few, and comparing models takes longer than all the rest
        key = (id(job.model), job.core)
        if key not in known:
            chip.check(job)
            cores = chip.cores if job.core is None else (chip.cores[job.core],)
            able = [core for core in dict.fromkeys(cores) if core.refusal(job.model) is None]
            known[key] = max(operations_per_step(job.model, core) for core in able)
        most = known[key]
        total += most * job.steps
        if most * job.steps > MAX_JOB_OPERATIONS or total > MAX_OPERATIONS:
            text = (
                f"too large: {job.steps:,} steps of up to {most:,} operations each bring the scenario to {total:,}; at "
                f"most {MAX_JOB_OPERATIONS:,} of a job and {MAX_OPERATIONS:,} in all are simulated"
            )
            raise InputError(Mistake(f"jobs.{index}.steps (job {job.name})", text))


def lower(chip: ColumnNpu, jobs: Sequence[Job]) -> Program:
    """The Program of these jobs on that chip; `InputError` if a job can run nowhere or the whole is too large.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))
    >>> program = lower(chip, [Job("a", model, steps=20)])
    >>> sum(each.count for each in program.tasks[0].phases(0)[0].body.operations if each.unit == ARRAY)
    32
    """
    kinds = {core: kind for kind, core in enumerate(dict.fromkeys(chip.cores))}
    for job in jobs:
        if job.batch != 1:
            chip.check(job)
    _check_size(chip, jobs)
    known: dict[tuple[int, int, int | None], tuple[Variants, tuple[int, ...]]] = {}
    buffers = tuple((kind, (Buffer("accumulator bank", core.accumulator_banks),)) for core, kind in kinds.items())
    tasks = []
    for job in jobs:
        key = (id(job.model), job.steps, job.core)
        if key not in known:
            known[key] = _variants(job, kinds), _able(chip, job)
        variants, able = known[key]
        tasks.append(Task(job.name, variants, buffers, able, job.arrival, job.frame_interval))
    cores = tuple(Core(kinds[each], _units(each), each.threads, ARRAY) for each in chip.cores)
    return Program(cores, tuple(tasks))


def _variants(job: Job, kinds: dict[ColumnCore, int]) -> Variants:
    able = [(kind, core) for core, kind in kinds.items() if core.refusal(job.model) is None]
    return tuple((kind, _phases(job.model, _bare(core), job.steps)) for kind, core in able)


def _bare(core: ColumnCore) -> ColumnCore:
    """The core without what no phase depends on, so that equal phases are made once."""
    return ColumnCore(
        npe=core.ep * core.vp,
        ep=core.ep,
        vp=core.vp,
        tail_width=core.tail_width,
        block_order=core.block_order,
        latency=core.latency,
    )


@lru_cache(maxsize=64)
def _phases(model: Model, core: ColumnCore, steps: int) -> tuple[Phase, ...]:
    order = _layer_phases if model.layer_order == "layer" else _step_phases
    return order(model, core, steps)


def _able(chip: ColumnNpu, job: Job) -> tuple[int, ...]:
    allowed = range(len(chip.cores)) if job.core is None else (job.core,)
    return tuple(index for index in allowed if chip.cores[index].refusal(job.model) is None)


def _units(core: ColumnCore) -> tuple[Unit, Unit]:
    return (Unit("array", core.thread_policy, core.switch_cycles), Unit("tail", "fifo"))
