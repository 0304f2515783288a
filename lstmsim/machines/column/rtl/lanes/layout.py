"""What the lanes of a core hold, how large it is, and where the host writes it.

An address of the host's bus has the space in bits 31..28, the core in 27..24, and below that:

* space 4, tables: number of the table's node, its table among those of the passes, the cell, and the part of 32 bits;
* space 5, parameters: address of the turn, the lane, the number of the parameter;
* space 6, initial states: address of the turn, the lane, the number of the state.

Each field has as many bits as its largest number needs, and none if that is 0. A word of a table with two parts is
written as a whole with its last part.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.lane import Lanes
from lstmsim.machines.column.rtl.lanes.numbers import Numbers, classes
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.lanes.tables import word_bits
from lstmsim.machines.column.rtl.plan import CorePlan
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.precision import Precision

__all__ = ["CoreLanes", "Pass", "bits_of"]

#: Model, layer and direction.
Pass = tuple[int, int, int]


def bits_of(count: int) -> int:
    """Bits of a number below `count`; 0 if there is only one.

    >>> [bits_of(count) for count in (1, 2, 3, 8)]
    [0, 1, 2, 3]
    """
    return (count - 1).bit_length()


@record
class CoreLanes:
    """The lanes of a core.

    plan: the core.
    kinds: for each kind of cell what its lanes are built of.
    class_of: for each kind the class of each of its passes.
    precision: widths of all numbers.
    """

    plan: CorePlan
    kinds: tuple[Lanes, ...]
    class_of: tuple[tuple[int, ...], ...]
    precision: Precision

    @classmethod
    def of(cls, plan: CorePlan, passes: Mapping[Pass, FixedArithmetic], precision: Precision) -> CoreLanes:
        """Make the lanes of a core from the arithmetic of all passes that run on it.

        `InputError` if a pass has no arithmetic.
        """
        kinds, class_of = [], []
        for kind in plan.kinds:
            missing = [each for each in kind.passes if each not in passes]
            if missing:
                raise InputError(f"the lanes of core {plan.number} need the numbers of model {missing[0][0]}")
            different, own = classes([Numbers.of(passes[each]) for each in kind.passes])
            schedule = Schedule(kind.cell, plan.core.latency, plan.core.tail_width)
            kinds.append(Lanes(schedule, different, precision))
            class_of.append(own)
        return cls(plan, tuple(kinds), tuple(class_of), precision)

    @cached_property
    def tables(self) -> tuple[tuple[int, str], ...]:
        """(kind, node) of every memory of tables, by its number."""
        return tuple((number, node) for number, own in enumerate(self.kinds) for node in own.tabulated)

    @cached_property
    def parameters(self) -> tuple[tuple[int, str, int], ...]:
        """(kind, parameter, stage that reads it) by its number."""
        every = ((kind, own.loaded(own.schedule.cell.parameters)) for kind, own in enumerate(self.kinds))
        return tuple((kind, *each) for kind, loaded in every for each in loaded)

    @cached_property
    def states(self) -> tuple[tuple[int, str, int], ...]:
        """(kind, state, stage that reads it) by its number."""
        every = ((kind, own.loaded(own.schedule.cell.states)) for kind, own in enumerate(self.kinds))
        return tuple((kind, *each) for kind, loaded in every for each in loaded)

    @property
    def cell_bits(self) -> int:
        """Bits of the number of a cell of a table."""
        return bits_of(self.precision.activation_entries)

    @cached_property
    def table_bits(self) -> int:
        """Bits of the number of a table among those of a node."""
        counts = (max(self.kinds[kind].tables(node)[1]) + 1 for kind, node in self.tables)
        return bits_of(max(counts, default=1))

    @property
    def part_bits(self) -> int:
        """Bits of the number of the part of a table's word."""
        return int(self.word_bits > 32)

    @property
    def word_bits(self) -> int:
        """Bits of the widest word of a table."""
        bits = max(self.precision.tail_bits, self.precision.state_bits)
        return word_bits(bits, self.precision.activation == "linear")

    @property
    def lane_bits(self) -> int:
        """Bits of the number of a lane."""
        return bits_of(self.plan.core.tail_width)
