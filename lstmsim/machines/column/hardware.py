"""The hardware of a core of the column-wise NPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.parts.array import adapter, array, frames, memories, vectors
from lstmsim.machines.column.parts.control import control
from lstmsim.machines.column.parts.lanes import lanes
from lstmsim.machines.column.parts.sizes import Sizes
from lstmsim.machines.column.shape import pass_shapes
from lstmsim.machines.hardware import Hardware, Part, Stored, TailLanes, layers_of
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.products import Multiplier, once, per_unit
from lstmsim.model.precision import Precision

__all__ = ["HARDWARE", "weight_words"]


def weight_words(core: ColumnCore, layer: Layer) -> int:
    """How many words of weights one layer takes, in all directions. A core reads one word in a cycle.

    >>> from lstmsim.model.cells import cell
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

    def parts(
        self, core: ColumnCore, models: Sequence[Model], precision: Precision, summed: int, stored: Stored
    ) -> tuple[Part, ...]:
        """The parts of its generated hardware. The weight memory has `weight_kib`, if the core gives it.

        >>> from lstmsim.model.cells import cell
        >>> lstm = Model("m", (Layer(cell("lstm"), 512, 512),))
        >>> parts = HARDWARE.parts(ColumnCore(65536, 32, 2048), [lstm], Precision(), 1, Stored())
        >>> [(each.name, each.bits, each.read_bits) for part in parts[:3] for each in part.memories]
        [('sums', 131072, 65536), ('constants', 100352, 12544), ('weights', 16777216, 524288)]
        """
        sizes = Sizes(core, tuple(models), precision, stored)
        words = sum(weight_words(core, layer) for layer in layers_of(models))
        kept = None if core.weight_kib is None else 8192 * core.weight_kib
        own = array(sizes, summed), adapter(sizes), memories(sizes, words, kept), vectors(sizes), lanes(sizes)
        return (*own, *frames(sizes), *control(sizes))

    def tail(self, core: ColumnCore, cells: Sequence[Cell], precision: Precision) -> TailLanes:
        """One multiplier for each operation of a lane. Each kind of cell has its own lanes; adapters are shared."""
        lane: Counter[Multiplier] = Counter()
        shared: Counter[Multiplier] = Counter()
        single: Counter[Multiplier] = Counter()
        for cell in cells:
            own = per_unit(cell, precision)
            stages = max(len(stage.sums) for stage in cell.stages)
            adapters = Counter({each: stages for each in own if each.kind == "adapter"})
            shared |= adapters
            lane += Counter({each: count for each, count in own.items() if each.kind != "adapter"})
            single += once(cell, precision)
        return TailLanes(core.tail_width, lane + shared, single)

    @property
    def not_counted(self) -> str:
        """What neither multipliers nor logic count."""
        return "routing, memories of frames, trees of reductions"

    def vector_reads(self, core: ColumnCore, layer: Layer) -> int:
        """Elements that a step reads: each vector is read once for each row block."""
        return sum(len(shape.blocks) * layer.columns(shape.stage) for shape in pass_shapes(layer, core))

    def not_in_energy(self, chip: ColumnNpu) -> str:
        """The memory beside the chip, if there is one."""
        return "" if chip.memory is None else "what is read from the memory beside the chip is not in it"


HARDWARE = _ColumnHardware()
