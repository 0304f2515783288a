"""What a core of the row-wise NPU is built of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from lstmsim.machines import hardware
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.row.npu import RowCore, Shape
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import Multiplier

#: Multi-function units of a core, one after the other; each has an activation and a multiplication.
_UNITS = 2


def weight_words(core: RowCore, layer: Layer) -> int:
    """Words of weights that one layer takes, both directions; a core reads one word a cycle."""
    shape = Shape(core)
    words = sum(
        -(-layer.units(stage.rows) // core.engines) * shape.words(layer.width(vector))
        for stage in layer.cell.stages
        for gate in stage.gates
        for vector in gate.vectors
    )
    return layer.directions * words


class _RowHardware(hardware.Hardware):
    """Register files for the matrix and the vectors, a vector pipe of `vector_lanes` after them."""

    energies: ClassVar[OperationClasses] = OperationClasses.grouped("row-npu", hardware.ENERGY_CLASSES)

    def multipliers(self, core: RowCore) -> int:
        """All lanes of all engines, tiles and replicas."""
        return core.npe

    def meets(self, core: RowCore) -> tuple[int, int]:
        """A weight meets as many vectors as inferences run together on one copy, an element one weight an engine."""
        return core.vectors, core.engines

    def parts(
        self, core: RowCore, models: Sequence[Model], precision: Precision, summed: int, stored: hardware.Stored
    ) -> tuple[hardware.Part, ...]:
        """A tree and an accumulator for each engine of each tile, once for each inference of a batch; memories."""
        product, most = precision.weight_bits + precision.vector_bits, precision.accumulator_bits
        trees = core.tiles * hardware.tree_bits(core.lanes, product, summed, most)
        array = hardware.Part("array", adders=core.engines * core.batch * (trees + core.tiles * most))
        return array, hardware.Part("memories", memories=_demands(core, models, precision))

    def tail(self, core: RowCore, cells: Sequence[Cell], precision: Precision) -> hardware.TailLanes:
        """The same units for every cell: its sums are scaled as they come, its results as they leave."""
        widest = max(precision.tail_bits, precision.state_bits)
        factor = precision.multiplier_bits + 1
        lane: Counter[Multiplier] = Counter()
        lane[Multiplier("adapter", (precision.accumulator_bits, factor))] = 1
        if precision.activation == "linear":
            lane[Multiplier("interpolation", (widest + 1, widest))] = _UNITS
        lane[Multiplier("product", (widest, widest))] = _UNITS
        lane[Multiplier("quantize", (widest, factor))] = 1
        return hardware.TailLanes(core.vector_lanes * core.replicas, lane, Counter())

    def vector_reads(self, core: RowCore, layer: Layer) -> int:
        """Each vector is read once a group of rows and gate."""
        return sum(
            -(-layer.units(stage.rows) // core.engines) * layer.width(vector)
            for stage in layer.cell.stages
            for gate in stage.gates
            for vector in gate.vectors
        )

    def weight_sharing(self, core: RowCore) -> int:
        """Inferences that run together on one copy of the weights."""
        return core.vectors


def _demands(core: RowCore, models: Sequence[Model], precision: Precision) -> tuple[hardware.Demand, ...]:
    """The memories of one core."""
    # One matrix register file an engine, one vector register file a tile (intel/fpga-npu, rtl/dpe_mrf.sv,
    # mvu_vrf.sv).
    files = core.tiles * core.replicas
    word = core.ep * core.engines * core.replicas * precision.weight_bits
    words = sum(weight_words(core, layer) for layer in hardware.layers_of(models))
    vector_bits = core.batch * hardware.most_vector_elements(models) * precision.vector_bits
    lanes = core.vector_lanes * core.replicas * precision.tail_bits
    return (
        hardware.Demand("weights", bits=words * word, read_bits=word, memories=files * core.engines),
        hardware.Demand(
            "vectors",
            bits=vector_bits,
            read_bits=core.ep * core.batch * precision.vector_bits,
            memories=files,
            writes=1,
        ),
        # A register file before the vector pipe and one in each of its two multi-function units.
        hardware.Demand(
            "tail",
            bits=hardware.tail_bits(models, precision, core.batch),
            read_bits=3 * lanes,
            memories=3 * core.replicas,
            writes=1,
        ),
    )


HARDWARE = _RowHardware()
