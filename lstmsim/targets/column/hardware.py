"""The hardware of a core of the column-wise NPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lstmsim.numerics.products import Multiplier, once, per_unit
from lstmsim.targets.column.npu import ColumnCore, ColumnNpu
from lstmsim.targets.column.shape import pass_shapes
from lstmsim.targets.hardware import (
    Demand,
    Hardware,
    LogicBits,
    TailLanes,
    layers_of,
    most_vector_elements,
    tail_bits,
    tree_bits,
    unit_bits,
)
from lstmsim.workload.cell import Cell
from lstmsim.workload.model import Layer, Model
from lstmsim.workload.precision import Precision

__all__ = ["HARDWARE", "weight_words"]


def weight_words(core: ColumnCore, layer: Layer) -> int:
    """How many words of weights one layer takes, in all directions. A core reads one word in a cycle.

    >>> from lstmsim.workload.cells import cell
    >>> weight_words(ColumnCore(npe=65536, ep=32, vp=2048), Layer(cell("lstm"), hidden=512, input=512))
    32
    """
    words = sum(
        len(shape.blocks) * sum(shape.groups(vector) for vector in shape.stage.vectors)
        for shape in pass_shapes(layer, core)
    )
    return layer.directions * words


class _ColumnHardware(Hardware):
    """One word of `ep * vp` weights in a cycle, one vector memory, and `tail_width` lanes behind the array."""

    def multipliers(self, core: ColumnCore) -> int:
        """All multipliers of the array, also those that `ep` and `vp` do not use."""
        return core.npe

    def meets(self, core: ColumnCore) -> tuple[int, int]:
        """In a column tile an element of the vector meets `vp` weights, each weight one element."""
        return 1, core.vp

    def demands(self, core: ColumnCore, models: Sequence[Model], precision: Precision) -> tuple[Demand, ...]:
        """The memories of one core. The weight memory has `weight_kib`, if the core gives it.

        >>> from lstmsim.workload.cells import cell
        >>> demands = HARDWARE.demands(
        ...     ColumnCore(65536, 32, 2048), [Model("m", (Layer(cell("lstm"), 512, 512),))], Precision()
        ... )
        >>> [(each.name, each.bits, each.read_bits) for each in demands]
        [('weights', 16777216, 524288), ('vectors', 12288, 256), ('tail', 73728, 9216)]
        """
        word = core.ep * core.vp * precision.weight_bits
        words = sum(weight_words(core, layer) for layer in layers_of(models))
        vector_bits = core.threads * most_vector_elements(models) * precision.vector_bits
        unit = core.tail_width * unit_bits(models, precision)
        return (
            Demand("weights", bits=words * word if core.weight_kib is None else 8192 * core.weight_kib, read_bits=word),
            Demand("vectors", bits=vector_bits, read_bits=core.ep * precision.vector_bits, writes=1),
            Demand("tail", bits=tail_bits(models, precision, core.threads), read_bits=unit, writes=1),
        )

    def tail(self, core: ColumnCore, cells: Sequence[Cell], precision: Precision) -> TailLanes:
        """One multiplier for each operation of a lane. Cells that share a lane share its multipliers."""
        lane: Counter[Multiplier] = Counter()
        single: Counter[Multiplier] = Counter()
        for cell in cells:
            lane |= per_unit(cell, precision)
            single |= once(cell, precision)
        return TailLanes(core.tail_width, lane, single)

    def logic(self, core: ColumnCore, precision: Precision, summed: int) -> LogicBits:
        """A tree and an accumulator for each row. For each thread, banks hold the sums of all rows."""
        product, most = precision.weight_bits + precision.vector_bits, precision.accumulator_bits
        adders = core.vp * (tree_bits(core.ep, product, summed, most) + most)
        return LogicBits(adders, core.vp * most * core.accumulator_banks * core.threads)

    def vector_reads(self, core: ColumnCore, layer: Layer) -> int:
        """Elements that a step reads: each vector is read once for each row block."""
        return sum(len(shape.blocks) * layer.columns(shape.stage) for shape in pass_shapes(layer, core))

    def not_in_energy(self, chip: ColumnNpu) -> str:
        """The memory beside the chip, if there is one."""
        return "" if chip.memory is None else "what is read from the memory beside the chip is not in it"


HARDWARE = _ColumnHardware()
