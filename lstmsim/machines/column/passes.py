"""The array's part of a pass on the column-wise NPU: column groups, what they wait for, and tiles in their order.

An array operation is a run of tiles that wait for the same things; each tile takes one cycle. Only the first row block
that reads a group waits for its elements. The array is in order, so the group is visible long before a later block or
stage reads it. Results become visible in the order of units, so a tile waits for the last unit of its group only.

One step of one pass (a layer in one direction) as operations of the column-wise NPU, on one core or on several.

Tiles are in `lstmsim.machines.column.passes`. A tail operation is one segment of one row block. An exchange operation
sends one vector's elements of one row block to the other cores of a job, and a link operation sends them on from there
to other devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple, overload

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore, Exchange, Latency
from lstmsim.machines.column.shape import (
    ARRAY,
    EXCHANGE,
    LINK,
    TAIL,
    WHOLE,
    Spread,
    StageShape,
    begins,
    depths,
    issue_order,
    pass_shapes,
)
from lstmsim.model.cell import Cell, Segment, kinds, segment_of, segments, segments_by_stage
from lstmsim.model.model import Layer
from lstmsim.program.body_writer import NONE, BodyWriter, Home


class Read(NamedTuple):
    """Elements as tiles read them: the units of a share become visible as operations give them, one for each row block.

    The first of these operations stands `offset` after its home, the next ones follow `stride` apart. `width` units
    come in each cycle, the first ones `cycles` after the operation's start. `lag`, `phase` and `mirrored` are those of
    the need.
    """

    shape: StageShape
    home: Home
    offset: int
    stride: int
    width: int
    cycles: int
    lag: int = 0
    phase: int = NONE
    mirrored: bool = False

    def wait(self, unit: int) -> tuple[Wait, int]:
        """The wait of a tile that reads the result of that unit; and the last unit for which it is the same."""
        shape, width = self.shape, self.width
        block, place = divmod(unit, shape.units_per_block)
        turn = place // width
        last = block * shape.units_per_block + min((turn + 1) * width, shape.blocks[block]) - 1
        return Wait(self, block, turn), last


class Wait(NamedTuple):
    """What a tile waits for: the units of one turn of a row block."""

    read: Read
    block: int
    turn: int


@record
class Share:
    """The part of a vector that one member gives."""

    shape: StageShape  # the member's share of a stage
    node: str  # name of the results
    core: int  # which of the task's cores the member is on; there the results are visible as the tail gives them
    tails: Home  # where in the body the tail operations that give them begin
    apart: int = 1  # how far apart they stand there
    # the results as other cores see them, after the exchange unit; None if no other core reads them
    sent: Read | None = None
    # the results as other devices see them, after the link; None if no other device reads them
    linked: Read | None = None
    device: int = 0  # the device of the member's core

    @cached_property
    def own(self) -> Read:
        """The elements as they are seen on the member's own core."""
        return Read(
            self.shape, self.tails, 0, self.apart, self.shape.core.tail_width, self.shape.visible_cycles(self.node)
        )


@record
class Source:
    """The elements of a vector, share by share. `lag`, `phase` and `mirrored` are those of needs of them."""

    shares: tuple[Share, ...]
    lag: int = 0
    phase: int = NONE
    mirrored: bool = False

    def read_on(self, core: int, device: int = 0) -> list[Read]:
        """The elements as they are seen on one of the task's cores, which is on that device."""
        reads = []
        for share, own, sent, linked in self._reads:
            read = own if share.core == core else sent if share.device == device else linked
            assert read is not None, "what others read is sent"
            reads.append(read)
        return reads

    def read_by(self, inference: int) -> Read:
        """The elements of one inference of a batch."""
        return self._reads[inference][1]

    @cached_property
    def _reads(self) -> list[tuple[Share, Read, Read | None, Read | None]]:
        """For each share what its own core sees, other cores and other devices, made once for all who read it."""
        changed = self._changed
        return [(each, changed(each.own), changed(each.sent), changed(each.linked)) for each in self.shares]

    @overload
    def _changed(self, read: Read) -> Read: ...
    @overload
    def _changed(self, read: None) -> None: ...
    def _changed(self, read: Read | None) -> Read | None:
        return read and Read(*read[:6], self.lag, self.phase, self.mirrored)


class Group(NamedTuple):
    """Some column groups in a row that wait for the same things."""

    columns: int  # useful columns of each group
    waits: tuple[Wait, ...]  # waits, frame: what they wait for; frame as of an operation
    frame: int
    first: int  # number of the first group
    length: int = 1  # how many groups

    def plain(self) -> Group:
        return Group(self.columns, (), 0, self.first, self.length)


def _joined(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield groups without their waits. Neighbours in the matrix with equal columns are one."""
    columns = first = end = 0
    for group in groups:
        if group.columns != columns or group.first != end:
            if columns:
                yield Group(columns, (), 0, first, end - first)
            columns, first = group.columns, group.first
        end = group.first + group.length
    yield Group(columns, (), 0, first, end - first)


def column_groups(shape: StageShape, vector: str, parts: Sequence[Read], frame: bool) -> list[Group]:
    """The column groups of a vector. Each group waits for the last unit that it reads of each part of the vector."""
    length, ep, index = shape.layer.width(vector), shape.core.ep, shape.first_group(vector)
    if not parts:
        full, rest = divmod(length, ep)
        plain = [Group(ep, (), frame, index, full)] if full else []
        return plain + ([Group(rest, (), frame, index + full)] if rest else [])
    groups: list[Group] = []
    ends = list(accumulate(part.shape.units for part in parts))
    first = number = 0
    while first < length:
        while ends[number] <= first:
            number += 1
        end = min(first + ep, length)
        if end <= ends[number]:
            before = ends[number] - parts[number].shape.units
            wait, alike = parts[number].wait(end - 1 - before)
            # groups that end in the same turn of the same part wait for the same
            count = max(1, (before + alike + 1 - first) // ep)
            waits: tuple[Wait, ...] = (wait,)
        else:
            count, waits = 1, _waits_for_all(parts, ends, number, end)
        groups.append(Group(end - first, waits, False, index + first // ep, count))
        first += count * ep
    return groups


def _waits_for_all(parts: Sequence[Read], ends: Sequence[int], number: int, end: int) -> tuple[Wait, ...]:
    """The waits of a group that reads the parts from `number` on, the last of them up to `end`."""
    waits = []
    for part, part_end in zip(parts[number:], ends[number:], strict=True):
        units = part.shape.units
        waits.append(part.wait(min(end, part_end) - 1 - (part_end - units))[0])
        if end <= part_end:
            break
    return tuple(waits)


@record
class Tiles:
    """The tiles of a stage: its shape, where the pass stands, its column groups in issue order, and whose they are.

    `later` are the groups of every row block but the first: what is waited for once is there for all. A member of the
    task has a buffer of its number: its accumulator banks. All inferences of a batch are on one member.
    """

    shape: StageShape
    place: tuple[int, int]
    groups: tuple[Group, ...]
    member: int
    later: tuple[Group, ...]
    inference: int = 0

    @staticmethod
    def of(
        shape: StageShape, place: tuple[int, int], groups: Sequence[Group], member: int = 0, inference: int = 0
    ) -> Tiles:
        """The tiles of these groups."""
        later = tuple(_joined(groups)) if len(shape.blocks) > 1 else ()
        return Tiles(shape, place, tuple(groups), member, later, inference)

    def write(self, rows: BodyWriter) -> list[int]:
        """Write the tiles; and give for each row block the place of its last tile in the body."""
        return self._by_row(rows) if self.shape.core.block_order == "row" else self._by_column(rows)

    @staticmethod
    def write_batch(rows: BodyWriter, batch: Sequence[Tiles]) -> list[list[int]]:
        """Write the tiles of a batch, and give for each inference the places of its last tiles (as `write`).

        `block_order: row`: row block outermost, then the inferences; `column`: one inference after another.
        """
        if batch[0].shape.core.block_order == "column" or len(batch) == 1:
            return [each.write(rows) for each in batch]
        last: list[list[int]] = [[] for _ in batch]
        for block in range(len(batch[0].shape.blocks)):
            for each, own in zip(batch, last, strict=True):
                each._tiles(rows, block, each.later if block else each.groups, each.member)
                own.append(rows.size - 1)
        return last

    def _tiles(self, rows: BodyWriter, block: int, groups: Iterable[Group], takes: int = NONE) -> None:
        """The runs of tiles of one row block that groups stand for; the first run takes a slot of that buffer."""
        shape, member = self.shape, self.member
        macs, stage, (layer, direction) = len(shape.stage.gates) * shape.blocks[block], shape.number, self.place
        for columns, waits, frame, first, length in groups:
            for (_, home, offset, stride, _, cycles, lag, phase, mirrored), other, turn in waits:
                rows.need(home, offset + other * stride, turn + cycles, lag, phase, mirrored)
            rows.operation(
                ARRAY,
                "mvm",
                (layer, direction, block, first, stage),
                count=length,
                frame=frame,
                takes=takes,
                work=macs * columns,
                member=member,
                inference=self.inference,
            )
            takes = NONE

    def _by_row(self, rows: BodyWriter) -> list[int]:
        """Row block outer, column group inner."""
        blocks, later = self.shape.blocks, self.later
        self._tiles(rows, 0, self.groups, self.member)
        last = [rows.size - 1]
        for block in range(1, len(blocks)):
            if block > 1 and blocks[block] == blocks[1]:
                names = [("mvm", (*self.place, block, group.first, self.shape.number)) for group in later]
                rows.again(rows.size - len(later), names)
            else:
                self._tiles(rows, block, later, self.member)
            last.append(rows.size - 1)
        return last

    def _by_column(self, rows: BodyWriter) -> list[int]:
        """Column group outer, row block inner."""
        sizes = self.shape.blocks
        blocks = range(len(sizes))
        equal = [block for block in blocks[1:] if sizes[block] == sizes[0]]
        singles = [g._replace(length=1, first=g.first + i) for g in self.groups for i in range(g.length)]
        for number, group in enumerate(singles):
            takes = self.member if number == 0 else NONE
            self._tiles(rows, 0, [group], takes)
            bare = group.plain()
            alone = blocks[1:]
            if number not in (0, len(singles) - 1):
                if equal:
                    self._tiles(rows, equal[0], [bare._replace(length=len(equal))])
                alone = blocks[1 + len(equal) :]
            for block in alone:
                self._tiles(rows, block, [bare], takes)
        return list(range(rows.size - len(blocks), rows.size))


#: Where in the body the operations of each segment of a share begin: by stage, segment and unit (tail, exchange, link).
Homes = Mapping[tuple[int, int, int], Home]

#: Cells with other latencies or tails whose reads are kept: a sweep has some hundreds, each is a few numbers.
_MOST_KEPT = 1024


class Wanted(NamedTuple):
    """A value that a segment reads."""

    home: tuple[int, int]  # the segment that gives the value
    cycles: int  # how long after the giving segment the reading one may start, for units with equal turns
    lag: int  # 1 if the value is from the step before, else 0
    reduced: bool  # whether it is one value for all units


@lru_cache(_MOST_KEPT)
def wanted(cell: Cell, latency: Latency, tail_width: int, stage: int, index: int) -> tuple[Wanted, ...]:
    """The values that a segment reads from earlier segments of the step, and from states of the step before."""
    depth = depths(cell, vars(latency), tail_width)
    segment = next(each for each in segments(cell) if (each.stage, each.index) == (stage, index))
    names = {each.name for each in cell.nodes}
    wants = []
    for name in segment.inputs:
        node = cell.states.get(name, name)
        if node not in names:
            continue
        home = segment_of(cell, node)
        users = [each for each in (*segment.nodes, *segment.reductions) if name in each.sources]
        if not users or (name in cell.states and _implied(cell, depth, segment, node, home)):
            continue
        needed = min(begins(each, depth, segment) for each in users)
        reduced = kinds(cell)[node] == "scalar"
        wants.append(Wanted(home, depth[node] - needed, int(name in cell.states), reduced))
    return tuple(wants)


def _implied(cell: Cell, depth: Mapping[str, int], segment: Segment, node: str, home: tuple[int, int]) -> bool:
    """Whether a state is there anyway, because the sums have waited for all of h, which comes after it."""
    reads_h = any("h" in each.vectors for each in cell.stages[: segment.stage + 1])
    return reads_h and home == segment_of(cell, cell.output) and depth[node] <= depth[cell.output]


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


class _Pass:
    """One step of a pass.

    layer: the layer.
    place: (layer, direction).
    x: the sources of x; empty: x is an input frame.
    x_last: whether x is ready later than h.
    spread: the members of the pass.
    shapes: for each share of its units, the shapes of the stages.
    homes: for each share, where in the body the operations of each segment begin.
    """

    def __init__(
        self, layer: Layer, core: ColumnCore, place: tuple[int, int], x: Sequence[Source], x_last: bool, spread: Spread
    ) -> None:
        self.layer, self.place, self.x, self.x_last, self.spread = layer, place, x, x_last, spread
        shares = len(spread.members) // spread.batch
        self.shapes = [pass_shapes(layer, core, share, shares) for share in range(shares)] * spread.batch
        self.homes: list[Homes] = [defaultdict(Home) for _ in self.shapes]
        self._sources: dict[tuple[str, int], Source] = {}
        self._shares: dict[str, tuple[Share, ...]] = {}

    def write(self, rows: BodyWriter) -> None:
        """Write the operations: stage after stage, share after share, first tiles, then tails, then exchanges."""
        if self.spread.batch > 1:
            self._write_batch(rows)
            return
        waited: list[set[str]] = [set() for _ in self.shapes]
        for stage, own in enumerate(segments_by_stage(self.layer.cell)):
            for share, shapes in enumerate(self.shapes):
                shape = shapes[stage]
                vectors = issue_order(shape.stage, self.x_last)
                groups = [each for vector in vectors for each in self._waits(share, shape, vector, waited[share])]
                ends = Tiles.of(shape, self.place, groups, self.spread.members[share]).write(rows)
                for segment in own:
                    self._tails(share, rows, segment, ends)
                    self._sends(share, rows, segment)

    def _write_batch(self, rows: BodyWriter) -> None:
        """Write the operations of a batch: stage after stage, first tiles, then tails, segment by segment.

        The tail takes the first segments in the order of the last tiles, later ones inference by inference.
        """
        waited: list[set[str]] = [set() for _ in self.shapes]
        for stage, own in enumerate(segments_by_stage(self.layer.cell)):
            tiles = []
            for number, shapes in enumerate(self.shapes):
                shape = shapes[stage]
                vectors = issue_order(shape.stage, self.x_last)
                groups = [each for vector in vectors for each in self._waits(number, shape, vector, waited[number])]
                tiles.append(Tiles.of(shape, self.place, groups, inference=number))
            ends = Tiles.write_batch(rows, tiles)
            for segment in own:
                blocks = [range(index, index + 1) for index in range(len(tiles[0].shape.blocks))]
                for some in blocks if self._apart(segment.index) > 1 else [range(len(blocks))]:
                    for number, last in enumerate(ends):
                        self._tails(number, rows, segment, last, some)

    def _apart(self, index: int) -> int:
        """How far apart the tail operations of a share's row blocks stand, by the number of their segment."""
        row = self.shapes[0][0].core.block_order == "row"
        return self.spread.batch if row and index == 0 else 1

    def _tails(
        self, share: int, rows: BodyWriter, segment: Segment, ends: Sequence[int], some: Sequence[int] = ()
    ) -> None:
        """Write a segment's tail operations, whose blocks have their last tiles at the places `ends` in the body.

        some: the row blocks whose operations are written; empty: all.
        """
        shape, cell, first = self.shapes[share][segment.stage], self.layer.cell, segment.index == 0
        core = shape.core
        wants = wanted(cell, core.latency, core.tail_width, segment.stage, segment.index)
        arrival_cycles = core.latency.mvm_cycles(core.ep)
        frees = self.spread.members[share] if first else NONE
        after_last_turn = 1
        if any(node.name == cell.output for node in segment.nodes):
            after_last_turn = shape.visible_cycles(cell.output)
        layer, direction = self.place
        if not some or 0 in some:
            rows.begin(self.homes[share][segment.stage, segment.index, TAIL])
        for block in some or range(len(shape.blocks)):
            units = shape.blocks[block]
            if first:
                rows.need(None, ends[block], arrival_cycles)
            if wants:
                self._reads(share, rows, shape, wants, block)
            taken = -(-units // core.tail_width)
            rows.operation(
                TAIL,
                "tail",
                (layer, direction, block, 0, segment.stage, segment.index),
                cycles=taken,
                frees=frees,
                result_cycles=taken - 1 + after_last_turn,
                member=self.spread.members[share],
                inference=share if self.spread.batch > 1 else 0,
            )

    def _sends(self, share: int, rows: BodyWriter, segment: Segment) -> None:
        """Write the operations that send nodes of a segment: row block by row block, node by node.

        They wait for the first units only: no more is taken in a cycle than comes, so the others are there by their
        turns. What goes over the link has come over the exchange.
        """
        shape, where, homes = self.shapes[share][segment.stage], (segment.stage, segment.index), self.homes[share]
        member, spread = self.spread.members[share], self.spread
        sent = self._sent(EXCHANGE, share, segment)
        device = spread.device(spread.cores[share])
        levels = ((EXCHANGE, EXCHANGE, member), (LINK, device, spread.first_sender + member))
        for level, unit, own in levels:
            nodes = sent if level == EXCHANGE else self._sent(LINK, share, segment)
            way, rate = self._way(level, shape.core)
            if nodes:
                rows.begin(homes[*where, level])
            for block, units in enumerate(shape.blocks):
                taken = -(-units // rate)
                for node in nodes:
                    if level == EXCHANGE:
                        rows.need(homes[*where, TAIL], block, shape.visible_cycles(node))
                    else:
                        from_exchange = block * len(sent) + sent.index(node)
                        rows.need(homes[*where, EXCHANGE], from_exchange, spread.exchange.visible_cycles)
                    rows.operation(
                        unit,
                        "exchange" if level == EXCHANGE else "link",
                        (*self.place, block, 0, *where),
                        cycles=taken,
                        result_cycles=taken - 1 + way.visible_cycles,
                        member=own,
                    )

    def _way(self, level: int, core: ColumnCore) -> tuple[Exchange, int]:
        """The exchange or the link, and how many elements it takes in a cycle."""
        exchange, link = self.spread.exchange, self.spread.link
        rate = exchange.rate(core.tail_width)
        return (exchange, rate) if level == EXCHANGE else (link, link.rate(rate))

    def _reads(self, share: int, rows: BodyWriter, shape: StageShape, wants: Sequence[Wanted], block: int) -> None:
        """Write the needs of one row block for what its segment reads, in the order of the segments."""
        delays: dict[tuple[tuple[int, int], int, int], int] = {}
        for want in wants:
            other = self.shapes[share][want.home[0]]
            for number, turns in [_last_turn(other)] if want.reduced else _overlaps(shape, block, other):
                key = (want.home, number, want.lag)
                delays[key] = max(delays.get(key, 0), turns + want.cycles)
        for (home, number, lag), delay in sorted(delays.items()):
            if delay > 0:
                rows.need(self.homes[share][*home, TAIL], number * self._apart(home[1]), delay, lag)

    def source(self, node: str, lag: int = 0) -> Source:
        """Give the results of a node of the pass as a source; `lag`: how many steps before the reading step."""
        if (node, lag) not in self._sources:
            if node not in self._shares:
                self._shares[node] = tuple([self._share(share, node) for share in range(len(self.shapes))])
            self._sources[node, lag] = Source(self._shares[node], lag)
        return self._sources[node, lag]

    def _waits(self, share: int, shape: StageShape, vector: str, waited: set[str]) -> list[Group]:
        """Give the column groups of a vector; they wait only for elements that the step reads for the first time."""
        if vector in waited:
            return column_groups(shape, vector, (), frame=False)
        waited.add(vector)
        sources = self.x if vector == "x" else (self.source(shape.homes(vector), lag=int(vector == "h")),)
        if self.spread.batch > 1:
            reads = [source.read_by(share) for source in sources]
        else:
            core = self.spread.cores[share]
            reads = [read for source in sources for read in source.read_on(core, self.spread.device(core))]
        return column_groups(shape, vector, reads, frame=not sources)

    def _share(self, share: int, node: str) -> Share:
        """Give the part of a vector that one member computes."""
        stage, index = segment_of(self.layer.cell, node)
        shape, core = self.shapes[share][stage], self.spread.cores[share]
        tails = self.homes[share][stage, index, TAIL]
        sent, linked = [self._on_its_way(level, share, node) for level in (EXCHANGE, LINK)]
        return Share(shape, node, core, tails, self._apart(index), sent, linked, self.spread.device(core))

    def _on_its_way(self, level: int, share: int, node: str) -> Read | None:
        """The results of a node as they are seen behind the exchange or the link; None if nobody reads them there."""
        stage, index = segment_of(self.layer.cell, node)
        nodes = self._sent(level, share, segments_by_stage(self.layer.cell)[stage][index])
        if node not in nodes:
            return None
        shape = self.shapes[share][stage]
        way, rate = self._way(level, shape.core)
        home = self.homes[share][stage, index, level]
        return Read(shape, home, nodes.index(node), len(nodes), rate, way.visible_cycles)

    def _sent(self, level: int, share: int, segment: Segment) -> list[str]:
        """Name the results of a segment that are read beyond a level, in the order of their times, then by name."""
        if len({*self.spread.cores, *self.spread.readers}) == 1:
            return []
        shape = self.shapes[share][segment.stage]
        names = [each.name for each in segment.nodes if self.spread.sends_to(level, share, self._readers(each.name))]
        return sorted(names, key=lambda name: (shape.visible_cycles(name), name))

    def _readers(self, node: str) -> list[str]:
        """Name the readers of a node as a vector: a product of the pass itself (`h`), the layer above (`above`)."""
        cell = self.layer.cell
        vectors = {vector for stage in cell.stages for vector in stage.vectors}
        own = node in vectors or (node == cell.output and "h" in vectors)
        return ["h"] * own + ["above"] * (node == cell.output)


def write_pass(
    rows: BodyWriter,
    layer: Layer,
    core: ColumnCore,
    place: tuple[int, int],
    x: Sequence[Source],
    x_last: bool,
    spread: Spread = WHOLE,
) -> Source:
    """Write the operations of one step of a pass, and give its h as a source."""
    one = _Pass(layer, core, place, x, x_last, spread)
    one.write(rows)
    return one.source(layer.cell.output)
