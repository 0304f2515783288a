"""One step of one pass (a layer in one direction) as operations of the column-wise NPU's array and tail.

Tiles are in `lstmsim.targets.column_tiles`; a tail operation is one segment of one row block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lstmsim.program.program import Dependence, Operation
from lstmsim.targets.column_npu import ColumnCore
from lstmsim.targets.column_shape import StageShape, issue_order, pass_shapes
from lstmsim.targets.column_tail import begins
from lstmsim.targets.column_tiles import ARRAY, Group, Source, Tiles, column_groups
from lstmsim.workload.model import Layer
from lstmsim.workload.segments import Segment, kinds, segment_of, segments

__all__ = ["ARRAY", "TAIL", "Source", "pass_operations"]

#: Number of the tail unit among the units of a core.
TAIL = 1

#: Index in the body of the first tail operation of each segment (stage, index).
Homes = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class _Want:
    """A value that a segment reads: the segment that gives it, from when on relative to equal turns, lag, whether it is
    one for all units."""

    home: tuple[int, int]
    cycles: int
    lag: int
    reduced: bool


@dataclass(frozen=True)
class _Pass:
    """One step of a pass: its stages, where it stands, what x is made of, and where its tails are in the body."""

    shapes: tuple[StageShape, ...]
    place: tuple[int, int]
    x: tuple[Source, ...]
    x_last: bool
    homes: Homes

    @cached_property
    def layer(self) -> Layer:
        return self.shapes[0].layer

    def homes_from(self, base: int) -> Homes:
        """Where in the body, which the operations enter at `base`, the tails begin; `homes` may still be a guess."""
        homes: dict[tuple[int, int], int] = {}
        for shape, tiles in zip(self.shapes, self._tiles(), strict=True):
            base += tiles.total
            for segment in segments(self.layer.cell):
                if segment.stage == shape.number:
                    homes[segment.stage, segment.index] = base
                    base += len(shape.blocks)
        return homes

    def operations(self, base: int) -> list[Operation]:
        """Stage after stage, tiles before tails."""
        operations: list[Operation] = []
        for shape, tiles in zip(self.shapes, self._tiles(), strict=True):
            issued, last = tiles.by_row() if shape.core.block_order == "row" else tiles.by_column()
            ends = [base + len(operations) + each for each in last]
            operations += issued
            for segment in segments(self.layer.cell):
                if segment.stage == shape.number:
                    wanted = self._wanted(shape, segment)
                    blocks = range(len(shape.blocks))
                    operations += [self._tail(shape, segment, wanted, block, ends) for block in blocks]
        return operations

    def _tiles(self) -> list[Tiles]:
        """The tiles of each stage."""
        waited: set[str] = set()
        found = []
        for shape in self.shapes:
            vectors = issue_order(shape.stage, self.x_last)
            groups = [each for vector in vectors for each in self._waits(shape, vector, waited)]
            found.append(Tiles(shape, self.place, tuple(groups)))
        return found

    def _waits(self, shape: StageShape, vector: str, waited: set[str]) -> list[Group]:
        """The groups of a vector; they wait only where its elements are read for the first time in the step."""
        if vector in waited:
            return column_groups(shape, vector, (), frame=False)
        waited.add(vector)
        if vector == "x":
            return column_groups(shape, vector, self.x, frame=not self.x)
        node = shape.homes(vector)
        home = segment_of(self.layer.cell, node)
        source = Source(self.shapes[home[0]], node, self.homes[home], lag=int(vector == "h"))
        return column_groups(shape, vector, (source,), frame=False)

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
            frees=0 if segment.index == 0 else None,
            result_cycles=result,
            label="tail",
            place=(*self.place, block, 0, segment.stage, segment.index),
        )

    def _wanted(self, shape: StageShape, segment: Segment) -> list[_Want]:
        """What a segment reads of earlier ones of the step, and of the states of the step before."""
        cell = self.layer.cell
        names = {each.name for each in cell.nodes}
        found = []
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
            found.append(_Want(home, shape.depth[node] - needed, int(name in cell.states), reduced))
        return found

    def _reads(self, shape: StageShape, wanted: Sequence[_Want], block: int) -> list[Dependence]:
        """The dependences of one row block on what its segment reads."""
        found: dict[tuple[int, int], int] = {}
        for want in wanted:
            other = self.shapes[want.home[0]]
            for number, turns in [_last_turn(other)] if want.reduced else _overlaps(shape, block, other):
                key = (self.homes[want.home] + number, want.lag)
                found[key] = max(found.get(key, 0), turns + want.cycles)
        return [Dependence(each, delay, lag=lag) for (each, lag), delay in sorted(found.items()) if delay > 0]

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
    found = []
    for index in range(first // other.units_per_block, last // other.units_per_block + 1):
        start = index * other.units_per_block
        low, high = max(first, start), min(last, start + other.blocks[index] - 1)
        units = range(low, min(high, low + width) + 1)
        found.append((index, max((unit - start) // width - (unit - first) // width for unit in units)))
    return found


def pass_operations(
    layer: Layer, core: ColumnCore, place: tuple[int, int], x: Sequence[Source], base: int, x_last: bool
) -> tuple[list[Operation], Source]:
    """The operations of one step of a pass, and its h as a source. `place` is (layer, direction).

    Where its own tails stand in the body depends on how many tiles it has, so these are counted first.
    """
    shapes = pass_shapes(layer, core)
    guess: Homes = {(each.stage, each.index): base for each in segments(layer.cell)}
    homes = _Pass(shapes, place, tuple(x), x_last, guess).homes_from(base)
    operations = _Pass(shapes, place, tuple(x), x_last, homes).operations(base)
    home = segment_of(layer.cell, layer.cell.output)
    return operations, Source(shapes[home[0]], layer.cell.output, homes[home])
