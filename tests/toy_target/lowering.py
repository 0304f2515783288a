"""From jobs to a Program: for each stage of a cell its products and its nodes, one after the other in one unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lstmsim.machines.assembly import Parts, PerStep, assemble
from lstmsim.model.cell import segments
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, claims_of
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Unit
from tests.toy_target.cpu import ToyChip, ToyCore

#: All work is on the first one. The other one shows that any name within the rule works everywhere.
UNITS = (Unit("alu", "fifo"), Unit("l1_store", "fifo"))


def stage_cycles(layer: Layer, stage: int, core: ToyCore) -> tuple[int, int, int]:
    """Multiply-accumulates of a stage's products, their cycles, and those of its nodes."""
    described = layer.cell.stages[stage]
    macs = layer.units(described.rows) * sum(layer.width(each) for gate in described.gates for each in gate.vectors)
    own = [each for each in segments(layer.cell) if each.stage == stage]
    nodes = [node for each in own for node in (*each.nodes, *each.reductions, *each.scalars)]
    elements = sum(layer.width(node.name) for node in nodes)
    return macs, -(-macs // core.lanes) + core.cache.cycles, max(1, elements * core.operation_cycles)


def _pass(model: Model, number: int, direction: int, core: ToyCore) -> Body:
    """One step of a pass: what it reads of the layer below, and of its own step before, is waited for."""
    layer, operations = model.layers[number], list[Operation]()
    last = stage_cycles(layer, len(layer.cell.stages) - 1, core)[2]
    behind = 2 * len(layer.cell.stages) - 1
    needs = [Dependence(behind, last + core.latency_cycles, lag=1)] if layer.cell.recurrent else []
    if number:
        below, phase = model.layers[number - 1], sum(each.directions for each in model.layers[: number - 1])
        end, cycles = 2 * len(below.cell.stages) - 1, stage_cycles(below, len(below.cell.stages) - 1, core)[2]
        for other in range(below.directions):
            mirrored = below.backward(other) != layer.backward(direction)
            needs.append(Dependence(end, cycles + core.latency_cycles, phase=phase + other, mirrored=mirrored))
    for stage in range(len(layer.cell.stages)):
        macs, multiplying, computing = stage_cycles(layer, stage, core)
        for label, cycles, work in (("products", multiplying, macs), ("nodes", computing, 0)):
            done, place = cycles + core.latency_cycles, (number, direction, 0, -1, stage)
            frame = number == 0 and not operations
            operations.append(Operation(0, cycles, 1, tuple(needs), frame, None, None, done, work, label, place))
            needs = [Dependence(len(operations) - 1, done)]
    return Body(tuple(operations))


def _phases(job: Job, core: ToyCore) -> tuple[Phase, ...]:
    passes = [(number, each) for number, layer in enumerate(job.model.layers) for each in range(layer.directions)]
    return tuple(
        Phase(_pass(job.model, number, each, core), job.steps, mirrored=job.model.layers[number].backward(each))
        for number, each in passes
    )


def per_step(cores: Sequence[ToyCore], model: Model, batch: int = 1, split: str = "", members: int = 1) -> PerStep:
    most = sum(2 * layer.directions * len(layer.cell.stages) for layer in model.layers)
    return PerStep(most, most)


def lower(chip: ToyChip, jobs: Sequence[Job], templates: bool, check: Callable[[Job], None]) -> Program:
    parts = Parts(per_step, _phases, lambda _: (), lambda kind, _: Core(kind, UNITS))
    claims = claims_of(jobs, len(chip.cores))
    for each in claims.different:
        check(each.job)
    return assemble(chip.cores, claims, parts, templates=templates)
