"""How often an inference multiplies, adds, reads and writes: counted from the cell graph, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.hardware import Hardware
from lstmsim.model.cell import OPERATIONS, REDUCTIONS
from lstmsim.model.model import Layer, Model

__all__ = ["Operations", "operations"]


@dataclass(frozen=True)
class Operations:
    """Counts of one inference. Padding is not counted.

    steps: of the inference.
    macs: multiply-accumulates, each of which reads a weight.
    weight_sharing: inferences that share each such read.
    vector_reads, vector_writes: elements of vectors.
    sums: sums that leave the array.
    state_reads, state_writes: elements of states beside h.
    tail: element-wise operations by their class (`lstmsim.model.cell.OPERATIONS`).
    """

    steps: int
    macs: int
    weight_sharing: int
    vector_reads: int
    vector_writes: int
    sums: int
    state_reads: int
    state_writes: int
    tail: Mapping[str, int] = field(hash=False)


def operations(hardware: Hardware, core: Any, model: Model, steps: int) -> Operations:
    """Count what one inference of a model takes on a core; `InputError` if the core cannot run it, or for no steps.

    >>> from lstmsim.machines.column.hardware import HARDWARE
    >>> from lstmsim.machines.column.npu import ColumnCore
    >>> from lstmsim.model.cells import cell
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> counts = operations(HARDWARE, ColumnCore(npe=65536, ep=32, vp=2048), model, steps=1)
    >>> counts.macs, counts.vector_reads, counts.vector_writes, counts.sums, dict(counts.tail)["activation"]
    (2097152, 1024, 1024, 2048, 2560)
    """
    if steps < 1:
        raise InputError(Mistake("steps", f"must be at least 1, got {steps}"))
    reason = core.refusal(model)
    if reason:
        raise InputError(Mistake(f"model {model.name}", reason))
    tail: Counter[str] = Counter()
    for layer in model.layers:
        tail.update(_tail(layer))
    layers = [(layer, layer.directions * steps) for layer in model.layers]
    states = sum(times * _state_elements(layer) for layer, times in layers)
    return Operations(
        steps,
        macs=model.macs_per_step * steps,
        weight_sharing=hardware.weight_sharing(core),
        vector_reads=sum(times * hardware.vector_reads(core, layer) for layer, times in layers),
        vector_writes=sum(times * _vector_writes(layer) for layer, times in layers),
        sums=sum(times * _sums(layer) for layer, times in layers),
        state_reads=states,
        state_writes=states,
        tail={name: steps * count for name, count in sorted(tail.items())},
    )


def _tail(layer: Layer) -> Counter[str]:
    """Element-wise operations of one step, both directions; a mean adds its elements, a mean square multiplies them
    too.
    """
    counts: Counter[str] = Counter()
    for node in layer.cell.nodes:
        if node.operation in REDUCTIONS:
            elements = sum(layer.width(each) for each in node.sources)
            counts["elementwise_add"] += elements
            if node.operation == "mean_square":
                counts["elementwise_multiply"] += elements
        else:
            counts[OPERATIONS[node.operation][1]] += layer.width(node.name)
    return Counter({name: layer.directions * count for name, count in counts.items()})


def _state_elements(layer: Layer) -> int:
    return sum(layer.width(state) for state in layer.cell.states if state != "h")


def _sums(layer: Layer) -> int:
    return sum(len(stage.sums) * layer.units(stage.rows) for stage in layer.cell.stages)


def _vector_writes(layer: Layer) -> int:
    """Elements of x as it comes in, and of every quantised vector as it is made."""
    made = [node.name for node in layer.cell.nodes if node.operation == "quantize"]
    return layer.width("x") + sum(layer.width(name) for name in made)
