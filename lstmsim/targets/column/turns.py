"""The operations of a pass on the tail unit and on the exchange unit of one core of the column-wise NPU.

A tail operation is one segment of one row block. An exchange operation sends one vector's elements of one row block to
the other cores of a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstmsim.program.program import Dependence, Operation
from lstmsim.records import record
from lstmsim.targets.column.npu import Exchange
from lstmsim.targets.column.shape import StageShape
from lstmsim.targets.column.tail import begins
from lstmsim.workload.model import Layer
from lstmsim.workload.segments import Segment, kinds, segment_of

__all__ = ["EXCHANGE", "TAIL", "Homes", "Turns"]

#: Number of the tail unit among the units of a core.
TAIL = 1

#: Number of the exchange unit, where a core has one.
EXCHANGE = 2

#: Index in the body of the first tail operation of each segment (stage, index).
Homes = Mapping[tuple[int, int], int]


@record
class _Want:
    """A value that a segment reads.

    home: the segment that gives the value.
    cycles: how long after the giving segment the reading one may start, for units with equal turns.
    lag: 1 if the value is from the step before, else 0.
    reduced: whether it is one value for all units.
    """

    home: tuple[int, int]
    cycles: int
    lag: int
    reduced: bool


@record
class Turns:
    """One step of a pass on one member of a task.

    shapes: its stages.
    place: layer and direction.
    homes: places of its tail operations in the body.
    member: the member.
    """

    shapes: tuple[StageShape, ...]
    place: tuple[int, int]
    homes: Homes
    member: int = 0

    @property
    def layer(self) -> Layer:
        """The layer of the pass."""
        return self.shapes[0].layer

    def tails(self, segment: Segment, ends: Sequence[int]) -> list[Operation]:
        """A segment's tail operations, whose blocks have their last tiles at the places `ends` in the body."""
        shape = self.shapes[segment.stage]
        wanted = self._wanted(shape, segment)
        return [self._tail(shape, segment, wanted, block, ends) for block in range(len(shape.blocks))]

    def sends(self, segment: Segment, nodes: Sequence[str], exchange: Exchange) -> list[Operation]:
        """The exchange operations that send these nodes of a segment: row block by row block, node by node.

        They wait for the first units only: the link takes no more in a cycle than the tail gives, so the others are
        visible by their turns.
        """
        shape = self.shapes[segment.stage]
        rate, home = exchange.rate(shape.core.tail_width), self.homes[segment.stage, segment.index]
        operations = []
        for block, units in enumerate(shape.blocks):
            taken = -(-units // rate)
            for node in nodes:
                operations.append(
                    Operation(
                        EXCHANGE,
                        cycles=taken,
                        needs=(Dependence(home + block, shape.visible_cycles(node)),),
                        result_cycles=taken - 1 + exchange.visible_cycles,
                        label="exchange",
                        place=(*self.place, block, 0, segment.stage, segment.index),
                        member=self.member,
                    )
                )
        return operations

    def _tail(
        self, shape: StageShape, segment: Segment, wanted: Sequence[_Want], block: int, ends: Sequence[int]
    ) -> Operation:
        core, units = shape.core, shape.blocks[block]
        taken = -(-units // core.tail_width)
        output = any(node.name == self.layer.cell.output for node in segment.nodes)
        result = taken - 1 + shape.visible_cycles(self.layer.cell.output) if output else taken
        arrived = (Dependence(ends[block], core.latency.mvm_cycles(core.ep)),) if segment.index == 0 else ()
        return Operation(
            TAIL,
            cycles=taken,
            needs=(*arrived, *self._reads(shape, wanted, block)),
            frees=self.member if segment.index == 0 else None,
            result_cycles=result,
            label="tail",
            place=(*self.place, block, 0, segment.stage, segment.index),
            member=self.member,
        )

    def _wanted(self, shape: StageShape, segment: Segment) -> list[_Want]:
        """The values that a segment reads from earlier segments of the step, and from states of the step before."""
        cell = self.layer.cell
        names = {each.name for each in cell.nodes}
        wanted = []
        for name in segment.inputs:
            node = cell.states.get(name, name)
            if node not in names:
                continue
            home = segment_of(cell, node)
            users = [each for each in (*segment.nodes, *segment.reductions) if name in each.sources]
            if not users or (name in cell.states and self._implied(shape, segment, node, home)):
                continue
            needed = min(begins(each, shape.depth, segment) for each in users)
            reduced = kinds(cell)[node] == "scalar"
            wanted.append(_Want(home, shape.depth[node] - needed, int(name in cell.states), reduced))
        return wanted

    def _reads(self, shape: StageShape, wanted: Sequence[_Want], block: int) -> list[Dependence]:
        """The dependences of one row block on what its segment reads."""
        delays: dict[tuple[int, int], int] = {}
        for want in wanted:
            other = self.shapes[want.home[0]]
            for number, turns in [_last_turn(other)] if want.reduced else _overlaps(shape, block, other):
                key = (self.homes[want.home] + number, want.lag)
                delays[key] = max(delays.get(key, 0), turns + want.cycles)
        return [Dependence(each, delay, lag=lag) for (each, lag), delay in sorted(delays.items()) if delay > 0]

    def _implied(self, shape: StageShape, segment: Segment, node: str, home: tuple[int, int]) -> bool:
        """Whether a state is there anyway, because the sums have waited for all of h, which comes after it."""
        cell = self.layer.cell
        reads_h = any("h" in each.vectors for each in cell.stages[: segment.stage + 1])
        return reads_h and home == segment_of(cell, cell.output) and shape.depth[node] <= shape.depth[cell.output]


def _last_turn(shape: StageShape) -> tuple[int, int]:
    """(row block, turns) of the last unit: what is reduced over all units counts from its turn."""
    return len(shape.blocks) - 1, (shape.blocks[-1] - 1) // shape.core.tail_width


def _overlaps(shape: StageShape, block: int, other: StageShape) -> list[tuple[int, int]]:
    """Row blocks of another stage that share units with one of this: (block, how many turns later its units come)."""
    width = shape.core.tail_width
    first = block * shape.units_per_block
    last = first + shape.blocks[block] - 1
    overlaps = []
    for index in range(first // other.units_per_block, last // other.units_per_block + 1):
        start = index * other.units_per_block
        low, high = max(first, start), min(last, start + other.blocks[index] - 1)
        units = range(low, min(high, low + width) + 1)
        overlaps.append((index, max((unit - start) // width - (unit - first) // width for unit in units)))
    return overlaps
