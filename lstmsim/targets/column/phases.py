"""The phases of a model on the column-wise NPU, in either order of layers, a pass on one core or on several."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

from lstmsim.program.program import Body, Operation, Phase
from lstmsim.targets.assembly import Phases
from lstmsim.targets.column.npu import ColumnCore
from lstmsim.targets.column.passes import WHOLE, Source, Spread, pass_operations
from lstmsim.workload.model import Model

__all__ = ["MOST_LENGTHS", "bare", "layer_phases", "model_phases", "repeated", "step_phases"]

#: Phases of different lengths that are kept; each is a few numbers beside the bodies that they share.
MOST_LENGTHS = 8192


def bare(core: ColumnCore) -> ColumnCore:
    """The core without what no phase depends on, so that equal phases are made once."""
    return ColumnCore(
        npe=core.ep * core.vp,
        ep=core.ep,
        vp=core.vp,
        tail_width=core.tail_width,
        block_order=core.block_order,
        latency=core.latency,
    )


def layer_phases(model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = ()) -> Phases:
    """`layer_order: layer`: one phase a pass, forward before backward. `spreads`: one for each layer, or none."""
    phases: list[Phase] = []
    below: list[Source] = []
    below_backward: list[bool] = []
    for number, (layer, spread) in enumerate(zip(model.layers, spreads or _alone(model), strict=True)):
        done = []
        for direction in range(layer.directions):
            backward = layer.backward(direction)
            sources = [
                replace(source, mirrored=backward != other) for source, other in zip(below, below_backward, strict=True)
            ]
            operations, h = pass_operations(layer, core, (number, direction), sources, 0, x_last=False, spread=spread)
            done.append(replace(h, phase=len(phases)))
            phases.append(Phase(Body(tuple(operations)), steps, mirrored=backward))
        below, below_backward = done, [layer.backward(direction) for direction in range(layer.directions)]
    return tuple(phases)


def step_phases(
    model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = (), first: Collection[int] = (0,)
) -> Phases:
    """`layer_order: step`: one body with all layers. What is ready later comes last: x, but h in those in `first`."""
    operations: list[Operation] = []
    sources: list[Source] = []
    for number, (layer, spread) in enumerate(zip(model.layers, spreads or _alone(model), strict=True)):
        own, h = pass_operations(
            layer, core, (number, 0), sources, len(operations), x_last=number not in first, spread=spread
        )
        operations += own
        sources = [h]
    return (Phase(Body(tuple(operations)), steps),)


def repeated(phases: Phases, steps: int) -> Phases:
    """The phases of so many steps; no body depends on that, so jobs of many lengths share those of one step."""
    return tuple(replace(phase, repeat=steps) for phase in phases)


def _alone(model: Model) -> tuple[Spread, ...]:
    return (WHOLE,) * len(model.layers)


@lru_cache(maxsize=64)
def _once(model: Model, core: ColumnCore) -> Phases:
    order = layer_phases if model.layer_order == "layer" else step_phases
    return order(model, core, 1)


@lru_cache(maxsize=MOST_LENGTHS)
def _whole(model: Model, core: ColumnCore, steps: int) -> Phases:
    return repeated(_once(model, core), steps)


def model_phases(model: Model, core: ColumnCore, steps: int) -> Phases:
    """The phases of a model on one core; the same object for equal ones.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> model = Model("m", (Layer(cell("lstm"), 4, 4), Layer(cell("lstm"), 4, 4)))
    >>> [phase.repeat for phase in model_phases(model, ColumnCore(npe=64, ep=4, vp=16), steps=7)]
    [7, 7]
    """
    return _whole(model, bare(core), steps)
