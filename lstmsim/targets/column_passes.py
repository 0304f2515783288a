"""One step of one pass (a layer in one direction) as operations of the column-wise NPU's array and tail.

An array operation is a run of tiles that wait for the same things (one cycle a tile); a tail operation is one segment
of one row block. A group's elements are waited for once, by the first row block that reads them: the array is in order,
so when a later block or stage reads the same group it has been visible for long. Results become visible in unit
order, so the last unit of a group speaks for the whole group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lstmsim.program.program import Dependence, Operation
from lstmsim.targets.column_npu import ColumnCore
from lstmsim.targets.column_shape import StageShape, issue_order, pass_shapes
from lstmsim.targets.column_tail import begins
from lstmsim.workload.model import Layer
from lstmsim.workload.segments import Segment, kinds, segment_of, segments

__all__ = ["ARRAY", "TAIL", "Source", "pass_operations"]

ARRAY, TAIL = 0, 1

#: Index in the body of the first tail operation of each segment (stage, index).
Homes = Mapping[tuple[int, int], int]


@dataclass(frozen=True)
class Source:
    """A vector's elements: results `node` of a stage, whose tail operations begin at `first_tail` in their body.

    `lag`, `phase` and `mirrored` are those of the dependence.
    """

    shape: StageShape
    node: str
    first_tail: int
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False

    @property
    def width(self) -> int:
        """Elements that this source gives."""
        return self.shape.layer.width(self.node)

    def need(self, unit: int) -> Dependence:
        """The dependence of a tile that reads the result of that unit."""
        block, cycles = self.shape.turn(unit)
        delay = cycles + self.shape.visible_cycles(self.node)
        return Dependence(self.first_tail + block, delay, "hazard", self.lag, self.phase, self.mirrored)


@dataclass(frozen=True)
class _Group:
    """`count` column groups in a row that wait for the same: useful columns of each, dependences, frame, index."""

    columns: int
    needs: tuple[Dependence, ...]
    frame: bool
    index: int
    count: int = 1


def _joined(groups: Sequence[_Group]) -> list[_Group]:
    """Equal neighbours in the matrix as one."""
    joined: list[_Group] = []
    for group in groups:
        if joined:
            before = joined[-1]
            same = (before.columns, before.needs, before.frame) == (group.columns, group.needs, group.frame)
            if same and before.index + before.count == group.index:
                count = before.count + group.count
                joined[-1] = _Group(before.columns, before.needs, before.frame, before.index, count)
                continue
        joined.append(group)
    return joined


def _groups(shape: StageShape, vector: str, sources: Sequence[Source], frame: bool) -> list[_Group]:
    """The column groups of a vector, each waiting for the last unit that it reads of each source."""
    length, ep, index = shape.layer.width(vector), shape.core.ep, shape.first_group(vector)
    if not sources:
        full, rest = divmod(length, ep)
        plain = [_Group(ep, (), frame, index, full)] if full else []
        return plain + ([_Group(rest, (), frame, index + full)] if rest else [])
    widths = [source.width for source in sources]
    groups: list[_Group] = []
    first = 0
    while first < length:
        last = min(first + ep, length) - 1
        needs, offset, same = [], 0, length
        for source, width in zip(sources, widths, strict=True):
            if first < offset + width and last >= offset:
                unit = min(last - offset, width - 1)
                needs.append(source.need(unit))
                # a group that ends in the same turn of the same source waits for the same
                same = min(same, offset + source.shape.last_of_turn(unit) if first >= offset else last)
            offset += width
        count = max(1, (min(same, length - 1) + 1 - first) // ep) if last + 1 - first == ep else 1
        groups.append(_Group(last + 1 - first, tuple(needs), False, index + first // ep, count))
        first += count * ep
    return _joined(groups)


@dataclass(frozen=True)
class _Tiles:
    """The tiles of a stage: its shape, where the pass stands, and its column groups in issue order."""

    shape: StageShape
    place: tuple[int, int]
    groups: tuple[_Group, ...]

    def tile(self, block: int, group: _Group, **changes: object) -> Operation:
        shape = self.shape
        work = len(shape.stage.gates) * shape.blocks[block] * group.columns
        place = (*self.place, block, group.index, shape.number)
        return Operation(ARRAY, count=group.count, work=work, label="mvm", place=place, **changes)  # type: ignore[arg-type]

    def by_row(self) -> tuple[list[Operation], list[int]]:
        """Row block outer, column group inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        last = []
        later = _joined([replace(group, needs=(), frame=False) for group in self.groups])
        for block in range(len(self.shape.blocks)):
            for number, group in enumerate(later if block else self.groups):
                takes = 0 if number == 0 else None
                tiles.append(self.tile(block, group, needs=group.needs, frame=group.frame, takes=takes))
            last.append(len(tiles) - 1)
        return tiles, last

    def by_column(self) -> tuple[list[Operation], list[int]]:
        """Column group outer, row block inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        blocks = range(len(self.shape.blocks))
        singles = [replace(g, count=1, index=g.index + i) for g in self.groups for i in range(g.count)]
        for number, group in enumerate(singles):
            takes = 0 if number == 0 else None
            tiles.append(self.tile(0, group, needs=group.needs, frame=group.frame, takes=takes))
            bare = replace(group, needs=(), frame=False)
            if number in (0, len(singles) - 1):
                tiles.extend(self.tile(block, bare, takes=takes) for block in blocks[1:])
                continue
            equal = [block for block in blocks[1:] if self.shape.blocks[block] == self.shape.blocks[0]]
            if equal:
                tiles.append(self.tile(equal[0], replace(bare, count=len(equal))))
            tiles.extend(self.tile(block, bare) for block in blocks[1 + len(equal) :])
        return tiles, list(range(len(tiles) - len(blocks), len(tiles)))


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

    def operations(self, base: int) -> tuple[list[Operation], Homes]:
        """Stage after stage, tiles before tails; and where in the body, which they enter at `base`, the tails begin."""
        operations: list[Operation] = []
        homes: dict[tuple[int, int], int] = {}
        waited: set[str] = set()
        for shape in self.shapes:
            groups = [
                each for vector in issue_order(shape.stage, self.x_last) for each in self._waits(shape, vector, waited)
            ]
            tiles = _Tiles(shape, self.place, tuple(groups))
            issued, last = tiles.by_row() if shape.core.block_order == "row" else tiles.by_column()
            ends = [base + len(operations) + each for each in last]
            operations += issued
            for segment in segments(self.layer.cell):
                if segment.stage == shape.number:
                    homes[segment.stage, segment.index] = base + len(operations)
                    wanted = self._wanted(shape, segment)
                    blocks = range(len(shape.blocks))
                    operations += [self._tail(shape, segment, wanted, block, ends) for block in blocks]
        return operations, homes

    def _waits(self, shape: StageShape, vector: str, waited: set[str]) -> list[_Group]:
        """The groups of a vector; they wait only where its elements are read for the first time in the step."""
        if vector in waited:
            return _groups(shape, vector, (), frame=False)
        waited.add(vector)
        if vector == "x":
            return _groups(shape, vector, self.x, frame=not self.x)
        node = shape.homes(vector)
        home = segment_of(self.layer.cell, node)
        source = Source(self.shapes[home[0]], node, self.homes[home], lag=int(vector == "h"))
        return _groups(shape, vector, (source,), frame=False)

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

    Where its own tails stand in the body depends on how many tiles it has, so it is built twice.
    """
    shapes = pass_shapes(layer, core)
    homes: Homes = {(each.stage, each.index): base for each in segments(layer.cell)}
    for _ in range(2):
        operations, homes = _Pass(shapes, place, tuple(x), x_last, homes).operations(base)
    home = segment_of(layer.cell, layer.cell.output)
    return operations, Source(shapes[home[0]], layer.cell.output, homes[home])
