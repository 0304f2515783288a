"""The phases of a model on the column-wise NPU, in either order of layers, a pass on one core or on several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lstmsim.machines.assembly import Phases
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.passes import WHOLE, Source, Spread, write_pass
from lstmsim.model.model import Model
from lstmsim.program.body_writer import BodyWriter
from lstmsim.program.kept import Kept
from lstmsim.program.program import Phase

__all__ = ["kept_phases", "layer_phases", "model_phases", "repeated", "step_phases", "what_is_read"]

#: Operations in all the bodies that are kept, of all models and cores: some tens of MB.
MOST_OPERATIONS = 100_000
#: Phases of different lengths that are kept of a model on a core; each is a few numbers beside the bodies.
MOST_LENGTHS = 8192


class _Made(NamedTuple):
    """Phases of one model on one core.

    once: the phases of one step.
    lengths: number of steps -> its phases, which have the same bodies.
    """

    once: Phases
    lengths: dict[int, Phases]

    @property
    def operations(self) -> int:
        """Number of operations in the bodies."""
        return sum(phase.body.size for phase in self.once)


_KEPT: Kept[_Made] = Kept(MOST_OPERATIONS, lambda made: made.operations)


def what_is_read(model: Model, core: ColumnCore) -> tuple[Hashable, ...]:
    """Give everything that the bodies of a model on a core depend on, as a key.

    Threads, policies, switch cycles, banks and weight memories of the core are not in the key, nor is the model's name.
    """
    latency: Hashable = core.latency
    return model.layers, model.layer_order, core.ep, core.vp, core.tail_width, core.block_order, latency


def kept_phases(key: Hashable, steps: int, make: Callable[[], Phases]) -> Phases:
    """Give the phases of a number of steps: the same object for equal arguments.

    key: everything that the bodies depend on.
    steps: at least 1.
    make: gives the phases of one step.
    """
    once, lengths = _KEPT.of(key, lambda: _Made(make(), {}))
    phases = lengths.get(steps)
    if phases is None:
        if len(lengths) >= MOST_LENGTHS:
            lengths.clear()
        phases = lengths[steps] = repeated(once, steps)
    return phases


def layer_phases(model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = ()) -> Phases:
    """Make the phases of `layer_order: layer`: one phase for each pass, forward before backward.

    spreads: the members of each layer; empty: each layer runs on one core.
    """
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
            rows = BodyWriter()
            h = write_pass(rows, layer, core, (number, direction), sources, x_last=False, spread=spread)
            done.append(replace(h, phase=len(phases)))
            phases.append(Phase(rows.body(), steps, mirrored=backward))
        below, below_backward = done, [layer.backward(direction) for direction in range(layer.directions)]
    return tuple(phases)


def step_phases(
    model: Model, core: ColumnCore, steps: int, spreads: Sequence[Spread] = (), first: Collection[int] = (0,)
) -> Phases:
    """Make the phase of `layer_order: step`: one body with all layers.

    spreads: the members of each layer; empty: each layer runs on one core.
    first: layers that issue the columns of x first and of h last; all other layers issue x last, as it is ready later.
    """
    rows = BodyWriter()
    sources: list[Source] = []
    for number, (layer, spread) in enumerate(zip(model.layers, spreads or _alone(model), strict=True)):
        h = write_pass(rows, layer, core, (number, 0), sources, x_last=number not in first, spread=spread)
        sources = [h]
    return (Phase(rows.body(), steps),)


def repeated(phases: Phases, steps: int) -> Phases:
    """Give the phases of `steps` steps. No body depends on the number, so jobs of all lengths share the same bodies."""
    return tuple(replace(phase, repeat=steps) for phase in phases)


def _alone(model: Model) -> tuple[Spread, ...]:
    return (WHOLE,) * len(model.layers)


def model_phases(model: Model, core: ColumnCore, steps: int) -> Phases:
    """Give the phases of a model on one core: the same object for equal arguments.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> model = Model("m", (Layer(cell("lstm"), 4, 4), Layer(cell("lstm"), 4, 4)))
    >>> [phase.repeat for phase in model_phases(model, ColumnCore(npe=64, ep=4, vp=16), steps=7)]
    [7, 7]
    """
    order = layer_phases if model.layer_order == "layer" else step_phases
    return kept_phases(what_is_read(model, core), steps, lambda: order(model, core, 1))
