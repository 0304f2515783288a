"""What the memories of a chip hold, and what they must give in one cycle.

Assumptions, because they are choices of a design: every core holds the weights of all models, so that each job may run
on each core (or as much as its `weight_kib` says); all but the sums is in block memory, also what is shallow; sums are
in registers (`lstmsim.devices.logic`). Sequences between layers are not counted: only the vectors of one step are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
from lstmsim.targets.column.shape import pass_shapes
from lstmsim.targets.row.npu import RowCore, RowNpu
from lstmsim.targets.row.shape import shape_of
from lstmsim.workload.model import Layer, Model
from lstmsim.workload.precision import Precision

__all__ = ["Chip", "Core", "Demand", "demands", "weight_words"]

Chip = ColumnNpu | RowNpu
Core = ColumnCore | RowCore


@dataclass(frozen=True)
class Demand:
    """`memories` equal memories with addresses of their own: `bits` in all, padding included; `read_bits` are read in
    a cycle from all of them together, in one access each, beside `writes` accesses that write."""

    name: str
    bits: int
    read_bits: int
    memories: int = 1
    writes: int = 0


def weight_words(core: Core, layer: Layer) -> int:
    """Words of weights that one layer takes, both directions; a core reads one word a cycle.

    >>> from lstmsim.workload.cells import cell
    >>> layer = Layer(cell("lstm"), hidden=512, input=512)
    >>> weight_words(ColumnCore(npe=65536, ep=32, vp=2048), layer)
    32
    >>> weight_words(RowCore(tiles=7, engines=40, lanes=40), layer)
    208
    """
    if isinstance(core, ColumnCore):
        words = sum(
            len(shape.blocks) * sum(shape.groups(vector) for vector in shape.stage.vectors)
            for shape in pass_shapes(layer, core)
        )
    else:
        shape = shape_of(core)
        words = sum(
            -(-layer.units(stage.rows) // core.engines) * shape.words(layer.width(vector))
            for stage in layer.cell.stages
            for gate in stage.gates
            for vector in gate.vectors
        )
    return layer.directions * words


def demands(core: Core, models: Sequence[Model], precision: Precision) -> tuple[Demand, ...]:
    """The memories of one core: weights, vectors, and what only the tail reads (states, biases, parameters).

    >>> from lstmsim.workload.cells import cell
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> [(each.name, each.bits, each.read_bits) for each in demands(ColumnCore(65536, 32, 2048), [model], Precision())]
    [('weights', 16777216, 524288), ('vectors', 12288, 256), ('tail', 73728, 9216)]
    """
    make = _column if isinstance(core, ColumnCore) else _row
    return make(core, models, precision)  # type: ignore[arg-type, unused-ignore]


def _layers(models: Iterable[Model]) -> list[Layer]:
    return [layer for model in models for layer in model.layers]


def _vector_elements(layer: Layer) -> int:
    """Elements of x, and twice those of every vector that a step both reads and makes."""
    made = {vector for stage in layer.cell.stages for vector in stage.vectors} - {"x"}
    return layer.width("x") + 2 * layer.directions * sum(layer.width(vector) for vector in made)


def _state_elements(layer: Layer) -> int:
    return layer.directions * sum(layer.width(state) for state in layer.cell.states if state != "h")


def _constant_bits(layer: Layer, precision: Precision) -> int:
    """Biases, one a sum and unit, and parameters."""
    sums = sum(len(stage.sums) * layer.units(stage.rows) for stage in layer.cell.stages)
    parameters = sum(layer.width(each) for each in layer.cell.parameters)
    return layer.directions * (sums * precision.accumulator_bits + parameters * precision.tail_bits)


def _tail_bits(models: Sequence[Model], precision: Precision, contexts: int) -> int:
    """States of the largest model once for each context; biases and parameters of all models."""
    states = max(sum(_state_elements(layer) for layer in model.layers) for model in models)
    constants = sum(_constant_bits(layer, precision) for layer in _layers(models))
    return contexts * states * precision.state_bits + constants


def _unit_bits(models: Sequence[Model], precision: Precision) -> int:
    """What the tail reads for one unit beside its sums: states, biases, parameters; the most of all cells."""
    cells = {layer.cell for layer in _layers(models)}
    return max(
        (len(cell.states) - 1) * precision.state_bits
        + max(len(stage.sums) for stage in cell.stages) * precision.accumulator_bits
        + len(cell.parameters) * precision.tail_bits
        for cell in cells
    )


def _column(core: ColumnCore, models: Sequence[Model], precision: Precision) -> tuple[Demand, ...]:
    word = core.ep * core.vp * precision.weight_bits
    words = sum(weight_words(core, layer) for layer in _layers(models))
    elements = max(sum(_vector_elements(layer) for layer in model.layers) for model in models)
    vector_bits = core.threads * elements * precision.vector_bits
    return (
        Demand("weights", words * word if core.weight_kib is None else 8192 * core.weight_kib, word),
        Demand("vectors", vector_bits, core.ep * precision.vector_bits, writes=1),
        Demand(
            *("tail", _tail_bits(models, precision, core.threads)),
            *(core.tail_width * _unit_bits(models, precision), 1, 1),
        ),
    )


def _row(core: RowCore, models: Sequence[Model], precision: Precision) -> tuple[Demand, ...]:
    # One matrix register file an engine, one vector register file a tile (intel/fpga-npu, rtl/dpe_mrf.sv, mvu_vrf.sv).
    files = core.tiles * core.replicas
    word = core.ep * core.engines * core.replicas * precision.weight_bits
    words = sum(weight_words(core, layer) for layer in _layers(models))
    elements = max(sum(_vector_elements(layer) for layer in model.layers) for model in models)
    lanes = core.vector_lanes * core.replicas * precision.tail_bits
    return (
        Demand("weights", words * word, word, files * core.engines),
        Demand(
            *("vectors", core.batch * elements * precision.vector_bits),
            *(core.ep * core.batch * precision.vector_bits, files, 1),
        ),
        # A register file before the vector pipe and one in each of its two multi-function units.
        Demand("tail", _tail_bits(models, precision, core.batch), 3 * lanes, 3 * core.replicas, 1),
    )
